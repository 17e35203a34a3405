//! The file system after a command, from which its changes are determined.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use haft_files::{OpenedDirectories, open_directory};
use haft_tool::{CommandView, FileId, Node, PathState, ToolError};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::new_tree::{NewTree, list_new_tree};
use super::recorder::{ChangeTime, capture_entry, change_time, file_of};
use crate::process::last_error;

/// More changes are not listed.
pub(super) const MAX_CHANGES: usize = 2_000_000;
/// From the kernel's `fcntl.h`; libc does not have it.
const F_SETSIG: libc::c_int = 10;

/// The file system after the command.
pub(super) struct FinalView<'a> {
    pub(super) own: &'a HashSet<FileId>,
    pub(super) large: &'a HashMap<FileId, (ChangeTime, Node)>,
    pub(super) has_others: bool,
    /// Where changes are recorded.
    pub(super) roots: &'a [PathBuf],
    /// The directory that was opened last, because paths come sorted. What the command closed is kept open with it.
    pub(super) last: Option<(PathBuf, OwnedFd, OpenedDirectories)>,
    pub(super) listed: usize,
    pub(super) losses: Vec<String>,
}

impl CommandView for FinalView<'_> {
    fn observe(&mut self, path: &Path) -> Result<PathState, ToolError> {
        let Some((parent, name)) = path.parent().zip(path.file_name()) else { return Ok(PathState::ABSENT) };
        if self.last.as_ref().is_none_or(|(last, ..)| last != parent) {
            // Closes the last one again before the next is opened, so that each directory is observed with its own mode.
            self.last = None;
            let opened = OpenedDirectories::down_to(parent, self.roots);
            self.last = match open_directory(parent) {
                Ok(fd) => Some((parent.to_owned(), fd, opened)),
                Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                    let reason = "cannot be read any more, because a directory above it is closed";
                    return Err(ToolError::failed(format!("{} {reason}", path.display())));
                }
                Err(_) => None,
            };
        }
        let Some((_, dir, _)) = &self.last else { return Ok(PathState::ABSENT) };
        if self.has_others && has_writer(dir, name) {
            self.losses.push(still_open(path));
        }
        if let Ok(stat) = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
            && let Some((time, node)) = self.large.get(&(stat.st_dev, stat.st_ino))
            && *time == change_time(&stat)
        {
            return Ok(PathState { node: node.clone(), file: Some((stat.st_dev, stat.st_ino)) });
        }
        match capture_entry(dir, name) {
            Ok(now) => Ok(PathState { file: file_of(&now.node, now.stat.as_ref()), node: now.node }),
            Err(_) => Err(ToolError::failed(format!("{} cannot be read any more", path.display()))),
        }
    }

    fn visit_new(&mut self, path: &Path, visit: &mut dyn FnMut(PathBuf, Node) -> bool) {
        self.last = None;
        let mut open = Vec::new();
        let mut visit_checked = |path: PathBuf, node: Node| {
            if self.has_others
                && let (Node::File(_), Some(parent), Some(name)) = (&node, path.parent(), path.file_name())
                && open_directory(parent).is_ok_and(|dir| has_writer(&dir, name))
            {
                open.push(still_open(&path));
            }
            visit(path, node)
        };
        let NewTree { listed, losses } =
            list_new_tree(path, (self.own, self.roots), MAX_CHANGES, self.listed, &mut visit_checked);
        self.listed = listed;
        self.losses.extend(losses);
        self.losses.append(&mut open);
    }
}

fn still_open(path: &Path) -> String {
    format!("{} is open for writing in another command, whose changes of it are not recorded", path.display())
}

/// Whether a process has the file open for writing.
fn has_writer(dir: &OwnedFd, name: &OsStr) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let is_file = |stat: Stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(is_file)
        && rustix::fs::openat(dir, name, flags, Mode::empty()).is_ok_and(|fd| lease(&fd) == Err(Errno::AGAIN))
}

/// Whether no process has the file open for writing.
pub(super) fn has_no_writer(fd: &OwnedFd) -> bool {
    lease(fd).is_ok()
}

/// Takes a read lease, which the kernel grants only if no process has the file open for writing.
#[expect(unsafe_code, reason = "leases have no safe wrapper")]
fn lease(fd: &OwnedFd) -> Result<(), Errno> {
    // SAFETY: plain numbers; the lease ends with the descriptor. A process that opens the file before that makes the
    // kernel send a signal: one that is ignored by default instead of SIGIO, which ends the process.
    let leased = unsafe {
        libc::fcntl(fd.as_raw_fd(), F_SETSIG, libc::SIGURG);
        libc::fcntl(fd.as_raw_fd(), libc::F_SETLEASE, libc::F_RDLCK)
    };
    if leased == 0 { Ok(()) } else { Err(last_error()) }
}
