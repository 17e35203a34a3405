//! Judges files that links and git configurations lead to now, and did not before a command.

use std::path::{Path, PathBuf};

use haft_policy::Guard;
use haft_tool::{FileNode, Node};

use super::git::{is_executable, may_be_hook};
use super::named::NamedFiles;
use super::named_by_git::NamedByAll;
use super::objects::changed_at;
use super::{Judge, Violation, names_in, node_now, read_now};
use crate::git_config::new_programs;

impl Judge<'_> {
    /// Judges hooks, configurations and settings that are named now and were not before the command. What calls had left in
    /// them was not judged, because it had no effect then.
    pub(crate) fn newly_named(&self, before: &NamedFiles, now: &NamedFiles) -> Vec<Violation> {
        let mut violations = Vec::new();
        for link in now.links.difference(&before.links) {
            self.linked_settings(link, true, &before.unlisted, &mut violations);
        }
        // The paths found at that time, because the user may have changed a configuration since.
        let known = &before.targets;
        let former = NamedByAll::new(&before.repositories);
        let named = NamedByAll::new(&now.repositories);
        // Hooks in the git directory itself are judged with that directory.
        let hooks = named.hooks.iter().filter(|(_, is_own)| !**is_own).map(|(hooks, _)| hooks);
        for hooks in hooks.filter(|path| !known.contains(*path)) {
            let names = names_in(hooks).unwrap_or_default();
            for name in names.into_iter().filter(|name| may_be_hook(name)) {
                let user_files = former.hooks.keys().map(|hooks| hooks.join(&name));
                if let Some((path, file)) = self.unjudged_file(&hooks.join(&name), user_files)
                    && is_executable(&file)
                {
                    self.add(path, Guard::Hook, "a call left it there".to_owned(), &mut violations);
                }
            }
        }
        for program in named.programs.keys().filter(|path| !known.contains(*path)) {
            if let Some((path, _)) = self.unjudged_file(program, former.programs.keys().cloned()) {
                self.add(path, Guard::Hook, "a call left it there".to_owned(), &mut violations);
            }
        }
        for config in named.configs.iter().filter(|path| !known.contains(*path)) {
            let Some((path, _)) = self.unjudged_file(config, former.configs.iter().cloned()) else {
                continue;
            };
            let Some(bytes) = read_now(&path) else { continue };
            let programs = new_programs(&path, &[], &bytes);
            if !programs.is_empty() {
                self.add(path, Guard::GitConfig, programs.join(", "), &mut violations);
            }
        }
        violations
    }

    /// The file that `path` leads to, unless it is the user's: a copy of one of `user_files`, or a file that no other call
    /// left and that either this command did not change or the repository has.
    fn unjudged_file(
        &self,
        path: &Path,
        user_files: impl IntoIterator<Item = PathBuf>,
    ) -> Option<(PathBuf, FileNode)> {
        let path = std::fs::canonicalize(path).ok().filter(|path| (self.is_recorded)(path))?;
        let Node::File(file) = node_now(&path) else { return None };
        let was_same =
            |former: &Path| self.node_before(former).as_file().is_some_and(|old| old.hash == file.hash);
        let is_changed = !self.before.former_entry(&path).is_some_and(|former| was_same(&former));
        if user_files.into_iter().any(|former| was_same(&former)) {
            return None;
        }
        let is_in_repository = || read_now(&path).is_some_and(|bytes| self.is_in_repository(&path, &bytes));
        // What a call that still runs has written is not in the ledger yet.
        let is_beside = || changed_at(&path).is_none_or(|at| self.is_beside_another(at));
        let is_left = self.is_left_by_call(&file, &|_, _| false) || is_beside();
        (is_left || is_changed && !is_in_repository()).then_some((path, file))
    }
}
