//! Whether directories are still what they were when they were listed.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::Stat;

/// Two changes closer together than this may leave the same time on a directory.
const CLOCK_STEP: Duration = Duration::from_millis(20);

/// Directories as they were.
#[derive(Debug, Default)]
pub(super) struct Stamps {
    directories: Vec<(PathBuf, [i128; 6])>,
    /// Whether one was changed just before, so that a later change could go unseen.
    unsettled: bool,
}

impl Stamps {
    /// Keeps what `stat` says of a directory; it must be asked before the directory is listed.
    pub(super) fn add(&mut self, path: &Path, stat: &Stat) {
        let seconds = stat.st_ctime.try_into().unwrap_or(0);
        let changed = Duration::new(seconds, stat.st_ctime_nsec.try_into().unwrap_or(0));
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.unsettled |= changed.saturating_add(CLOCK_STEP) > now;
        self.directories.push((path.to_owned(), marks(stat)));
    }

    /// Whether nothing was added, removed or renamed in any of them.
    pub(super) fn are_current(&self) -> bool {
        let same =
            |(path, marked): &(PathBuf, _)| rustix::fs::lstat(path).is_ok_and(|stat| marks(&stat) == *marked);
        !self.unsettled && self.directories.iter().all(same)
    }
}

/// All that tells one state of a directory from another; the numbers' types differ from machine to machine.
fn marks(stat: &Stat) -> [i128; 6] {
    [
        stat.st_dev.into(),
        stat.st_ino.into(),
        stat.st_mtime.into(),
        stat.st_mtime_nsec.into(),
        stat.st_ctime.into(),
        stat.st_ctime_nsec.into(),
    ]
}
