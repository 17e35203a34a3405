//! Judges git directories as git would use them, whatever their names: configurations that name programs, executable hooks,
//! and files that lead git elsewhere.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use haft_policy::Guard;
use haft_tool::{FileNode, Node};

use super::objects::{common_directory, git_directory};
use super::{Judge, Violation, names_in, node_kind, node_now, read_now};
use crate::git_config::{named_paths, new_programs};

const CONFIGS: [&str; 2] = ["config", "config.worktree"];
const EXECUTABLE_BITS: u32 = 0o111;
/// More levels of included configurations are not followed; git stops at ten.
const MAX_INCLUDES: usize = 10;
const UNREADABLE: &str = "it cannot be read";

/// Whether an entry can be part of what makes a directory a git directory, or of what git runs there.
pub(crate) fn is_control_name(path: &Path) -> bool {
    const NAMES: &[&str] =
        &[".git", "config", "config.worktree", "HEAD", "commondir", "gitdir", "objects", "refs", "hooks"];
    let is_listed = |name: &OsStr| NAMES.iter().any(|listed| name.eq_ignore_ascii_case(listed));
    let is_hook =
        || path.parent().and_then(Path::file_name).is_some_and(|name| name.eq_ignore_ascii_case("hooks"));
    path.file_name().is_some_and(is_listed) || is_hook()
}

impl Judge<'_> {
    /// What is wrong with the git directories that entries with control names are part of.
    pub(crate) fn control_entries(&self, paths: impl Iterator<Item = PathBuf>) -> Vec<Violation> {
        let mut violations = Vec::new();
        let mut directories = BTreeSet::new();
        for path in paths {
            self.pointer(&path, &mut violations);
            directories.extend(path.ancestors().take(3).map(Path::to_owned));
        }
        for directory in directories {
            self.git_directory(&directory, &mut violations);
        }
        violations
    }

    /// What is wrong with the repositories around changed directories: files that their configurations include or whose
    /// directory these name for hooks.
    pub(crate) fn repositories_around(&self, directories: impl Iterator<Item = PathBuf>) -> Vec<Violation> {
        let mut seen = BTreeSet::new();
        let mut violations = Vec::new();
        for directory in directories {
            for above in directory.ancestors() {
                if !seen.insert(above.to_owned()) {
                    break;
                }
                let git = match node_kind(&above.join(".git")) {
                    Some(_) => git_directory(&above.join(".git")),
                    None => is_git_directory_now(above).then(|| above.to_owned()),
                };
                if let Some(git) = git {
                    self.named_files(above, &common_directory(&git), &mut violations);
                }
            }
        }
        violations
    }

    /// Judges one directory, if it is a git directory.
    fn git_directory(&self, directory: &Path, violations: &mut Vec<Violation>) {
        if !is_git_directory_now(directory) || !(self.is_recorded)(directory) {
            return;
        }
        // What was there before a directory became a git directory was not in effect.
        let former = self.before.former_directory(directory);
        let former = former.filter(|former| self.was_git_directory(former));
        for name in CONFIGS {
            let (path, former) = (directory.join(name), former.as_ref().map(|former| former.join(name)));
            if let Some((guard, detail)) = self.config(&path, former.as_deref()) {
                self.add(path, guard, detail, violations);
            }
        }
        let hooks = directory.join("hooks");
        let former_hooks = former.as_ref().map(|former| former.join("hooks"));
        let is_new_link = |path: &Path, former: Option<&Path>| {
            let now = node_now(path);
            matches!(now, Node::Link { .. }) && former.is_none_or(|former| self.node_before(former) != now)
        };
        if is_new_link(&hooks, former_hooks.as_deref()) {
            self.add(hooks, Guard::Hook, "a link".to_owned(), violations);
        } else {
            self.hooks(&hooks, former_hooks.as_deref(), violations);
        }
        let (common, former) = (directory.join("commondir"), former.map(|former| former.join("commondir")));
        if let Some(bytes) = read_now(&common)
            && former.is_none_or(|former| self.bytes_before(&former) != bytes)
        {
            self.leads_out(&common, directory, &bytes, violations);
        }
    }

    /// Why a configuration is a violation.
    fn config(&self, path: &Path, former: Option<&Path>) -> Option<(Guard, String)> {
        // Git does not read a directory.
        let kind = node_kind(path).filter(|kind| !kind.is_dir())?;
        let is_link = kind.is_symlink();
        if is_link && former.is_none_or(|former| self.node_before(former) != node_now(path)) {
            return Some((Guard::GitLink, "a link".to_owned()));
        }
        let Some(bytes) = read_now(path) else {
            return (!is_link).then(|| (Guard::GitConfig, UNREADABLE.to_owned()));
        };
        let old = former.map(|former| self.bytes_before(former)).unwrap_or_default();
        let programs = new_programs(path, &old, &bytes);
        let is_violation = !programs.is_empty() && !self.is_users_config(path, &bytes);
        is_violation.then(|| (Guard::GitConfig, programs.join(", ")))
    }

    /// Judges the hooks in a directory.
    fn hooks(&self, directory: &Path, former: Option<&Path>, violations: &mut Vec<Violation>) {
        for name in names_in(directory) {
            if name.as_bytes().ends_with(b".sample") {
                continue;
            }
            let path = directory.join(&name);
            let before = former.map_or(Node::Absent, |former| self.node_before(&former.join(&name)));
            match node_now(&path) {
                Node::File(file) if is_executable(&file) => {
                    let is_same = |before: &FileNode| before.hash == file.hash && is_executable(before);
                    if !before.as_file().is_some_and(is_same) && !self.is_users_hook(&path, &file) {
                        self.add(path, Guard::Hook, String::new(), violations);
                    }
                }
                link @ Node::Link { .. } if link != before => {
                    self.add(path, Guard::Hook, "a link".to_owned(), violations);
                }
                _ => {}
            }
        }
    }

    /// Judges the files that the configuration of a repository names. `top` is its working tree.
    fn named_files(&self, top: &Path, common: &Path, violations: &mut Vec<Violation>) {
        let mut configs: Vec<PathBuf> = CONFIGS.iter().map(|name| common.join(name)).collect();
        let mut hooks = common.join("hooks");
        for depth in 0..MAX_INCLUDES {
            let mut included = Vec::new();
            for config in &configs {
                // The configurations themselves are judged when they or their directories change.
                let is_link = || node_kind(config).is_some_and(|kind| kind.is_symlink());
                if depth > 0 || is_link() {
                    self.named_config(config, violations);
                }
                let Some(named) = read_now(config).map(|bytes| named_paths(&bytes)) else { continue };
                let parent = config.parent().unwrap_or(common);
                included.extend(named.includes.iter().map(|path| resolve(parent, path)));
                hooks = named.hooks.map_or(hooks, |path| resolve(top, &path));
            }
            if included.is_empty() {
                break;
            }
            configs = included;
        }
        let is_default = hooks == common.join("hooks");
        if !is_default || node_kind(&hooks).is_some_and(|kind| kind.is_symlink()) {
            self.changed_links(&hooks, violations);
            let hooks = std::fs::canonicalize(&hooks).unwrap_or(hooks);
            if (self.is_recorded)(&hooks) {
                self.hooks(&hooks, Some(&hooks), violations);
            }
        }
    }

    /// Judges a configuration that another one includes, or that a link leads to.
    fn named_config(&self, path: &Path, violations: &mut Vec<Violation>) {
        self.changed_links(path, violations);
        let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let Some(bytes) = read_now(&path).filter(|_| (self.is_recorded)(&path)) else { return };
        let programs = new_programs(&path, &self.bytes_before(&path), &bytes);
        if !programs.is_empty() {
            self.add(path, Guard::GitConfig, programs.join(", "), violations);
        }
    }

    /// Adds violations for links on the way to `path` that were not there before.
    fn changed_links(&self, path: &Path, violations: &mut Vec<Violation>) {
        for part in path.ancestors().filter(|part| (self.is_recorded)(part)) {
            let is_link = node_kind(part).is_some_and(|kind| kind.is_symlink());
            let former = || self.before.former_entry(part).unwrap_or_else(|| part.to_owned());
            if is_link && self.node_before(&former()) != node_now(part) {
                self.add(part.to_owned(), Guard::GitLink, "a link".to_owned(), violations);
            }
        }
    }

    /// Judges a `.git` that is a file or a link.
    fn pointer(&self, path: &Path, violations: &mut Vec<Violation>) {
        let is_pointer = path.file_name().is_some_and(|name| name.eq_ignore_ascii_case(".git"));
        let Some(parent) = path.parent().filter(|_| is_pointer) else { return };
        let now = node_now(path);
        let before = self.before.former_entry(path).map_or(Node::Absent, |former| self.node_before(&former));
        let is_same = match (&now, &before) {
            (Node::File(now), Node::File(before)) => now.hash == before.hash,
            (now, before) => now == before,
        };
        match now {
            _ if is_same => {}
            Node::Link { target, .. } => {
                self.leads_out(path, parent, target.as_os_str().as_bytes(), violations);
            }
            Node::File(_) => {
                let bytes = read_now(path).unwrap_or_default();
                if let Some(target) = bytes.strip_prefix(b"gitdir: ") {
                    self.leads_out(path, parent, target, violations);
                }
            }
            _ => {}
        }
    }

    /// Adds a violation if a new file leads git to a place where changes are not judged.
    fn leads_out(&self, path: &Path, parent: &Path, target: &[u8], violations: &mut Vec<Violation>) {
        let end = target.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |at| at + 1);
        let target = parent.join(OsStr::from_bytes(&target[..end]));
        let is_judged = |real: PathBuf| (self.is_recorded)(&real) && !self.has_links(&target);
        if !real_path(&target).is_some_and(is_judged) {
            let target = target.to_string_lossy().escape_debug().to_string();
            let detail = format!("it leads to '{target}', where git's configuration is not protected");
            self.add(path.to_owned(), Guard::GitLink, detail, violations);
        }
    }

    /// Whether a link of the workspace is on the way to `path`: it could lead elsewhere later.
    fn has_links(&self, path: &Path) -> bool {
        let mut walked = PathBuf::new();
        path.components().any(|part| match part {
            Component::ParentDir => {
                walked.pop();
                false
            }
            Component::CurDir => false,
            part => {
                walked.push(part);
                (self.is_recorded)(&walked) && node_kind(&walked).is_some_and(|kind| kind.is_symlink())
            }
        })
    }

    fn add(&self, path: PathBuf, guard: Guard, detail: String, violations: &mut Vec<Violation>) {
        if !self.is_granted(&path) && !violations.iter().any(|known| known.path == path) {
            violations.push(Violation { path, guard, what: "write", detail });
        }
    }

    /// Whether a path was a git directory before the command.
    pub(super) fn was_git_directory(&self, former: &Path) -> bool {
        let has = |name: &str| self.node_before(&former.join(name)) != Node::Absent;
        (is_dot_git(former) && matches!(self.node_before(former), Node::Dir { .. })) || is_complete(has)
    }
}

/// Whether git would use this directory as a git directory, or as the common directory of another one.
fn is_git_directory_now(path: &Path) -> bool {
    let Some(kind) = node_kind(path) else { return false };
    kind.is_dir() && (is_dot_git(path) || is_complete(|name| node_kind(&path.join(name)).is_some()))
}

fn is_dot_git(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.eq_ignore_ascii_case(".git"))
}

fn is_complete(has: impl Fn(&str) -> bool) -> bool {
    (has("objects") && has("refs")) || (has("HEAD") && has("commondir"))
}

pub(super) fn is_executable(file: &FileNode) -> bool {
    file.mode & EXECUTABLE_BITS != 0
}

/// A path that git's files name, relative to `base`, without `..`.
fn resolve(base: &Path, path: &[u8]) -> PathBuf {
    let mut resolved = PathBuf::new();
    for part in base.join(OsStr::from_bytes(path)).components() {
        match part {
            Component::ParentDir => drop(resolved.pop()),
            Component::CurDir => {}
            other => resolved.push(other),
        }
    }
    resolved
}

/// The path without links; what does not exist is added. `None` if it is not certain where it leads.
fn real_path(path: &Path) -> Option<PathBuf> {
    // For git a path ends at a NUL, for some parsers also at a line end.
    if path.as_os_str().as_bytes().iter().any(u8::is_ascii_control) {
        return None;
    }
    let existing = path.ancestors().find_map(|above| Some((above, std::fs::canonicalize(above).ok()?)));
    let (above, real) = existing?;
    let missing = path.strip_prefix(above).ok()?;
    let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_));
    missing.components().all(is_plain).then(|| real.join(missing))
}
