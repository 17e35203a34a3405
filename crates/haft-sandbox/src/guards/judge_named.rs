//! Judges the files that the user's links and git configurations lead to, whatever their names are.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use haft_policy::{Guard, settings_rule};
use haft_tool::{FileNode, Node};

use super::git::is_executable;
use super::named::{NamedFiles, is_link, ways};
use super::named_by_git::NamedByAll;
use super::objects::changed_at;
use super::{Judge, TOO_MANY_FILES, Violation, files_in, names_in, node_now, read_now};

impl Judge<'_> {
    /// Judges the files that the user's links and git configurations lead to.
    pub(crate) fn named(&self, named: &NamedFiles) -> Vec<Violation> {
        let mut violations = Vec::new();
        for link in &named.links {
            self.linked_settings(link, false, &named.unlisted, &mut violations);
        }
        let named = NamedByAll::new(&named.repositories);
        for config in &named.configs {
            self.named_config(config, &mut violations);
        }
        for (hooks, is_default) in &named.hooks {
            self.named_hooks(hooks, *is_default, &mut violations);
        }
        for (program, config) in &named.programs {
            self.named_program(program, config, &mut violations);
        }
        violations
    }

    /// Judges the settings that a link of the user leads to. What calls left there before the link existed (`is_new`) was
    /// not judged. A directory with too many files must be one of `unlisted`.
    pub(super) fn linked_settings(
        &self,
        link: &Path,
        is_new: bool,
        unlisted: &BTreeSet<PathBuf>,
        violations: &mut Vec<Violation>,
    ) {
        for way in ways(link) {
            self.changed_links(&way, violations);
        }
        let Ok(target) = std::fs::canonicalize(link) else { return };
        let files = match target.is_dir().then(|| files_in(&target)) {
            Some(Some(files)) => files,
            Some(None) if unlisted.contains(&target) || !(self.is_recorded)(&target) => Vec::new(),
            Some(None) => {
                let detail = format!("{} leads there; {TOO_MANY_FILES}", link.display());
                return self.add(target, Guard::Settings, detail, violations);
            }
            None => vec![target.clone()],
        };
        for path in files {
            let below = path.strip_prefix(&target).unwrap_or(Path::new(""));
            let seen_as = if below.as_os_str().is_empty() { link.to_owned() } else { link.join(below) };
            if settings_rule(&seen_as).is_none() || self.is_granted(&seen_as) || !(self.is_recorded)(&path) {
                continue;
            }
            let (before, now) = (self.node_before(&path), node_now(&path));
            let is_fine = match &now {
                Node::File(file) => {
                    let is_same = before.as_file().is_some_and(|before| before.hash == file.hash);
                    let was_judged = |other: &Path, _: &FileNode| settings_rule(other).is_some();
                    let is_beside = || changed_at(&path).is_none_or(|at| self.is_beside_another(at));
                    let is_left = is_new && (self.is_left_by_call(file, &was_judged) || is_beside());
                    is_same && !is_left || self.is_users_file(&seen_as, file)
                }
                now => *now == before,
            };
            if !is_fine {
                let detail = format!("{} leads there", link.display());
                self.add(path, Guard::Settings, detail, violations);
            }
        }
    }

    /// Judges a configuration that another one includes, or that a link leads to.
    fn named_config(&self, path: &Path, violations: &mut Vec<Violation>) {
        for way in ways(path) {
            self.changed_links(&way, violations);
        }
        let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if (self.is_recorded)(&path)
            && let Some((guard, detail)) = self.config(&path, Some(&path))
        {
            self.add(path, guard, detail, violations);
        }
    }

    /// Judges the hooks in the directory that a configuration names, and what links in any hooks directory lead to.
    fn named_hooks(&self, hooks: &Path, is_default: bool, violations: &mut Vec<Violation>) {
        if !is_default || is_link(hooks) {
            for way in ways(hooks) {
                self.changed_links(&way, violations);
            }
            let hooks = std::fs::canonicalize(hooks).unwrap_or_else(|_| hooks.to_owned());
            if (self.is_recorded)(&hooks) {
                self.hooks(&hooks, Some(&hooks), false, violations);
            }
        }
        let names = names_in(hooks).unwrap_or_default();
        for link in names.into_iter().map(|name| hooks.join(name)).filter(|path| is_link(path)) {
            for way in ways(&link) {
                self.changed_links(&way, violations);
            }
            let Ok(path) = std::fs::canonicalize(&link) else { continue };
            let Node::File(file) = node_now(&path) else { continue };
            let before = self.node_before(&path);
            let is_same = before.as_file().is_some_and(|before| before.hash == file.hash);
            if (self.is_recorded)(&path) && is_executable(&file) && !is_same {
                let detail = format!("{} leads there", link.display());
                self.add(path, Guard::Hook, detail, violations);
            }
        }
    }

    /// Judges a program that a configuration names.
    fn named_program(&self, program: &Path, config: &Path, violations: &mut Vec<Violation>) {
        for way in ways(program) {
            self.changed_links(&way, violations);
        }
        let Ok(path) = std::fs::canonicalize(program) else { return };
        let Node::File(file) = node_now(&path) else { return };
        let is_same = self.node_before(&path).as_file().is_some_and(|before| before.hash == file.hash);
        let is_users = || read_now(&path).is_some_and(|bytes| self.is_in_repository(&path, &bytes));
        if (self.is_recorded)(&path) && !is_same && !is_users() {
            let detail = format!("{} names it", config.display());
            self.add(path, Guard::Hook, detail, violations);
        }
    }

    /// Adds a violation for each link on the way to `path` that is new or led elsewhere before.
    fn changed_links(&self, path: &Path, violations: &mut Vec<Violation>) {
        for part in path.ancestors().filter(|part| (self.is_recorded)(part)) {
            if is_link(part) && self.node_before(part) != node_now(part) {
                self.add(part.to_owned(), Guard::GitLink, "a link".to_owned(), violations);
            }
        }
    }
}
