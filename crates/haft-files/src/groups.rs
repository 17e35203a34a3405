//! Names of one file come back as names of one file.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use haft_tool::{FileId, Restore};

use super::names::{find_names, id_of};

/// Files whose names come back.
#[derive(Debug, Default)]
pub(super) struct Groups {
    /// Where they are now.
    at: HashMap<FileId, PathBuf>,
    /// Those that had several names when they were looked at first.
    several: HashSet<FileId>,
    /// Those whose bytes came back under one name, and so under all.
    written_over: HashSet<FileId>,
}

impl Groups {
    /// Finds the files that names are restored to, under names that they have kept.
    pub(super) fn of<'a>(restores: &[Restore<'_>], roots: impl IntoIterator<Item = &'a Path>) -> Self {
        let (mut kept, mut missed) = (HashMap::new(), HashSet::new());
        for restore in restores {
            let Some(file) = restore.to.linked() else { continue };
            if id_of(restore.path) == Some(file) {
                kept.insert(file, restore.path.to_owned());
            } else {
                missed.insert(file);
            }
        }
        kept.retain(|file, _| missed.contains(file));
        missed.retain(|file| !kept.contains_key(file));
        if !missed.is_empty() {
            let not = restores.iter().map(|restore| restore.path).collect();
            kept.extend(find_names(roots, missed, &not));
        }
        Self { at: kept, ..Self::default() }
    }

    /// Whether the path has to be as it was before other names of its file come back.
    pub(super) fn comes_first(&self, restore: &Restore<'_>) -> bool {
        restore.to.linked().and_then(|file| self.at.get(&file)).is_some_and(|path| path == restore.path)
    }

    /// A name of the file.
    pub(super) fn name(&self, file: FileId) -> Option<&Path> {
        self.at.get(&file).map(PathBuf::as_path)
    }

    /// Whether the file has several names, as it `has` now, or had until they were removed.
    pub(super) fn has_several(&mut self, file: FileId, has: bool) -> bool {
        if has {
            self.several.insert(file);
        }
        self.several.contains(&file)
    }

    /// Says that the file was written over.
    pub(super) fn write_over(&mut self, file: FileId) {
        self.written_over.insert(file);
    }

    /// Whether the file was written over.
    pub(super) fn is_written_over(&self, file: FileId) -> bool {
        self.written_over.contains(&file)
    }

    /// Says where the file is from now on.
    pub(super) fn is_at(&mut self, file: FileId, path: PathBuf) {
        self.at.insert(file, path);
    }
}
