//! Grants to read everything except for some paths.
//!
//! A directory with something excluded below it is not granted itself, but its other entries are, one by one. So an
//! entry that is created there later is not granted: commands may read too little, never too much. Where commands create
//! files beside what is excluded, the witness opens those.

use std::collections::HashSet;
use std::ffi::{CStr, OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use haft_tool::FileId;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use super::dir_stamps::DirStamps;
use crate::secrets::PathResolver;

/// Never granted as a whole: it contains terminals, disks and memory.
const DEVICES: &str = "/dev";
/// The only directory of files in `/dev`.
const SHARED_MEMORY: &CStr = c"shm";
const MOUNT_TABLE: &str = "/proc/self/mountinfo";
/// Enough for most mount tables: the kernel generates the table again for each read.
const MOUNT_TABLE_BYTES: usize = 16 * 1024;

/// Adds one rule to a ruleset.
type GrantFn<'a> = &'a mut dyn FnMut(BorrowedFd<'_>) -> io::Result<()>;

/// What was granted, and what it depends on.
#[derive(Debug, Default)]
pub(super) struct GrantedTrees {
    /// The directories whose entries were granted one by one.
    divided: HashSet<PathBuf>,
    /// The entries that were granted with everything in them.
    trees: HashSet<FileId>,
    directories: DirStamps,
    /// Signals POLLPRI when something is mounted.
    mount_table: Option<File>,
}

impl GrantedTrees {
    /// Whether the same grants would be made again.
    pub(super) fn are_current(&self) -> bool {
        !self.mount_table.as_ref().is_some_and(has_changed) && self.directories.are_current()
    }

    /// Whether the entries of the directory at `path` were granted one by one.
    pub(super) fn is_divided(&self, path: &Path) -> bool {
        self.divided.contains(path)
    }

    /// The path of the tree that the directory at `path` is in; `None` if its entries were granted one by one.
    pub(super) fn tree_of<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        path.ancestors()
            .find(|above| above.parent().is_some_and(|parent| self.is_divided(parent)))
            .filter(|_| !self.is_divided(path))
    }

    /// Whether this tree was granted. What was created later was not.
    pub(super) fn has_tree(&self, id: FileId) -> bool {
        self.trees.contains(&id)
    }
}

/// Calls `grant` for trees and files that together are everything except for `excluded` and the devices. `root` is the root
/// directory of other namespaces.
pub(super) fn grant_all_except(
    root: Option<BorrowedFd<'_>>,
    excluded: &[PathBuf],
    grant: GrantFn<'_>,
) -> io::Result<GrantedTrees> {
    // Opened first, so that later mounts are noticed.
    let mut mount_table = File::open(MOUNT_TABLE).ok();
    let mut resolver = PathResolver::default();
    let mut all: Vec<PathBuf> = excluded.iter().map(|path| path.components().collect()).collect();
    // The targets of links on the way are excluded, too.
    all.extend(excluded.iter().map(|path| resolver.resolve(path).path));
    all.extend(mount_table.as_mut().map(device_mounts).unwrap_or_default());
    all.sort();
    all.dedup();
    // Most do not exist.
    let existing = all.iter().filter(|path| resolver.resolve(path).exists);
    let linked = existing.filter_map(|path| rustix::fs::lstat(path).ok()).filter(is_hard_linked);
    let linked = linked.map(|stat| (stat.st_dev, stat.st_ino)).collect();
    let granted = GrantedTrees { mount_table, ..GrantedTrees::default() };
    let mut walk = GrantWalk { root, linked, grant, granted };
    let below: Vec<&[u8]> =
        all.iter().filter_map(|path| path.as_os_str().as_bytes().strip_prefix(b"/")).collect();
    if !below.contains(&&b""[..]) {
        walk.grant_entries(Path::new("/"), &below)?;
    }
    Ok(walk.granted)
}

struct GrantWalk<'a> {
    root: Option<BorrowedFd<'a>>,
    /// Excluded files with several names: the other names must not be granted either.
    linked: HashSet<FileId>,
    grant: GrantFn<'a>,
    granted: GrantedTrees,
}

impl GrantWalk<'_> {
    /// Grants the entries of a directory, except for what is excluded `below` it.
    fn grant_entries(&mut self, path: &Path, below: &[&[u8]]) -> io::Result<()> {
        let directory = match self.open_directory(path) {
            Ok(directory) => directory,
            Err(error) => return skip_inaccessible(error),
        };
        let stamped = rustix::io::fcntl_dupfd_cloexec(&directory, 0)?;
        self.granted.directories.add(stamped, &rustix::fs::fstat(&directory)?);
        self.granted.divided.insert(path.to_owned());
        if path == Path::new(DEVICES) {
            // Of hundreds of entries only this one can be granted.
            return match rustix::fs::statat(&directory, SHARED_MEMORY, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => {
                    let kind = FileType::from_raw_mode(stat.st_mode);
                    self.grant_entry((path, directory.as_fd()), SHARED_MEMORY, kind, below)
                }
                Err(error) => skip_inaccessible(error),
            };
        }
        let mut list = Dir::new(directory)?;
        while let Some(entry) = list.read() {
            let Ok(entry) = entry else { continue };
            if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
                self.grant_entry((path, list.fd()?), entry.file_name(), entry.file_type(), below)?;
            }
        }
        Ok(())
    }

    fn open_directory(&self, path: &Path) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match self.root {
            Some(root) => rustix::fs::openat2(root, path, flags, Mode::empty(), ResolveFlags::IN_ROOT),
            None => rustix::fs::open(path, flags, Mode::empty()),
        }
    }

    /// Grants one entry of a directory, or parts of it, except for what is excluded `below` the directory.
    fn grant_entry(
        &mut self,
        (path, directory): (&Path, BorrowedFd<'_>),
        name: &CStr,
        kind: FileType,
        below: &[&[u8]],
    ) -> io::Result<()> {
        let inside: Vec<&[u8]> = below.iter().filter_map(|path| strip_name(path, name.to_bytes())).collect();
        let is_excluded = inside.iter().any(|rest| rest.is_empty());
        let is_device = matches!(kind, FileType::BlockDevice | FileType::CharacterDevice);
        // The target of a link is granted in its own place.
        if is_excluded || is_device || kind == FileType::Symlink {
            return Ok(());
        }
        let is_devices = path.parent().is_none() && DEVICES.as_bytes()[1..] == *name.to_bytes();
        if inside.is_empty() && !is_devices {
            return self.grant_tree(directory, name);
        }
        self.grant_entries(&path.join(OsStr::from_bytes(name.to_bytes())), &inside)
    }

    /// Grants one entry with everything in it.
    fn grant_tree(&mut self, directory: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = match rustix::fs::openat(directory, name, flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(error) => return skip_inaccessible(error),
        };
        let stat = rustix::fs::fstat(&fd)?;
        let id = (stat.st_dev, stat.st_ino);
        if self.linked.contains(&id) {
            return Ok(());
        }
        self.granted.trees.insert(id);
        (self.grant)(fd.as_fd())
    }
}

/// The rest of a relative path after its first component, if that is `name`.
fn strip_name<'a>(path: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    match path.strip_prefix(name)? {
        [] => Some(&[]),
        [b'/', rest @ ..] => Some(rest),
        _ => None,
    }
}

/// What is gone, inaccessible or not a directory needs no grant.
fn skip_inaccessible(error: Errno) -> io::Result<()> {
    match error {
        Errno::NOENT | Errno::ACCESS | Errno::PERM | Errno::LOOP | Errno::NOTDIR | Errno::STALE => Ok(()),
        error => Err(error.into()),
    }
}

fn is_hard_linked(stat: &Stat) -> bool {
    stat.st_nlink > 1 && FileType::from_raw_mode(stat.st_mode) != FileType::Directory
}

/// Whether something was mounted or unmounted since the table was last polled.
fn has_changed(mount_table: &File) -> bool {
    let mut fds = [PollFd::new(mount_table, PollFlags::PRI)];
    let no_wait = Timespec { tv_sec: 0, tv_nsec: 0 };
    rustix::event::poll(&mut fds, Some(&no_wait)).map_or(true, |ready| ready > 0)
}

/// Where devices are mounted besides `/dev`: a root file system of a container has its own.
fn device_mounts(mount_table: &mut File) -> Vec<PathBuf> {
    let mut table = Vec::with_capacity(MOUNT_TABLE_BYTES);
    // If the table cannot be read, only /dev is excluded.
    let _ = mount_table.read_to_end(&mut table);
    let lines = table.split(|&byte| byte == b'\n');
    let mount = |line: &[u8]| {
        let mut words = line.split(|&byte| byte == b' ');
        let place = words.nth(4)?;
        let kind = words.skip_while(|word| *word != b"-").nth(1)?;
        let mount = PathBuf::from(OsString::from_vec(unescape(place)));
        (matches!(kind, b"devtmpfs" | b"devpts") && !mount.starts_with(DEVICES)).then_some(mount)
    };
    lines.filter_map(mount).collect()
}

/// Decodes the octal escapes of the mount table, such as `\040` for a space.
fn unescape(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, tail)) = rest.split_first() {
        let digits =
            tail.get(..3).filter(|digits| first == b'\\' && digits.iter().all(|d| (b'0'..=b'7').contains(d)));
        if let Some(digits) = digits {
            bytes.push(digits.iter().fold(0_u8, |byte, digit| (byte << 3) | (digit - b'0')));
            rest = &tail[3..];
        } else {
            bytes.push(first);
            rest = tail;
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_table_escapes_are_decoded() {
        assert_eq!(unescape(br"/a\040b\011\134c\9"), b"/a b\t\\c\\9");
    }
}
