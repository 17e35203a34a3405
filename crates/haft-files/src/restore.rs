//! Putting paths back to earlier states, recorded like any other change.
//!
//! Many go together: they are looked at, written down in one wait for the disk, made ready, and only then put in place
//! one after the other.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use haft_tool::{Change, FileContent, FileId, Intent, Node, OpenContent, Restore, ToolError};
use rustix::fs::{OFlags, Stat};
use rustix::io::Errno;

use super::LocalFiles;
use super::groups::Groups;
use super::node::{Kept, Seen, look};
use super::place::{Installed, Spot, lock, temp_name};
use super::resolve::Leaf;
use super::swap::{Swap, conflict, sync_file_system};
use super::update::{kept, overtaken, sync};

/// How many paths go together.
const MOST: usize = 500;
/// How many bytes they may hold meanwhile.
const MOST_BYTES: usize = 8 << 20;
/// How many large files they may hold open.
const MOST_OPEN: usize = 64;
/// More files or directories than this go to the disk together.
const FEW: usize = 4;

impl LocalFiles {
    pub(super) fn restore_paths(
        &self,
        restores: &[Restore<'_>],
        content: &OpenContent<'_>,
    ) -> Result<(), ToolError> {
        let groups = Groups::of(restores, self.roots.iter().map(|root| &*root.path));
        let (first, then): (Vec<_>, Vec<_>) =
            restores.iter().partition(|restore| groups.comes_first(restore));
        let mut batch = Batch::new(self, content, groups);
        for restores in [first, then] {
            for restore in restores {
                if batch.must_come_first(restore) {
                    batch.perform()?;
                }
                batch.add(restore)?;
            }
            batch.perform()?;
        }
        Ok(())
    }
}

/// One path of a batch, looked at and ready to be written down.
struct Entry<'a> {
    path: &'a Path,
    to: &'a Node,
    now: Node,
    stat: Option<Stat>,
    bytes: Kept,
    /// Whether the bytes go into the very file that is there.
    over: bool,
    temp: OsString,
    /// Where its directory really is.
    parent: PathBuf,
    /// What was prepared under the temporary name.
    made: Option<Stat>,
}

impl Entry<'_> {
    /// The file that this is one of the names of, if it comes back as that.
    fn file(&self) -> Option<FileId> {
        self.to.linked().filter(|_| !self.over)
    }

    fn swap<'s>(&'s self, parent: &'s OwnedFd, name: &'s OsStr) -> Swap<'s> {
        let spot = Spot { parent, name, temp: &self.temp };
        Swap { spot, path: self.path, now: &self.now, stat: self.stat.as_ref() }
    }
}

struct Batch<'a> {
    files: &'a LocalFiles,
    content: &'a OpenContent<'a>,
    entries: Vec<Entry<'a>>,
    /// The paths of the batch, and whether a directory is made there.
    touched: HashMap<&'a Path, bool>,
    /// The directories that paths of the batch lie in.
    parents: HashSet<&'a Path>,
    /// The files that are written over.
    written_over: HashSet<FileId>,
    held: usize,
    open: usize,
    dirs: Directories,
    groups: Groups,
}

impl<'a> Batch<'a> {
    fn new(files: &'a LocalFiles, content: &'a OpenContent<'a>, groups: Groups) -> Self {
        let (touched, parents, written_over) = (HashMap::new(), HashSet::new(), HashSet::new());
        let (entries, dirs) = (Vec::new(), Directories::default());
        Self { files, content, entries, touched, parents, written_over, held: 0, open: 0, dirs, groups }
    }

    /// Whether what is in the batch must be done before `restore` can be looked at.
    fn must_come_first(&self, restore: &Restore<'a>) -> bool {
        if self.entries.len() >= MOST || self.held >= MOST_BYTES || self.open >= MOST_OPEN {
            return true;
        }
        // In a directory that is yet to be made there is nothing to look at; but files are prepared in theirs.
        let is_file = restore.to.as_file().is_some();
        let hinders = |above: &Path| self.touched.get(above).is_some_and(|made| is_file || !made);
        self.touched.contains_key(restore.path) || restore.path.ancestors().skip(1).any(hinders)
    }

    fn add(&mut self, restore: &Restore<'a>) -> Result<(), ToolError> {
        let Restore { path, expect, to } = *restore;
        if *to == Node::Special {
            return Err(conflict(path, "a device, socket or FIFO stood there, which is not recreated"));
        }
        let temp = temp_name()?;
        let in_new = path.ancestors().skip(1).any(|above| self.touched.contains_key(above));
        let (mut seen, parent) = if in_new {
            let parent = path.parent().unwrap_or(path).to_owned();
            (Seen { node: Node::Absent, stat: None, bytes: Kept::None }, parent)
        } else {
            let Some((held, name)) = self.dirs.find(self.files, path)? else {
                return match (expect, to) {
                    (Node::Absent, Node::Absent) => Ok(()),
                    _ => Err(gone(path)),
                };
            };
            let seen = look(&held.fd, &name, path)?;
            if let Some(stat) = &seen.stat {
                self.files.refuse_alias(path, stat)?;
            }
            if matches!(seen.node, Node::Dir { .. })
                && !matches!(to, Node::Dir { .. })
                && !self.parents.contains(path)
            {
                let spot = Spot { parent: &held.fd, name: &name, temp: &temp };
                Swap { spot, path, now: &seen.node, stat: seen.stat.as_ref() }.refuse_full_directory()?;
            }
            (seen, held.path.clone())
        };
        if let (Node::File(file), Some(stat)) = (&mut seen.node, &seen.stat) {
            let here = (stat.st_dev, stat.st_ino);
            file.linked = Some(here).filter(|here| self.groups.has_several(*here, file.linked.is_some()));
        }
        let linked = seen.node.linked();
        let here = seen.stat.as_ref().map(|stat| (stat.st_dev, stat.st_ino));
        // It has other names, or had and may have them again.
        let over = here.is_some() && here == to.linked();
        if here.is_some_and(|file| self.written_over.contains(&file)) {
            self.perform()?;
            return self.add(restore);
        }
        if over && seen.node.fully_same_as(to) {
            // It came back under another of its names.
            return Ok(());
        }
        if linked.is_some_and(|file| self.groups.is_written_over(file)) && !seen.node.same_as(expect) {
            // It was what the call left, until its bytes came back under another name.
            (seen.node, seen.bytes) = (expect.clone(), Kept::None);
        }
        if !seen.node.same_as(expect) {
            let now = seen.node.noun();
            return Err(conflict(path, &format!("it is no longer what the call left ({now})")));
        }
        match &seen.bytes {
            Kept::None => {}
            Kept::Held(bytes) => self.held += bytes.len(),
            Kept::In(_) => self.open += 1,
        }
        self.written_over.extend(here.filter(|_| over));
        let is_new_dir = matches!(to, Node::Dir { .. }) && !matches!(seen.node, Node::Dir { .. });
        self.touched.insert(path, is_new_dir);
        self.parents.extend(path.parent());
        let Seen { node: now, stat, bytes } = seen;
        self.entries.push(Entry { path, to, now, stat, bytes, over, temp, parent, made: None });
        Ok(())
    }

    /// Writes the batch down, makes it ready and puts it in place.
    fn perform(&mut self) -> Result<(), ToolError> {
        let mut entries = std::mem::take(&mut self.entries);
        *self = Self::new(self.files, self.content, std::mem::take(&mut self.groups));
        if entries.is_empty() {
            return Ok(());
        }
        let change = |entry: &Entry<'_>| Change::new(entry.path, entry.now.clone(), entry.to.clone());
        let mut intents: Vec<Intent<'_>> = entries
            .iter_mut()
            .map(|entry| Intent {
                change: change(entry),
                temp: Some(entry.parent.join(&entry.temp)),
                previous: if entry.now.as_file().is_some() {
                    entry.bytes.content()
                } else {
                    FileContent::None
                },
            })
            .collect();
        self.files.journal.intend(&mut intents)?;
        drop(intents);
        for entry in &mut entries {
            entry.bytes = Kept::None;
        }
        if let Err(error) = self.prepare(&mut entries) {
            self.forget(&entries);
            return Err(error);
        }
        let mut dirs = Directories::default();
        for (at, entry) in entries.iter().enumerate() {
            let put = self.put(entry, &mut dirs);
            if let Err(error) = put {
                self.forget(&entries[at + 1..]);
                return Err(error);
            }
            match entry.to.linked() {
                Some(file) if entry.over => self.groups.write_over(file),
                Some(file) => self.groups.is_at(file, entry.path.to_owned()),
                None => {}
            }
            self.files.journal.changed(change(entry));
        }
        dirs.sync()
    }

    /// Writes the files of the batch under their temporary names, and to the disk.
    fn prepare(&mut self, entries: &mut [Entry<'_>]) -> Result<(), ToolError> {
        let many = entries.iter().filter(|entry| entry.to.as_file().is_some()).count() > FEW;
        let mut dirs = Directories::default();
        let mut others = Directories::default();
        let mut last: HashMap<u64, File> = HashMap::new();
        for entry in entries.iter_mut() {
            let Some(node) = entry.to.as_file() else { continue };
            let (parent, name) = dirs.enter(self.files, entry.path)?;
            let swap = entry.swap(parent, &name);
            let other = entry.file().and_then(|file| self.groups.name(file));
            if let Some(other) = other.filter(|other| *other != entry.path)
                && let Ok((from, name)) = others.enter(self.files, other)
                && let Some(stat) = swap.link(from, &name, node)
            {
                entry.made = Some(stat);
                continue;
            }
            let (file, stat) = swap.prepare(node, self.content)?;
            if let Some(file) = entry.file() {
                self.groups.is_at(file, entry.parent.join(&entry.temp));
            }
            if !many {
                file.sync_all().map_err(|error| ToolError::io(entry.path.display(), &error))?;
            }
            last.insert(stat.st_dev, file);
            entry.made = Some(stat);
        }
        if many {
            for file in last.values() {
                sync_file_system(file).map_err(|error| ToolError::io("sync", &error.into()))?;
            }
        }
        Ok(())
    }

    fn put(&self, entry: &Entry<'_>, dirs: &mut Directories) -> Result<(), ToolError> {
        let (parent, name) = dirs.enter(self.files, entry.path)?;
        let _held = lock(parent, entry.path)?;
        let swap = entry.swap(parent, &name);
        let done = match entry.to.as_file().filter(|_| entry.over) {
            Some(file) => swap.write_over(file),
            None => swap.to(entry.to, entry.made.as_ref()),
        };
        match done? {
            Installed::Yes => Ok(()),
            Installed::Overtaken => Err(overtaken(entry.path)),
            Installed::Kept => Err(kept(entry.path, &entry.parent.join(&entry.temp))),
        }
    }

    /// Removes what was prepared and is not wanted any more.
    fn forget(&self, entries: &[Entry<'_>]) {
        let mut dirs = Directories::default();
        for entry in entries.iter().filter(|entry| entry.made.is_some()) {
            if let Ok((parent, name)) = dirs.enter(self.files, entry.path) {
                entry.swap(parent, &name).forget();
            }
        }
    }
}

/// The directory that was entered last, held, because paths of one directory come together; and those to be synced.
#[derive(Default)]
struct Directories {
    last: Option<Held>,
    /// One directory of each file system.
    devices: HashMap<u64, OwnedFd>,
    few: Vec<Held>,
}

struct Held {
    /// The path by which it was asked for.
    asked: PathBuf,
    /// Where it really is.
    path: PathBuf,
    fd: OwnedFd,
}

impl Directories {
    /// The held directory that `path` lies in, and its name there.
    fn enter(&mut self, files: &LocalFiles, path: &Path) -> Result<(&OwnedFd, OsString), ToolError> {
        let (held, name) = self.find(files, path)?.ok_or_else(|| gone(path))?;
        Ok((&held.fd, name))
    }

    /// The same; nothing if the directory is not there.
    fn find(&mut self, files: &LocalFiles, path: &Path) -> Result<Option<(&Held, OsString)>, ToolError> {
        let asked = path.parent().unwrap_or(path);
        let again = self.last.as_ref().is_some_and(|last| last.asked == asked);
        let mut name = path.file_name().unwrap_or_default().to_owned();
        if !again {
            let place = files.place_for_write(path, Leaf::Keep)?;
            // Through a link it would be another path than was recorded.
            if !place.missing.is_empty() || place.path() != path {
                return Ok(None);
            }
            // A root itself lies in no directory that could be entered for its neighbours too.
            let asked = if place.name == name { asked.to_owned() } else { PathBuf::new() };
            name = place.name;
            let held = Held { asked, path: place.parent_path, fd: place.parent };
            if let Some(last) = self.last.replace(held) {
                self.leave(last)?;
            }
        }
        Ok(self.last.as_ref().map(|last| (last, name)))
    }

    fn leave(&mut self, held: Held) -> Result<(), ToolError> {
        if self.few.len() < FEW {
            self.few.push(held);
            return Ok(());
        }
        let told = |error: Errno| ToolError::io(held.path.display(), &error.into());
        let stat = rustix::fs::fstat(&held.fd).map_err(told)?;
        // A handle that only holds a directory cannot sync.
        if rustix::fs::fcntl_getfl(&held.fd).is_ok_and(can_sync) {
            self.devices.entry(stat.st_dev).or_insert(held.fd);
        }
        Ok(())
    }

    /// Makes what was done in the directories durable.
    fn sync(mut self) -> Result<(), ToolError> {
        if let Some(last) = self.last.take() {
            self.leave(last)?;
        }
        for held in &self.few {
            sync(&held.fd, &held.path)?;
        }
        for fd in self.devices.values() {
            sync_file_system(fd).map_err(|error| ToolError::io("sync", &error.into()))?;
        }
        Ok(())
    }
}

fn gone(path: &Path) -> ToolError {
    conflict(path, "its directory is gone")
}

#[cfg(target_os = "linux")]
fn can_sync(flags: OFlags) -> bool {
    !flags.contains(OFlags::PATH)
}

#[cfg(not(target_os = "linux"))]
fn can_sync(_flags: OFlags) -> bool {
    true
}
