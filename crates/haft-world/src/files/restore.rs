//! Putting a path back to an earlier state, recorded like any other change.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use haft_tool::{Change, ErrorKind, Node, Restore, ToolError};
use rustix::fs::{AtFlags, Dir, DirEntry, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::LocalFiles;
use super::node::look;
use super::place::{Installed, Spot, lock, temp_name, write_temp};
use super::resolve::Leaf;
use super::root::HOLD;
use super::update::{kept, overtaken, sync};
use crate::Intent;

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl LocalFiles {
    pub(super) fn restore_path(&self, restore: &Restore<'_>) -> Result<(), ToolError> {
        let path = restore.path;
        let place = self.place_for_write(path, Leaf::Keep)?;
        if !place.missing.is_empty() {
            return match (restore.expect, restore.to) {
                (Node::Absent, Node::Absent) => Ok(()),
                _ => Err(conflict(path, "its directory is gone")),
            };
        }
        let _held = lock(&place.parent, path)?;
        let (now, current) = look(&place.parent, &place.name, path)?;
        if let Some(current) = &current {
            self.refuse_alias(path, &current.stat)?;
        }
        if !now.same_as(restore.expect) {
            return Err(conflict(path, &format!("it is no longer what the call left ({})", now.noun())));
        }
        let failed = |error: Errno| ToolError::io(format!("restore {}", path.display()), &error.into());
        let stat = match (&now, &current) {
            (Node::Absent, _) => None,
            (_, Some(current)) => Some(current.stat),
            _ => Some(
                rustix::fs::statat(&place.parent, &place.name, AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?,
            ),
        };
        let temp = temp_name()?;
        let change = Change::new(path, now.clone(), restore.to.clone());
        let spot = Spot { parent: &place.parent, name: &place.name, temp: &temp };
        let swap = Swap { spot, path, now: &now, stat: stat.as_ref() };
        swap.refuse_impossible(restore.to)?;
        self.journal.before(&[Intent {
            change: change.clone(),
            before: current.as_ref().map(|current| current.bytes.as_slice()),
            temp: Some(place.parent_path.join(&temp)),
        }])?;
        match swap.to(restore.to, restore.bytes)? {
            Installed::Overtaken => Err(overtaken(path)),
            Installed::Kept => Err(kept(path, &place.parent_path.join(&temp))),
            Installed::Yes => {
                self.journal.changed(change);
                sync(&place.parent, path)?;
                Ok(())
            }
        }
    }
}

/// One path on its way from what stands there to what shall.
struct Swap<'a> {
    spot: Spot<'a>,
    path: &'a Path,
    now: &'a Node,
    stat: Option<&'a Stat>,
}

impl Swap<'_> {
    /// Says beforehand what cannot come out well, so that nothing is written down for it.
    fn refuse_impossible(&self, to: &Node) -> Result<(), ToolError> {
        if *to == Node::Special {
            return Err(conflict(self.path, "a device, socket or FIFO stood there, which is not recreated"));
        }
        if matches!(self.now, Node::Dir { .. }) && !matches!(to, Node::Dir { .. }) {
            // One that cannot be listed is told by the kernel when it is to go.
            let Ok(entries) = Dir::read_from(self.open_directory()?) else { return Ok(()) };
            let foreign = |entry: &DirEntry| !matches!(entry.file_name().to_bytes(), b"." | b"..");
            if entries.flatten().any(|entry| foreign(&entry)) {
                return Err(self.not_empty());
            }
        }
        Ok(())
    }

    fn to(&self, to: &Node, bytes: &[u8]) -> Result<Installed, ToolError> {
        match (self.now, self.stat, to) {
            (Node::Dir { .. }, _, Node::Dir { mode }) => {
                let fd = self.open_directory()?;
                chmod(&fd, *mode).map(|()| Installed::Yes).map_err(|error| self.failed(error))
            }
            (_, None, Node::Absent) => Ok(Installed::Yes),
            (_, Some(stat), Node::Absent) => self.spot.remove(stat).map_err(|error| self.failed(error)),
            (_, stat, to) => {
                let made = self.make(to, bytes)?;
                self.spot.install(&made, stat).map_err(|error| self.failed(error))
            }
        }
    }

    /// Makes `to` under the temporary name.
    fn make(&self, to: &Node, bytes: &[u8]) -> Result<Stat, ToolError> {
        let Spot { parent, temp, .. } = self.spot;
        let failed = |error: Errno| self.failed(error);
        match to {
            Node::File(file) => {
                return write_temp(parent, temp, bytes, Some(file))
                    .map_err(|error| ToolError::io(format!("restore {}", self.path.display()), &error));
            }
            Node::Link { target } => rustix::fs::symlinkat(target, parent, temp).map_err(failed)?,
            Node::Dir { mode } => {
                rustix::fs::mkdirat(parent, temp, Mode::RWXU).map_err(failed)?;
                let made = rustix::fs::openat(parent, temp, DIRECTORY, Mode::empty());
                if let Err(error) = made.and_then(|fd| chmod(&fd, *mode)) {
                    let _ = rustix::fs::unlinkat(parent, temp, AtFlags::REMOVEDIR);
                    return Err(failed(error));
                }
            }
            Node::Absent | Node::Special => return Err(ToolError::internal("there is nothing to make")),
        }
        rustix::fs::statat(parent, temp, AtFlags::SYMLINK_NOFOLLOW).map_err(failed)
    }

    fn open_directory(&self) -> Result<OwnedFd, ToolError> {
        let Spot { parent, name, .. } = self.spot;
        match rustix::fs::openat(parent, name, DIRECTORY, Mode::empty()) {
            // A directory that its owner may not list can still be held, emptied of nothing and given its mode.
            Err(Errno::ACCESS) => rustix::fs::openat(parent, name, HOLD | OFlags::NOFOLLOW, Mode::empty()),
            other => other,
        }
        .map_err(|error| self.failed(error))
    }

    fn not_empty(&self) -> ToolError {
        conflict(self.path, "the directory holds entries that the call did not make")
    }

    fn failed(&self, error: Errno) -> ToolError {
        match error {
            Errno::NOTEMPTY => self.not_empty(),
            error => ToolError::io(format!("restore {}", self.path.display()), &error.into()),
        }
    }
}

/// Sets the mode of the very directory that is held, whatever its name means by now.
fn chmod(fd: &OwnedFd, mode: u32) -> Result<(), Errno> {
    let mode = Mode::from_raw_mode(mode);
    match rustix::fs::fchmod(fd, mode) {
        // A handle that only holds; its link in /proc leads to what it holds.
        Err(Errno::BADF) => rustix::fs::chmod(format!("/proc/self/fd/{}", fd.as_raw_fd()), mode),
        other => other,
    }
}

fn conflict(path: &Path, why: &str) -> ToolError {
    ToolError::new(ErrorKind::Conflict, format!("{}: {why}", path.display()))
}
