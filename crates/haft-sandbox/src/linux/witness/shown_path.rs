//! The path of an open file.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

/// The path that the kernel shows for an open file, from the root directory of its mount namespace.
pub(super) fn shown_path(fd: &OwnedFd) -> Result<PathBuf, Errno> {
    match shown_by_kernel(fd) {
        Err(Errno::NAMETOOLONG) => long_path(fd),
        path => path,
    }
}

fn shown_by_kernel(fd: &OwnedFd) -> Result<PathBuf, Errno> {
    let link = rustix::fs::readlink(format!("/proc/self/fd/{}", fd.as_raw_fd()), Vec::new())?.into_bytes();
    if link.first() != Some(&b'/') {
        return Err(Errno::NOENT);
    }
    Ok(PathBuf::from(OsString::from_vec(link)))
}

/// The kernel shows no path longer than a page, so the names of the lower directories are looked up in their parents.
fn long_path(fd: &OwnedFd) -> Result<PathBuf, Errno> {
    if FileType::from_raw_mode(rustix::fs::fstat(fd)?.st_mode) != FileType::Directory {
        return Err(Errno::NAMETOOLONG);
    }
    let mut names = Vec::new();
    let mut directory = rustix::io::fcntl_dupfd_cloexec(fd, 0)?;
    loop {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let parent = rustix::fs::openat(&directory, "..", flags, Mode::empty())?;
        names.push(name_in(&parent, &directory)?);
        match shown_by_kernel(&parent) {
            Err(Errno::NAMETOOLONG) => directory = parent,
            Err(error) => return Err(error),
            Ok(mut path) => {
                path.extend(names.iter().rev());
                return Ok(path);
            }
        }
    }
}

/// The name of a directory in the one above it.
fn name_in(parent: &OwnedFd, directory: &OwnedFd) -> Result<OsString, Errno> {
    let stat = rustix::fs::fstat(directory)?;
    for entry in rustix::fs::Dir::read_from(parent)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if entry.ino() != stat.st_ino || name == "." || name == ".." {
            continue;
        }
        let named = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if (named.st_dev, named.st_ino) == (stat.st_dev, stat.st_ino) {
            return Ok(name.to_owned());
        }
    }
    Err(Errno::NOENT)
}
