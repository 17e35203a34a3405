//! Small files of procfs and sysfs.

use rustix::fs::{Mode, OFlags};

/// Reads the beginning of such a file into `buffer`, with one system call.
pub fn read_small_file<'a>(path: &str, buffer: &'a mut [u8]) -> Option<&'a [u8]> {
    let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let length = rustix::io::read(&file, &mut *buffer).ok()?;
    buffer.get(..length)
}
