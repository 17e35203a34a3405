//! Moving a directory back to where it was, with everything in it.

use std::path::Path;

use haft_tool::{Change, FileContent, Intent, Node, ToolError};
use rustix::fs::{AtFlags, RenameFlags};
use rustix::io::Errno;

use super::LocalFiles;
use super::node::look;
use super::resolve::Leaf;
use super::swap::conflict;
use super::update::sync;

impl LocalFiles {
    pub(super) fn move_directory_back(&self, from: &Path, to: &Path) -> Result<(), ToolError> {
        let (here, there) = (self.place_for_write(from, Leaf::Keep)?, self.place_for_write(to, Leaf::Keep)?);
        if !there.missing.is_empty() {
            return Err(conflict(to, "its directory is gone"));
        }
        let now =
            if here.missing.is_empty() { look(&here.parent, &here.name, from)?.node } else { Node::Absent };
        if !matches!(now, Node::Dir { .. }) {
            return Err(conflict(
                from,
                &format!("a directory was to be moved back from here, and there is {}", now.noun()),
            ));
        }
        let change = Change { moved_to: Some(to.to_owned()), ..Change::new(from, now, Node::Absent) };
        let intent = Intent { change: change.clone(), previous: FileContent::None, temp: None };
        self.journal.intend(&mut [intent])?;
        let moved = match rustix::fs::renameat_with(
            &here.parent,
            &here.name,
            &there.parent,
            &there.name,
            RenameFlags::NOREPLACE,
        ) {
            // A file system that cannot promise it: a look, then the move. Nothing but an empty directory is replaced.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP)
                if rustix::fs::statat(&there.parent, &there.name, AtFlags::SYMLINK_NOFOLLOW).is_err() =>
            {
                rustix::fs::renameat(&here.parent, &here.name, &there.parent, &there.name)
            }
            other => other,
        };
        match moved {
            Ok(()) => {}
            Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => {
                return Err(conflict(
                    to,
                    "a directory was to be moved back to here, and something stands there",
                ));
            }
            Err(error) => {
                return Err(ToolError::io(format!("move {} back", from.display()), &error.into()));
            }
        }
        self.journal.changed(change);
        sync(&here.parent, from)?;
        sync(&there.parent, to)
    }
}
