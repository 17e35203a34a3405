//! Lists directory trees with what shows whether an entry has changed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use haft_tool::FileId;

/// Directories that are found after as many entries are not listed.
const MAX_ENTRIES: usize = 250_000;
/// Two changes within this time may leave the same timestamps.
const CLOCK_STEP: Duration = Duration::from_millis(20);
const TYPE_BITS: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;
const DIRECTORY: u32 = 0o040_000;
const LINK: u32 = 0o120_000;

/// The metadata of an entry. A change of the entry changes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EntryVersion {
    pub(super) file: FileId,
    pub(super) size: u64,
    mode: u32,
    pub(super) owner: (u32, u32),
    pub(super) link_count: u64,
    modified: (i64, i64),
    changed: (i64, i64),
    /// The target of a symbolic link.
    pub(super) target: Option<PathBuf>,
}

impl EntryVersion {
    /// The metadata of the entry at `path`; `None` if there is none.
    pub(super) fn read(path: &Path) -> Option<Self> {
        let meta = path.symlink_metadata().ok()?;
        Some(Self {
            file: (meta.dev(), meta.ino()),
            size: meta.size(),
            mode: meta.mode(),
            owner: (meta.uid(), meta.gid()),
            link_count: meta.nlink(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
            target: meta.is_symlink().then(|| fs::read_link(path).ok()).flatten(),
        })
    }

    pub(super) fn permissions(&self) -> u32 {
        self.mode & 0o7777
    }

    pub(super) fn is_file(&self) -> bool {
        self.mode & TYPE_BITS == REGULAR
    }

    pub(super) fn is_directory(&self) -> bool {
        self.mode & TYPE_BITS == DIRECTORY
    }

    pub(super) fn is_link(&self) -> bool {
        self.mode & TYPE_BITS == LINK
    }

    /// Whether the content of a file is the same, whatever its mode and owner.
    pub(super) fn has_content_of(&self, other: &Self) -> bool {
        (self.file, self.size, self.modified) == (other.file, other.size, other.modified)
    }

    /// Whether the entry changed so recently that another change may leave the same version.
    pub(super) fn is_recent(&self, now: SystemTime) -> bool {
        let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let seconds = u64::try_from(self.changed.0).unwrap_or(0);
        let changed = Duration::new(seconds, u32::try_from(self.changed.1).unwrap_or(0));
        changed.saturating_add(CLOCK_STEP) > now
    }
}

/// Everything in some trees.
#[derive(Debug, Default)]
pub(super) struct TreeScan {
    pub(super) entries: BTreeMap<PathBuf, EntryVersion>,
    /// Directories whose entries are unknown: unreadable ones, and those over the bound.
    pub(super) unlisted: BTreeSet<PathBuf>,
}

/// Lists `roots` and everything below them, except for `excluded` paths.
pub(super) fn scan(roots: &[PathBuf], excluded: &[PathBuf]) -> TreeScan {
    let mut scan = TreeScan::default();
    let mut todo: Vec<PathBuf> = roots.iter().filter(|root| scan.add(root)).cloned().collect();
    while let Some(directory) = todo.pop() {
        let listed = if scan.entries.len() < MAX_ENTRIES { fs::read_dir(&directory).ok() } else { None };
        let Some(listed) = listed else {
            scan.unlisted.insert(directory);
            continue;
        };
        let paths = listed.flatten().map(|entry| entry.path()).filter(|path| !excluded.contains(path));
        todo.extend(paths.filter(|path| scan.add(path)));
    }
    scan
}

impl TreeScan {
    /// Adds an entry, if it exists; returns whether it is a directory.
    fn add(&mut self, path: &Path) -> bool {
        let Some(version) = EntryVersion::read(path) else { return false };
        let is_directory = version.is_directory();
        self.entries.insert(path.to_owned(), version);
        is_directory
    }
}
