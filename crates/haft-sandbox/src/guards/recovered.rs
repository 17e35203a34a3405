//! Judges what a command left when Haft died before it could judge it.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

use haft_files::OpenedDirectories;
use haft_tool::{Change, CommandChanges, Denial, FileNode, Node, Record, Scope};

use rustix::fs::Access;

use super::{
    BeforeView, Judge, NamedFiles, TouchedPath, Violation, is_control_name, is_relevant, restore_violations,
};
use crate::denials::DenialList;

/// Reverts the changes of a dead command that would make programs run outside the sandbox, unless `scope` allows them, and
/// returns the refusals. `record` belongs to the command's call, which started at `started_at` (milliseconds since 1970).
pub fn restore_guarded_changes(
    command: &CommandChanges,
    changes: &[Change],
    scope: &Scope,
    record: &dyn Record,
    started_at: u64,
) -> Vec<Denial> {
    let current = |change: &Change| match (&change.moved_to, &change.before) {
        (Some(to), _) => to.clone(),
        (None, Node::Absent) => change.path.clone(),
        (None, _) => command.current_path(&change.path).unwrap_or_else(|| change.path.clone()),
    };
    let paths: Vec<PathBuf> = changes.iter().map(current).collect();
    let named = NamedFiles::find(&scope.roots);
    let access = Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK;
    let changed = OpenedDirectories::above(paths.iter().map(PathBuf::as_path), access, |directory| {
        scope.roots.iter().any(|root| directory.starts_with(root))
    });
    let _opened = (changed, named.open(&scope.roots));
    let touches_named = paths.iter().any(|path| named.concern(path));
    let moved = changes.iter().filter_map(|change| change.moved_to.clone());
    let mut touched: Vec<TouchedPath> =
        paths.iter().filter(|path| is_relevant(path)).cloned().map(TouchedPath::from).collect();
    touched.sort_unstable();
    touched.dedup();
    let before = RecoveredView { command, record };
    let index = OnceCell::new();
    let judge = Judge {
        scope,
        before: &before,
        record,
        // The command's own scope is no longer known: it may have had other roots.
        is_recorded: &|_| true,
        started_at,
        is_session_directory: &|path| !scope.roots.iter().any(|root| path.starts_with(root)),
        index: &index,
    };
    let mut violations: Vec<Violation> =
        touched.iter().filter_map(|path| judge.settings(path, true)).collect();
    violations.extend(moved.filter_map(|path| judge.moved_settings(&path)));
    violations.extend(
        judge.control_entries(touched.iter().filter(|touched| is_control_name(&touched.path)).cloned()),
    );
    if touches_named {
        violations.extend(judge.named(&named));
    }
    violations.extend(judge.newly_named(&named.without(&paths), &named));
    let mut denials = DenialList::default();
    // A change after the command's end may be the user's work.
    let contested = changes.iter().filter(|change| change.contested).map(current);
    let contested: HashSet<PathBuf> = contested.collect();
    let (left, violations) =
        violations.into_iter().partition(|violation| contested.contains(&violation.path));
    restore_violations(violations, &before, &mut denials);
    for violation in Vec::<Violation>::from_iter(left) {
        let rule = format!(
            "{}; it has changed since the command, so it was left as it is: check it",
            violation.rule()
        );
        denials.add(violation.what, violation.path.display().to_string(), rule, None);
    }
    denials.into_list()
}

/// The states before the command, from its spool.
struct RecoveredView<'a> {
    command: &'a CommandChanges,
    record: &'a dyn Record,
}

impl BeforeView for RecoveredView<'_> {
    fn former_entry(&self, path: &Path) -> Option<PathBuf> {
        self.command.former_entry(path)
    }

    fn former_directory(&self, path: &Path) -> Option<PathBuf> {
        self.command.directories().former_path(path)
    }

    fn current_entry(&self, former: &Path) -> Option<PathBuf> {
        self.command.current_path(former)
    }

    fn stored(&self, former: &Path) -> Option<Node> {
        self.command.stored_at(former).cloned()
    }

    fn stored_files(&self) -> Vec<(PathBuf, FileNode)> {
        let relevant = self.command.stored().filter(|(former, _)| is_relevant(former));
        relevant.filter_map(|(former, node)| Some((former.to_owned(), node.as_file()?.clone()))).collect()
    }

    fn stored_bytes(&self, _former: &Path, file: &FileNode) -> Option<Vec<u8>> {
        self.record.stored_content(&file.hash).ok().flatten()
    }

    fn is_trusted(&self, _former: &Path) -> bool {
        matches!(self.record.runs_beside_another(haft_tool::now_ms()), Ok(false))
    }
}
