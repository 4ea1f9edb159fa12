//! Files that a caller names.

use std::fs::{File, Metadata};
use std::io::{Error, ErrorKind, Read as _, Result};
use std::path::Path;

/// Content of a file. A device is refused, since many of them have no end, and so is a named pipe, since its writer may
/// never come. A pipe that is open, such as `/dev/fd/63` of a shell, is read to its end.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    // Before the file is opened, which some devices and all pipes wait for.
    let metadata = path.metadata()?;
    if let Some(kind) = special(path, &metadata) {
        return Err(Error::new(ErrorKind::InvalidInput, format!("it is a {kind}; name a file")));
    }
    let mut content = Vec::new();
    if metadata.is_file() {
        File::open(path)?.read_to_end(&mut content)?;
    } else {
        // To open a named pipe once more would wait for another writer.
        opened(path)?.read_to_end(&mut content)?;
    }
    Ok(content)
}

/// Folders of the open files of a process. Shells differ in which of them they name.
#[cfg(unix)]
const OPEN_FILES: [&str; 2] = ["/dev/fd", "/proc/self/fd"];

/// Number of the open file that a path such as `/dev/fd/63` names.
#[cfg(unix)]
fn descriptor(path: &Path) -> Option<u16> {
    if path == Path::new("/dev/stdin") {
        return Some(0);
    }
    let name = OPEN_FILES.iter().find_map(|folder| path.strip_prefix(folder).ok())?;
    name.to_str()?.parse().ok()
}

#[cfg(unix)]
fn opened(path: &Path) -> Result<File> {
    use std::os::fd::BorrowedFd;
    let Some(number) = descriptor(path) else { return File::open(path) };
    // SAFETY: it is copied at once, which fails if it is not open.
    let named = unsafe { BorrowedFd::borrow_raw(number.into()) };
    named.try_clone_to_owned().map(File::from)
}

#[cfg(not(unix))]
fn opened(path: &Path) -> Result<File> {
    File::open(path)
}

#[cfg(unix)]
fn special(path: &Path, metadata: &Metadata) -> Option<&'static str> {
    use std::os::unix::fs::FileTypeExt as _;
    let kind = metadata.file_type();
    if kind.is_char_device() || kind.is_block_device() {
        return Some("device");
    }
    (kind.is_fifo() && descriptor(path).is_none()).then_some("pipe")
}

#[cfg(not(unix))]
fn special(_path: &Path, _metadata: &Metadata) -> Option<&'static str> {
    None
}
