//! Hard links: finding other names of a file, and restoring names of one file as names of one file.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::{DirEntryExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use haft_tool::{FileId, Restore};

/// The search for names ends after this many directory entries.
const MAX_SEARCHED_ENTRIES: usize = 500_000;

/// Finds one name below `roots` for each of the files, except for the `excluded` paths.
#[expect(clippy::implicit_hasher, reason = "the callers use the default hasher")]
pub fn find_names<'a>(
    roots: impl IntoIterator<Item = &'a Path>,
    mut files: HashSet<FileId>,
    excluded: &HashSet<&Path>,
) -> HashMap<FileId, PathBuf> {
    let inodes: HashSet<u64> = files.iter().map(|(_, inode)| *inode).collect();
    let mut found = HashMap::new();
    let mut todo: Vec<PathBuf> = roots.into_iter().map(Path::to_owned).collect();
    let mut searched = 0;
    while let Some(directory) = todo.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            searched += 1;
            if searched > MAX_SEARCHED_ENTRIES || files.is_empty() {
                return found;
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                todo.push(entry.path());
            } else if inodes.contains(&entry.ino()) {
                let path = entry.path();
                if let Some(file) =
                    id_of(&path).filter(|file| !excluded.contains(&*path) && files.remove(file))
                {
                    found.insert(file, path);
                }
            }
        }
    }
    found
}

/// Device and inode of a path, links not followed.
pub fn id_of(path: &Path) -> Option<FileId> {
    fs::symlink_metadata(path).ok().map(|meta| (meta.dev(), meta.ino()))
}

/// The hard-linked files of a restore.
#[derive(Debug, Default)]
pub(crate) struct HardLinks {
    /// One current name of each file.
    names: HashMap<FileId, PathBuf>,
    /// Files that had several names when they were first seen.
    linked: HashSet<FileId>,
    /// Files whose content was restored in place, and so under all their names.
    rewritten: HashSet<FileId>,
}

impl HardLinks {
    /// Finds the existing names of files that names are restored for.
    pub(crate) fn find<'a>(restores: &[Restore<'_>], roots: impl IntoIterator<Item = &'a Path>) -> Self {
        let (mut names, mut missing) = (HashMap::new(), HashSet::new());
        for restore in restores {
            let Some(file) = restore.to.linked() else { continue };
            if id_of(restore.path) == Some(file) {
                names.insert(file, restore.path.to_owned());
            } else {
                missing.insert(file);
            }
        }
        names.retain(|file, _| missing.contains(file));
        missing.retain(|file| !names.contains_key(file));
        if !missing.is_empty() {
            let excluded = restores.iter().map(|restore| restore.path).collect();
            names.extend(find_names(roots, missing, &excluded));
        }
        Self { names, ..Self::default() }
    }

    /// Whether the path must be restored before other names of its file are linked to it.
    pub(crate) fn comes_first(&self, restore: &Restore<'_>) -> bool {
        restore.to.linked().and_then(|file| self.names.get(&file)).is_some_and(|path| path == restore.path)
    }

    /// A current name of the file.
    pub(crate) fn name(&self, file: FileId) -> Option<&Path> {
        self.names.get(&file).map(PathBuf::as_path)
    }

    /// Sets the current name of the file.
    pub(crate) fn set_name(&mut self, file: FileId, path: PathBuf) {
        self.names.insert(file, path);
    }

    /// Whether the file has several names now (`is_linked`) or had them until this restore removed some.
    pub(crate) fn was_linked(&mut self, file: FileId, is_linked: bool) -> bool {
        if is_linked {
            self.linked.insert(file);
        }
        self.linked.contains(&file)
    }

    pub(crate) fn set_rewritten(&mut self, file: FileId) {
        self.rewritten.insert(file);
    }

    pub(crate) fn is_rewritten(&self, file: FileId) -> bool {
        self.rewritten.contains(&file)
    }
}
