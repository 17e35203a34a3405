//! Opens regular files by path without waiting for anything.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

use crate::read_bounded;

/// Opens a regular file for reading, links followed. Anything else is an error: a FIFO would block, and opening a device may
/// have an effect.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let flags = i32::try_from((OFlags::NONBLOCK | OFlags::NOCTTY).bits()).unwrap_or(0);
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
    }
}

/// Reads a regular file of at most `max_bytes`, links followed.
pub fn read_regular(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    let bytes = read_bounded(open_regular(path)?, max_bytes)?;
    bytes.ok_or_else(|| io::Error::new(io::ErrorKind::FileTooLarge, "too large"))
}
