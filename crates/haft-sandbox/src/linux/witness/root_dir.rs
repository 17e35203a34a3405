//! Opens directories as a program reaches them: from the root directory of its own mount namespace.
//!
//! The kernel would resolve absolute links from Haft's own root directory, so paths are opened without links and links are
//! followed here.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::paths::MAX_LINKS;

/// The root directory of a command.
#[derive(Debug)]
pub(super) struct RootDir(OwnedFd);

impl RootDir {
    pub(super) fn new(fd: OwnedFd) -> Self {
        Self(fd)
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Opens the directory at `path`, relative to `base` unless it is absolute.
    pub(super) fn open_directory(&self, base: BorrowedFd<'_>, path: &[u8]) -> Result<OwnedFd, Errno> {
        let (base, path) = if path.first() == Some(&b'/') { (self.fd(), path) } else { (base, path) };
        match open_without_links(base, path, OFlags::DIRECTORY) {
            // The path of a directory can be longer than one call accepts.
            Err(Errno::LOOP | Errno::NAMETOOLONG) => self.follow(base, path),
            opened => opened,
        }
    }

    /// Opens the directory one component at a time, and follows links.
    fn follow(&self, base: BorrowedFd<'_>, path: &[u8]) -> Result<OwnedFd, Errno> {
        let mut directory = open_without_links(base, b".", OFlags::DIRECTORY)?;
        let mut rest = path.to_vec();
        for _ in 0..=MAX_LINKS {
            match Self::follow_to_link(directory, &rest)? {
                Followed::Directory(directory) => return Ok(directory),
                Followed::Link { parent, target, rest: after } => {
                    directory = if target.first() == Some(&b'/') {
                        open_without_links(self.fd(), b".", OFlags::DIRECTORY)?
                    } else {
                        parent
                    };
                    rest = [&target[..], b"/", &after[..]].concat();
                }
            }
        }
        Err(Errno::LOOP)
    }

    /// Opens components of `path` up to the first link.
    fn follow_to_link(mut directory: OwnedFd, path: &[u8]) -> Result<Followed, Errno> {
        let mut components = path.split(|&byte| byte == b'/');
        while let Some(name) = components.next() {
            if name.is_empty() {
                continue;
            }
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let entry = rustix::fs::openat(&directory, OsStr::from_bytes(name), flags, Mode::empty())?;
            match FileType::from_raw_mode(rustix::fs::fstat(&entry)?.st_mode) {
                FileType::Directory => directory = entry,
                FileType::Symlink if is_in_proc(&entry)? => return Err(Errno::LOOP),
                FileType::Symlink => {
                    let target = rustix::fs::readlinkat(&entry, c"", Vec::new())?.into_bytes();
                    let rest = components.collect::<Vec<_>>().join(&b'/');
                    return Ok(Followed::Link { parent: directory, target, rest });
                }
                _ => return Err(Errno::NOTDIR),
            }
        }
        Ok(Followed::Directory(directory))
    }
}

/// How far a path was followed.
enum Followed {
    Directory(OwnedFd),
    Link { parent: OwnedFd, target: Vec<u8>, rest: Vec<u8> },
}

/// Opens a path that contains no link; fails with ELOOP if it does.
pub(super) fn open_without_links(base: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    // An absolute path is relative to `base`, which is the root directory then.
    let start = path.iter().position(|&byte| byte != b'/').unwrap_or(path.len());
    let relative = path.get(start..).filter(|path| !path.is_empty()).unwrap_or(b".");
    let flags = flags | OFlags::PATH | OFlags::CLOEXEC;
    rustix::fs::openat2(base, relative, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)
}

/// Links in `/proc` lead to something else for Haft than for the program.
fn is_in_proc(link: &OwnedFd) -> Result<bool, Errno> {
    Ok(rustix::fs::fstatfs(link)?.f_type == rustix::fs::PROC_SUPER_MAGIC)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn absolute_links_start_at_the_given_root() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        fs::create_dir_all(path.join("a/b")).unwrap();
        symlink("/a", path.join("absolute")).unwrap();
        symlink("../a/./b/../b", path.join("a/relative")).unwrap();
        symlink("/absolute/relative", path.join("chain")).unwrap();
        symlink("loop", path.join("loop")).unwrap();
        symlink("/etc", path.join("missing")).unwrap();
        fs::write(path.join("file"), "").unwrap();
        let open = |path| rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap();
        let root = RootDir::new(open(path.to_path_buf()));
        let inode = |fd: OwnedFd| rustix::fs::fstat(&fd).unwrap().st_ino;
        let expected = inode(open(path.join("a/b")));
        for reached in
            ["/a/b", "a/b/", "/absolute/b", "absolute/relative", "/chain", "chain/../b", "//a//b//."]
        {
            let opened = root.open_directory(root.fd(), reached.as_bytes());
            assert_eq!(opened.map(inode), Ok(expected), "{reached}");
        }
        for (path, error) in
            [("/loop", Errno::LOOP), ("/missing", Errno::NOENT), ("absolute/../file", Errno::NOTDIR)]
        {
            assert_eq!(root.open_directory(root.fd(), path.as_bytes()).err(), Some(error), "{path}");
        }
    }
}
