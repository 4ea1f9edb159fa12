//! Files that a caller names.

use std::fs::{File, Metadata};
use std::io::{Error, ErrorKind, Read as _, Result, stdin};
use std::path::Path;

const STDIN: &str = "/dev/stdin";

/// Content of a file. A device is refused, since many of them have no end, and so is a named pipe, since its writer may
/// never come. A shell writes into the pipe that it names `/dev/fd/63`, and standard input is open whatever it is.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    // Before the file is opened, which some devices and all pipes wait for.
    let metadata = path.metadata()?;
    if let Some(kind) = special(path, &metadata) {
        return Err(Error::new(ErrorKind::InvalidInput, format!("it is a {kind}; name a file")));
    }
    let mut content = Vec::new();
    if path == Path::new(STDIN) && !metadata.is_file() {
        // To open a named pipe once more would wait for another writer.
        stdin().read_to_end(&mut content)?;
    } else {
        File::open(path)?.read_to_end(&mut content)?;
    }
    Ok(content)
}

#[cfg(unix)]
fn special(path: &Path, metadata: &Metadata) -> Option<&'static str> {
    use std::os::unix::fs::FileTypeExt as _;
    let kind = metadata.file_type();
    if kind.is_char_device() || kind.is_block_device() {
        return Some("device");
    }
    // A pipe without a name has no canonical path, or one that says by which descriptor it is open.
    let is_named = || path != Path::new(STDIN) && path.canonicalize().is_ok_and(|path| !path.starts_with("/dev/fd"));
    (kind.is_fifo() && is_named()).then_some("pipe")
}

#[cfg(not(unix))]
fn special(_path: &Path, _metadata: &Metadata) -> Option<&'static str> {
    None
}
