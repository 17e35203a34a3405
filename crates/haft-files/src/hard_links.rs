//! Hard links: finds other names of a file, and restores the names of one file as such.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirEntryExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use haft_tool::{FileId, FileNode, Node, RestoreStep, StagedStep};
use rustix::fs::AtFlags;
#[cfg(target_os = "linux")]
use rustix::fs::StatxFlags;

use crate::LocalFiles;
use crate::node::capture;
use crate::restore_entry::Slot;
use crate::restore_stage::StageSet;

/// The search for names ends after this many directory entries.
const MAX_SEARCHED_ENTRIES: usize = 500_000;

/// Finds one name of each file below `roots`; `excluded` paths do not count.
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

/// A number of the file at a path, links not followed, that no later file gets. Inodes are reused, so it includes the time of
/// creation where the file system has that.
pub fn birth_id(dir: impl AsFd, name: &OsStr) -> Option<FileId> {
    #[cfg(target_os = "linux")]
    return birth_id_with(dir, name, AtFlags::SYMLINK_NOFOLLOW);
    #[cfg(not(target_os = "linux"))]
    {
        let found = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some((u64::try_from(found.st_dev).ok()?, found.st_ino))
    }
}

/// The same for an open file.
#[cfg(target_os = "linux")]
pub fn birth_id_of(file: impl AsFd) -> Option<FileId> {
    birth_id_with(file, OsStr::new(""), AtFlags::EMPTY_PATH)
}

#[cfg(target_os = "linux")]
fn birth_id_with(dir: impl AsFd, name: &OsStr, flags: AtFlags) -> Option<FileId> {
    let wanted = StatxFlags::INO | StatxFlags::BTIME;
    let found = rustix::fs::statx(dir, name, flags, wanted).ok()?;
    let device = rustix::fs::makedev(found.stx_dev_major, found.stx_dev_minor);
    let seconds = u64::from_ne_bytes(found.stx_btime.tv_sec.to_ne_bytes());
    let birth = seconds.wrapping_mul(1_000_000_000).wrapping_add(u64::from(found.stx_btime.tv_nsec));
    // With an odd factor, different times of creation of one inode stay different.
    Some((device, found.stx_ino ^ birth.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
}

/// The same for a path.
pub fn birth_id_at(path: &Path) -> Option<FileId> {
    birth_id(rustix::fs::CWD, path.as_os_str())
}

/// When the inode of a path last changed, links not followed.
pub fn changed_at(path: &Path) -> Option<SystemTime> {
    let meta = fs::symlink_metadata(path).ok()?;
    let (seconds, nanos) = (u64::try_from(meta.ctime()).ok()?, u32::try_from(meta.ctime_nsec()).ok()?);
    SystemTime::UNIX_EPOCH.checked_add(Duration::new(seconds, nanos))
}

/// The files with several names to which a restore gives names. Each also has a name in a stage, so that it can be linked
/// whatever happens to its other names.
#[derive(Debug, Default)]
pub(crate) struct HeldFiles {
    held: HashMap<FileId, PathBuf>,
}

impl HeldFiles {
    /// Gives names in a stage to the files that exist. A file that keeps one of its names gets its content there. Any other
    /// must already have the content, else its number now belongs to another file.
    pub(crate) fn find(files: &LocalFiles, steps: &[StagedStep], stages: &StageSet) -> Self {
        let (mut kept, mut wanted) = (HashMap::new(), BTreeMap::new());
        for StagedStep { step, slot } in steps {
            let RestoreStep::Set { path, expect, to: Node::File(node) } = step else { continue };
            let Some(file) = node.linked else { continue };
            if *expect != Node::Absent && id_of(path) == Some(file) {
                kept.insert(file, path.clone());
            } else {
                wanted.entry(file).or_insert((node, slot));
            }
        }
        let missing = wanted.keys().copied().filter(|file| !kept.contains_key(file)).collect::<HashSet<_>>();
        let mut found = HashMap::new();
        if !missing.is_empty() {
            found = find_names(files.roots.iter().map(|root| &*root.path), missing, &HashSet::new());
        }
        let mut links = Self::default();
        for (file, (node, slot)) in wanted {
            let Some(name) = kept.get(&file).or_else(|| found.get(&file)) else { continue };
            let Ok(name) = files.find_recorded(name) else { continue };
            links.hold(file, (&name.parent, &name.name), slot, stages);
            let has_content = |held: Slot<'_>| {
                let is_same = |now: &FileNode| {
                    FileNode { linked: node.linked, modified: node.modified, ..now.clone() } == *node
                };
                capture(held.dir, held.name).is_ok_and(|held| held.node.as_file().is_some_and(is_same))
            };
            if let Some(held) =
                links.slot(file, stages).filter(|held| !kept.contains_key(&file) && !has_content(*held))
            {
                // Frees the name for another file.
                let _ = rustix::fs::unlinkat(held.dir, held.name, AtFlags::empty());
                links.held.remove(&file);
            }
        }
        links
    }

    /// Gives a file a name beside the slot of a step.
    pub(crate) fn hold(
        &mut self,
        file: FileId,
        (dir, name): (&OwnedFd, &OsStr),
        slot: &Path,
        stages: &StageSet,
    ) {
        let mut held = slot.as_os_str().to_owned();
        held.push("-link");
        let held = PathBuf::from(held);
        if let Some(slot) = stages.entry(&held)
            && rustix::fs::linkat(dir, name, slot.dir, slot.name, AtFlags::empty()).is_ok()
        {
            self.held.insert(file, held);
        }
    }

    /// The name of a file in a stage.
    pub(crate) fn slot<'s>(&'s self, file: FileId, stages: &'s StageSet) -> Option<Slot<'s>> {
        self.held.get(&file).and_then(|held| stages.entry(held))
    }
}
