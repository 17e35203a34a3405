//! Judges git directories as git would use them, whatever their names: configurations that name programs, executable hooks,
//! and files that lead git elsewhere.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use haft_policy::Guard;
use haft_tool::{FileNode, Node};

use super::objects::changed_at;
use super::remotes::REMOTE_DIRECTORIES;
use super::restore::REFUSED_MARK;
use super::{GuardedContent, Judge, TouchedPath, Violation, content_now, names_in, node_kind, node_now};
use crate::git_config::new_programs;

pub(super) const CONFIGS: [&str; 2] = ["config", "config.worktree"];
const EXECUTABLE_BITS: u32 = 0o111;
pub(super) const UNREADABLE: &str = "it cannot be read";

/// Whether an entry of this name can help to make a directory a git directory, or be something that git runs there.
pub(crate) fn is_control_name(path: &Path) -> bool {
    const NAMES: &[&str] =
        &[".git", "config", "config.worktree", "HEAD", "commondir", "gitdir", "objects", "refs", "hooks"];
    let is_listed = |name: &OsStr| NAMES.iter().any(|listed| name.eq_ignore_ascii_case(listed));
    let is_hook =
        || path.parent().and_then(Path::file_name).is_some_and(|name| name.eq_ignore_ascii_case("hooks"));
    path.file_name().is_some_and(is_listed) || is_hook() || may_name_remotes(path)
}

/// Whether it may be a directory of files that name remotes, or such a file.
fn may_name_remotes(path: &Path) -> bool {
    let mut names = path.ancestors().take(2).filter_map(Path::file_name);
    names.any(|name| REMOTE_DIRECTORIES.iter().any(|folder| name.eq_ignore_ascii_case(folder)))
}

impl Judge<'_> {
    /// Judges the git directories that these control entries belong to. If another command has moved one, it is not known
    /// what was in effect before.
    pub(crate) fn control_entries(&self, paths: impl Iterator<Item = TouchedPath>) -> Vec<Violation> {
        let mut violations = Vec::new();
        let mut directories = BTreeMap::new();
        for TouchedPath { path, former } in paths {
            self.pointer(&path, &mut violations);
            for directory in path.ancestors().take(3) {
                *directories.entry(directory.to_owned()).or_insert(false) |= former.is_some();
            }
        }
        for (directory, is_moved) in directories {
            self.git_directory(&directory, is_moved, &mut violations);
        }
        violations
    }

    /// Judges one directory, if it is a git directory.
    fn git_directory(&self, directory: &Path, is_moved: bool, violations: &mut Vec<Violation>) {
        if !is_git_directory_now(directory) || !(self.is_recorded)(directory) {
            return;
        }
        // Files had no effect before their directory became a git directory.
        let former = self.before.former_directory(directory).filter(|_| !is_moved);
        let former = former.filter(|former| self.was_git_directory(former));
        // One call may have prepared files elsewhere, and another one moved them to where they take effect.
        let has_moved = former.as_deref().is_some_and(|former| former != directory);
        for name in CONFIGS {
            let (path, former) = (directory.join(name), former.as_ref().map(|former| former.join(name)));
            let former = former.filter(|_| !has_moved || !self.is_prepared(&path));
            if let Some((guard, detail)) = self.config(&path, former.as_deref()) {
                self.add(path, guard, detail, violations);
            }
        }
        self.remote_files(directory, former.as_deref(), violations);
        let hooks = directory.join("hooks");
        let former_hooks = former.as_ref().map(|former| former.join("hooks"));
        let is_new_link = |path: &Path, former: Option<&Path>| {
            let now = node_now(path);
            matches!(now, Node::Link { .. }) && former.is_none_or(|former| self.node_before(former) != now)
        };
        if is_new_link(&hooks, former_hooks.as_deref()) {
            self.add(hooks, Guard::Hook, "a link".to_owned(), violations);
        } else {
            self.hooks(&hooks, former_hooks.as_deref(), has_moved, violations);
        }
        let (common, former) = (directory.join("commondir"), former.map(|former| former.join("commondir")));
        let is_same = |bytes: &[u8]| former.is_some_and(|former| self.bytes_before(&former) == bytes);
        match content_now(&common) {
            GuardedContent::Bytes(bytes) if !is_same(&bytes) => {
                self.leads_out(&common, directory, &bytes, violations);
            }
            GuardedContent::Unreadable => self.add(common, Guard::GitLink, UNREADABLE.to_owned(), violations),
            GuardedContent::Bytes(_) | GuardedContent::Absent => {}
        }
    }

    /// Whether a call left the file at `path`, but never where it was in effect and therefore judged.
    fn is_prepared(&self, path: &Path) -> bool {
        let is_hook = path.parent().and_then(Path::file_name).is_some_and(|name| name == "hooks");
        let was_judged = |path: &Path, left: &FileNode| {
            path.iter().any(|part| part.eq_ignore_ascii_case(".git")) && (!is_hook || is_executable(left))
        };
        let is_from_call = |hash: &str| !matches!(self.record.is_from_call(hash, &was_judged), Ok(false));
        let is_beside = || changed_at(path).is_none_or(|at| self.is_beside_another(at));
        match node_now(path) {
            Node::File(file) => is_from_call(&file.hash) || is_beside(),
            Node::Absent => false,
            _ => true,
        }
    }

    /// Why a configuration is a violation, if it is one.
    pub(super) fn config(&self, path: &Path, former: Option<&Path>) -> Option<(Guard, String)> {
        // Git does not read a directory.
        let kind = node_kind(path).filter(|kind| !kind.is_dir())?;
        let is_link = kind.is_symlink();
        if is_link && former.is_none_or(|former| self.node_before(former) != node_now(path)) {
            return Some((Guard::GitLink, "a link".to_owned()));
        }
        let bytes = match content_now(path) {
            GuardedContent::Bytes(bytes) => bytes,
            GuardedContent::Absent => return None,
            GuardedContent::Unreadable => return Some((Guard::GitConfig, UNREADABLE.to_owned())),
        };
        let old = former.map(|former| self.bytes_before(former)).unwrap_or_default();
        if let Some(detail) = self.remote_in_config(path, &bytes) {
            return Some((Guard::GitConfig, detail));
        }
        let programs = new_programs(path, &old, &bytes);
        let is_violation = !programs.is_empty() && !self.is_users_config(path, &bytes);
        is_violation.then(|| (Guard::GitConfig, programs.join(", ")))
    }

    /// Judges the hooks in a directory.
    pub(super) fn hooks(
        &self,
        directory: &Path,
        former: Option<&Path>,
        has_moved: bool,
        violations: &mut Vec<Violation>,
    ) {
        let Ok(names) = names_in(directory) else {
            self.add(directory.to_owned(), Guard::Hook, UNREADABLE.to_owned(), violations);
            return;
        };
        for name in names {
            if !may_be_hook(&name) {
                continue;
            }
            let path = directory.join(&name);
            let before = former.map_or(Node::Absent, |former| self.node_before(&former.join(&name)));
            match self.judged_node(&path) {
                Node::File(file) if is_executable(&file) => {
                    let is_same = |before: &FileNode| before.hash == file.hash && is_executable(before);
                    let was_there =
                        before.as_file().is_some_and(is_same) && !(has_moved && self.is_prepared(&path));
                    if !was_there && !self.is_users_hook(&path, &file) {
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
            Node::File(_) => match content_now(path) {
                GuardedContent::Bytes(bytes) => {
                    if let Some(target) = bytes.strip_prefix(b"gitdir: ") {
                        self.leads_out(path, parent, target, violations);
                    }
                }
                _ => self.add(path.to_owned(), Guard::GitLink, UNREADABLE.to_owned(), violations),
            },
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

    pub(super) fn add(&self, path: PathBuf, guard: Guard, detail: String, violations: &mut Vec<Violation>) {
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
pub(super) fn is_git_directory_now(path: &Path) -> bool {
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

/// A path from one of git's files, relative to `base`, without `..`.
pub(super) fn resolve(base: &Path, path: &[u8]) -> PathBuf {
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

/// The path with links resolved, as far as it exists; `None` if it is not certain where it leads.
fn real_path(path: &Path) -> Option<PathBuf> {
    // Git ends a path at a NUL, some parsers also at a line end.
    if path.as_os_str().as_bytes().iter().any(u8::is_ascii_control) {
        return None;
    }
    let existing = path.ancestors().find_map(|above| Some((above, std::fs::canonicalize(above).ok()?)));
    let (above, real) = existing?;
    let missing = path.strip_prefix(above).ok()?;
    let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_));
    missing.components().all(is_plain).then(|| real.join(missing))
}

/// Whether a file of this name may be run as a hook. The names of git's own hooks have no dots, those of other programs
/// may.
pub(super) fn may_be_hook(name: &OsStr) -> bool {
    let name = name.as_bytes();
    !name.ends_with(b".sample") && !name.windows(REFUSED_MARK.len()).any(|part| part == REFUSED_MARK)
}
