//! Resolves a program's path to an open directory and a name in it.
//!
//! The program's arguments are read once. The directory is opened as the program would reach it, and its real path is
//! read back; from then on only the descriptor is used. All changes of sandboxed programs go through the witness one
//! after another, so nothing moves between the check and the action.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use haft_tool::FileId;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::caller::{Caller, open_proc};
use super::own_mounts::OwnMounts;
use super::proc_paths::{is_fd_directory, is_own, without_alias};
use super::root_dir::{RootDir, open_without_links};
use super::shown_path::shown_path;
use super::write_policy::WriteArea;

/// The kernel's limit.
pub(super) const MAX_LINKS: u32 = 40;
/// How long a resolved directory is reused. It is short because programs outside the sandbox may move it.
const CACHE_LIFETIME: Duration = Duration::from_millis(100);
const MAX_CACHED: usize = 256;

/// An open directory.
#[derive(Debug)]
pub(super) struct OpenDir {
    pub(super) fd: OwnedFd,
    pub(super) path: PathBuf,
    pub(super) area: WriteArea,
    /// Whether all its entries are in the same area as itself.
    pub(super) is_uniform: bool,
    /// Whether the kernel lets the command read what is in it.
    pub(super) is_readable: bool,
    /// Whether the command created it or a directory above it.
    pub(super) is_new: bool,
}

/// A name in a directory, existing or not.
#[derive(Debug, Clone)]
pub(super) struct DirectoryEntry {
    pub(super) dir: Rc<OpenDir>,
    pub(super) name: OsString,
    /// Whether the program's path ended with a slash, which only a directory matches.
    pub(super) has_slash: bool,
    /// The length of `.` or `..` if the program's path ended with one.
    pub(super) dots: usize,
    path: PathBuf,
}

impl DirectoryEntry {
    fn new(dir: Rc<OpenDir>, name: &OsStr) -> Self {
        let path = dir.path.join(name);
        Self { dir, name: name.to_owned(), has_slash: false, dots: 0, path }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Another name in the same directory.
    pub(super) fn sibling(&self, name: &OsStr) -> Self {
        Self::new(Rc::clone(&self.dir), name)
    }

    /// The name, with the program's trailing slash.
    pub(super) fn name_as_written(&self) -> Cow<'_, OsStr> {
        if !self.has_slash {
            return Cow::Borrowed(&self.name);
        }
        let mut name = self.name.clone();
        name.push("/");
        Cow::Owned(name)
    }

    pub(super) fn stat(&self) -> Result<Stat, Errno> {
        rustix::fs::statat(&self.dir.fd, &self.name, AtFlags::SYMLINK_NOFOLLOW)
    }

    pub(super) fn file_type(&self) -> Result<FileType, Errno> {
        Ok(FileType::from_raw_mode(self.stat()?.st_mode))
    }

    /// Whether the program's path requires a directory, and the entry is none.
    pub(super) fn is_not_a_directory(&self) -> bool {
        self.has_slash && self.file_type().is_ok_and(|kind| kind != FileType::Directory)
    }

    /// Whether this is the root directory, which has no parent.
    pub(super) fn is_root(&self) -> bool {
        self.dots > 0 && self.path.parent().is_none()
    }

    pub(super) fn exists(&self) -> bool {
        self.stat().is_ok()
    }
}

/// What a path leads to.
pub(super) enum ResolvedTarget {
    Entry(DirectoryEntry),
    /// A descriptor of the program itself, named through `/proc`.
    Fd(OwnedFd),
}

/// Where a path starts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum PathBase {
    Root,
    Directory(u64, u64),
}

/// Classifies directories.
pub(super) trait DirClassifier {
    fn area(&self, path: &Path) -> WriteArea;
    fn is_uniform(&self, path: &Path) -> bool;
    fn is_new(&self, path: &Path) -> bool;
    /// The root of the readable tree around `path`. [`Self::is_readable`] tells whether it is still the same one.
    fn readable_tree<'a>(&self, path: &'a Path) -> Option<&'a Path>;
    fn is_readable(&self, tree: FileId) -> bool;
}

/// Resolves paths; recently resolved directories are cached.
#[derive(Debug)]
pub(super) struct PathLookup {
    root: RootDir,
    /// The directory that programs get in place of `/dev/shm`.
    shared_memory: Option<PathBuf>,
    dirs: HashMap<(PathBase, Vec<u8>), (Rc<OpenDir>, Instant)>,
    /// Open `/proc/TID` directories.
    threads: HashMap<i32, OwnedFd>,
    /// `None` if the command has no mount namespace of its own.
    mounts: Option<OwnMounts>,
}

impl PathLookup {
    pub(super) fn new(root: RootDir, shared_memory: Option<PathBuf>, mounts: Option<OwnMounts>) -> Self {
        Self { root, shared_memory, dirs: HashMap::new(), threads: HashMap::new(), mounts }
    }

    pub(super) fn root(&self) -> &RootDir {
        &self.root
    }

    /// Must be called when a directory or a link is moved or removed.
    pub(super) fn clear(&mut self) {
        self.dirs.clear();
    }

    /// Resolves `path`, without following a link at its end.
    pub(super) fn resolve(
        &mut self,
        caller: Caller,
        base: i32,
        path: &[u8],
        classifier: &dyn DirClassifier,
    ) -> Result<ResolvedTarget, Errno> {
        if path.is_empty() {
            return Err(Errno::NOENT);
        }
        let own = without_alias(path, caller);
        let path = own.as_deref().unwrap_or(path);
        let (parent, name, has_slash) = split(path);
        if matches!(name, b"" | b"." | b"..") {
            let dir = self.directory(caller, base, path, classifier)?;
            return self.entry_of(&dir, name.len(), classifier).map(ResolvedTarget::Entry);
        }
        let dir = self.directory(caller, base, parent, classifier)?;
        if is_fd_directory(&dir.path) {
            if !is_own(&dir.path, caller) {
                return Err(Errno::ACCESS);
            }
            return open_listed_fd(&dir, name);
        }
        let entry = DirectoryEntry::new(dir, OsStr::from_bytes(name));
        Ok(ResolvedTarget::Entry(DirectoryEntry { has_slash, ..entry }))
    }

    /// Follows links at the end of a path. The target of a dangling link is an entry that does not exist.
    pub(super) fn follow(
        &mut self,
        target: ResolvedTarget,
        caller: Caller,
        classifier: &dyn DirClassifier,
    ) -> Result<ResolvedTarget, Errno> {
        let mut target = target;
        for _ in 0..MAX_LINKS {
            let ResolvedTarget::Entry(entry) = &target else { return Ok(target) };
            if entry.file_type() != Ok(FileType::Symlink) {
                return Ok(target);
            }
            let link = rustix::fs::readlinkat(&entry.dir.fd, &entry.name, Vec::new())?.into_bytes();
            target = if link.first() == Some(&b'/') {
                self.resolve(caller, libc::AT_FDCWD, &link, classifier)?
            } else {
                let mut path = entry.dir.path.as_os_str().as_bytes().to_vec();
                path.push(b'/');
                path.extend_from_slice(&link);
                self.resolve(caller, libc::AT_FDCWD, &path, classifier)?
            };
        }
        Err(Errno::LOOP)
    }

    /// The entry of an open file, if it still has its name.
    pub(super) fn entry_of_fd(
        &mut self,
        fd: &OwnedFd,
        classifier: &dyn DirClassifier,
    ) -> Result<DirectoryEntry, Errno> {
        let path = self.real_path(fd)?;
        let dir = self.canonical(path.parent().ok_or(Errno::NOENT)?, classifier)?;
        let entry = DirectoryEntry::new(dir, path.file_name().ok_or(Errno::NOENT)?);
        let (named, open) = (entry.stat()?, rustix::fs::fstat(fd)?);
        if (named.st_dev, named.st_ino) == (open.st_dev, open.st_ino) { Ok(entry) } else { Err(Errno::NOENT) }
    }

    /// The entry at an absolute path without links.
    pub(super) fn entry_at(
        &mut self,
        path: &Path,
        classifier: &dyn DirClassifier,
    ) -> Result<DirectoryEntry, Errno> {
        let (parent, name) = path.parent().zip(path.file_name()).ok_or(Errno::BUSY)?;
        Ok(DirectoryEntry::new(self.canonical(parent, classifier)?, name))
    }

    /// A directory as an entry of its parent.
    fn entry_of(
        &mut self,
        dir: &OpenDir,
        dots: usize,
        classifier: &dyn DirClassifier,
    ) -> Result<DirectoryEntry, Errno> {
        let Some((parent, name)) = dir.path.parent().zip(dir.path.file_name()) else {
            let root = self.canonical(&dir.path, classifier)?;
            return Ok(DirectoryEntry {
                dots: 1,
                path: dir.path.clone(),
                ..DirectoryEntry::new(root, OsStr::new("."))
            });
        };
        Ok(DirectoryEntry { dots, ..DirectoryEntry::new(self.canonical(parent, classifier)?, name) })
    }

    fn canonical(&mut self, path: &Path, classifier: &dyn DirClassifier) -> Result<Rc<OpenDir>, Errno> {
        self.absolute(path.as_os_str().as_bytes(), classifier)
    }

    fn absolute(&mut self, path: &[u8], classifier: &dyn DirClassifier) -> Result<Rc<OpenDir>, Errno> {
        self.cached_or_open(PathBase::Root, path, classifier, |root, path| {
            root.open_directory(root.fd(), path)
        })
    }

    fn directory(
        &mut self,
        caller: Caller,
        base: i32,
        path: &[u8],
        classifier: &dyn DirClassifier,
    ) -> Result<Rc<OpenDir>, Errno> {
        if path.first() == Some(&b'/') {
            return self.absolute(path, classifier);
        }
        let stat = self.stat_base(caller, base).map_err(|error| match error {
            Errno::NOENT => Errno::BADF,
            error => error,
        })?;
        let base_id = PathBase::Directory(stat.st_dev, stat.st_ino);
        let mut mounts = self.mounts.take();
        let opened = self.cached_or_open(base_id, path, classifier, |root, path| {
            let start = open_proc(&caller.base_path(base))?;
            if let Some(mounts) = &mut mounts {
                mounts.check(&start, caller)?;
            }
            root.open_directory(start.as_fd(), path)
        });
        self.mounts = mounts;
        opened
    }

    /// The metadata of the directory that relative paths start from.
    fn stat_base(&mut self, caller: Caller, base: i32) -> Result<Stat, Errno> {
        let name = if base == libc::AT_FDCWD { "cwd".into() } else { format!("fd/{base}") };
        let stat = |thread: &OwnedFd| rustix::fs::statat(thread, &name, AtFlags::empty());
        if let Some(stat) = self.threads.get(&caller.thread()).and_then(|thread| stat(thread).ok()) {
            return Ok(stat);
        }
        // The thread id may have been reused.
        let thread = open_proc(&format!("/proc/{}", caller.thread()))?;
        let result = stat(&thread)?;
        if self.threads.len() >= MAX_CACHED {
            self.threads.clear();
        }
        self.threads.insert(caller.thread(), thread);
        Ok(result)
    }

    fn cached_or_open(
        &mut self,
        base: PathBase,
        path: &[u8],
        classifier: &dyn DirClassifier,
        open: impl FnOnce(&RootDir, &[u8]) -> Result<OwnedFd, Errno>,
    ) -> Result<Rc<OpenDir>, Errno> {
        let key = (base, path.to_vec());
        let now = Instant::now();
        // Other commands move directories, too, so the directory must still have the path by which it is judged.
        if let Some((dir, since)) = self.dirs.get(&key)
            && now.duration_since(*since) < CACHE_LIFETIME
            && shown_path(&dir.fd).is_ok_and(|path| path == dir.path)
        {
            return Ok(Rc::clone(dir));
        }
        let mut fd = open(&self.root, path)?;
        let mut path = self.real_path(&fd)?;
        if let Some(own) = &self.shared_memory
            && path == Path::new("/dev/shm")
        {
            fd = open_without_links(self.root.fd(), own.as_os_str().as_bytes(), OFlags::DIRECTORY)?;
            path.clone_from(own);
        }
        let is_readable = classifier.readable_tree(&path).is_some_and(|tree| {
            let opened = open_without_links(self.root.fd(), tree.as_os_str().as_bytes(), OFlags::NOFOLLOW);
            let stat = opened.and_then(rustix::fs::fstat);
            stat.is_ok_and(|stat| classifier.is_readable((stat.st_dev, stat.st_ino)))
        });
        let dir = Rc::new(OpenDir {
            is_readable,
            area: classifier.area(&path),
            is_uniform: classifier.is_uniform(&path),
            is_new: classifier.is_new(&path),
            fd,
            path,
        });
        if self.dirs.len() >= MAX_CACHED {
            self.dirs.clear();
        }
        self.dirs.insert(key, (Rc::clone(&dir), now));
        Ok(dir)
    }

    /// Whether this is a terminal of the command's own namespaces.
    pub(super) fn is_own_terminal(&self, stat: &Stat) -> bool {
        let own = open_without_links(self.root.fd(), b"dev/pts", OFlags::DIRECTORY);
        own.and_then(rustix::fs::fstat).is_ok_and(|own| own.st_dev == stat.st_dev)
    }

    /// The current path of an open file; an error if it no longer has a name.
    pub(super) fn real_path(&self, fd: &OwnedFd) -> Result<PathBuf, Errno> {
        let path = shown_path(fd)?;
        // The kernel appends this to a removed name, but a real name may end with it, too.
        if path.as_os_str().as_bytes().ends_with(b" (deleted)") {
            let named = open_without_links(self.root.fd(), path.as_os_str().as_bytes(), OFlags::NOFOLLOW)?;
            let (named, open) = (rustix::fs::fstat(&named)?, rustix::fs::fstat(fd)?);
            if (named.st_dev, named.st_ino) != (open.st_dev, open.st_ino) {
                return Err(Errno::NOENT);
            }
        }
        Ok(path)
    }
}

/// An entry of a directory of descriptors.
fn open_listed_fd(dir: &OpenDir, name: &[u8]) -> Result<ResolvedTarget, Errno> {
    let fd = rustix::fs::openat(&dir.fd, name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    Ok(ResolvedTarget::Fd(fd))
}

/// The directory part of a path, its last name, and whether it ends with a slash.
fn split(path: &[u8]) -> (&[u8], &[u8], bool) {
    let end = path.iter().rposition(|&byte| byte != b'/').map_or(0, |last| last + 1);
    let trimmed = &path[..end];
    let has_slash = end < path.len() && end > 0;
    match trimmed.iter().rposition(|&byte| byte == b'/') {
        Some(at) => (&trimmed[..=at], &trimmed[at + 1..], has_slash),
        None if trimmed.is_empty() && !path.is_empty() => (b"/", b"", has_slash),
        None => (b"", trimmed, has_slash),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_split_as_by_the_kernel() {
        assert_eq!(split(b"a"), (&b""[..], &b"a"[..], false));
        assert_eq!(split(b"/a"), (&b"/"[..], &b"a"[..], false));
        assert_eq!(split(b"a/b//"), (&b"a/"[..], &b"b"[..], true));
        assert_eq!(split(b"/"), (&b"/"[..], &b""[..], false));
        assert_eq!(split(b"//"), (&b"/"[..], &b""[..], false));
        assert_eq!(split(b"../.."), (&b"../"[..], &b".."[..], false));
    }
}
