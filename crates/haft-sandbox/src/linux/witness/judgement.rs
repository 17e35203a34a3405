//! Judges what a command has written, while it runs and at its end, and restores what is refused.

use std::cell::OnceCell;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant};

use haft_files::{CapturedContent, OpenedDirectories, copy_beside, lock_moves, temp_name};
use haft_policy::Guard;
use haft_tool::{DirectoryEvent, Node, PathState};
use rustix::fs::{Access, AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::final_view::has_no_writer;
use super::guarded_entries::GuardedNote;
use super::link_count;
use super::paths::{DirectoryEntry, MAX_LINKS};
use super::supervisor::{Classifier, Supervisor, TURN};
use super::write_policy::WriteArea;
use crate::guards::{
    Judge, NamedFiles, Restoration, TouchedPath, Violation, files_in, guarded_files_in, is_control_name,
    is_now, refused_name,
};

/// After this time a file is judged even if it is still open for writing. Git does not run such a hook.
const WRITER_TIMEOUT: Duration = Duration::from_secs(1);

/// With more notes, judging does not wait for programs that still write: each note holds an open directory.
const MAX_NOTES: usize = 200;

/// How many entries are judged in one turn, before other commands get theirs.
const MAX_NOTES_PER_TURN: usize = 16;

/// Files whose copies would exceed this in one turn are refused.
const MAX_COPIED_BYTES: u64 = 16 << 20;

impl Supervisor {
    /// Judges what was written since the last judgement, unless a program still writes to it. So a long-running command does
    /// not keep a refused file until its end.
    pub(super) fn judge_while_running(&mut self) {
        let notes = &self.recorder.guarded.notes;
        let is_overdue =
            self.has_many_notes() || notes.iter().any(|note| note.since.elapsed() >= WRITER_TIMEOUT);
        if is_overdue || !notes.iter().any(has_writer) {
            self.judge_oldest();
        }
        self.last_judged = Instant::now();
    }

    /// Judges files that links, git directories or configurations have come to name while the command runs.
    pub(super) fn compare_while_running(&mut self) {
        let now = self.search_names();
        let _turn = (TURN.lock(), self.lock_moves());
        let violations = self.judge_newly_named(&now);
        self.refused.extend(violations.iter().map(|violation| violation.path.clone()));
        self.restore_all(violations);
        self.recorder.guarded.needs_comparison = false;
        self.last_compared = Instant::now();
    }

    /// Keeps other Haft processes from moving directories or judging meanwhile; commands of this process take turns anyway.
    pub(super) fn lock_moves(&self) -> Option<OwnedFd> {
        lock_moves(&*self.recorder.record)
    }

    /// Whether there are so many notes that judging does not wait any more.
    pub(super) fn has_many_notes(&self) -> bool {
        self.recorder.guarded.notes.len() >= MAX_NOTES
    }

    /// Judges the entries that were noted first, as many as one turn allows.
    fn judge_oldest(&mut self) {
        let _turn = (TURN.lock(), self.lock_moves());
        let notes = &mut self.recorder.guarded.notes;
        let oldest: Vec<_> = notes.drain(..notes.len().min(MAX_NOTES_PER_TURN)).collect();
        let _opened = (self.open_above(&oldest, &[]), self.open_named());
        let violations = self.judge_notes(&oldest, false);
        self.refused.extend(violations.iter().map(|violation| violation.path.clone()));
        self.restore_all(violations);
    }

    /// Judges everything that the command left. All its processes must have ended.
    pub(super) fn judge_at_end(&mut self) {
        if !self.recorder.guarded.has_changes() {
            return;
        }
        while self.recorder.guarded.notes.len() > MAX_NOTES_PER_TURN {
            self.judge_oldest();
        }
        let may_be_newly_named = self.recorder.guarded.may_be_newly_named(&*self.recorder.record);
        let now = may_be_newly_named.then(|| self.search_names());
        let _turn = (TURN.lock(), self.lock_moves());
        self.file_index = OnceCell::new();
        let notes = std::mem::take(&mut self.recorder.guarded.notes);
        let changes = &self.recorder.changes;
        let settings: Vec<PathBuf> = self.recorder.guarded.settings.clone();
        let settings = settings.into_iter().map(|former| changes.current_path(&former).unwrap_or(former));
        let settings: Vec<PathBuf> = settings.collect();
        let _opened = (self.open_above(&notes, &settings), self.open_named());
        let mut violations = self.judge_notes(&notes, true);
        self.with_judge(|judge| {
            let settings = settings.into_iter().map(TouchedPath::from);
            violations.extend(settings.filter_map(|path| judge.settings(&path, true)));
            if self.recorder.guarded.touches_named {
                violations.extend(judge.named(self.recorder.guarded.named()));
            }
        });
        violations.extend(now.iter().flat_map(|now| self.judge_newly_named(now)));
        self.restore_all(violations);
    }

    /// Searches for what links and git configurations lead to. The command must not have its turn: a search takes long, so other
    /// commands go on meanwhile.
    pub(super) fn search_names(&mut self) -> NamedFiles {
        let started = Instant::now();
        let named = NamedFiles::find_with_lock(&self.policy.scope.roots, || TURN.lock());
        self.search_time = started.elapsed();
        named
    }

    /// Judges what links and git configurations lead to now, and did not before this command's first change, whatever the
    /// reason is.
    fn judge_newly_named(&self, now: &NamedFiles) -> Vec<Violation> {
        let _opened = now.open(&self.policy.scope.roots);
        self.with_judge(|judge| judge.newly_named(self.recorder.guarded.named(), now))
    }

    /// Opens the directories of what is judged: a command could close one to hide what is in it until a later command opens it.
    fn open_above(&self, notes: &[GuardedNote], settings: &[PathBuf]) -> OpenedDirectories {
        let noted =
            notes.iter().filter_map(|note| Some(self.paths.real_path(&note.dir.fd).ok()?.join(&note.name)));
        let noted: Vec<PathBuf> = noted.collect();
        let access = Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK;
        OpenedDirectories::above(noted.iter().chain(settings).map(PathBuf::as_path), access, |directory| {
            self.policy.area(directory) == WriteArea::Workspace
        })
    }

    /// The same for the directories of links and git configurations.
    fn open_named(&self) -> OpenedDirectories {
        self.recorder.guarded.named().open(&self.policy.scope.roots)
    }

    /// The violation if a directory that was just moved to `path` would make programs run there.
    pub(super) fn judge_moved(&mut self, path: &Path) -> Option<Violation> {
        let mut files = guarded_files_in(path);
        if self.recorder.guarded.named().concern(path) {
            files.extend(files_in(path).unwrap_or_default());
        }
        if let Some(violation) = self.make_all_private(&files).pop() {
            return Some(violation);
        }
        self.with_judge(|judge| {
            let control = || judge.control_entries([path.to_owned().into()].into_iter()).into_iter().next();
            judge.moved_settings(path).or_else(control)
        })
    }

    pub(super) fn with_judge<T>(&self, judge: impl FnOnce(&Judge<'_>) -> T) -> T {
        judge(&Judge {
            scope: &self.policy.scope,
            before: &self.recorder,
            record: &*self.recorder.record,
            is_recorded: &|path| self.policy.area(path) == WriteArea::Workspace,
            started_at: self.recorder.guarded.started_at,
            is_session_directory: &|path| self.policy.is_session_directory(path),
            index: &self.file_index,
        })
    }

    fn judge_notes(&mut self, notes: &[GuardedNote], at_end: bool) -> Vec<Violation> {
        let touched = notes.iter().filter_map(|note| {
            let path = self.paths.real_path(&note.dir.fd).ok()?.join(&note.name);
            // If another command has moved the entry, it is not where this command's moves would have put it.
            let changes = &self.recorder.changes;
            let is_moved = match &note.former {
                Some(former) => changes.current_path(former).is_some_and(|expected| expected != path),
                None => changes.former_entry(&path).is_some(),
            };
            let former = is_moved.then(|| note.former.clone().unwrap_or_else(|| note.path.clone()));
            Some(TouchedPath { path, former })
        });
        let mut touched: Vec<TouchedPath> = touched.collect();
        touched.sort_unstable();
        touched.dedup();
        let paths: Vec<PathBuf> = touched.iter().map(|touched| touched.path.clone()).collect();
        // First gives each file a single name, so that what is judged is what stays.
        let mut violations = self.make_all_private(&paths);
        self.with_judge(|judge| {
            violations.extend(touched.iter().filter_map(|touched| judge.settings(touched, at_end)));
            let control = touched.iter().filter(|touched| is_control_name(&touched.path));
            violations.extend(judge.control_entries(control.cloned()));
            let named = self.recorder.guarded.named();
            if paths.iter().any(|path| named.concern(path)) {
                violations.extend(judge.named(named));
            }
        });
        violations
    }

    /// Replaces files by copies if they have other names or are open for writing, because they could still change without a
    /// judgement.
    fn make_all_private(&mut self, paths: &[PathBuf]) -> Vec<Violation> {
        self.recorder.guarded.is_paused = true;
        let (mut violations, mut allowed_bytes) = (Vec::new(), MAX_COPIED_BYTES);
        for path in paths {
            if let Err(error) = self.make_private(path, &mut allowed_bytes) {
                let detail = format!("it is shared with another name or program: {error}");
                let (path, guard) = (path.clone(), Guard::Settings);
                violations.push(Violation { path, guard, what: "write", detail });
            }
        }
        self.recorder.guarded.is_paused = false;
        violations
    }

    fn make_private(&mut self, path: &Path, allowed_bytes: &mut u64) -> io::Result<()> {
        let Ok(entry) = self.entry_at(path) else { return Ok(()) };
        let Ok(stat) = entry.stat() else { return Ok(()) };
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        if !is_file || (link_count(&stat) == 1 && !is_written(&entry)) {
            return Ok(());
        }
        let size = u64::try_from(stat.st_size).unwrap_or(u64::MAX);
        *allowed_bytes = allowed_bytes.checked_sub(size).ok_or(Errno::FBIG)?;
        self.recorder.before_change(&entry)?;
        let temp = temp_name()?;
        copy_beside(&entry.dir.fd, &entry.name, &temp)?;
        rustix::fs::renameat(&entry.dir.fd, &temp, &entry.dir.fd, &entry.name)?;
        self.recorder.after_creation(&entry);
        Ok(())
    }

    /// The entry at a path; an error if there is a link on the way.
    fn entry_at(&mut self, path: &Path) -> Result<DirectoryEntry, Errno> {
        let entry = self.paths.entry_at(path, &Classifier(&self.policy, &self.recorder))?;
        if entry.path() == path { Ok(entry) } else { Err(Errno::LOOP) }
    }

    /// Whether a new link leads to a directory of the session, or to where one could be made. Commands write there without a
    /// judgement, so they could put there what the user's programs run.
    pub(super) fn leads_to_private(&self, path: &Path) -> bool {
        let is_private =
            |path: &Path| matches!(self.policy.area(path), WriteArea::Private | WriteArea::Unrecorded);
        match std::fs::canonicalize(path) {
            Ok(real) => real.is_dir() && is_private(&real),
            // A loop leads nowhere, and the user's programs do not open a path that is too long for one call.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ELOOP | libc::ENAMETOOLONG)) => false,
            Err(_) => link_target(path).is_none_or(|target| is_private(&target)),
        }
    }

    fn restore_all(&mut self, mut violations: Vec<Violation>) {
        // A directory before what is in it.
        violations.sort_by(|a, b| a.path.cmp(&b.path));
        violations.dedup_by(|a, b| a.path == b.path);
        self.recorder.guarded.is_paused = true;
        for mut violation in violations {
            self.paths.clear();
            let place = violation.path.display();
            if let Err(error) =
                self.restore(&violation.path).and_then(|()| self.put_aside_if_refused(&violation.path))
            {
                self.recorder.add_loss(format!("{place} is protected but could not be restored: {error}"));
                violation.detail = format!("it is still there, because it could not be restored: {error}");
            }
            self.deny(&violation);
        }
        self.recorder.guarded.is_paused = false;
    }

    /// After a restore, what an earlier command left at the path would be in effect again, so it may have to be refused too.
    fn put_aside_if_refused(&mut self, path: &Path) -> io::Result<()> {
        let is_refused = self.with_judge(|judge| {
            let touched = TouchedPath::from(path.to_owned());
            judge.settings(&touched, true).is_some_and(|violation| violation.what != "delete")
                || (is_control_name(path)
                    && judge.control_entries([touched].into_iter()).iter().any(|found| found.path == path))
        });
        if is_refused { self.put_aside(path) } else { Ok(()) }
    }

    /// Restores what was at a path before the command, or puts aside what is there.
    fn restore(&mut self, path: &Path) -> io::Result<()> {
        let changes = &self.recorder.changes;
        let former = changes.former_entry(path);
        // In a directory that the command created in place of another one, the state of the same path counts.
        let key = former.clone().unwrap_or_else(|| path.to_owned());
        let before = changes.stored_at(&key).cloned();
        match before {
            Some(before) if is_now(path, &before) => self.put_aside(path),
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

    /// Recreates the directories that were above a deleted file.
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
            // The command may have created a directory in its place: what is in that was not there before.
            for entry in std::fs::read_dir(&directory)?.flatten() {
                let path = entry.path();
                if self.recorder.changes.stored_at(&path).is_none() {
                    let is_directory = entry.file_type()?.is_dir();
                    self.recorder.store(path.clone(), PathState::ABSENT, &mut CapturedContent::None)?;
                    if let Some(file) = haft_files::id_of(&path) {
                        self.recorder.changes.put(path.clone(), file);
                    }
                    if is_directory {
                        self.recorder.changes.apply(DirectoryEvent::Created(&path));
                    }
                }
            }
        }
        Ok(())
    }

    /// Renames something that the command put into effect but did not bring there itself.
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

/// Where a dangling link leads; `None` if that is not certain.
fn link_target(path: &Path) -> Option<PathBuf> {
    let mut target = path.parent()?.join(std::fs::read_link(path).ok()?);
    for _ in 0..MAX_LINKS {
        let (above, real) =
            target.ancestors().find_map(|above| Some((above, std::fs::canonicalize(above).ok()?)))?;
        let missing = target.strip_prefix(above).ok()?.to_owned();
        let mut parts = missing.components();
        let Some(first) = parts.next() else { return Some(real) };
        // The first missing name may be a dangling link itself.
        match std::fs::read_link(real.join(first)) {
            Ok(next) => target = real.join(next).join(parts.as_path()),
            Err(_) => {
                return missing
                    .components()
                    .all(|part| matches!(part, Component::Normal(_)))
                    .then(|| real.join(&missing));
            }
        }
    }
    None
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
