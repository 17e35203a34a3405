//! The files as undo and recovery read them.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use haft_files::{LocalFiles, OpenedDirectories};
use haft_ledger::{CallRecord, WorkspaceView};
use haft_tool::{
    Change, CommandChanges, Denial, ErrorKind, FileId, Files as _, Node, OpenContent, Receipt, StagedStep,
    ToolError,
};

use crate::commands::restore_guarded_changes;
use crate::history::History;

/// The permission of an owner to read.
const OWNER_READ: u32 = 0o400;

/// The files, as a [`WorkspaceView`].
pub(crate) struct FileView<'a> {
    files: &'a LocalFiles,
    history: &'a History,
    /// Where directories that a command closed are opened, to see what it changed in them. Empty for a preview, which changes
    /// nothing.
    opens: &'a [PathBuf],
    /// When files had last changed before an observation opened them, because opening changes that time.
    changed_at: HashMap<PathBuf, Option<SystemTime>>,
}

impl<'a> FileView<'a> {
    /// A view that changes nothing.
    pub(crate) fn new(files: &'a LocalFiles, history: &'a History) -> Self {
        Self { files, history, opens: &[], changed_at: HashMap::new() }
    }

    /// A view that opens directories of the workspace while it observes.
    pub(crate) fn opening(files: &'a LocalFiles, history: &'a History) -> Self {
        Self { files, history, opens: &history.scope().roots, changed_at: HashMap::new() }
    }

    fn opened_above(&self, path: &Path) -> Option<OpenedDirectories> {
        path.parent().map(|parent| OpenedDirectories::down_to(parent, self.opens))
    }
}

impl WorkspaceView for FileView<'_> {
    fn observe(&mut self, path: &Path) -> Result<Node, ToolError> {
        let _opened = self.opened_above(path);
        let node = self.files.observe_recorded(path)?;
        if self.opens.is_empty() || !is_unread(&node) {
            return Ok(node);
        }
        let changed_at = haft_files::changed_at(path);
        self.changed_at.entry(path.to_owned()).or_insert(changed_at);
        self.files.observe_unlocked(path)
    }

    fn file_id(&mut self, path: &Path) -> Option<FileId> {
        let _opened = self.opened_above(path);
        haft_files::birth_id_at(path)
    }

    fn changed_at(&mut self, path: &Path) -> Option<SystemTime> {
        if let Some(known) = self.changed_at.get(path) {
            return *known;
        }
        let _opened = self.opened_above(path);
        haft_files::changed_at(path)
    }

    fn content(&mut self, path: &Path) -> Option<Box<dyn Read + Send>> {
        self.files.open(path).ok().map(|file| file.reader)
    }

    fn entry_names(&mut self, path: &Path) -> Result<Vec<OsString>, ToolError> {
        let _opened = OpenedDirectories::down_to(path, self.opens);
        let entries = self.files.list(path).map_err(|mut error| {
            if error.kind == ErrorKind::PermissionDenied {
                error.message +=
                    "; make it readable (chmod u+rwx), or name the paths to undo: haft undo ID -- PATH";
            }
            error
        })?;
        Ok(entries.into_iter().map(|entry| entry.name).collect())
    }

    fn undo_restore(
        &mut self,
        steps: &[StagedStep],
        made: Option<usize>,
        content: &OpenContent<'_>,
    ) -> Result<(), ToolError> {
        if let Some(made) = made {
            self.files.roll_back(&steps[..made.min(steps.len())], content)?;
        }
        haft_files::remove_stages(steps);
        Ok(())
    }

    fn restore_guarded(
        &mut self,
        call: &Receipt,
        command: &CommandChanges,
        changes: &[Change],
    ) -> Vec<Denial> {
        let mut scope = self.history.scope().clone();
        if !scope.roots.contains(&call.workspace) {
            scope.roots = vec![call.workspace.clone()];
        }
        let record = CallRecord::new(Arc::clone(self.history.handle()), call.clone());
        restore_guarded_changes(command, changes, &scope, &record, call.started_at)
    }

    fn find_links(&mut self, files: HashSet<FileId>, except: &HashSet<&Path>) -> HashMap<FileId, PathBuf> {
        self.files.find(files, except)
    }
}

/// Whether the mode of a file or directory denies its owner read access.
fn is_unread(node: &Node) -> bool {
    match node {
        Node::File(file) => file.hash.is_empty(),
        Node::Dir(directory) => directory.mode & OWNER_READ == 0,
        _ => false,
    }
}
