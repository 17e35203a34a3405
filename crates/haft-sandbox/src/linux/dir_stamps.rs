//! Detects whether directories have changed since they were listed.

use std::os::fd::OwnedFd;
use std::time::{Duration, SystemTime};

use rustix::fs::Stat;

/// Two changes within this time may leave the same timestamp.
const CLOCK_STEP: Duration = Duration::from_millis(20);

/// The state of a directory when it was listed.
#[derive(Debug, Clone, Copy)]
pub(super) struct DirStamp {
    fields: [i128; 6],
    /// Whether it had changed just before, so that a later change may not be visible.
    is_too_recent: bool,
}

impl DirStamp {
    /// `stat` must be taken before the directory is listed.
    pub(super) fn new(stat: &Stat) -> Self {
        let seconds = stat.st_ctime.try_into().unwrap_or(0);
        let changed = Duration::new(seconds, stat.st_ctime_nsec.try_into().unwrap_or(0));
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self { fields: fields(stat), is_too_recent: changed.saturating_add(CLOCK_STEP) > now }
    }

    /// Whether no entry was added, removed or renamed since.
    pub(super) fn is_current(&self, stat: &Stat) -> bool {
        !self.is_too_recent && self.fields == fields(stat)
    }
}

/// The stamps of listed directories, each of them in another one of them, or the root.
#[derive(Debug, Default)]
pub(super) struct DirStamps {
    directories: Vec<(OwnedFd, DirStamp)>,
}

impl DirStamps {
    /// Adds a directory. `stat` must be taken before the directory is listed.
    pub(super) fn add(&mut self, directory: OwnedFd, stat: &Stat) {
        self.directories.push((directory, DirStamp::new(stat)));
    }

    /// Whether no entry was added, removed or renamed in any of them.
    pub(super) fn are_current(&self) -> bool {
        let is_current = |(directory, stamp): &(OwnedFd, DirStamp)| {
            !stamp.is_too_recent && rustix::fs::fstat(directory).is_ok_and(|stat| stamp.is_current(&stat))
        };
        self.directories.iter().all(is_current)
    }
}

/// What differs after a change. The types of the fields depend on the architecture.
fn fields(stat: &Stat) -> [i128; 6] {
    [
        stat.st_dev.into(),
        stat.st_ino.into(),
        stat.st_mtime.into(),
        stat.st_mtime_nsec.into(),
        stat.st_ctime.into(),
        stat.st_ctime_nsec.into(),
    ]
}
