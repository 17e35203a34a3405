//! Renames files and directories.

use std::path::Path;

use haft_files::temp_name;
use haft_policy::{Guard, holds_settings, settings_rule};
use haft_tool::DirectoryEvent;
use rustix::fs::{AtFlags, FileType, RenameFlags};
use rustix::io::Errno;

use crate::guards::{NamedFiles, files_in};
use crate::linux::secret_search::skips_secrets;
use crate::linux::witness::notifications::Syscall;
use crate::linux::witness::paths::DirectoryEntry;
use crate::linux::witness::recorder::{capture_entry, number_to_remove};
use crate::linux::witness::supervisor::{Reply, Supervisor};
use crate::linux::witness::write_policy::WriteArea;

impl Supervisor {
    pub(super) fn rename(
        &mut self,
        call: &Syscall,
        (old_base, old): (i32, usize),
        (new_base, new): (i32, usize),
        flags: u32,
    ) -> Result<Reply, Errno> {
        let flags = RenameFlags::from_bits(flags).ok_or(Errno::INVAL)?;
        let both = RenameFlags::EXCHANGE | RenameFlags::NOREPLACE;
        if flags.contains(RenameFlags::WHITEOUT) || flags.contains(both) {
            return Err(Errno::INVAL);
        }
        let (old, new) = (self.read_path(call, old)?, self.read_path(call, new)?);
        let from = self.entry(call, old_base, &old)?;
        let to = self.entry(call, new_base, &new)?;
        if from.dots > 0 || to.dots > 0 {
            return Err(Errno::BUSY);
        }
        let kind = from.file_type()?;
        let replaced_stat = to.stat().ok();
        let replaced = replaced_stat.as_ref().map(|stat| FileType::from_raw_mode(stat.st_mode));
        let is_directory = kind == FileType::Directory;
        if replaced.is_some() && flags.contains(RenameFlags::NOREPLACE) {
            return Err(Errno::EXIST);
        }
        if !self.may_change("move", &from) || !self.may_change("move", &to) {
            return Err(Errno::ACCESS);
        }
        for entry in [&from, &to] {
            self.check_contains_nothing_restricted(entry)?;
            if self.policy.is_fixed(entry.path()) {
                return Err(Errno::BUSY);
            }
        }
        if (from.dir.area == WriteArea::Workspace) != (to.dir.area == WriteArea::Workspace) {
            // The program then copies and removes instead, and both are recorded.
            return Err(Errno::XDEV);
        }
        if from.is_not_a_directory() || (to.has_slash && !is_directory) {
            return Err(Errno::NOTDIR);
        }
        if is_directory && self.recorder.is_foreign(&from) {
            // The program then copies and removes instead: a move could not be told from one of the new directory around it.
            return Err(Errno::XDEV);
        }
        if flags.contains(RenameFlags::EXCHANGE) {
            if replaced == Some(FileType::Directory) && self.recorder.is_foreign(&to) {
                return Err(Errno::XDEV);
            }
            return self.exchange((&from, kind), (&to, replaced.ok_or(Errno::NOENT)?));
        }
        let is_unsearched = skips_secrets(to.path()) && !skips_secrets(from.path());
        if !is_directory && self.is_secret(&from) && (!self.policy.is_secret(to.path()) || is_unsearched) {
            // It could be read under the new name.
            return Err(self.refuse_read(from.path()));
        }
        if !is_directory && self.is_secret(&from) {
            Self::before_secret_move();
        }
        if is_directory {
            self.check_moves_no_settings(&from)?;
            self.check_stays_searched(&from, &to)?;
            self.check_moves_nothing_denied(&from, &to)?;
            return self.move_directory(&from, &to, replaced, flags);
        }
        if self.is_git_config(&to) {
            return match kind {
                FileType::RegularFile => Ok(self.replace_config(&from, &to).into()),
                _ => Err(self.refuse_guarded("move", to.path(), Guard::GitConfig, "")),
            };
        }
        self.before_change(&from)?;
        self.before_change(&to)?;
        if kind == FileType::Symlink || replaced == Some(FileType::Symlink) {
            self.paths.clear();
        }
        let moved = from.stat().map(|stat| (stat.st_dev, stat.st_ino));
        let replaced_file = number_to_remove(&to);
        rename(&from, &to, flags)?;
        if let Some(replaced) = replaced_stat.filter(|stat| moved != Ok((stat.st_dev, stat.st_ino))) {
            self.recorder.after_removal(&to, &replaced, replaced_file);
        }
        if kind == FileType::Symlink
            && to.dir.area == WriteArea::Workspace
            && self.leads_to_private(to.path())
            && !self.recorder.had_link(from.path())
        {
            rustix::fs::unlinkat(&to.dir.fd, &to.name, AtFlags::empty())?;
            self.refuse_private_link(to.path());
            return Err(Errno::ACCESS);
        }
        self.recorder.after_creation(&to);
        Ok(Reply::Value(0))
    }

    /// Refuses to move a directory that has secrets, links or repositories to where these are not searched for.
    fn check_stays_searched(&mut self, from: &DirectoryEntry, to: &DirectoryEntry) -> Result<(), Errno> {
        let is_hidden = skips_secrets(to.path()) && !skips_secrets(from.path());
        if is_hidden && self.may_contain_secret(from.path()) {
            return Err(self.refuse_read(from.path()));
        }
        let is_lost = NamedFiles::skips(to.path()) && !NamedFiles::skips(from.path());
        if is_lost && self.recorder.guarded.named().is_below(from.path()) {
            let detail = "it has links or repositories, which are not looked for there";
            return Err(self.refuse_guarded("move", from.path(), Guard::Settings, detail));
        }
        Ok(())
    }

    /// Refuses to move a directory if rules deny something in it by its path.
    fn check_moves_nothing_denied(
        &mut self,
        from: &DirectoryEntry,
        to: &DirectoryEntry,
    ) -> Result<(), Errno> {
        if !self.policy.has_denied_paths() {
            return Ok(());
        }
        let (old, new) = (from.path(), to.path());
        let is_denied = |inside: &Path| {
            let below = inside.strip_prefix(old).unwrap_or(Path::new(""));
            self.policy.is_denied_moving(inside, &new.join(below))
        };
        // If there are too many files to check, the move is denied.
        let denied =
            is_denied(old) || files_in(old).is_none_or(|files| files.iter().any(|file| is_denied(file)));
        if denied {
            let place = old.display().to_string();
            self.denials.add("move", place, "a rule denies what is in it by its path", None);
            return Err(Errno::ACCESS);
        }
        Ok(())
    }

    /// Whether a directory has a secret, or too many files to check.
    fn may_contain_secret(&self, directory: &Path) -> bool {
        files_in(directory).is_none_or(|files| files.iter().any(|file| self.policy.is_secret(file)))
    }

    /// Restricted files are identified by their paths, so the directories above them must keep their names.
    fn check_contains_nothing_restricted(&mut self, entry: &DirectoryEntry) -> Result<(), Errno> {
        if !self.policy.contains_restricted(entry.path()) {
            return Ok(());
        }
        let rule =
            "it contains a file that may not be accessed, which would be accessible under another name";
        self.denials.add("move", entry.path().display().to_string(), rule, None);
        Err(Errno::ACCESS)
    }

    /// A directory of settings stays where it is, or another one could take its name.
    fn check_moves_no_settings(&mut self, from: &DirectoryEntry) -> Result<(), Errno> {
        let path = from.path();
        let is_settings = settings_rule(path).is_some() || holds_settings(path);
        if !is_settings || from.dir.area != WriteArea::Workspace || self.recorder.is_new(path) {
            return Ok(());
        }
        match self.with_judge(|judge| judge.settings_in(path)) {
            Some(inside) => Err(self.refuse_guarded("move", &inside, Guard::Settings, "")),
            None => Ok(()),
        }
    }

    fn move_directory(
        &mut self,
        from: &DirectoryEntry,
        to: &DirectoryEntry,
        replaced: Option<FileType>,
        flags: RenameFlags,
    ) -> Result<Reply, Errno> {
        let (old, new) = (from.path(), to.path());
        if from.dir.area != WriteArea::Workspace || old == new {
            if from.dir.area != WriteArea::Workspace {
                self.before_change(from)?;
                self.before_change(to)?;
            }
            self.paths.clear();
            return Ok(rename(from, to, flags).into());
        }
        if replaced.is_some_and(|kind| kind != FileType::Directory) {
            return Err(Errno::NOTDIR);
        }
        if new.starts_with(old) {
            return Err(Errno::INVAL);
        }
        if replaced.is_some() {
            // The kernel would replace an empty directory, which is recorded as a removal.
            self.before_change(to)?;
            let act = || rustix::fs::unlinkat(&to.dir.fd, &to.name, AtFlags::REMOVEDIR);
            self.recorder.change_directory(DirectoryEvent::Removed(new), act)?;
        }
        self.before_change(to)?;
        let _moves = self.lock_moves();
        self.move_recorded(from, to, flags)?;
        if let Some(violation) = self.judge_moved(new) {
            self.move_recorded(to, from, RenameFlags::NOREPLACE)?;
            self.deny(&violation);
            return Err(Errno::ACCESS);
        }
        Ok(Reply::Value(0))
    }

    /// Exchanges two entries. If one is a directory, this is recorded as three moves, because a move must lead to a free path.
    fn exchange(
        &mut self,
        (from, kind): (&DirectoryEntry, FileType),
        (to, replaced): (&DirectoryEntry, FileType),
    ) -> Result<Reply, Errno> {
        if from.path() == to.path() {
            return Ok(Reply::Value(0));
        }
        if from.path().starts_with(to.path()) || to.path().starts_with(from.path()) {
            return Err(Errno::INVAL);
        }
        for (entry, kind, place) in [(from, kind, to), (to, replaced, from)] {
            self.check_exchanged(entry, kind)?;
            if kind == FileType::Directory {
                self.check_stays_searched(entry, place)?;
                self.check_moves_nothing_denied(entry, place)?;
            }
        }
        self.before_change(from)?;
        self.before_change(to)?;
        let has_directory = [kind, replaced].contains(&FileType::Directory);
        if !has_directory || from.dir.area != WriteArea::Workspace {
            self.paths.clear();
            rename(from, to, RenameFlags::EXCHANGE)?;
            self.recorder.after_creation(from);
            self.recorder.after_creation(to);
            return Ok(Reply::Value(0));
        }
        let _moves = self.lock_moves();
        let name = temp_name().map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        let temp = from.sibling(&name);
        let steps = [(from, &temp), (to, from), (&temp, to)];
        for (number, (old, new)) in steps.iter().enumerate() {
            if let Err(error) = self.move_recorded(old, new, RenameFlags::empty()) {
                self.move_back(&steps[..number])?;
                return Err(error);
            }
        }
        let violation = self.judge_moved(from.path()).or_else(|| self.judge_moved(to.path()));
        if let Some(violation) = violation {
            self.move_back(&steps)?;
            self.deny(&violation);
            return Err(Errno::ACCESS);
        }
        Ok(Reply::Value(0))
    }

    fn move_back(&mut self, steps: &[(&DirectoryEntry, &DirectoryEntry)]) -> Result<(), Errno> {
        steps.iter().rev().try_for_each(|(old, new)| self.move_recorded(new, old, RenameFlags::empty()))
    }

    /// Refuses to exchange an entry that must stay where it is.
    fn check_exchanged(&mut self, entry: &DirectoryEntry, kind: FileType) -> Result<(), Errno> {
        if kind == FileType::Directory {
            return self.check_moves_no_settings(entry);
        }
        self.check_no_git_config("move", entry)?;
        if self.is_secret(entry) { Err(self.refuse_read(entry.path())) } else { Ok(()) }
    }

    /// Moves an entry to a free path, without letting other commands act meanwhile.
    fn move_recorded(
        &mut self,
        from: &DirectoryEntry,
        to: &DirectoryEntry,
        flags: RenameFlags,
    ) -> Result<(), Errno> {
        self.recorder.before_change(to)?;
        let stat = from.stat()?;
        if self.policy.may_hold_secrets(from.path()) {
            Self::before_secret_move();
        }
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            let node = capture_entry(&from.dir.fd, &from.name)?.node;
            let event = DirectoryEvent::Moved { from: from.path(), to: to.path(), node: &node };
            self.recorder.change_directory(event, || rename(from, to, flags))?;
        } else {
            rename(from, to, flags)?;
        }
        self.after_move();
        self.recorder.after_creation(to);
        Ok(())
    }
}

fn rename(from: &DirectoryEntry, to: &DirectoryEntry, flags: RenameFlags) -> Result<(), Errno> {
    let (old, new) = (from.name_as_written(), to.name_as_written());
    if flags.is_empty() {
        return rustix::fs::renameat(&from.dir.fd, old, &to.dir.fd, new);
    }
    rustix::fs::renameat_with(&from.dir.fd, old, &to.dir.fd, new, flags)
}
