//! Moving a directory with everything in it back to its earlier path.

use std::path::Path;

use haft_tool::{Change, FileContent, Intent, Node, ToolError};
use rustix::fs::AtFlags;
use rustix::io::Errno;

use crate::LocalFiles;
use crate::error::conflict;
use crate::node::{Captured, capture};
use crate::replace::rename_to_free_name;
use crate::resolve::FinalLink;
use crate::update::sync_directory;

impl LocalFiles {
    pub(crate) fn move_directory_back(&self, from: &Path, to: &Path) -> Result<(), ToolError> {
        let failed = |error: std::io::Error| ToolError::io(format!("move {} back", from.display()), &error);
        let taken = || conflict(to, "a directory was to be moved back here, but the path is taken");
        let source = self.resolve_for_write(from, FinalLink::Keep)?;
        let target = self.resolve_for_write(to, FinalLink::Keep)?;
        if !target.missing.is_empty() {
            return Err(conflict(to, "its directory no longer exists"));
        }
        let mut now = Captured::ABSENT;
        if source.missing.is_empty() {
            now = capture(&source.parent, &source.name).map_err(failed)?;
        }
        if !matches!(now.node, Node::Dir { .. }) {
            let why = format!("a directory was to be moved back from here, but there is {}", now.node.noun());
            return Err(conflict(from, &why));
        }
        if rustix::fs::statat(&target.parent, &target.name, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
            return Err(taken());
        }
        let change = Change { moved_to: Some(to.to_owned()), ..Change::new(from, now.node, Node::Absent) };
        let intent = Intent { change: change.clone(), previous: FileContent::None, temp: None };
        self.record.intend(&mut [intent])?;
        match rename_to_free_name(&source.parent, &source.name, &target.parent, &target.name, true) {
            Ok(()) => {}
            Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => return Err(taken()),
            Err(error) => return Err(failed(error.into())),
        }
        self.record.changed(change);
        sync_directory(&source.parent, from)?;
        sync_directory(&target.parent, to)
    }
}
