//! Other names of a file, found by its number.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::{DirEntryExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use haft_tool::FileId;

/// More entries than this are not searched for a name.
const MOST: usize = 500_000;

/// Finds one name in `roots` for each of the files, other than `not`.
#[expect(clippy::implicit_hasher, reason = "the callers use the default hasher")]
pub fn find_names<'a>(
    roots: impl IntoIterator<Item = &'a Path>,
    mut files: HashSet<FileId>,
    not: &HashSet<&Path>,
) -> HashMap<FileId, PathBuf> {
    let numbers: HashSet<u64> = files.iter().map(|(_, number)| *number).collect();
    let mut found = HashMap::new();
    let mut open: Vec<PathBuf> = roots.into_iter().map(Path::to_owned).collect();
    let mut seen = 0;
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            seen += 1;
            if seen > MOST || files.is_empty() {
                return found;
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push(entry.path());
            } else if numbers.contains(&entry.ino()) {
                let path = entry.path();
                if let Some(file) = id_of(&path).filter(|file| !not.contains(&*path) && files.remove(file)) {
                    found.insert(file, path);
                }
            }
        }
    }
    found
}

/// What stands under a name, if anything does.
pub fn id_of(path: &Path) -> Option<FileId> {
    fs::symlink_metadata(path).ok().map(|meta| (meta.dev(), meta.ino()))
}
