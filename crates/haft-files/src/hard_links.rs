//! Hard links: finding other names of a file, and restoring names of one file as names of one file.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::{DirEntryExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use haft_tool::{FileId, RestoreStep, StagedStep};

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
    /// Names in directories that are moved out, by the path of the directory.
    away: HashMap<PathBuf, Vec<(FileId, PathBuf)>>,
}

impl HardLinks {
    /// Finds the existing names of files that the steps restore names for.
    pub(crate) fn find<'a>(steps: &[StagedStep], roots: impl IntoIterator<Item = &'a Path>) -> Self {
        let restored = || {
            steps.iter().filter_map(|staged| match &staged.step {
                RestoreStep::Set { path, to, .. } => Some((path.as_path(), to.linked()?)),
                _ => None,
            })
        };
        let (mut names, mut missing) = (HashMap::new(), HashSet::new());
        for (path, file) in restored() {
            if id_of(path) == Some(file) {
                names.insert(file, path.to_owned());
            } else {
                missing.insert(file);
            }
        }
        missing.retain(|file| !names.contains_key(file));
        if !missing.is_empty() {
            names.extend(find_names(roots, missing, &HashSet::new()));
        }
        Self { names, away: HashMap::new() }
    }

    /// A current name of the file.
    pub(crate) fn name(&self, file: FileId) -> Option<&Path> {
        self.names.get(&file).map(PathBuf::as_path)
    }

    /// Sets the current name of the file.
    pub(crate) fn set_name(&mut self, file: FileId, path: PathBuf) {
        self.names.insert(file, path);
    }

    /// Notes that a directory is moved out.
    pub(crate) fn move_out(&mut self, from: &Path) {
        let moved = self.names.extract_if(|_, name| name.starts_with(from)).collect();
        self.away.insert(from.to_owned(), moved);
    }

    /// Notes that a directory that was moved out is moved in.
    pub(crate) fn move_in(&mut self, from: &Path, to: &Path) {
        for (file, name) in self.away.remove(from).unwrap_or_default() {
            if let Ok(rest) = name.strip_prefix(from) {
                self.names.insert(file, to.join(rest));
            }
        }
    }
}
