//! From what a program calls a path to the directory it lies in, held open.
//!
//! The program's words are read once. The directory is opened as the program would reach it and then asked where
//! it is; from there on only the handle counts. All changes that sandboxed programs make go through the witness one
//! by one, so between the look and the act nothing moves.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::places::Area;
use super::target::{Target, place};

/// As many links as the kernel follows.
const MOST_LINKS: u32 = 40;
/// How long a directory is taken to be where it was: others than sandboxed programs may move it.
const FRESH: Duration = Duration::from_millis(100);
const MOST_KNOWN: usize = 256;

/// A directory, held open.
#[derive(Debug)]
pub(super) struct Dir {
    pub(super) fd: OwnedFd,
    pub(super) path: PathBuf,
    pub(super) area: Area,
    /// Whether all its entries are of the same area as itself.
    pub(super) whole: bool,
    /// Whether it was not there before the command, or before the last move.
    pub(super) new: bool,
    /// Whether the command made it where there never was one.
    pub(super) made: bool,
}

/// A name in a directory.
#[derive(Debug, Clone)]
pub(super) struct Spot {
    pub(super) dir: Rc<Dir>,
    pub(super) name: OsString,
    /// Whether the program wrote a slash behind the name: it means a directory.
    pub(super) slash: bool,
    /// Whether the program said `.` or `..` instead of the name.
    pub(super) dots: usize,
    path: PathBuf,
}

impl Spot {
    fn new(dir: Rc<Dir>, name: &OsStr) -> Self {
        let path = dir.path.join(name);
        Self { dir, name: name.to_owned(), slash: false, dots: 0, path }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The name as the kernel shall see it.
    pub(super) fn word(&self) -> Cow<'_, OsStr> {
        if !self.slash {
            return Cow::Borrowed(&self.name);
        }
        let mut word = self.name.clone();
        word.push("/");
        Cow::Owned(word)
    }

    pub(super) fn stat(&self) -> Result<rustix::fs::Stat, Errno> {
        rustix::fs::statat(&self.dir.fd, &self.name, AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Whether a directory was meant where none is.
    pub(super) fn is_misnamed(&self) -> bool {
        let directory = |stat: rustix::fs::Stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        self.slash && self.stat().is_ok_and(|stat| !directory(stat))
    }

    pub(super) fn exists(&self) -> bool {
        self.stat().is_ok()
    }
}

/// What a path leads to.
pub(super) enum Found {
    Spot(Spot),
    /// A descriptor of the program itself, reached through `/proc`.
    Descriptor(OwnedFd),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Base {
    Root,
    Directory(u64, u64),
}

/// What tells a directory's area and whether it is new.
pub(super) trait Judge {
    fn area(&self, path: &Path) -> Area;
    fn is_whole(&self, path: &Path) -> bool;
    fn is_new(&self, path: &Path) -> bool;
    fn is_made(&self, path: &Path) -> bool;
}

/// Directories that were found a moment ago.
#[derive(Debug, Default)]
pub(super) struct Dirs {
    known: HashMap<(Base, Vec<u8>), (Rc<Dir>, Instant)>,
    threads: Threads,
}

/// Where threads are asked about: to find that again each time would take longer than the question.
#[derive(Debug, Default)]
struct Threads {
    known: HashMap<i32, OwnedFd>,
}

impl Threads {
    /// What relative paths start from.
    fn stat(&mut self, target: Target, base: i32) -> Result<rustix::fs::Stat, Errno> {
        let word = if base == libc::AT_FDCWD { "cwd".into() } else { format!("fd/{base}") };
        let ask = |thread: &OwnedFd| rustix::fs::statat(thread, &word, AtFlags::empty());
        if let Some(stat) = self.known.get(&target.thread()).and_then(|thread| ask(thread).ok()) {
            return Ok(stat);
        }
        // The number may have passed to another thread.
        let thread = place(&format!("/proc/{}", target.thread()))?;
        let stat = ask(&thread)?;
        if self.known.len() >= MOST_KNOWN {
            self.known.clear();
        }
        self.known.insert(target.thread(), thread);
        Ok(stat)
    }
}

impl Dirs {
    /// Forgets all: a directory or a link has changed its name.
    pub(super) fn forget(&mut self) {
        self.known.clear();
    }

    /// Where `path` leads; the last name itself is not followed.
    pub(super) fn find(
        &mut self,
        target: Target,
        base: i32,
        path: &[u8],
        judge: &dyn Judge,
    ) -> Result<Found, Errno> {
        if path.is_empty() {
            return Err(Errno::NOENT);
        }
        let own = in_own_proc(path, target);
        let path = own.as_deref().unwrap_or(path);
        let (parent, name, slash) = split(path);
        if matches!(name, b"" | b"." | b"..") {
            let dir = self.directory(target, base, path, judge)?;
            return self.entry_of(&dir, name.len(), judge).map(Found::Spot);
        }
        let dir = self.directory(target, base, parent, judge)?;
        if is_descriptors(&dir.path) {
            if !belongs_to(&dir.path, target) {
                return Err(Errno::ACCESS);
            }
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            let fd = rustix::fs::openat(&dir.fd, name, flags, Mode::empty())?;
            return Ok(Found::Descriptor(fd));
        }
        Ok(Found::Spot(Spot { slash, ..Spot::new(dir, OsStr::from_bytes(name)) }))
    }

    /// The same with links followed to their end. A name that does not exist is where it would be made.
    pub(super) fn follow(&mut self, found: Found, target: Target, judge: &dyn Judge) -> Result<Found, Errno> {
        let mut found = found;
        for _ in 0..MOST_LINKS {
            let Found::Spot(spot) = &found else { return Ok(found) };
            match spot.stat() {
                Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink => {}
                _ => return Ok(found),
            }
            let link = rustix::fs::readlinkat(&spot.dir.fd, &spot.name, Vec::new())?.into_bytes();
            found = if link.first() == Some(&b'/') {
                self.find(target, libc::AT_FDCWD, &link, judge)?
            } else {
                let mut path = spot.dir.path.as_os_str().as_bytes().to_vec();
                path.push(b'/');
                path.extend_from_slice(&link);
                self.find(target, libc::AT_FDCWD, &path, judge)?
            };
        }
        Err(Errno::LOOP)
    }

    /// The spot of an object that is held by `fd`, if it still has its name.
    pub(super) fn of_descriptor(&mut self, fd: &OwnedFd, judge: &dyn Judge) -> Result<Spot, Errno> {
        let path = where_is(fd)?;
        let dir = self.canonical(path.parent().ok_or(Errno::NOENT)?, judge)?;
        let spot = Spot::new(dir, path.file_name().ok_or(Errno::NOENT)?);
        let (named, held) = (spot.stat()?, rustix::fs::fstat(fd)?);
        if (named.st_dev, named.st_ino) == (held.st_dev, held.st_ino) { Ok(spot) } else { Err(Errno::NOENT) }
    }

    /// A directory as an entry of its parent.
    fn entry_of(&mut self, dir: &Dir, dots: usize, judge: &dyn Judge) -> Result<Spot, Errno> {
        let (parent, name) = (dir.path.parent(), dir.path.file_name());
        let (parent, name) = parent.zip(name).ok_or(Errno::BUSY)?;
        Ok(Spot { dots, ..Spot::new(self.canonical(parent, judge)?, name) })
    }

    fn canonical(&mut self, path: &Path, judge: &dyn Judge) -> Result<Rc<Dir>, Errno> {
        self.known_or(Base::Root, path.as_os_str().as_bytes(), judge, |path| {
            open_below(CWD, path, ResolveFlags::NO_MAGICLINKS)
        })
    }

    fn directory(
        &mut self,
        target: Target,
        base: i32,
        path: &[u8],
        judge: &dyn Judge,
    ) -> Result<Rc<Dir>, Errno> {
        if path.first() == Some(&b'/') {
            return self.known_or(Base::Root, path, judge, |path| {
                open_below(CWD, path, ResolveFlags::NO_MAGICLINKS)
            });
        }
        let stat = self.threads.stat(target, base).map_err(|error| match error {
            Errno::NOENT => Errno::BADF,
            error => error,
        })?;
        self.known_or(Base::Directory(stat.st_dev, stat.st_ino), path, judge, |path| {
            let start = place(&target.base(base))?;
            let path = if path.is_empty() { b"." } else { path };
            open_below(&start, path, ResolveFlags::NO_MAGICLINKS)
        })
    }

    fn known_or(
        &mut self,
        base: Base,
        path: &[u8],
        judge: &dyn Judge,
        open: impl FnOnce(&[u8]) -> Result<OwnedFd, Errno>,
    ) -> Result<Rc<Dir>, Errno> {
        let key = (base, path.to_vec());
        let now = Instant::now();
        if let Some((dir, since)) = self.known.get(&key)
            && now.duration_since(*since) < FRESH
        {
            return Ok(Rc::clone(dir));
        }
        let fd = open(path)?;
        let path = where_is(&fd)?;
        let (area, new) = (judge.area(&path), judge.is_new(&path));
        let (whole, made) = (judge.is_whole(&path), judge.is_made(&path));
        let dir = Rc::new(Dir { fd, path, area, whole, new, made });
        if self.known.len() >= MOST_KNOWN {
            self.known.clear();
        }
        self.known.insert(key, (Rc::clone(&dir), now));
        Ok(dir)
    }
}

fn open_below(base: impl std::os::fd::AsFd, path: &[u8], resolve: ResolveFlags) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat2(base, path, flags, Mode::empty(), resolve)
}

/// Where what is held lies now; an error if it has no name any more.
pub(super) fn where_is(fd: &OwnedFd) -> Result<PathBuf, Errno> {
    let link = rustix::fs::readlink(format!("/proc/self/fd/{}", fd.as_raw_fd()), Vec::new())?.into_bytes();
    if link.first() != Some(&b'/') || link.ends_with(b" (deleted)") {
        return Err(Errno::NOENT);
    }
    Ok(PathBuf::from(OsString::from_vec(link)))
}

/// The directory part, the last name, and whether a slash stands behind it.
fn split(path: &[u8]) -> (&[u8], &[u8], bool) {
    let end = path.iter().rposition(|&byte| byte != b'/').map_or(0, |last| last + 1);
    let trimmed = &path[..end];
    let slash = end < path.len() && end > 0;
    match trimmed.iter().rposition(|&byte| byte == b'/') {
        Some(at) => (&trimmed[..=at], &trimmed[at + 1..], slash),
        None if trimmed.is_empty() && !path.is_empty() => (b"/", b"", slash),
        None => (b"", trimmed, slash),
    }
}

/// The path with `/proc/self` meaning the program and not Haft; nothing if it does not start so.
fn in_own_proc(path: &[u8], target: Target) -> Option<Vec<u8>> {
    if !path.starts_with(b"/proc/") && !path.starts_with(b"/dev/") {
        return None;
    }
    let thread = target.thread();
    let rewritten = |rest: &[u8], start: String| {
        (rest.is_empty() || rest[0] == b'/').then(|| [start.as_bytes(), rest].concat())
    };
    let cwd = |rest: &[u8]| {
        let here = rustix::fs::readlink(target.base(libc::AT_FDCWD), Vec::new()).ok()?.into_bytes();
        Some([&here, rest].concat())
    };
    for own in [&b"/proc/self"[..], b"/proc/thread-self"] {
        // The program's root is everybody's: nothing inside can change it.
        match path.strip_prefix(own) {
            Some(rest) if rest.starts_with(b"/root/") => return Some(rest[5..].to_vec()),
            Some(rest) if rest.starts_with(b"/cwd/") => return cwd(&rest[4..]),
            _ => {}
        }
    }
    for (from, to) in [
        (&b"/proc/self"[..], format!("/proc/{thread}")),
        (b"/proc/thread-self", format!("/proc/{thread}")),
        (b"/dev/fd", format!("/proc/{thread}/fd")),
        (b"/dev/stdin", format!("/proc/{thread}/fd/0")),
        (b"/dev/stdout", format!("/proc/{thread}/fd/1")),
        (b"/dev/stderr", format!("/proc/{thread}/fd/2")),
    ] {
        if let Some(rest) = path.strip_prefix(from)
            && let Some(path) = rewritten(rest, to)
        {
            return Some(path);
        }
    }
    None
}

/// Whether this is a process's list of descriptors.
fn is_descriptors(path: &Path) -> bool {
    path.starts_with("/proc") && path.file_name().is_some_and(|name| name == "fd")
}

/// Whether a directory below `/proc` is the program's own.
fn belongs_to(path: &Path, target: Target) -> bool {
    let process = path.iter().nth(2).and_then(OsStr::to_str).and_then(|number| number.parse().ok());
    process.is_some_and(|process: i32| process == target.thread() || process == target.process())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_split_as_the_kernel_does() {
        assert_eq!(split(b"a"), (&b""[..], &b"a"[..], false));
        assert_eq!(split(b"/a"), (&b"/"[..], &b"a"[..], false));
        assert_eq!(split(b"a/b//"), (&b"a/"[..], &b"b"[..], true));
        assert_eq!(split(b"/"), (&b"/"[..], &b""[..], false));
        assert_eq!(split(b"//"), (&b"/"[..], &b""[..], false));
        assert_eq!(split(b"../.."), (&b"../"[..], &b".."[..], false));
    }
}
