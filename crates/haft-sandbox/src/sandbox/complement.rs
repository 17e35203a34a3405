//! Everything but some paths: which trees to grant so that those stay out.
//!
//! A directory on the way to something excluded is not granted itself; its other children are, one by one. So what
//! is made there later belongs to nobody's grant: it can be too little, never too much.

use std::collections::HashSet;
use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use haft_tool::FileId;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::resolver::Resolver;
use super::stamps::Stamps;

/// Never granted as a whole: terminals of others, disks, memory.
const DEVICES: &str = "/dev";
/// The one place among the devices that holds files.
const SHARED_MEMORY: &CStr = c"shm";

/// What the grants were made from, to know later whether they still hold.
#[derive(Debug, Default)]
pub(super) struct Seen {
    directories: Stamps,
    /// Told by the kernel when something is mounted.
    mounts: Option<File>,
}

impl Seen {
    /// Whether the same grants would be made again.
    pub(super) fn is_current(&self) -> bool {
        !self.mounts.as_ref().is_some_and(changed) && self.directories.are_current()
    }
}

/// Calls `grant` for trees and files that together are everything but `excluded` and the devices. What `resolver` knows, it
/// must have looked at just now.
pub(super) fn grant(
    excluded: &[&Path],
    resolver: &mut Resolver,
    grant: &mut dyn FnMut(BorrowedFd<'_>) -> Result<(), Errno>,
) -> Result<Seen, Errno> {
    let mut mounts = resolver.mounts();
    let devices = mounts.as_mut().map(device_trees).unwrap_or_default();
    let mut all: Vec<PathBuf> = excluded.iter().map(|path| path.components().collect()).collect();
    // The way to a path may lead over links, and then it is where they lead that must stay out.
    all.extend(excluded.iter().map(|path| resolver.resolve(path)));
    all.extend(devices);
    all.sort();
    all.dedup();
    // Most are not there.
    let there: Vec<&PathBuf> = all.iter().filter(|path| resolver.look(path).1).collect();
    let linked = there.iter().filter_map(|path| rustix::fs::lstat(*path).ok()).filter(has_other_names);
    let aliases = linked.map(|stat| (stat.st_dev, stat.st_ino)).collect();
    let mut walk = Walk { aliases, grant, seen: Seen { mounts, ..Seen::default() } };
    let below: Vec<&[u8]> =
        all.iter().filter_map(|path| path.as_os_str().as_bytes().strip_prefix(b"/")).collect();
    if !below.contains(&&b""[..]) {
        walk.split(Path::new("/"), &below)?;
    }
    Ok(walk.seen)
}

struct Walk<'a> {
    /// Files that are excluded and have other names, which must not be granted as files either.
    aliases: HashSet<FileId>,
    grant: &'a mut dyn FnMut(BorrowedFd<'_>) -> Result<(), Errno>,
    seen: Seen,
}

impl Walk<'_> {
    /// Grants the children of a directory, but for what is excluded `below` it.
    fn split(&mut self, path: &Path, below: &[&[u8]]) -> Result<(), Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(directory) => directory,
            Err(error) => return skippable(error),
        };
        self.seen.directories.add(path, &rustix::fs::fstat(&directory)?);
        if path == Path::new(DEVICES) {
            // Hundreds of entries, and nothing is granted but this one.
            return match rustix::fs::statat(&directory, SHARED_MEMORY, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => {
                    let kind = FileType::from_raw_mode(stat.st_mode);
                    self.child((path, directory.as_fd()), SHARED_MEMORY, kind, below)
                }
                Err(error) => skippable(error),
            };
        }
        let mut list = Dir::new(directory)?;
        while let Some(entry) = list.read() {
            let Ok(entry) = entry else { continue };
            if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
                self.child((path, list.fd()?), entry.file_name(), entry.file_type(), below)?;
            }
        }
        Ok(())
    }

    /// Grants one child of a directory, or what is in it, but for what is excluded `below` the directory.
    fn child(
        &mut self,
        (path, directory): (&Path, BorrowedFd<'_>),
        name: &CStr,
        kind: FileType,
        below: &[&[u8]],
    ) -> Result<(), Errno> {
        let inside: Vec<&[u8]> = below.iter().filter_map(|path| after(path, name.to_bytes())).collect();
        let is_excluded = inside.iter().any(|rest| rest.is_empty());
        let is_device = matches!(kind, FileType::BlockDevice | FileType::CharacterDevice);
        // What a link leads to is granted where it is.
        if is_excluded || is_device || kind == FileType::Symlink {
            return Ok(());
        }
        let is_devices = path.parent().is_none() && DEVICES.as_bytes()[1..] == *name.to_bytes();
        if inside.is_empty() && !is_devices {
            return self.whole(directory, name);
        }
        self.split(&path.join(OsStr::from_bytes(name.to_bytes())), &inside)
    }

    /// Grants one child with all that is in it.
    fn whole(&mut self, directory: BorrowedFd<'_>, name: &CStr) -> Result<(), Errno> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = match rustix::fs::openat(directory, name, flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(error) => return skippable(error),
        };
        if !self.aliases.is_empty() {
            let stat = rustix::fs::fstat(&fd)?;
            if self.aliases.contains(&(stat.st_dev, stat.st_ino)) {
                return Ok(());
            }
        }
        (self.grant)(fd.as_fd())
    }
}

/// What is left of a relative path behind its first name, if that is `name`.
fn after<'a>(path: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    match path.strip_prefix(name)? {
        [] => Some(&[]),
        [b'/', rest @ ..] => Some(rest),
        _ => None,
    }
}

/// What is gone, may not be seen or is no directory needs no grant.
fn skippable(error: Errno) -> Result<(), Errno> {
    match error {
        Errno::NOENT | Errno::ACCESS | Errno::PERM | Errno::LOOP | Errno::NOTDIR | Errno::STALE => Ok(()),
        error => Err(error),
    }
}

fn has_other_names(stat: &Stat) -> bool {
    stat.st_nlink > 1 && FileType::from_raw_mode(stat.st_mode) != FileType::Directory
}

/// Whether something was mounted or unmounted since the file was last asked.
fn changed(mounts: &File) -> bool {
    let mut fds = [PollFd::new(mounts, PollFlags::PRI)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    rustix::event::poll(&mut fds, Some(&now)).map_or(true, |ready| ready > 0)
}

/// Where devices are mounted besides [`DEVICES`]: a file system that was made for another root has its own.
fn device_trees(mounts: &mut File) -> Vec<PathBuf> {
    // The kernel writes the table anew for each read, and a small buffer makes for many.
    let mut table = Vec::with_capacity(16 * 1024);
    // A table that cannot be read names no trees; then only the usual place is kept out.
    let _ = mounts.read_to_end(&mut table);
    let lines = table.split(|&byte| byte == b'\n');
    let tree = |line: &[u8]| {
        let mut words = line.split(|&byte| byte == b' ');
        let place = words.nth(4)?;
        let kind = words.skip_while(|word| *word != b"-").nth(1)?;
        let tree = PathBuf::from(std::ffi::OsString::from_vec(unescaped(place)));
        (matches!(kind, b"devtmpfs" | b"devpts") && !tree.starts_with(DEVICES)).then_some(tree)
    };
    lines.filter_map(tree).collect()
}

/// The mount table writes spaces and the like as `\040`.
fn unescaped(text: &[u8]) -> Vec<u8> {
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
    fn the_mount_table_is_read_as_the_kernel_writes_it() {
        assert_eq!(unescaped(br"/a\040b\011\134c\9"), b"/a b\t\\c\\9");
    }
}
