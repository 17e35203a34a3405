//! Removes new files that would make git run something, judged by their content after the command has ended.
//!
//! Git itself writes such files in place when it creates a repository, so they cannot be judged before they are written.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use haft_policy::{Guard, guarded};
use haft_tool::{Change, Node, Scope};

use crate::denials::DenialList;
use crate::git_config::{new_programs, unguarded_target};

/// Larger files are refused without being parsed.
const MAX_CONFIG_BYTES: u64 = 1 << 20;
const UNREADABLE: &str = "it cannot be read";

/// Removes new files among `changes` that would make git run something, and adds a denial for each.
pub(crate) fn remove_unsafe_git_files(changes: &mut Vec<Change>, scope: &Scope, denials: &mut DenialList) {
    let mut removed = HashSet::new();
    for change in changes.iter() {
        let path = &change.path;
        let is_new_file = change.before == Node::Absent && change.after.as_file().is_some();
        if !is_new_file || scope.unguarded.iter().any(|granted| path.starts_with(granted)) {
            continue;
        }
        if let Some((guard, reason)) = check(path)
            && fs::remove_file(path).is_ok()
        {
            let rule = format!("{} ({reason})", guard.reason());
            let allow = Some(format!("--allow-write {}", path.display()));
            denials.add("leave", path.display().to_string(), rule, allow);
            removed.insert(path.clone());
        }
    }
    if !removed.is_empty() {
        changes.retain(|change| !removed.contains(&change.path));
    }
}

/// Why a new file is unsafe, if it is.
fn check(path: &Path) -> Option<(Guard, String)> {
    let name = path.file_name()?.to_str()?;
    if guarded(path) == Some(Guard::GitLink) {
        let reason = match read(path) {
            Some(bytes) => unguarded_target(&path.to_string_lossy(), &bytes)?,
            None => UNREADABLE.to_owned(),
        };
        return Some((Guard::GitLink, reason));
    }
    let parent = path.parent()?;
    if parent.file_name().is_some_and(|name| name == "hooks")
        && !name.ends_with(".sample")
        && parent.parent().is_some_and(is_git_directory)
    {
        return Some((Guard::Hook, "it is in a git directory".to_owned()));
    }
    if matches!(name, "config" | "config.worktree") && is_git_directory(parent) {
        return programs(path).map(|programs| (Guard::GitConfig, programs));
    }
    // A new HEAD can complete a git directory around files that existed before.
    if name == "HEAD" && is_git_directory(parent) {
        let config = ["config", "config.worktree"].iter().find_map(|name| programs(&parent.join(name)));
        let hooks = fs::read_dir(parent.join("hooks")).into_iter().flatten().flatten();
        let mut hooks = hooks.filter(|hook| !hook.file_name().to_string_lossy().ends_with(".sample"));
        let hook = hooks.next().map(|hook| format!("hooks/{}", hook.file_name().to_string_lossy()));
        return config.or(hook).map(|programs| (Guard::GitConfig, format!("it would activate: {programs}")));
    }
    None
}

/// The programs that a configuration names; a reason also if it cannot be read.
fn programs(path: &Path) -> Option<String> {
    fs::symlink_metadata(path).ok()?;
    let Some(bytes) = read(path) else { return Some(UNREADABLE.to_owned()) };
    let programs = new_programs(path, b"", &bytes);
    (!programs.is_empty()).then(|| programs.join(", "))
}

/// Whether git would use this directory as a git directory, whatever its name.
fn is_git_directory(path: &Path) -> bool {
    ["HEAD", "objects", "refs"].iter().all(|name| fs::symlink_metadata(path.join(name)).is_ok())
}

fn read(path: &Path) -> Option<Vec<u8>> {
    let meta = fs::symlink_metadata(path).ok()?;
    (meta.is_file() && meta.len() <= MAX_CONFIG_BYTES).then(|| fs::read(path).ok()).flatten()
}
