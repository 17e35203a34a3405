//! Putting a path back to an earlier state, recorded like any other change.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::Path;

use haft_tool::{Change, ErrorKind, Node, Restore, ToolError};
use rustix::fs::{AtFlags, Mode, Stat};
use rustix::io::Errno;

use super::LocalFiles;
use super::node::look;
use super::place::{Installed, install, lock, remove, temp_name, write_temp};
use super::resolve::Leaf;
use super::update::{overtaken, sync};
use crate::Intent;

impl LocalFiles {
    pub(super) fn restore_path(&self, restore: &Restore<'_>) -> Result<(), ToolError> {
        let path = restore.path;
        let place = self.place_for_write(path, Leaf::Keep)?;
        if !place.missing.is_empty() {
            return match restore.to {
                Node::Absent => Ok(()),
                _ => Err(conflict(path, "its directory is gone")),
            };
        }
        let _held = lock(&place.parent, path)?;
        let (now, current) = look(&place.parent, &place.name, path)?;
        if !now.same_as(restore.expect) {
            return Err(conflict(path, &format!("it is no longer what the call left ({})", now.noun())));
        }
        let stat = match &now {
            Node::Absent => None,
            _ => Some(
                rustix::fs::statat(&place.parent, &place.name, AtFlags::SYMLINK_NOFOLLOW)
                    .map_err(|error| ToolError::io(path.display(), &error.into()))?,
            ),
        };
        let stat = current.as_ref().map(|current| current.stat).or(stat);
        let temp = temp_name()?;
        let change = Change { path: path.to_owned(), before: now.clone(), after: restore.to.clone() };
        self.journal.before(&[Intent {
            change: change.clone(),
            before: current.as_ref().map(|current| current.bytes.as_slice()),
            temp: Some(place.parent_path.join(&temp)),
        }])?;
        let swap = Swap {
            parent: &place.parent,
            name: &place.name,
            temp: &temp,
            path,
            now: &now,
            stat: stat.as_ref(),
        };
        let done = swap.to(restore.to, restore.bytes);
        if !matches!(done, Ok(Installed::Yes)) {
            let _ = rustix::fs::unlinkat(&place.parent, &temp, AtFlags::empty());
        }
        match done? {
            Installed::Overtaken => Err(overtaken(path)),
            Installed::Yes => {
                sync(&place.parent, path)?;
                self.journal.changed(change);
                Ok(())
            }
        }
    }
}

/// One path on its way from what stands there to what shall.
struct Swap<'a> {
    parent: &'a OwnedFd,
    name: &'a OsStr,
    temp: &'a OsStr,
    path: &'a Path,
    now: &'a Node,
    stat: Option<&'a Stat>,
}

impl Swap<'_> {
    fn to(&self, to: &Node, bytes: &[u8]) -> Result<Installed, ToolError> {
        if matches!(self.now, Node::Dir { .. }) && !matches!(to, Node::Dir { .. }) {
            self.remove_directory()?;
            return match to {
                Node::Absent => Ok(Installed::Yes),
                _ => self.put(to, bytes, None),
            };
        }
        match (to, self.stat) {
            (Node::Absent, None) => Ok(Installed::Yes),
            (Node::Absent, Some(stat)) => {
                remove(self.parent, self.name, self.temp, stat).map_err(|error| self.failed(error))
            }
            (Node::Dir { mode }, Some(_)) if matches!(self.now, Node::Dir { .. }) => self.set_mode(*mode),
            (Node::Dir { .. }, Some(stat)) => {
                match remove(self.parent, self.name, self.temp, stat).map_err(|error| self.failed(error))? {
                    Installed::Yes => self.put(to, bytes, None),
                    Installed::Overtaken => Ok(Installed::Overtaken),
                }
            }
            (to, stat) => self.put(to, bytes, stat),
        }
    }

    /// Makes `to` under the temporary name and moves it into place.
    fn put(&self, to: &Node, bytes: &[u8], expect: Option<&Stat>) -> Result<Installed, ToolError> {
        match to {
            Node::Absent => return Ok(Installed::Yes),
            Node::File(file) => {
                write_temp(self.parent, self.temp, bytes, Some(file))
                    .map_err(|error| ToolError::io(format!("restore {}", self.path.display()), &error))?;
            }
            Node::Link { target } => {
                rustix::fs::symlinkat(target, self.parent, self.temp).map_err(|error| self.failed(error))?;
            }
            Node::Dir { mode } => {
                let made = rustix::fs::mkdirat(self.parent, self.name, Mode::from_raw_mode(*mode));
                return match made {
                    Ok(()) => self.set_mode(*mode),
                    Err(Errno::EXIST) => Ok(Installed::Overtaken),
                    Err(error) => Err(self.failed(error)),
                };
            }
            Node::Special => {
                return Err(conflict(
                    self.path,
                    "a device, socket or FIFO stood there, which is not recreated",
                ));
            }
        }
        install(self.parent, self.temp, self.name, expect).map_err(|error| self.failed(error))
    }

    fn set_mode(&self, mode: u32) -> Result<Installed, ToolError> {
        rustix::fs::chmodat(self.parent, self.name, Mode::from_raw_mode(mode), AtFlags::empty())
            .map(|()| Installed::Yes)
            .map_err(|error| self.failed(error))
    }

    fn remove_directory(&self) -> Result<(), ToolError> {
        match rustix::fs::unlinkat(self.parent, self.name, AtFlags::REMOVEDIR) {
            Ok(()) => Ok(()),
            Err(Errno::NOTEMPTY | Errno::EXIST) => {
                Err(conflict(self.path, "the directory holds entries that the call did not make"))
            }
            Err(error) => Err(self.failed(error)),
        }
    }

    fn failed(&self, error: Errno) -> ToolError {
        ToolError::io(format!("restore {}", self.path.display()), &error.into())
    }
}

fn conflict(path: &Path, why: &str) -> ToolError {
    ToolError::new(ErrorKind::Conflict, format!("{}: {why}", path.display()))
}
