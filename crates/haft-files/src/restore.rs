//! Restoring paths to earlier states, recorded like any other change.
//!
//! Paths are restored in batches: a batch is captured, recorded with one sync, written under temporary names, and only then
//! moved into place path by path.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::Path;

use haft_tool::{Change, FileId, Intent, Node, OpenContent, Restore, ToolError};
use rustix::fs::Stat;
use rustix::io::Errno;

use crate::error::{changed_meanwhile, changed_twice, conflict};
use crate::hard_links::HardLinks;
use crate::node::{Captured, CapturedContent, capture};
use crate::replace::{ReplaceTarget, Replaced, temp_name};
use crate::resolve::{FinalLink, ResolvedPath};
use crate::restore_entry::EntryRestore;
use crate::stat::file_id;
use crate::update::sync_directory;
use crate::{LocalFiles, os};

/// The largest batch: paths, bytes in memory and open files.
const MAX_BATCH_PATHS: usize = 500;
const MAX_BATCH_BYTES: usize = 8 << 20;
const MAX_BATCH_OPEN_FILES: usize = 64;
/// A larger batch is synced by file system, not path by path.
const MAX_SINGLE_SYNCS: usize = 4;

impl LocalFiles {
    pub(crate) fn restore_paths(
        &self,
        restores: &[Restore<'_>],
        content: &OpenContent<'_>,
    ) -> Result<(), ToolError> {
        let links = HardLinks::find(restores, self.roots.iter().map(|root| &*root.path));
        let (first, rest): (Vec<_>, Vec<_>) = restores.iter().partition(|restore| links.comes_first(restore));
        let mut batch = RestoreBatch::new(self, content, links);
        for restores in [first, rest] {
            for restore in restores {
                if batch.must_flush_before(restore) {
                    batch.flush()?;
                }
                batch.add(restore)?;
            }
            batch.flush()?;
        }
        Ok(())
    }

    /// Resolves a recorded path; `None` if its directory is gone or a link on the way makes it another path.
    fn resolve_recorded(&self, path: &Path) -> Result<Option<ResolvedPath>, ToolError> {
        let found = self.resolve_for_write(path, FinalLink::Keep)?;
        Ok((found.missing.is_empty() && found.path() == path).then_some(found))
    }
}

/// A path of a batch.
struct BatchEntry<'a> {
    path: &'a Path,
    to: &'a Node,
    now: Node,
    stat: Option<Stat>,
    content: CapturedContent,
    /// Whether the content is written into the existing file.
    in_place: bool,
    temp: OsString,
    /// What was created under the temporary name.
    prepared: Option<Stat>,
}

impl BatchEntry<'_> {
    fn change(&self) -> Change {
        Change::new(self.path, self.now.clone(), self.to.clone())
    }

    /// The hard-linked file that is restored under this name.
    fn linked_file(&self) -> Option<FileId> {
        self.to.linked().filter(|_| !self.in_place)
    }

    fn restore<'s>(&'s self, found: &'s ResolvedPath) -> EntryRestore<'s> {
        let target = ReplaceTarget { dir: &found.parent, name: &found.name, temp: &self.temp };
        EntryRestore { target, path: self.path, now: &self.now, stat: self.stat.as_ref() }
    }
}

struct RestoreBatch<'a> {
    files: &'a LocalFiles,
    open_content: &'a OpenContent<'a>,
    links: HardLinks,
    entries: Vec<BatchEntry<'a>>,
    /// The paths of the batch; the value says whether a directory is created there.
    paths: HashMap<&'a Path, bool>,
    /// The directories that contain paths of the batch.
    parents: HashSet<&'a Path>,
    /// The files whose content is restored in place.
    in_place: HashSet<FileId>,
    bytes: usize,
    open_files: usize,
}

impl<'a> RestoreBatch<'a> {
    fn new(files: &'a LocalFiles, open_content: &'a OpenContent<'a>, links: HardLinks) -> Self {
        Self {
            files,
            open_content,
            links,
            entries: Vec::new(),
            paths: HashMap::new(),
            parents: HashSet::new(),
            in_place: HashSet::new(),
            bytes: 0,
            open_files: 0,
        }
    }

    /// Whether the batch must be performed before `restore` can be captured.
    fn must_flush_before(&self, restore: &Restore<'a>) -> bool {
        if self.entries.len() >= MAX_BATCH_PATHS
            || self.bytes >= MAX_BATCH_BYTES
            || self.open_files >= MAX_BATCH_OPEN_FILES
        {
            return true;
        }
        // An entry of a directory that the batch creates needs no capture, but a file is prepared in its directory.
        let is_file = restore.to.as_file().is_some();
        let blocks = |above: &Path| self.paths.get(above).is_some_and(|created| is_file || !created);
        self.paths.contains_key(restore.path) || restore.path.ancestors().skip(1).any(blocks)
    }

    fn add(&mut self, restore: &Restore<'a>) -> Result<(), ToolError> {
        let Restore { path, expect, to } = *restore;
        let failed = |error: std::io::Error| restore_failed(path, &error);
        if *to == Node::Special {
            return Err(conflict(path, "a device, socket or FIFO was there, which cannot be recreated"));
        }
        let mut seen = Captured::ABSENT;
        if !path.ancestors().skip(1).any(|above| self.paths.contains_key(above)) {
            let Some(found) = self.files.resolve_recorded(path)? else {
                let nothing_to_do = *expect == Node::Absent && *to == Node::Absent;
                return if nothing_to_do { Ok(()) } else { Err(directory_gone(path)) };
            };
            seen = capture(&found.parent, &found.name).map_err(failed)?;
            if let Some(stat) = &seen.stat {
                self.files.check_hard_link(path, stat)?;
            }
            let replaces_directory = matches!(seen.node, Node::Dir { .. }) && !matches!(to, Node::Dir { .. });
            // Entries that the batch removes first are not counted here; the kernel refuses if others remain.
            if replaces_directory && !self.parents.contains(path) {
                let target = ReplaceTarget { dir: &found.parent, name: &found.name, temp: &OsString::new() };
                EntryRestore { target, path, now: &seen.node, stat: seen.stat.as_ref() }
                    .refuse_non_empty()?;
            }
        }
        let file = seen.stat.as_ref().map(file_id);
        if file.is_some_and(|file| self.in_place.contains(&file)) {
            self.flush()?;
            return self.add(restore);
        }
        if let (Node::File(node), Some(file)) = (&mut seen.node, file) {
            node.linked = self.links.was_linked(file, node.linked.is_some()).then_some(file);
        }
        // The file that was there before the call; it has or had other names, which must show the same content.
        let in_place = file.is_some() && file == to.linked();
        if in_place && seen.node.fully_same_as(to) {
            // Restored under another of its names.
            return Ok(());
        }
        if seen.node.linked().is_some_and(|file| self.links.is_rewritten(file)) && !seen.node.same_as(expect)
        {
            // It was `expect` until its content was restored under another name.
            (seen.node, seen.content) = (expect.clone(), CapturedContent::None);
        }
        if !seen.node.same_as(expect) {
            let now = seen.node.noun();
            return Err(conflict(path, &format!("it is no longer what the call left ({now})")));
        }
        match &seen.content {
            CapturedContent::None => {}
            CapturedContent::Bytes(bytes) => self.bytes += bytes.len(),
            CapturedContent::File(_) => self.open_files += 1,
        }
        self.in_place.extend(file.filter(|_| in_place));
        let creates_directory = matches!(to, Node::Dir { .. }) && !matches!(seen.node, Node::Dir { .. });
        self.paths.insert(path, creates_directory);
        self.parents.extend(path.parent());
        let Captured { node: now, stat, content } = seen;
        let temp = temp_name().map_err(failed)?;
        self.entries.push(BatchEntry { path, to, now, stat, content, in_place, temp, prepared: None });
        Ok(())
    }

    /// Records the batch, prepares its files and moves them into place.
    fn flush(&mut self) -> Result<(), ToolError> {
        let links = std::mem::take(&mut self.links);
        let Self { mut entries, .. } =
            std::mem::replace(self, Self::new(self.files, self.open_content, links));
        if entries.is_empty() {
            return Ok(());
        }
        let mut intents: Vec<Intent<'_>> = entries
            .iter_mut()
            .map(|entry| Intent {
                change: entry.change(),
                temp: Some(entry.path.with_file_name(&entry.temp)),
                previous: entry.content.as_file_content(),
            })
            .collect();
        self.files.record.intend(&mut intents)?;
        drop(intents);
        for entry in &mut entries {
            entry.content = CapturedContent::None;
        }
        let by_filesystem = os::HAS_FILESYSTEM_SYNC && entries.len() > MAX_SINGLE_SYNCS;
        if let Err(error) = self.prepare(&mut entries, by_filesystem) {
            self.remove_prepared(&entries);
            return Err(error);
        }
        let mut pending = FilesystemSync::default();
        for (index, entry) in entries.iter().enumerate() {
            let found = self.install(entry).inspect_err(|_| self.remove_prepared(&entries[index + 1..]))?;
            match entry.to.linked() {
                Some(file) if entry.in_place => self.links.set_rewritten(file),
                Some(file) => self.links.set_name(file, entry.path.to_owned()),
                None => {}
            }
            self.files.record.changed(entry.change());
            if by_filesystem {
                pending.add(found.parent).map_err(|error| restore_failed(entry.path, &error.into()))?;
            } else {
                sync_directory(&found.parent, entry.path)?;
            }
        }
        pending.finish()
    }

    /// Writes the files of the batch under their temporary names and makes them durable.
    fn prepare(&mut self, entries: &mut [BatchEntry<'_>], by_filesystem: bool) -> Result<(), ToolError> {
        let mut pending = FilesystemSync::default();
        for entry in entries {
            let Some(node) = entry.to.as_file() else { continue };
            let found = self.find(entry.path)?;
            let restore = entry.restore(&found);
            let other_name = entry.linked_file().and_then(|file| self.links.name(file));
            if let Some(other) = other_name.filter(|other| *other != entry.path)
                && let Ok(other) = self.find(other)
                && let Some(stat) = restore.link(&other, node)
            {
                entry.prepared = Some(stat);
                continue;
            }
            let (file, stat) = restore.prepare(node, self.open_content)?;
            let failed = |error: std::io::Error| restore_failed(entry.path, &error);
            if by_filesystem {
                pending.add(file.into()).map_err(|error| failed(error.into()))?;
            } else {
                file.sync_all().map_err(failed)?;
            }
            if let Some(file) = entry.linked_file() {
                self.links.set_name(file, entry.path.with_file_name(&entry.temp));
            }
            entry.prepared = Some(stat);
        }
        pending.finish()
    }

    fn install(&self, entry: &BatchEntry<'_>) -> Result<ResolvedPath, ToolError> {
        let found = self.find(entry.path)?;
        let _lock = self.files.lock_directory(&found.parent, entry.path)?;
        let restore = entry.restore(&found);
        let replaced = match entry.to.as_file().filter(|_| entry.in_place) {
            Some(file) => restore.rewrite_in_place(file),
            None => restore.install(entry.to, entry.prepared.as_ref()),
        };
        match replaced? {
            Replaced::Yes => Ok(found),
            Replaced::Conflict => Err(changed_meanwhile(entry.path)),
            Replaced::ConflictKept => Err(changed_twice(entry.path, &entry.path.with_file_name(&entry.temp))),
        }
    }

    /// Removes files that were prepared and are not needed.
    fn remove_prepared(&self, entries: &[BatchEntry<'_>]) {
        for entry in entries.iter().filter(|entry| entry.prepared.is_some()) {
            if let Ok(found) = self.find(entry.path) {
                entry.restore(&found).target.remove_temp();
            }
        }
    }

    fn find(&self, path: &Path) -> Result<ResolvedPath, ToolError> {
        self.files.resolve_recorded(path)?.ok_or_else(|| directory_gone(path))
    }
}

/// File systems to be synced, each with one open file on it.
#[derive(Default)]
struct FilesystemSync(HashMap<u64, OwnedFd>);

impl FilesystemSync {
    fn add(&mut self, fd: OwnedFd) -> Result<(), Errno> {
        if os::can_sync(&fd) {
            let (device, _) = file_id(&rustix::fs::fstat(&fd)?);
            self.0.entry(device).or_insert(fd);
        }
        Ok(())
    }

    fn finish(self) -> Result<(), ToolError> {
        for fd in self.0.values() {
            os::sync_filesystem(fd).map_err(|error| ToolError::io("sync", &error.into()))?;
        }
        Ok(())
    }
}

fn directory_gone(path: &Path) -> ToolError {
    conflict(path, "its directory no longer exists")
}

pub(crate) fn restore_failed(path: &Path, error: &std::io::Error) -> ToolError {
    ToolError::io(format!("restore {}", path.display()), error)
}
