//! What could not be judged before it was written: files that git reads, by what they say in the end.
//!
//! All of the command's processes are gone by now, so nothing changes any more between the look and the act.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use haft_policy::{Guard, guarded};
use haft_tool::{Change, Node, Scope};

use super::denials::Denials;
use crate::sandbox::git;

const LONGEST: u64 = 1 << 20;

/// Takes back new files that would make git run something, and says so.
pub(super) fn audit(changes: &mut Vec<Change>, scope: &Scope, denials: &mut Denials) {
    let mut refused = HashSet::new();
    for change in changes.iter() {
        if change.before != Node::Absent || change.after.as_file().is_none() {
            continue;
        }
        let path = &change.path;
        if scope.unguarded.iter().any(|granted| path.starts_with(granted)) {
            continue;
        }
        if let Some((guard, why)) = finding(path) {
            let rule = format!("{} ({why})", guard.reason());
            if fs::remove_file(path).is_ok() {
                let allow = Some(format!("--allow-write {}", path.display()));
                denials.add("leave", path.display().to_string(), rule, allow);
                refused.insert(path.clone());
            }
        }
    }
    if !refused.is_empty() {
        changes.retain(|change| !refused.contains(&change.path));
    }
}

fn finding(path: &Path) -> Option<(Guard, String)> {
    let name = path.file_name()?.to_str()?;
    if guarded(path) == Some(Guard::GitLink) {
        let why = match read(path) {
            Some(bytes) => git::leads_astray(&path.to_string_lossy(), &bytes)?,
            None => "it cannot be looked at".to_owned(),
        };
        return Some((Guard::GitLink, why));
    }
    let parent = path.parent()?;
    if parent.file_name().is_some_and(|name| name == "hooks")
        && !name.ends_with(".sample")
        && parent.parent().is_some_and(is_git_directory)
    {
        return Some((Guard::Hook, "it lies in a git directory".to_owned()));
    }
    if matches!(name, "config" | "config.worktree") && is_git_directory(parent) {
        return programs(path).map(|programs| (Guard::GitConfig, programs));
    }
    // What was there before counts once the rest of a git directory is put around it.
    if name == "HEAD" && is_git_directory(parent) {
        let config = ["config", "config.worktree"].iter().find_map(|name| programs(&parent.join(name)));
        let hooks = fs::read_dir(parent.join("hooks")).into_iter().flatten().flatten();
        let mut hooks = hooks.filter(|hook| !hook.file_name().to_string_lossy().ends_with(".sample"));
        let hook = hooks.next().map(|hook| format!("hooks/{}", hook.file_name().to_string_lossy()));
        return config.or(hook).map(|why| (Guard::GitConfig, format!("it would bring to life: {why}")));
    }
    None
}

/// The programs that a configuration names; something also where it cannot be looked at.
fn programs(path: &Path) -> Option<String> {
    fs::symlink_metadata(path).ok()?;
    let Some(bytes) = read(path) else { return Some("it cannot be looked at".to_owned()) };
    let programs = git::programs_in(path, b"", &bytes);
    (!programs.is_empty()).then(|| programs.join(", "))
}

/// Whether git takes this directory for its own, whatever it is called.
fn is_git_directory(path: &Path) -> bool {
    let there = |name: &str| -> bool { fs::symlink_metadata(PathBuf::from(path).join(name)).is_ok() };
    there("HEAD") && there("objects") && there("refs")
}

fn read(path: &Path) -> Option<Vec<u8>> {
    let meta = fs::symlink_metadata(path).ok()?;
    (meta.is_file() && meta.len() <= LONGEST).then(|| fs::read(path).ok()).flatten()
}
