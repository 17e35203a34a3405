//! What a command changed, told by comparing names, sizes and times before and after it: for kernels and containers
//! where there is no witness. Deleted and overwritten bytes are not to be had this way.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use haft_tool::{Change, FileId, FileNode, Node};

use crate::witness::look_at;

/// More entries than this are not compared.
const MOST: usize = 1_000_000;
/// How many paths a sentence names.
const NAMED: usize = 5;

/// What tells whether an entry has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mark {
    file: FileId,
    size: u64,
    mode: u32,
    modified: (i64, i64),
    changed: (i64, i64),
    link: Option<PathBuf>,
}

/// The roots of a scope as they were before a command.
#[derive(Debug)]
pub(crate) struct Sweep {
    roots: Vec<PathBuf>,
    before: BTreeMap<PathBuf, Mark>,
    whole: bool,
}

impl Sweep {
    /// Looks at everything in `roots`.
    pub(crate) fn of(roots: &[PathBuf]) -> Self {
        let (before, whole) = marks(roots);
        Self { roots: roots.to_vec(), before, whole }
    }

    /// What has changed since, and what of it will not come back.
    pub(crate) fn finish(self) -> (Vec<Change>, Vec<String>) {
        let (mut after, whole) = marks(&self.roots);
        let (mut changes, mut lost) = (Vec::new(), Vec::new());
        for (path, was) in self.before {
            let is = after.remove(&path);
            if is.as_ref() == Some(&was)
                || (is_directory(&was) && is.as_ref().is_some_and(|is| is.mode == was.mode))
            {
                continue;
            }
            let now = look_at(&path).unwrap_or(Node::Absent);
            let touched = is
                .as_ref()
                .is_none_or(|is| (is.file, is.size, is.modified) != (was.file, was.size, was.modified));
            let before = node_of(&was, if touched { None } else { now.as_file() });
            if touched && before.as_file().is_some() {
                lost.push(path.clone());
            }
            changes.push(Change::new(path, before, now));
        }
        changes.extend(after.into_keys().map(|path| {
            let now = look_at(&path).unwrap_or(Node::Absent);
            Change::new(path, Node::Absent, now)
        }));
        let mut losses =
            vec!["no witness could run here; changes were found by comparing before and after".to_owned()];
        if !lost.is_empty() {
            let names: Vec<_> = lost.iter().take(NAMED).map(|path| path.display().to_string()).collect();
            losses.push(format!("the old bytes of {} file(s): {}", lost.len(), names.join(", ")));
        }
        if !(self.whole && whole) {
            losses.push("there were too many files to compare them all".to_owned());
        }
        (changes, losses)
    }
}

fn is_directory(mark: &Mark) -> bool {
    mark.mode & libc::S_IFMT == libc::S_IFDIR
}

/// What stood there, as far as it is known: a file's bytes only if they are the same as now.
fn node_of(mark: &Mark, same: Option<&FileNode>) -> Node {
    let mode = mark.mode & 0o7777;
    match mark.mode & libc::S_IFMT {
        libc::S_IFDIR => Node::Dir { mode },
        libc::S_IFLNK => Node::Link { target: mark.link.clone().unwrap_or_default() },
        libc::S_IFREG => Node::File(match same {
            Some(same) => FileNode { mode, ..same.clone() },
            None => FileNode {
                hash: String::new(),
                size: mark.size,
                mode,
                owner: None,
                xattrs: Vec::new(),
                linked: None,
            },
        }),
        _ => Node::Special,
    }
}

fn marks(roots: &[PathBuf]) -> (BTreeMap<PathBuf, Mark>, bool) {
    let mut marks = BTreeMap::new();
    let mut open: Vec<PathBuf> = roots.to_vec();
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let Some(mark) = mark(&path) else { continue };
            if is_directory(&mark) {
                open.push(path.clone());
            }
            marks.insert(path, mark);
            if marks.len() >= MOST {
                return (marks, false);
            }
        }
    }
    (marks, true)
}

fn mark(path: &Path) -> Option<Mark> {
    let meta = path.symlink_metadata().ok()?;
    Some(Mark {
        file: (meta.dev(), meta.ino()),
        size: meta.size(),
        mode: meta.mode(),
        modified: (meta.mtime(), meta.mtime_nsec()),
        changed: (meta.ctime(), meta.ctime_nsec()),
        link: meta.is_symlink().then(|| fs::read_link(path).ok()).flatten(),
    })
}
