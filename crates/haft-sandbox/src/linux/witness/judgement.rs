//! Judges what a command has written, while it runs and at its end, and restores what is refused.

use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use haft_files::CapturedContent;
use haft_policy::Guard;
use haft_tool::{DirectoryEvent, Node, PathState, lock};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};

use super::guarded_entries::GuardedNote;
use super::link_count;
use super::paths::DirectoryEntry;
use super::recorder::has_no_writer;
use super::supervisor::{Classifier, Supervisor, TURN};
use super::write_policy::WriteArea;
use crate::guards::{Judge, Restoration, Violation, is_control_name, refused_name};

/// A file that is still open for writing is judged after this time, too. Git does not run a hook that is open for writing.
const WRITER_TIMEOUT: Duration = Duration::from_secs(1);

impl Supervisor {
    /// Judges what was written since the last judgement, unless a program is still writing to it. A command that goes on,
    /// in the background for example, does not keep what is refused until its end.
    pub(super) fn judge_while_running(&mut self) {
        let _turn = lock(&TURN);
        let notes = &self.recorder.guarded.notes;
        let is_overdue = notes.iter().any(|note| note.since.elapsed() >= WRITER_TIMEOUT);
        if is_overdue || !notes.iter().any(has_writer) {
            let notes = std::mem::take(&mut self.recorder.guarded.notes);
            let violations = self.judge_notes(&notes, false);
            self.refused.extend(violations.iter().map(|violation| violation.path.clone()));
            self.restore_all(violations);
        }
        self.last_judged = Instant::now();
    }

    /// Judges everything that the command left. All its processes must have ended.
    pub(super) fn judge_at_end(&mut self) {
        let _turn = lock(&TURN);
        let notes = std::mem::take(&mut self.recorder.guarded.notes);
        let mut violations = self.judge_notes(&notes, true);
        let changes = &self.recorder.changes;
        let settings: Vec<PathBuf> = self.recorder.guarded.settings.clone();
        let settings = settings.into_iter().map(|former| changes.current_path(&former).unwrap_or(former));
        let settings: Vec<PathBuf> = settings.collect();
        let changed: Vec<PathBuf> = changes
            .stored()
            .filter_map(|(former, _)| changes.current_path(former))
            .chain(changes.directories().new_directories().map(Path::to_owned))
            .chain(changes.directories().moves().into_iter().map(|(_, current)| current.to_owned()))
            .filter_map(|path| path.parent().map(Path::to_owned))
            .collect();
        self.with_judge(|judge| {
            violations.extend(settings.iter().filter_map(|path| judge.settings(path, true)));
            violations.extend(judge.repositories_around(changed.into_iter()));
        });
        self.restore_all(violations);
    }

    /// Refuses to move a directory to a place where it would make programs run; called after the move.
    pub(super) fn judge_moved(&mut self, path: &Path) -> Option<Violation> {
        self.with_judge(|judge| {
            let control = || judge.control_entries([path.to_owned()].into_iter()).into_iter().next();
            judge.moved_settings(path).or_else(control)
        })
    }

    pub(super) fn with_judge<T>(&self, judge: impl FnOnce(&Judge<'_>) -> T) -> T {
        judge(&Judge {
            scope: &self.policy.scope,
            before: &self.recorder,
            record: &*self.recorder.record,
            is_recorded: &|path| self.policy.area(path) == WriteArea::Workspace,
        })
    }

    fn judge_notes(&mut self, notes: &[GuardedNote], at_end: bool) -> Vec<Violation> {
        let paths = notes.iter().filter_map(|note| {
            let directory = self.paths.real_path(&note.dir.fd).ok()?;
            Some(directory.join(&note.name))
        });
        let mut paths: Vec<PathBuf> = paths.collect();
        paths.sort_unstable();
        paths.dedup();
        let mut violations = self.with_judge(|judge| {
            let mut violations: Vec<_> =
                paths.iter().filter_map(|path| judge.settings(path, at_end)).collect();
            violations
                .extend(judge.control_entries(paths.iter().filter(|path| is_control_name(path)).cloned()));
            violations
        });
        for path in &paths {
            if !violations.iter().any(|violation| violation.path == *path)
                && let Err(error) = self.make_private(path)
            {
                let detail = format!("it is shared with another name or program: {error}");
                let (path, guard) = (path.clone(), Guard::Settings);
                violations.push(Violation { path, guard, what: "write", detail });
            }
        }
        violations
    }

    /// Replaces an accepted file by a copy, if it has other names or is open for writing: it could change without a judgement.
    fn make_private(&mut self, path: &Path) -> io::Result<()> {
        let entry = self.entry_at(path)?;
        let Ok(stat) = entry.stat() else { return Ok(()) };
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        if !is_file || (link_count(&stat) == 1 && !is_written(&entry)) {
            return Ok(());
        }
        let captured = haft_files::capture(&entry.dir.fd, &entry.name)?;
        let mut bytes = Vec::new();
        match captured.content {
            CapturedContent::Bytes(content) => bytes = content,
            CapturedContent::File(mut file) => _ = file.read_to_end(&mut bytes)?,
            _ => return Ok(()),
        }
        self.recorder.before_change(&entry)?;
        Restoration::Put(captured.node, bytes).perform(path)?;
        self.recorder.after_creation(&entry);
        self.recorder.guarded.notes.clear();
        Ok(())
    }

    fn entry_at(&mut self, path: &Path) -> Result<DirectoryEntry, rustix::io::Errno> {
        self.paths.entry_at(path, &Classifier(&self.policy, &self.recorder))
    }

    fn restore_all(&mut self, mut violations: Vec<Violation>) {
        // A directory before what is in it.
        violations.sort_by(|a, b| a.path.cmp(&b.path));
        violations.dedup_by(|a, b| a.path == b.path);
        for violation in violations {
            self.paths.clear();
            let place = violation.path.display();
            if let Err(error) = self.restore(&violation.path) {
                self.recorder.add_loss(format!("{place} is protected but could not be restored: {error}"));
            }
            self.deny(&violation);
        }
        self.recorder.guarded.notes.clear();
    }

    /// Restores what was at a path before the command, or puts aside what is there.
    fn restore(&mut self, path: &Path) -> io::Result<()> {
        let changes = &self.recorder.changes;
        let former = changes.former_entry(path);
        // In a directory that the command created in place of another one, it is the state of that path.
        let key = former.clone().unwrap_or_else(|| path.to_owned());
        let before = changes.stored_at(&key).cloned();
        let now = haft_files::capture(rustix::fs::CWD, path.as_os_str()).map(|captured| captured.node);
        match before {
            Some(before) if now.is_ok_and(|now| now.fully_same_as(&before)) => self.put_aside(path),
            None if former.is_some() => self.put_aside(path),
            Some(before @ (Node::File(_) | Node::Link { .. })) if self.is_trusted(&key) => {
                self.restore_parents(path)?;
                let bytes = match before.as_file() {
                    Some(file) => self.recorder.record.stored_content(&file.hash).ok().flatten(),
                    None => Some(Vec::new()),
                };
                match bytes {
                    Some(bytes) => Restoration::Put(before, bytes).perform(path),
                    None => Restoration::Remove.perform(path),
                }
            }
            Some(before @ Node::Dir { .. }) if changes.directories().current_path(&key).is_none() => {
                Restoration::Put(before, Vec::new()).perform(path)?;
                self.recorder.changes.restored_directory(&key);
                Ok(())
            }
            _ => Restoration::Remove.perform(path),
        }
    }

    fn is_trusted(&self, former: &Path) -> bool {
        crate::guards::BeforeView::is_trusted(&self.recorder, former)
    }

    /// Makes the directories again that were above a deleted file.
    fn restore_parents(&mut self, path: &Path) -> io::Result<()> {
        let mut above: Vec<PathBuf> = path.ancestors().skip(1).map(Path::to_owned).collect();
        above.reverse();
        for directory in above {
            let changes = &self.recorder.changes;
            let Some(before @ Node::Dir { .. }) = changes.stored_at(&directory).cloned() else { continue };
            if changes.directories().current_path(&directory).is_some() {
                continue;
            }
            Restoration::Put(before, Vec::new()).perform(&directory)?;
            self.recorder.changes.restored_directory(&directory);
            // What is in a directory that the command created in its place was not there before.
            for entry in std::fs::read_dir(&directory)?.flatten() {
                let path = entry.path();
                if self.recorder.changes.stored_at(&path).is_none() {
                    let is_directory = entry.file_type()?.is_dir();
                    self.recorder.store(path.clone(), PathState::ABSENT, &mut CapturedContent::None)?;
                    if is_directory {
                        self.recorder.changes.apply(DirectoryEvent::Created(&path));
                    }
                }
            }
        }
        Ok(())
    }

    /// Renames what the command did not bring itself, but put into effect.
    fn put_aside(&mut self, path: &Path) -> io::Result<()> {
        let entry = self.entry_at(path)?;
        let aside = self.entry_at(&refused_name(path)?)?;
        self.recorder.before_change(&entry)?;
        self.recorder.before_creation(&aside)?;
        rustix::fs::renameat(&entry.dir.fd, &entry.name, &aside.dir.fd, &aside.name)?;
        self.recorder.after_creation(&aside);
        Ok(())
    }
}

/// Whether a program has the noted file open for writing.
fn has_writer(note: &GuardedNote) -> bool {
    let stat = rustix::fs::statat(&note.dir.fd, &note.name, AtFlags::SYMLINK_NOFOLLOW);
    let is_file = stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
    is_file && open_file(&note.dir.fd, &note.name).is_some_and(|fd| !has_no_writer(&fd))
}

fn is_written(entry: &DirectoryEntry) -> bool {
    open_file(&entry.dir.fd, &entry.name).is_none_or(|fd| !has_no_writer(&fd))
}

fn open_file(dir: &OwnedFd, name: &std::ffi::OsStr) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::openat(dir, name, flags, Mode::empty()).ok()
}
