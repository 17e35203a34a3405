//! The mounts of a command's own mount namespace.

use std::collections::HashSet;
use std::fs;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, StatxFlags};
use rustix::io::Errno;

use super::caller::Caller;

/// A descriptor that was passed to a command may belong to another mount namespace, where the same path is another directory
/// than the one in the scope.
#[derive(Debug, Default)]
pub(super) struct OwnMounts {
    ids: HashSet<u64>,
}

impl OwnMounts {
    /// Fails if the caller's mount namespace does not contain this directory.
    pub(super) fn check(&mut self, directory: &OwnedFd, caller: Caller) -> Result<(), Errno> {
        let id = rustix::fs::statx(directory, c"", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID)?.stx_mnt_id;
        if !self.ids.contains(&id) {
            let mounts = fs::read_to_string(format!("/proc/{}/mountinfo", caller.thread()));
            self.ids = mounts.unwrap_or_default().lines().filter_map(mount_id).collect();
        }
        if self.ids.contains(&id) { Ok(()) } else { Err(Errno::ACCESS) }
    }
}

fn mount_id(line: &str) -> Option<u64> {
    line.split(' ').next()?.parse().ok()
}
