//! Decides whether content is the user's: it was in use under the same name before, or in the repository before a command
//! wrote it.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use haft_tool::{
    FileNode, GitBlob, GitObjectEvent, GitObjectEventKind, GitObjectFile, Node, git_objects_directory,
};

use super::git::is_executable;
use super::named::{MAX_SEARCHED_DIRECTORIES, SKIPPED_DIRECTORIES};
use super::objects::{blob_id, changed_at, common_directory, git_directory, object_files};
use haft_policy::settings_rule;

use super::{FileIndex, Judge, full_node_now, is_relevant, is_same_setting, is_unread, node_now, read_now};
use crate::git_config::new_programs;

/// The clock of a file system may be one tick behind.
const CLOCK_TICK_MS: u64 = 10;
/// The search for files with settings' names ends after this many directory entries.
const MAX_LISTED_ENTRIES: usize = 1_000_000;
/// As many names at the end of a path tell which settings or which hook it is.
const MAX_SETTING_NAMES: usize = 4;

impl Judge<'_> {
    /// Whether the user had the same settings under this name, in any directory.
    pub(super) fn is_users_file(&self, path: &Path, file: &FileNode) -> bool {
        let is_same =
            |other: &Path, known: &FileNode| known.hash == file.hash && is_same_setting(path, other);
        if read_now(path).is_some_and(|bytes| self.is_in_repository(path, &bytes)) {
            return true;
        }
        !self.is_left_by_call(file, &|other, _| settings_rule(other).is_some())
            && (self.was_known(file, &is_same, &is_same)
                || self.find_unchanged(path, &|found| is_same_setting(path, found) && has_hash(found, file)))
    }

    /// Whether an earlier call left a file with this content, and none left it where it `was_judged`. Then it is not the
    /// user's, wherever it has been since.
    pub(super) fn is_left_by_call(
        &self,
        file: &FileNode,
        was_judged: &dyn Fn(&Path, &FileNode) -> bool,
    ) -> bool {
        self.record.is_from_call(&file.hash, was_judged).unwrap_or(true)
    }

    /// Whether the user had the same hook under this name, in any repository.
    pub(super) fn is_users_hook(&self, path: &Path, file: &FileNode) -> bool {
        let is_hook = |other: &Path| {
            other.file_name() == path.file_name()
                && other.parent().is_some_and(|hooks| {
                    hooks.file_name().is_some_and(|name| name == "hooks")
                        && hooks.parent().is_some_and(|directory| self.was_git_directory(directory))
                })
        };
        let is_same = |other: &Path, known: &FileNode| {
            known.hash == file.hash && is_executable(known) && is_hook(other)
        };
        // For earlier calls only a `.git` counts: another directory may have become a git directory since.
        let is_in_dot_git = |other: &Path| {
            let mut above = other.components().rev().skip(1).map(std::path::Component::as_os_str);
            above.next().is_some_and(|name| name == "hooks")
                && above.next().is_some_and(|name| name == ".git")
        };
        let was_same = |other: &Path, known: &FileNode| is_same(other, known) && is_in_dot_git(other);
        // Only an executable hook was judged; others are not refused.
        let was_judged = |other: &Path, left: &FileNode| is_in_dot_git(other) && is_executable(left);
        !self.is_left_by_call(file, &was_judged)
            && (self.was_known(file, &is_same, &was_same)
                || self.find_unchanged(path, &|found| {
                    is_hook(found)
                        && has_hash(found, file)
                        && node_now(found).as_file().is_some_and(is_executable)
                }))
    }

    /// Whether another repository of the user had a configuration with the same programs.
    pub(super) fn is_users_config(&self, path: &Path, bytes: &[u8]) -> bool {
        let names_programs = |old: &[u8]| new_programs(path, old, bytes).is_empty();
        let had_before = self.before.stored_files().into_iter().any(|(former, file)| {
            former.file_name() == path.file_name()
                && former.parent().is_some_and(|directory| self.was_git_directory(directory))
                && self.before.is_trusted(&former)
                && self.before.stored_bytes(&former, &file).is_some_and(|old| names_programs(&old))
        });
        let is_around = || {
            let dot_gits = path.ancestors().skip(2).map(|above| above.join(".git"));
            let mut configs = dot_gits
                .filter_map(|dot_git| git_directory(&dot_git))
                .map(|git| common_directory(&git).join("config"));
            configs.any(|config| {
                config != path
                    && self.is_unchanged(&config)
                    && read_now(&config).is_some_and(|old| names_programs(&old))
            })
        };
        had_before
            || is_around()
            || self.find_unchanged(path, &|found| {
                found.parent().is_some_and(|directory| self.was_git_directory(directory))
                    && read_now(found).is_some_and(|old| names_programs(&old))
            })
    }

    /// Whether the repository around `path` has a blob of the user's with this content, as it is or with the line ends that
    /// git stores.
    pub(super) fn is_in_repository(&self, path: &Path, content: &[u8]) -> bool {
        self.has_users_blob(path, content)
            || without_carriage_returns(content).is_some_and(|stored| self.has_users_blob(path, &stored))
    }

    fn has_users_blob(&self, path: &Path, content: &[u8]) -> bool {
        let Some(directory) = path.parent() else { return false };
        let id = blob_id(content);
        let mut files = object_files(directory, &id);
        // Outside the scope, only a `.git` above the file counts: a command could lead to other repositories.
        let is_around =
            |object: &Path| directory.ancestors().any(|above| object.starts_with(above.join(".git")));
        files.retain(|file| (self.is_recorded)(&file.path) || is_around(&file.path));
        !files.is_empty()
            && self
                .record
                .blob_events(&GitBlob { id, content, files: &files })
                .is_ok_and(|events| is_users_blob(&events, &files))
    }

    /// Whether this call or an earlier one found such a file: `is_same` compares with those of this call, `was_same` with
    /// earlier ones.
    fn was_known(
        &self,
        file: &FileNode,
        is_same: &dyn Fn(&Path, &FileNode) -> bool,
        was_same: &dyn Fn(&Path, &FileNode) -> bool,
    ) -> bool {
        let in_this_call = self.before.stored_files();
        let mut in_this_call = in_this_call.iter();
        if in_this_call.any(|(former, known)| is_same(former, known) && self.before.is_trusted(former)) {
            return true;
        }
        let earlier = self.record.files_before_calls(&file.hash).unwrap_or_default();
        earlier.iter().any(|(path, known)| was_same(path, known))
    }

    /// Whether the command left the entry at `path` alone, and no other command is changing it.
    fn is_unchanged(&self, path: &Path) -> bool {
        let is_left_alone = self.before.former_entry(path).is_some_and(|former| {
            former == path
                && former.ancestors().all(|above| match self.before.stored(above) {
                    None => true,
                    Some(node) => above != former && matches!(node, Node::Dir { .. }),
                })
        });
        let is_older = |at| at + CLOCK_TICK_MS < self.started_at && !self.is_beside_another(at);
        is_left_alone && changed_at(path).is_some_and(is_older)
    }

    /// Whether the same settings are somewhere else now.
    pub(super) fn is_elsewhere(&self, path: &Path, file: &FileNode) -> bool {
        self.find(path, &|found| is_same_setting(path, found) && has_hash(found, file))
    }

    /// Whether a file in the roots with the name of this one is wanted and was left alone by the command.
    fn find_unchanged(&self, path: &Path, is_wanted: &dyn Fn(&Path) -> bool) -> bool {
        self.find(path, &|found| is_wanted(found) && self.is_unchanged(found))
    }

    /// Whether a file in the roots with the name of this one is wanted.
    fn find(&self, path: &Path, is_wanted: &dyn Fn(&Path) -> bool) -> bool {
        // The index has no files behind links either.
        let is_plain = |found: &Path| {
            self.scope.roots.iter().any(|root| found.starts_with(root))
                && std::fs::canonicalize(found).is_ok_and(|real| real == found)
        };
        let is_near = |found: PathBuf| found != path && is_plain(&found) && is_wanted(&found);
        let index = || self.index.get_or_init(|| list_files(&self.scope.roots));
        same_names_above(path).any(is_near)
            || path
                .file_name()
                .and_then(|name| index().get(name))
                .is_some_and(|found| found.iter().any(|path| is_wanted(path)))
    }
}

/// Where the same settings are if the user has them for a directory above, which are found however large the workspace is.
fn same_names_above(path: &Path) -> impl Iterator<Item = PathBuf> {
    let names: Vec<&OsStr> = path.iter().collect();
    let ends = (1..=MAX_SETTING_NAMES.min(names.len()))
        .map(move |count| names[names.len() - count..].iter().collect::<PathBuf>());
    ends.flat_map(|end| path.ancestors().skip(1).map(move |above| above.join(&end)))
}

/// Whether a blob in these files of a repository is the user's. The first event in its history decides.
///
/// Events in this repository take precedence. Without any, those elsewhere count, because the repository may have been
/// moved or copied from there.
fn is_users_blob(events: &[GitObjectEvent], files: &[GitObjectFile]) -> bool {
    use GitObjectEventKind::{ContentWritten, Found, Written};
    let objects = files.first().and_then(|file| git_objects_directory(&file.path));
    let is_here = |event: &GitObjectEvent| {
        event.kind != ContentWritten
            && (git_objects_directory(&event.path) == objects
                || files.iter().any(|file| file.path == event.path))
    };
    let is_known_here = events.iter().any(is_here);
    // A call that packs an object finds it in one file and writes it to another.
    let is_packing = |event: &GitObjectEvent| {
        let is_same = |other: &GitObjectEvent| {
            other.kind == Found
                && other.call == event.call
                && git_objects_directory(&other.path) == git_objects_directory(&event.path)
        };
        event.kind == Written && events.iter().any(is_same)
    };
    let counted: Vec<&GitObjectEvent> = events
        .iter()
        .filter(|event| event.kind == ContentWritten || !is_known_here || is_here(event))
        .filter(|event| !is_packing(event))
        .collect();
    let Some(first) = counted.first().filter(|event| event.kind != Found) else { return true };
    // The user may have had the blob before a call wrote it, into a clone for example. But a repository that is gone may be
    // this one under its former name, with the call's files.
    let is_elsewhere = |event: &&GitObjectEvent| {
        event.kind != Written
            || is_here(event)
            || git_objects_directory(&event.path).is_some_and(Path::is_dir)
    };
    let is_older = |file: &GitObjectFile| {
        file.created_at + CLOCK_TICK_MS < first.started_at
            && !events.iter().any(|event| event.kind == Written && event.path == file.path)
    };
    counted.iter().all(is_elsewhere) && files.iter().any(is_older)
}

/// The content that git stores for a text with CRLF line ends; `None` if it has none.
fn without_carriage_returns(content: &[u8]) -> Option<Vec<u8>> {
    if !content.windows(2).any(|pair| pair == b"\r\n") {
        return None;
    }
    let mut stored = Vec::with_capacity(content.len());
    for (at, &byte) in content.iter().enumerate() {
        if byte != b'\r' || content.get(at + 1) != Some(&b'\n') {
            stored.push(byte);
        }
    }
    Some(stored)
}

/// The files below the roots whose names matter, except for those in directories that tools fill.
fn list_files(roots: &[PathBuf]) -> FileIndex {
    let mut index = FileIndex::new();
    let mut todo: VecDeque<PathBuf> = roots.iter().cloned().collect();
    let (mut directories, mut entries) = (0, 0);
    while let Some(directory) = todo.pop_front() {
        directories += 1;
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            entries += 1;
            if directories > MAX_SEARCHED_DIRECTORIES || entries > MAX_LISTED_ENTRIES {
                return index;
            }
            let (path, name) = (entry.path(), entry.file_name());
            let is_skipped = SKIPPED_DIRECTORIES.iter().any(|skipped| name == *skipped);
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && !is_skipped => todo.push_back(path),
                Ok(kind) if kind.is_file() && is_relevant(&path) => {
                    index.entry(name).or_default().push(path);
                }
                _ => {}
            }
        }
    }
    index
}

fn has_hash(path: &Path, file: &FileNode) -> bool {
    // Without the hash of its content, a large file cannot be compared.
    !is_unread(file)
        && std::fs::symlink_metadata(path).is_ok_and(|meta| meta.len() == file.size)
        && full_node_now(path).as_file().is_some_and(|found| found.hash == file.hash)
}
