//! Small files in which the kernel tells something.

use rustix::fs::{Mode, OFlags};

/// The beginning of such a file, as much as `buffer` holds. The kernel gives all of it at once, so it takes one read and no
/// question how long it is.
pub fn read_small_file<'a>(path: &str, buffer: &'a mut [u8]) -> Option<&'a [u8]> {
    let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let length = rustix::io::read(&file, &mut *buffer).ok()?;
    buffer.get(..length)
}
