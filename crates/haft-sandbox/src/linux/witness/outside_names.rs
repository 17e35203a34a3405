//! Finds out which files have hard links outside the scope.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use haft_files::open_directory;
use haft_policy::guard_in;
use haft_tool::FileId;
use rustix::fs::{AtFlags, FileType, Stat};

use super::link_count;
use super::new_tree::LIST_FLAGS;
use super::write_policy::{WriteArea, WritePolicy};

/// The search ends after this many directory entries. Names that are not found count as outside.
const MAX_SEARCHED_ENTRIES: usize = 500_000;

/// How many names files have outside the scope, where commands cannot change them.
#[derive(Debug, Default)]
pub(super) struct OutsideNames {
    /// Only for files with several names in the scope; of any other file all names but one are outside. `None` until it is
    /// needed.
    counts: Option<HashMap<FileId, u64>>,
}

impl OutsideNames {
    /// Whether a file with a name in the scope also has names outside.
    pub(super) fn has_some(&mut self, stat: &Stat, policy: &WritePolicy) -> bool {
        if link_count(stat) < 2 {
            return false;
        }
        let counts = self.counts.get_or_insert_with(|| count_outside(policy));
        counts.get(&(stat.st_dev, stat.st_ino)).is_none_or(|outside| *outside > 0)
    }

    /// Whether all names of a file are in the scope, for a file that was reached by none of them.
    pub(super) fn has_none(&mut self, stat: &Stat, policy: &WritePolicy) -> bool {
        let counts = self.counts.get_or_insert_with(|| count_outside(policy));
        counts.get(&(stat.st_dev, stat.st_ino)) == Some(&0)
    }

    /// Must be called when the command has given a file another name in the scope. `stat` is from before that.
    pub(super) fn add_name(&mut self, stat: &Stat) {
        let Some(counts) = &mut self.counts else { return };
        let file = (stat.st_dev, stat.st_ino);
        match link_count(stat) {
            // It may be a new file with a reused number.
            0 | 1 => _ = counts.insert(file, 0),
            names => _ = counts.entry(file).or_insert(names - 1),
        }
    }
}

/// Searches the scope for files with several names. Guarded names count as outside, because they may not be written.
fn count_outside(policy: &WritePolicy) -> HashMap<FileId, u64> {
    let mut names: HashMap<FileId, (u64, u64)> = HashMap::new();
    let roots = &policy.scope.roots;
    let is_inner = |root: &PathBuf| roots.iter().any(|other| root != other && root.starts_with(other));
    let mut todo: Vec<PathBuf> = roots.iter().filter(|root| !is_inner(root)).cloned().collect();
    todo.dedup();
    let mut searched = 0;
    while let Some(path) = todo.pop() {
        if policy.area(&path) != WriteArea::Workspace {
            continue;
        }
        let opened = open_directory(&path).and_then(|dir| {
            let listed = rustix::fs::openat(&dir, ".", LIST_FLAGS, rustix::fs::Mode::empty())?;
            Ok((rustix::fs::Dir::read_from(&listed)?, dir))
        });
        let Ok((entries, dir)) = opened else { continue };
        for entry in entries.flatten() {
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            searched += 1;
            if name == "." || name == ".." || searched > MAX_SEARCHED_ENTRIES {
                continue;
            }
            match entry.file_type() {
                FileType::Directory => todo.push(path.join(name)),
                FileType::RegularFile | FileType::Unknown => {
                    let Ok(stat) = rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW) else {
                        continue;
                    };
                    let is_guarded = || guard_in(&policy.scope, &path.join(name)).is_some();
                    if link_count(&stat) > 1 && !is_guarded() {
                        let count = names.entry((stat.st_dev, stat.st_ino)).or_insert((0, 0));
                        *count = (count.0 + 1, link_count(&stat));
                    }
                }
                _ => {}
            }
        }
    }
    let several = names.into_iter().filter(|(_, (inside, _))| *inside > 1);
    several.map(|(file, (inside, all))| (file, all.saturating_sub(inside))).collect()
}
