//! Judges what a command without a witness left, by comparing with the snapshot.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use haft_tool::{FileNode, Node, Record, Scope};

use super::scan::{EntryVersion, scan};
use super::{Snapshot, previous_state};
use crate::denials::DenialList;
use crate::guards::{BeforeView, Judge, NamedFiles, TouchedPath, is_relevant, restore_violations};

impl Snapshot {
    /// Restores what would make programs run outside of the sandbox.
    pub(super) fn restore_guarded(&self, scope: &Scope, record: &dyn Record, denials: &mut DenialList) {
        let after = scan(&self.roots, &self.excluded);
        let is_changed = |path: &Path| self.stored(path).is_some();
        let paths: Vec<PathBuf> = self.before.keys().chain(after.entries.keys()).cloned().collect();
        let mut paths: Vec<PathBuf> =
            paths.into_iter().filter(|path| is_relevant(path) && is_changed(path)).collect();
        paths.sort_unstable();
        paths.dedup();
        let is_recorded = |path: &Path| {
            self.roots.iter().any(|root| path.starts_with(root))
                && !self.excluded.iter().any(|excluded| path.starts_with(excluded))
        };
        let index = OnceCell::new();
        let judge = Judge {
            scope,
            before: self,
            record,
            is_recorded: &is_recorded,
            // What the command changed is known from the versions of the files.
            started_at: u64::MAX,
            is_session_directory: &|path| self.excluded.iter().any(|excluded| path.starts_with(excluded)),
            index: &index,
        };
        let touched: Vec<TouchedPath> = paths.into_iter().map(TouchedPath::from).collect();
        let mut violations: Vec<_> = touched.iter().filter_map(|path| judge.settings(path, true)).collect();
        violations.extend(judge.control_entries(touched.into_iter()));
        let named = NamedFiles::find(&self.roots);
        let _opened = named.open(&self.roots);
        violations.extend(judge.named(&named));
        restore_violations(violations, self, denials);
    }
}

impl BeforeView for Snapshot {
    fn former_entry(&self, path: &Path) -> Option<PathBuf> {
        Some(path.to_owned())
    }

    fn former_directory(&self, path: &Path) -> Option<PathBuf> {
        Some(path.to_owned())
    }

    fn current_entry(&self, former: &Path) -> Option<PathBuf> {
        Some(former.to_owned())
    }

    fn stored(&self, former: &Path) -> Option<Node> {
        match self.before.get(former) {
            Some(entry) => {
                let is_same = EntryVersion::read(former).is_some_and(|now| now == entry.version);
                let is_unchanged = is_same && !(entry.is_recent && entry.copy.is_some());
                (!is_unchanged).then(|| previous_state(entry, None).node)
            }
            None if self.roots.iter().any(|root| former.starts_with(root)) => {
                (!self.unlisted.iter().any(|unlisted| former.starts_with(unlisted))).then_some(Node::Absent)
            }
            None => None,
        }
    }

    fn stored_files(&self) -> Vec<(PathBuf, FileNode)> {
        let relevant = self.before.keys().filter(|path| is_relevant(path));
        let file = |path: &PathBuf| Some((path.clone(), self.stored(path)?.as_file()?.clone()));
        relevant.filter_map(file).collect()
    }

    fn stored_bytes(&self, former: &Path, _file: &FileNode) -> Option<Vec<u8>> {
        let copy = self.before.get(former)?.copy.as_ref()?;
        std::fs::read(copy.path()).ok()
    }

    fn is_trusted(&self, _former: &Path) -> bool {
        true
    }
}
