//! Files that are named like secrets but that the command itself created: they hold nothing that it did not already have.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Mode, OFlags, Stat};

use super::link_count;
use super::paths::DirectoryEntry;

/// More files count as secrets. Programs such as rsync rename each file before they create the next one.
const MAX_FILES: usize = 64;

/// The files are kept open, so that their inode numbers cannot be reused.
#[derive(Debug, Default)]
pub(super) struct OwnSecrets(VecDeque<OwnedFd>);

impl OwnSecrets {
    /// Adds a file that the command has just created.
    pub(super) fn add(&mut self, entry: &DirectoryEntry, created: &OwnedFd) {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(fd) = rustix::fs::openat(&entry.dir.fd, &entry.name, flags, Mode::empty()) else { return };
        // Another program may have replaced it meanwhile.
        let is_empty = |stat: &Stat| stat.st_size == 0 && link_count(stat) == 1;
        let (Ok(named), Ok(created)) = (rustix::fs::fstat(&fd), rustix::fs::fstat(created)) else { return };
        if is_same(&named, &created) && is_empty(&named) {
            self.0.truncate(MAX_FILES - 1);
            self.0.push_front(fd);
        }
    }

    pub(super) fn contains(&self, entry: &DirectoryEntry) -> bool {
        let Ok(stat) = rustix::fs::statat(&entry.dir.fd, &entry.name, AtFlags::SYMLINK_NOFOLLOW) else {
            return false;
        };
        self.0.iter().any(|own| rustix::fs::fstat(own).is_ok_and(|own| is_same(&own, &stat)))
    }
}

fn is_same(one: &Stat, other: &Stat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}
