//! Files that a caller names.

use std::fs::{File, Metadata};
use std::io::{Error, ErrorKind, Read as _, Result};
use std::path::Path;

/// Content of a file. A device is refused: many of them have no end.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    // Before the file is opened, which some devices wait for.
    if is_device(&path.metadata()?) {
        return Err(Error::new(ErrorKind::InvalidInput, "it is a device; name a file"));
    }
    let mut content = Vec::new();
    File::open(path)?.read_to_end(&mut content)?;
    Ok(content)
}

#[cfg(unix)]
fn is_device(metadata: &Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    let kind = metadata.file_type();
    kind.is_char_device() || kind.is_block_device()
}

#[cfg(not(unix))]
fn is_device(_metadata: &Metadata) -> bool {
    false
}
