//! Judges what a command left on disk: whether a program outside the sandbox would now run something that it did not run
//! before.
//!
//! It does not matter which call wrote which part, nor how: as a file, a moved directory, a link, a completed repository.
//! What the user already had counts as unchanged, wherever it is now.

mod git;
mod in_effect;
mod judge_named;
mod named;
mod named_by_git;
mod newly_named;
mod objects;
mod origin;
mod recovered;
mod remotes;
mod restore;

use std::cell::OnceCell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use haft_files::{Captured, capture, capture_unread, read_regular};
use haft_policy::{Guard, holds_settings, settings_rule};
use haft_tool::{FileNode, Node, Record, Scope};

pub(crate) use git::is_control_name;
pub use in_effect::FilesInEffect;
pub(crate) use named::NamedFiles;
#[cfg(target_os = "linux")]
pub(crate) use named::SHARED_TEMP_DIRS;
pub use named::leading_to;
use objects::changed_at;
pub use recovered::restore_guarded_changes;
use remotes::REMOTE_DIRECTORIES;
pub(crate) use restore::restore_violations;
#[cfg(target_os = "linux")]
pub(crate) use restore::{Restoration, is_now, refused_name};

/// Larger files are neither read as configurations nor looked up in repositories.
const MAX_CONTENT_BYTES: u64 = 1 << 20;
/// Longer chains of links are not followed.
const MAX_LINKS: usize = 40;
/// Begins the hash of a file that was not read. No content has such a hash: those are hexadecimal.
const UNREAD: &str = "unread";
/// A directory with more entries is not moved to a place where names are guarded.
const MAX_MOVED_ENTRIES: usize = 20_000;
const TOO_MANY_FILES: &str = "too many files to check, or one that cannot be read";

/// The states of paths before a command.
pub(crate) trait BeforeView {
    /// The path that the entry at `path` had before the command; `None` if its directory is new.
    fn former_entry(&self, path: &Path) -> Option<PathBuf>;

    /// The path that the directory at `path` had before the command; `None` if it is new.
    fn former_directory(&self, path: &Path) -> Option<PathBuf>;

    /// The current path of the entry that was at `former`, if the command did not change it.
    fn current_entry(&self, former: &Path) -> Option<PathBuf>;

    /// The state of a path before the command, if the command may have changed it.
    fn stored(&self, former: &Path) -> Option<Node>;

    /// All stored states that are files.
    fn stored_files(&self) -> Vec<(PathBuf, FileNode)>;

    /// The bytes of a stored file.
    fn stored_bytes(&self, former: &Path, file: &FileNode) -> Option<Vec<u8>>;

    /// Whether the command itself put the entry at `path` there. It may not know the path, because another command may have moved
    /// the directory. False by default.
    fn is_own(&self, _path: &Path) -> bool {
        false
    }

    /// Whether the stored state was the user's, not something that another command had just written.
    fn is_trusted(&self, former: &Path) -> bool;
}

/// Something that programs outside the sandbox would run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) path: PathBuf,
    pub(crate) guard: Guard,
    /// What was done, for a denial.
    pub(crate) what: &'static str,
    /// More about the reason; may be empty.
    pub(crate) detail: String,
}

impl Violation {
    /// Why it is refused, for a denial.
    pub(crate) fn rule(&self) -> String {
        match self.detail.as_str() {
            "" => self.guard.reason().to_owned(),
            detail => format!("{} ({detail})", self.guard.reason()),
        }
    }

    /// How to allow it, for a denial.
    pub(crate) fn allow(&self) -> String {
        format!("--allow-write {}", self.path.display())
    }
}

/// What a judgement is based on.
#[derive(Clone, Copy)]
pub(crate) struct Judge<'a> {
    pub(crate) scope: &'a Scope,
    pub(crate) before: &'a dyn BeforeView,
    pub(crate) record: &'a dyn Record,
    /// Whether changes at a path are recorded, and therefore judged.
    pub(crate) is_recorded: &'a dyn Fn(&Path) -> bool,
    /// When the command started, in milliseconds since 1970. What changed later may be its work, even if another command
    /// has moved it since.
    pub(crate) started_at: u64,
    /// Whether a path is in a directory of the session, under any of its paths: commands write there without a record.
    pub(crate) is_session_directory: &'a dyn Fn(&Path) -> bool,
    /// The files below the roots whose names matter, listed on first use.
    pub(crate) index: &'a OnceCell<FileIndex>,
}

/// An entry that the command has touched.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TouchedPath {
    /// Where it is now.
    pub(crate) path: PathBuf,
    /// Where it was before the command, if another command has moved it since.
    pub(crate) former: Option<PathBuf>,
}

impl From<PathBuf> for TouchedPath {
    fn from(path: PathBuf) -> Self {
        Self { path, former: None }
    }
}

/// Paths of files by their names.
pub(crate) type FileIndex = HashMap<OsString, Vec<PathBuf>>;

impl Judge<'_> {
    /// Judges settings at a path. Deletions are judged only `at_end`, because a program may be about to write the file
    /// again.
    pub(crate) fn settings(&self, touched: &TouchedPath, at_end: bool) -> Option<Violation> {
        let path = touched.path.as_path();
        if self.is_granted(path) || !(self.is_recorded)(path) {
            return None;
        }
        let violation = |what, detail: &str| {
            Some(Violation { path: path.to_owned(), guard: Guard::Settings, what, detail: detail.to_owned() })
        };
        // A new directory may be in place of another one, so the former state of the same path counts.
        let former = touched.former.clone().or_else(|| self.before.former_entry(path));
        let before = self.node_before(&former.unwrap_or_else(|| path.to_owned()));
        let now = self.judged_node(path);
        if settings_rule(path).is_none() {
            let is_new_link = matches!(now, Node::Link { .. }) && now != before && holds_settings(path);
            return is_new_link.then(|| violation("link", "a link")).flatten();
        }
        match now {
            Node::Dir { .. } => None,
            Node::Absent => {
                let was_file = matches!(before, Node::File(_) | Node::Link { .. });
                let is_lost = was_file && at_end && has_project(path) && !self.is_kept(path, &before);
                is_lost.then(|| violation("delete", "")).flatten()
            }
            Node::File(file) => {
                let is_same = before.as_file().is_some_and(|before| before.hash == file.hash);
                let is_users = is_same || self.is_users_file(path, &file);
                (!is_users).then(|| violation("write", "")).flatten()
            }
            Node::Link { ref target, .. } => {
                let is_users = now == before || self.is_in_repository(path, target.as_os_str().as_bytes());
                (!is_users).then(|| violation("link", "a link")).flatten()
            }
            Node::Fifo { .. } | Node::Special => (before != now).then(|| violation("create", "")).flatten(),
        }
    }

    /// Judges the settings in a directory that was moved to `path`.
    pub(crate) fn moved_settings(&self, path: &Path) -> Option<Violation> {
        if settings_rule(path).is_none() && !holds_settings(path) {
            return None;
        }
        let Some(files) = files_in(path) else {
            let (path, detail) = (path.to_owned(), TOO_MANY_FILES.to_owned());
            return Some(Violation { path, guard: Guard::Settings, what: "move", detail });
        };
        let mut settings = files.iter().filter(|path| settings_rule(path).is_some());
        settings.find_map(|path| if self.was_settings(path) { None } else { self.new_settings(path) })
    }

    /// The state of a path now. A large file is read only if one of the same size was there before: otherwise it is new in
    /// any case.
    fn judged_node(&self, path: &Path) -> Node {
        match node_now(path) {
            Node::File(file)
                if file.size > MAX_CONTENT_BYTES
                    && self.before.stored_files().iter().any(|(_, known)| known.size == file.size) =>
            {
                match full_node_now(path) {
                    // It is too large to be hashed at all.
                    Node::File(full) if full.hash.is_empty() => Node::File(file),
                    full => full,
                }
            }
            node => node,
        }
    }

    /// A settings file below `path` that may not be written; `path` itself if it cannot be searched.
    pub(crate) fn settings_in(&self, path: &Path) -> Option<PathBuf> {
        let Some(files) = files_in(path) else { return Some(path.to_owned()) };
        files.into_iter().find(|path| settings_rule(path).is_some() && !self.is_granted(path))
    }

    /// Whether the file at `path` was settings of the same name before it was moved, and no other command may be writing
    /// it.
    fn was_settings(&self, path: &Path) -> bool {
        let former = self.before.former_entry(path);
        former.is_some_and(|former| is_same_setting(path, &former))
            && changed_at(path).is_some_and(|at| !self.is_beside_another(at))
    }

    /// Whether another call was running at this time and has not ended yet: what it wrote may not have been judged.
    fn is_beside_another(&self, changed_at: u64) -> bool {
        self.record.runs_beside_another(changed_at).unwrap_or(true)
    }

    /// The violation for settings that were moved here, unless the user already had them.
    fn new_settings(&self, path: &Path) -> Option<Violation> {
        let is_users = match self.judged_node(path) {
            Node::File(file) => self.is_users_file(path, &file),
            _ => false,
        };
        let is_fine = is_users || self.is_granted(path);
        let (path, detail) = (path.to_owned(), String::new());
        (!is_fine).then_some(Violation { path, guard: Guard::Settings, what: "move", detail })
    }

    /// Whether the user allowed writes to this path.
    fn is_granted(&self, path: &Path) -> bool {
        self.scope.unguarded.iter().any(|granted| path.starts_with(granted))
    }

    /// Whether deleted settings still exist elsewhere, or in the repository.
    fn is_kept(&self, path: &Path, before: &Node) -> bool {
        match before {
            Node::File(file) => {
                let former = self.before.former_entry(path).unwrap_or_else(|| path.to_owned());
                let bytes = self.before.stored_bytes(&former, file);
                bytes.is_some_and(|bytes| self.is_in_repository(path, &bytes))
                    || self.is_elsewhere(path, file)
            }
            Node::Link { target, .. } => self.is_in_repository(path, target.as_os_str().as_bytes()),
            _ => false,
        }
    }

    /// The state of a path before the command.
    fn node_before(&self, former: &Path) -> Node {
        for above in former.ancestors() {
            match self.before.stored(above) {
                Some(node) if above == former => return node,
                Some(Node::Dir { .. }) | None => {}
                Some(_) => return Node::Absent,
            }
        }
        let current = self.before.current_entry(former).filter(|current| !self.before.is_own(current));
        current.map_or(Node::Absent, |current| node_now(&current))
    }

    /// The content of a file before the command, links followed; empty if there was none.
    fn bytes_before(&self, former: &Path) -> Vec<u8> {
        self.bytes_before_links(former, 0).unwrap_or_default()
    }

    fn bytes_before_links(&self, former: &Path, links: usize) -> Option<Vec<u8>> {
        match self.node_before(former) {
            Node::File(file) if self.before.stored(former).is_some() => {
                self.before.stored_bytes(former, &file)
            }
            Node::Absent => None,
            Node::Link { target, .. } if self.before.stored(former).is_some() => {
                let target = git::resolve(former.parent()?, target.as_os_str().as_bytes());
                (links < MAX_LINKS).then(|| self.bytes_before_links(&target, links + 1)).flatten()
            }
            _ => {
                let current = self.before.current_entry(former);
                current.filter(|current| !self.before.is_own(current)).and_then(|current| read_now(&current))
            }
        }
    }
}

/// Everything below a directory except for directories; `None` if it is too much or cannot be listed.
pub(crate) fn files_in(path: &Path) -> Option<Vec<PathBuf>> {
    let (mut todo, mut files) = (vec![path.to_owned()], Vec::new());
    let mut entries = 0;
    while let Some(directory) = todo.pop() {
        for name in names_in(&directory).ok()? {
            entries += 1;
            if entries > MAX_MOVED_ENTRIES {
                return None;
            }
            let path = directory.join(name);
            if node_kind(&path).is_some_and(|kind| kind.is_dir()) {
                todo.push(path);
            } else {
                files.push(path);
            }
        }
    }
    Some(files)
}

/// The settings, hooks and remotes in a directory that its move made guarded.
pub(crate) fn guarded_files_in(path: &Path) -> Vec<PathBuf> {
    let is_of_git = path.file_name().is_some_and(|name| {
        let mut listed = ["hooks"].into_iter().chain(REMOTE_DIRECTORIES);
        listed.any(|listed| name.eq_ignore_ascii_case(listed))
    });
    if !is_of_git && settings_rule(path).is_none() && !holds_settings(path) {
        return Vec::new();
    }
    let mut files = files_in(path).unwrap_or_default();
    files.retain(|path| is_of_git || settings_rule(path).is_some());
    files
}

/// Whether an entry may be guarded, judged by its name.
pub(crate) fn is_relevant(path: &Path) -> bool {
    is_control_name(path) || settings_rule(path).is_some() || holds_settings(path)
}

/// Whether the directory to which settings apply still exists.
fn has_project(path: &Path) -> bool {
    let is_project = |above: &&Path| settings_rule(above).is_none() && !holds_settings(above);
    let project = path.ancestors().skip(1).find(is_project);
    project.is_some_and(|project| node_kind(project).is_some_and(|kind| kind.is_dir()))
}

/// Whether both paths match the same row of the guard table and have the same file name.
fn is_same_setting(path: &Path, other: &Path) -> bool {
    let rule = settings_rule(path).map(|rule| rule.pattern);
    rule.is_some()
        && rule == settings_rule(other).map(|rule| rule.pattern)
        && path.file_name() == other.file_name()
}

/// The state of a path now, links not followed. A large file is not read: it gets a mark as its hash, which only the same
/// file in the same state has.
fn node_now(path: &Path) -> Node {
    let is_large = std::fs::symlink_metadata(path).is_ok_and(|meta| meta.len() > MAX_CONTENT_BYTES);
    if !is_large {
        return full_node_now(path);
    }
    match capture_unread(rustix::fs::CWD, path.as_os_str()) {
        Ok(Captured { node: Node::File(mut file), stat: Some(stat), .. }) if file.hash.is_empty() => {
            let changed = (stat.st_ctime, stat.st_ctime_nsec);
            file.hash = format!("{UNREAD} {} {} {changed:?} {}", stat.st_dev, stat.st_ino, file.size);
            Node::File(file)
        }
        Ok(captured) => captured.node,
        Err(_) => Node::Special,
    }
}

/// Whether the hash is such a mark, and not that of the content.
fn is_unread(file: &FileNode) -> bool {
    file.hash.starts_with(UNREAD)
}

/// The state of a path now; large files are hashed, too.
fn full_node_now(path: &Path) -> Node {
    match capture(rustix::fs::CWD, path.as_os_str()) {
        Ok(captured) => captured.node,
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => Node::Absent,
        // What cannot be read cannot be judged.
        Err(_) => Node::Special,
    }
}

fn node_kind(path: &Path) -> Option<std::fs::FileType> {
    std::fs::symlink_metadata(path).ok().map(|meta| meta.file_type())
}

/// The content of a file, links followed.
enum GuardedContent {
    Absent,
    Bytes(Vec<u8>),
    /// It is too large, closed to Haft or not a file, so it cannot be judged.
    Unreadable,
}

fn content_now(path: &Path) -> GuardedContent {
    match read_regular(path, MAX_CONTENT_BYTES) {
        Ok(bytes) => GuardedContent::Bytes(bytes),
        Err(error) if is_absent(&error) || path.is_dir() => GuardedContent::Absent,
        Err(_) => GuardedContent::Unreadable,
    }
}

fn is_absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
        || error.raw_os_error() == Some(libc::ELOOP)
}

/// The content of a file now, links followed; `None` if it is not a file or too large.
fn read_now(path: &Path) -> Option<Vec<u8>> {
    match content_now(path) {
        GuardedContent::Bytes(bytes) => Some(bytes),
        GuardedContent::Absent | GuardedContent::Unreadable => None,
    }
}

/// The names in a directory; none if it does not exist. An error means that it cannot be judged.
fn names_in(directory: &Path) -> std::io::Result<Vec<OsString>> {
    match std::fs::read_dir(directory) {
        Ok(entries) => entries.map(|entry| entry.map(|entry| entry.file_name())).collect(),
        Err(error) if is_absent(&error) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_file_is_not_read_and_equals_only_itself() {
        let directory = tempfile::tempdir().unwrap();
        let node = |name: &str, size: u64| {
            let path = directory.path().join(name);
            std::fs::File::create(&path).unwrap().set_len(size).unwrap();
            node_now(&path).as_file().unwrap().clone()
        };
        let small = node("small", MAX_CONTENT_BYTES);
        assert_eq!(small.hash, node("other", MAX_CONTENT_BYTES).hash);
        assert!(!is_unread(&small));
        let large = node("large", MAX_CONTENT_BYTES + 1);
        assert!(is_unread(&large));
        assert_eq!(Node::File(large.clone()), node_now(&directory.path().join("large")));
        assert_ne!(large.hash, node("copy", MAX_CONTENT_BYTES + 1).hash);
        assert!(!is_unread(full_node_now(&directory.path().join("large")).as_file().unwrap()));
    }
}
