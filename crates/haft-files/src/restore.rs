//! Restoring paths to earlier states, recorded like any other change: all steps are made, or none.
//!
//! What a step removes or replaces is kept under another name until all steps are made, so that every step can be undone.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use haft_tool::{Change, FileId, Intent, Node, OpenContent, RestorePlan, RestoreStep, StagedStep, ToolError};
use rustix::fs::{AtFlags, Stat};

use crate::error::conflict;
use crate::hard_links::{HeldFiles, id_of};
use crate::lock::lock_moves;
use crate::node::{Captured, CapturedContent, capture};
use crate::opened::OpenedDirectories;
use crate::resolve::ResolvedPath;
use crate::restore_entry::{EntryRestore, OWNER_ALL, set_directory};
use crate::restore_stage::StageSet;
use crate::stat::{file_id, link_count};
use crate::{LocalFiles, os};

/// The limits of a batch of intents: paths, bytes in memory and open files.
const MAX_BATCH_PATHS: usize = 500;
const MAX_BATCH_BYTES: usize = 8 << 20;
const MAX_BATCH_OPEN_FILES: usize = 64;
/// With more steps, the whole file system is synced instead of each path.
const MAX_SINGLE_SYNCS: usize = 4;

impl LocalFiles {
    pub(crate) fn restore_plan(
        &self,
        plan: &RestorePlan,
        content: &OpenContent<'_>,
    ) -> Result<(), ToolError> {
        let mut stages = StageSet::default();
        let steps = self.assign_slots(plan, &mut stages)?;
        if steps.is_empty() {
            return Ok(());
        }
        // Directories get their modes first, because without write access what is in them may not be reachable.
        let is_mode = |step: &StagedStep| {
            matches!(&step.step, RestoreStep::Set { expect: Node::Dir { .. }, to: Node::Dir { .. }, .. })
        };
        let opened = steps.iter().take_while(|step| is_mode(step)).count();
        let by_filesystem = os::HAS_FILESYSTEM_SYNC && steps.len() > MAX_SINGLE_SYNCS;
        let mut restore = RestoreRun {
            files: self,
            content,
            seen: HashMap::new(),
            links: HeldFiles::default(),
            rewritten: HashSet::new(),
            written: BTreeMap::new(),
            sync: !by_filesystem,
        };
        let judge = self.judge_restore.as_ref().map(|judge| judge());
        self.record.begin_restore(&steps)?;
        let moves_directories = steps.iter().any(|step| matches!(step.step, RestoreStep::MoveIn { .. }));
        let _moves = moves_directories.then(|| lock_moves(&*self.record));
        let mut made = 0;
        let performed = restore.perform(plan, (&steps, opened), &mut stages, &mut made);
        let performed = performed.and_then(|()| judge.map_or(Ok(()), |judge| judge()));
        let performed = performed.and_then(|()| stages.sync(by_filesystem));
        if let Err(mut error) = performed {
            let undone = self.roll_back(&steps[..made], content);
            // The path of the failed step may now belong to another program.
            let failed = steps[opened..].get(..made.saturating_sub(opened)).and_then(<[_]>::last);
            let check = |failed: &StagedStep| self.check_unchanged(&plan.changes, failed.step.path());
            match undone.and_then(|()| failed.map_or(Ok(()), check)) {
                Ok(()) => stages.remove(),
                Err(second) => {
                    error.message =
                        format!("{}; not all of it could be undone: {}", error.message, second.message);
                }
            }
            return Err(error);
        }
        plan.changes.iter().for_each(|change| self.record.changed(change.clone()));
        restore.report_single_names(&stages);
        self.record.end_restore()?;
        stages.remove();
        Ok(())
    }

    /// An error if something other than `except` is not as it was before a restore that failed.
    fn check_unchanged(&self, changes: &[Change], except: &Path) -> Result<(), ToolError> {
        let roots: Vec<PathBuf> = self.roots.iter().map(|root| root.path.clone()).collect();
        for Change { path, before, .. } in changes.iter().filter(|change| change.path != except) {
            let _opened = path.parent().map(|parent| OpenedDirectories::down_to(parent, &roots));
            let now = self.observe_recorded(path)?;
            if !now.same_as(before) && !now.may_be(before) {
                return Err(conflict(path, &format!("it is not as it was before ({})", now.noun())));
            }
        }
        Ok(())
    }

    /// Assigns to each step the path at which it keeps what it puts in place or removes.
    fn assign_slots(&self, plan: &RestorePlan, stages: &mut StageSet) -> Result<Vec<StagedStep>, ToolError> {
        let mut steps = Vec::with_capacity(plan.steps.len());
        let mut moved = HashMap::new();
        let removed_dir = |step: &RestoreStep| matches!(step, RestoreStep::Set { expect: Node::Dir { .. }, to, .. } if !matches!(to, Node::Dir { .. }));
        let removed = plan.steps.iter().filter(|step| removed_dir(step)).map(RestoreStep::path).collect();
        for step in links_in_order(&plan.steps) {
            if let RestoreStep::Set { path, expect: Node::Absent, to: Node::Absent } = step {
                match self.observe_entry(path)? {
                    Node::Absent => continue,
                    _ => return Err(conflict(path, "something is there now")),
                }
            }
            if matches!(step, RestoreStep::Set { to: Node::Special, .. }) {
                let why = "a device or socket was there, which cannot be recreated";
                return Err(conflict(step.path(), why));
            }
            let slot = match step {
                RestoreStep::MoveIn { from, to } => moved
                    .remove(from)
                    .ok_or_else(|| ToolError::internal(format!("{} was not moved out", to.display())))?,
                _ => stages.slot(self, step.path(), &removed, steps.len())?,
            };
            if let RestoreStep::MoveOut { from } = step {
                moved.insert(from, slot.clone());
            }
            steps.push(StagedStep { step: step.clone(), slot });
        }
        Ok(steps)
    }
}

/// The steps in an order in which names can be linked: every name gets its file before a file's content is restored in place,
/// because that changes it under all names that it has then.
fn links_in_order(steps: &[RestoreStep]) -> Vec<&RestoreStep> {
    let order = |step: &RestoreStep| match step {
        RestoreStep::Set { to: Node::Absent, .. } => 0,
        RestoreStep::Set { path, to, .. } => match to.linked() {
            None => 1,
            Some(file) if id_of(path) == Some(file) => 3,
            Some(_) => 2,
        },
        _ => 0,
    };
    let is_leaf = |node: &Node| !matches!(node, Node::Absent | Node::Dir { .. });
    let changes_leaf =
        |step: &RestoreStep| matches!(step, RestoreStep::Set { expect, .. } if is_leaf(expect));
    let mut ordered = Vec::with_capacity(steps.len());
    for group in steps.chunk_by(|a, b| changes_leaf(a) == changes_leaf(b)) {
        let start = ordered.len();
        ordered.extend(group);
        if changes_leaf(&group[0]) {
            ordered[start..].sort_by_key(|step| order(step));
        }
    }
    ordered
}

struct RestoreRun<'a> {
    files: &'a LocalFiles,
    content: &'a OpenContent<'a>,
    /// The versions of the existing entries, by the paths before the restore.
    seen: HashMap<PathBuf, Stat>,
    links: HeldFiles,
    /// Files whose content was restored in place, and thereby under all their names.
    rewritten: HashSet<FileId>,
    /// Files with several names that had to be written again because no name was left, each with one path.
    written: BTreeMap<FileId, PathBuf>,
    /// Whether each file and directory is synced.
    sync: bool,
}

impl RestoreRun<'_> {
    /// Performs the steps. The first `opened` of them make directories writable; `made` counts the steps that may have been
    /// made.
    fn perform(
        &mut self,
        plan: &RestorePlan,
        (steps, opened): (&[StagedStep], usize),
        stages: &mut StageSet,
        made: &mut usize,
    ) -> Result<(), ToolError> {
        for (index, step) in steps.iter().enumerate() {
            if index == opened {
                self.record_previous(&plan.changes)?;
                stages.create(self.files)?;
                self.links = HeldFiles::find(self.files, &steps[index..], stages);
            }
            let found = self.files.find_recorded(step.step.path())?;
            self.files.record.restore_step(index + 1)?;
            *made = index + 1;
            self.perform_step(&found, stages, step)?;
        }
        if steps.len() == opened {
            self.record_previous(&plan.changes)?;
        }
        Ok(())
    }

    /// Compares everything that will change with what is expected, and stores its content.
    fn record_previous(&mut self, changes: &[Change]) -> Result<(), ToolError> {
        // If directories move, what is at a path now says nothing about what is there later.
        let has_moves = changes.iter().any(|change| change.moved_to.is_some());
        let mut batch = IntentBatch::default();
        for change in changes {
            let mut content = CapturedContent::None;
            if change.before != Node::Absent {
                let found = self.files.find_recorded(&change.path)?;
                let seen = capture(&found.parent, &found.name);
                let seen = seen.map_err(|error| restore_failed(&change.path, &error))?;
                self.check(change, &seen)?;
                self.seen.extend(seen.stat.map(|stat| (change.path.clone(), stat)));
                content = seen.content;
            } else if !has_moves
                && let Ok(found) = self.files.find_recorded(&change.path)
                && rustix::fs::statat(&found.parent, &found.name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
            {
                return Err(conflict(&change.path, "something is there now"));
            }
            batch.add(self.files, change, content)?;
        }
        batch.flush(self.files)
    }

    fn check(&self, change: &Change, seen: &Captured) -> Result<(), ToolError> {
        let Change { path, before, after, .. } = change;
        if let Some(stat) = &seen.stat {
            self.files.check_hard_link(path, stat)?;
        }
        // The first steps have already changed the modes of directories.
        let is_same = match (&seen.node, before) {
            (Node::Dir(now), Node::Dir(then)) => {
                now.mode == then.mode || now.mode == then.mode | OWNER_ALL || seen.node.same_as(after)
            }
            (now, before) => now.same_as(before),
        };
        if !is_same {
            let now = seen.node.noun();
            return Err(conflict(path, &format!("it is no longer what the call left ({now})")));
        }
        Ok(())
    }

    fn perform_step(
        &mut self,
        found: &ResolvedPath,
        stages: &StageSet,
        StagedStep { step, slot }: &StagedStep,
    ) -> Result<(), ToolError> {
        if let RestoreStep::Set { path, expect: Node::Dir(old), to: Node::Dir(new) } = step {
            return set_directory(found, path, old, new);
        }
        let own = stages.entry(slot).ok_or_else(|| ToolError::internal("the restore has no stage"))?;
        let entry = EntryRestore { found, path: step.path(), slot: own };
        match step {
            RestoreStep::MoveOut { .. } => {
                // From now on, paths mean something else.
                self.seen.clear();
                entry.move_directory_out()?;
            }
            RestoreStep::MoveIn { .. } => entry.move_in()?,
            RestoreStep::Set { path, expect, to } => {
                let _lock = self.files.lock_entry(&found.parent, &found.name, path)?;
                self.set(&entry, expect, to, (slot, stages))?;
            }
        }
        if self.sync {
            crate::update::sync_directory(&found.parent, step.path())?;
        }
        Ok(())
    }

    fn set(
        &mut self,
        entry: &EntryRestore<'_>,
        expect: &Node,
        to: &Node,
        stage: (&Path, &StageSet),
    ) -> Result<(), ToolError> {
        let seen = self.seen.get(entry.path).copied().filter(|_| *expect != Node::Absent);
        let hash = |node: &Node| node.as_file().map(|file| file.hash.clone()).filter(|hash| !hash.is_empty());
        let has_bytes = hash(expect).is_some() && hash(expect) == hash(to);
        if *to == Node::Absent {
            return entry.move_out(seen.as_ref());
        }
        if let (Some(file), Node::File(node)) = (seen.as_ref().map(file_id), to)
            && to.linked() == Some(file)
        {
            // This is the file that was there before the call. It has or had other names, which must show the same content.
            if self.rewritten.insert(file) {
                let mut content = if has_bytes { None } else { Some((self.content)(node)?) };
                entry.rewrite(seen.as_ref(), node, content.as_mut().map(|content| &mut **content as _))?;
            }
            return Ok(());
        }
        let is_link = self.prepare(entry, to, stage)?;
        if let Node::File(node) = to
            && (has_bytes || *expect == Node::Absent)
            && !is_link
        {
            // What was only moved or removed keeps its age, so that nothing is rebuilt.
            entry.set_modified(node)?;
        }
        match expect {
            Node::Absent => entry.move_in(),
            _ => entry.exchange(seen.as_ref()),
        }
    }

    /// Creates `to` in the slot. Returns whether that is another name of an existing file.
    fn prepare(
        &mut self,
        entry: &EntryRestore<'_>,
        to: &Node,
        (slot, stages): (&Path, &StageSet),
    ) -> Result<bool, ToolError> {
        let Node::File(node) = to else { return entry.create(to).map(|()| false) };
        if let Some(held) = node.linked.and_then(|file| self.links.slot(file, stages))
            && entry.link(held)
        {
            return Ok(true);
        }
        entry.write(node, &mut *(self.content)(node)?, self.sync)?;
        if let Some(file) = node.linked {
            self.written.entry(file).or_insert_with(|| entry.path.to_owned());
            self.links.hold(file, (entry.slot.dir, entry.slot.name), slot, stages);
        }
        Ok(false)
    }
}

impl RestoreRun<'_> {
    /// Reports files that had several names and now have one: a later call changed the others, or its undo made them separate
    /// files.
    fn report_single_names(&self, stages: &StageSet) {
        for (file, path) in &self.written {
            let held = self.links.slot(*file, stages);
            let stat =
                held.and_then(|held| rustix::fs::statat(held.dir, held.name, AtFlags::SYMLINK_NOFOLLOW).ok());
            // One of the names is that in the stage.
            if stat.is_some_and(|stat| link_count(&stat) <= 2) {
                self.files.record.not_reversible(format!(
                    "{} had other names (hard links), which are other files now and stay as they are",
                    path.display()
                ));
            }
        }
    }
}

/// Intents that are recorded together.
#[derive(Default)]
struct IntentBatch {
    entries: Vec<(Change, CapturedContent)>,
    bytes: usize,
    open_files: usize,
}

impl IntentBatch {
    fn add(
        &mut self,
        files: &LocalFiles,
        change: &Change,
        content: CapturedContent,
    ) -> Result<(), ToolError> {
        match &content {
            CapturedContent::None => {}
            CapturedContent::Bytes(bytes) => self.bytes += bytes.len(),
            CapturedContent::File(_) => self.open_files += 1,
        }
        self.entries.push((change.clone(), content));
        let is_full = self.entries.len() >= MAX_BATCH_PATHS
            || self.bytes >= MAX_BATCH_BYTES
            || self.open_files >= MAX_BATCH_OPEN_FILES;
        if is_full { self.flush(files) } else { Ok(()) }
    }

    fn flush(&mut self, files: &LocalFiles) -> Result<(), ToolError> {
        let mut entries = std::mem::take(&mut self.entries);
        (self.bytes, self.open_files) = (0, 0);
        if entries.is_empty() {
            return Ok(());
        }
        let mut intents: Vec<Intent<'_>> = entries
            .iter_mut()
            .map(|(change, content)| Intent {
                change: change.clone(),
                previous: content.as_file_content(),
                temp: None,
            })
            .collect();
        files.record.intend(&mut intents)
    }
}

pub(crate) fn restore_failed(path: &Path, error: &std::io::Error) -> ToolError {
    ToolError::io(format!("restore {}", path.display()), error)
}
