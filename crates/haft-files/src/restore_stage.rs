//! The directories in which a restore keeps what it puts in place or removes, and the rollback of a restore that failed or
//! whose process died.

use std::collections::{HashMap, HashSet};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use haft_tool::{ErrorKind, Node, OpenContent, RestoreStep, StagedStep, ToolError};
use rustix::fs::{Mode, Stat};
use rustix::io::Errno;

use crate::error::conflict;
use crate::node::capture;
use crate::replace::{is_temp_name, temp_name};
use crate::resolve::{FinalLink, ResolvedPath, open_exact};
use crate::restore::restore_failed;
use crate::restore_entry::{DIR_FLAGS, EntryRestore, Slot, set_directory};
use crate::stat::file_id;
use crate::{LocalFiles, os};

/// One such directory.
struct Stage {
    path: PathBuf,
    /// A path that the restore changes. The stage is beside it or beside a directory above it.
    below: PathBuf,
    dir: Option<OwnedFd>,
}

/// The stages of a restore: one per file system, because entries are renamed into them.
#[derive(Default)]
pub(crate) struct StageSet {
    stages: Vec<Stage>,
    /// For each directory with changed entries, the directory in which the stage is.
    places: HashMap<PathBuf, PathBuf>,
    by_place: HashMap<PathBuf, usize>,
}

impl StageSet {
    /// The path at which the step with this number keeps what is at `path`. Directories in `removed` cannot hold a stage.
    pub(crate) fn slot(
        &mut self,
        files: &LocalFiles,
        path: &Path,
        removed: &HashSet<&Path>,
        number: usize,
    ) -> Result<PathBuf, ToolError> {
        let parent = path.parent().unwrap_or(path).to_owned();
        let place =
            self.places.entry(parent).or_insert_with_key(|parent| stage_place(files, parent, removed));
        let place = place.clone();
        let stage = match self.by_place.get(&place) {
            Some(stage) => *stage,
            None => self.add(place, path)?,
        };
        Ok(self.stages[stage].path.join(number.to_string()))
    }

    fn add(&mut self, place: PathBuf, below: &Path) -> Result<usize, ToolError> {
        let name = temp_name().map_err(|error| restore_failed(below, &error))?;
        let path = place.join(name);
        self.stages.push(Stage { path, below: below.to_owned(), dir: None });
        self.by_place.insert(place, self.stages.len() - 1);
        Ok(self.stages.len() - 1)
    }

    /// Creates the directories.
    pub(crate) fn create(&mut self, files: &LocalFiles) -> Result<(), ToolError> {
        for stage in &mut self.stages {
            let found = files.find_stage(&stage.path, &stage.below)?;
            let made = rustix::fs::mkdirat(&found.parent, &found.name, Mode::RWXU)
                .and_then(|()| rustix::fs::openat(&found.parent, &found.name, DIR_FLAGS, Mode::empty()));
            stage.dir = Some(made.map_err(|error| restore_failed(&stage.path, &error.into()))?);
        }
        Ok(())
    }

    /// An open slot.
    pub(crate) fn entry<'s>(&'s self, slot: &'s Path) -> Option<Slot<'s>> {
        let stage = self.stages.iter().find(|stage| Some(&*stage.path) == slot.parent());
        let dir = stage.and_then(|stage| stage.dir.as_ref());
        dir.zip(slot.file_name()).map(|(dir, name)| Slot { dir, name })
    }

    /// Makes everything durable that was not synced file by file.
    pub(crate) fn sync(&self, by_filesystem: bool) -> Result<(), ToolError> {
        for dir in self.stages.iter().filter_map(|stage| stage.dir.as_ref()).filter(|_| by_filesystem) {
            os::sync_filesystem(dir).map_err(|error| ToolError::io("sync", &error.into()))?;
        }
        Ok(())
    }

    /// Removes the directories with everything in them.
    pub(crate) fn remove(&self) {
        for stage in self.stages.iter().filter(|stage| stage.dir.is_some()) {
            remove_stage(&stage.path);
        }
    }
}

/// The directory for the stage of `parent`'s entries: the topmost one in the root on the same file system, because that is not
/// moved. Where only single paths may be written, the nearest one that stays.
fn stage_place(files: &LocalFiles, parent: &Path, removed: &HashSet<&Path>) -> PathBuf {
    let device =
        |path: &Path| path.symlink_metadata().ok().filter(std::fs::Metadata::is_dir).map(|meta| meta.dev());
    let Some(root) = files.root_of(parent).filter(|_| !files.scope.is_write_blocked(parent)) else {
        return parent.ancestors().find(|above| !removed.contains(above)).unwrap_or(parent).to_owned();
    };
    if device(parent).is_none_or(|own| Some(own) == device(&root.path)) {
        return root.path.clone();
    }
    let mut place = parent;
    for above in parent.ancestors().take_while(|above| above.starts_with(&root.path)) {
        if device(above) != device(parent) {
            break;
        }
        place = above;
    }
    place.to_owned()
}

/// Removes the stages of a restore that has ended.
pub fn remove_stages(steps: &[StagedStep]) {
    let mut stages: Vec<&Path> = steps.iter().filter_map(|staged| staged.slot.parent()).collect();
    stages.sort_unstable();
    stages.dedup();
    stages.into_iter().for_each(remove_stage);
}

fn remove_stage(path: &Path) {
    if path.file_name().and_then(|name| name.to_str()).is_some_and(is_temp_name) {
        // If this fails, the next recovery no longer finds it, but its name says that it can be removed.
        let _ = std::fs::remove_dir_all(path);
    }
}

impl LocalFiles {
    /// Resolves a recorded path; an error if its directory is gone or a link on the way makes it another path.
    pub(crate) fn find_recorded(&self, path: &Path) -> Result<ResolvedPath, ToolError> {
        self.check_write(path)?;
        if let Some((root, (parent, name))) = self.root_of(path).zip(path.parent().zip(path.file_name()))
            && *path != *root.path
            && !self.scope.is_write_blocked(path)
            && let Ok(fd) = open_exact(&root.fd, root.relative(parent).unwrap_or(Path::new("")))
        {
            let found = ResolvedPath {
                parent: fd,
                parent_path: parent.to_owned(),
                missing: Vec::new(),
                name: name.to_owned(),
            };
            self.check_resolved(path, &found)?;
            return Ok(found);
        }
        let found = self.resolve_for_write(path, FinalLink::Keep)?;
        if found.missing.is_empty() && found.path() == path {
            return Ok(found);
        }
        Err(conflict(path, "its directory no longer exists"))
    }

    /// Resolves the path of a stage. Outside the roots and where writes are blocked, only paths that the restore changes may be
    /// resolved, so it resolves the one at or above `below` in the stage's directory.
    fn find_stage(&self, stage: &Path, below: &Path) -> Result<ResolvedPath, ToolError> {
        if self.root_of(stage).is_some() && !self.scope.is_write_blocked(stage) {
            return self.find_recorded(stage);
        }
        let neighbour = below.ancestors().find(|above| above.parent() == stage.parent()).unwrap_or(below);
        let found = self.find_recorded(neighbour)?;
        Ok(ResolvedPath { name: stage.file_name().unwrap_or_default().to_owned(), ..found })
    }

    /// Undoes the steps in reverse order. The last one may not have been made, or only in part.
    pub fn roll_back(&self, steps: &[StagedStep], content: &OpenContent<'_>) -> Result<(), ToolError> {
        let mut result = Ok(());
        for staged in steps.iter().rev() {
            // The others are undone all the same, so that as much as possible is as before.
            result = result.and(self.undo_step(staged, content));
        }
        result
    }

    fn undo_step(&self, staged: &StagedStep, content: &OpenContent<'_>) -> Result<(), ToolError> {
        let StagedStep { step, slot } = staged;
        let found = match self.find_recorded(step.path()) {
            // If its directory is missing, an earlier step was not made.
            Err(error) if error.kind == ErrorKind::Conflict => return Ok(()),
            found => found?,
        };
        let (Some(stage), Some(name)) = (slot.parent(), slot.file_name()) else { return Ok(()) };
        if let RestoreStep::Set { expect: Node::Dir(old), to: Node::Dir(new), .. } = step {
            // If the modes do not match, the step was not made.
            let _ = set_directory(&found, step.path(), new, old);
            return Ok(());
        }
        let place = self.find_stage(stage, step.path())?;
        let dir = match rustix::fs::openat(&place.parent, &place.name, DIR_FLAGS, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(()),
            dir => dir.map_err(|error| restore_failed(stage, &error.into()))?,
        };
        let entry = EntryRestore { found: &found, path: step.path(), slot: Slot { dir: &dir, name } };
        let slot_is_free = entry.slot_stat().is_err();
        let observe = |dir: &OwnedFd, name| capture(dir, name).map_or(Node::Absent, |captured| captured.node);
        match step {
            RestoreStep::MoveOut { .. } | RestoreStep::Set { to: Node::Absent, .. } => {
                if slot_is_free {
                    Ok(())
                } else {
                    entry.move_in()
                }
            }
            RestoreStep::MoveIn { .. } => {
                if slot_is_free && entry.stat().is_ok() {
                    entry.move_directory_out()
                } else {
                    Ok(())
                }
            }
            RestoreStep::Set { expect: Node::Absent, to, .. } => {
                if slot_is_free && observe(&found.parent, &found.name).same_as(to) {
                    return entry.move_back();
                }
                Ok(())
            }
            RestoreStep::Set { expect, to, .. } => {
                let now = observe(&found.parent, &found.name);
                let is = |stat: Result<Stat, Errno>, node: &Node| {
                    node.linked().is_some() && stat.ok().map(|stat| file_id(&stat)) == node.linked()
                };
                // A file with several names is identified by its number, because its content is restored after its names.
                let is_new = is(entry.stat(), to) || (now.same_as(to) && !is(entry.stat(), expect));
                let has_old = is(entry.slot_stat(), expect) || observe(&dir, name).same_as(expect);
                let stays = to.linked().is_some() && to.linked() == expect.linked();
                if is_new && has_old && !stays {
                    return entry.swap().map_err(|error| entry.failed(error));
                }
                // A file is incomplete while it is rewritten in place.
                if let (Node::File(node), Some(_)) = (expect, to.linked())
                    && !now.same_as(expect)
                {
                    let _ = rustix::fs::unlinkat(&dir, name, rustix::fs::AtFlags::empty());
                    return entry.rewrite(None, node, Some(&mut *content(node)?));
                }
                Ok(())
            }
        }
    }
}
