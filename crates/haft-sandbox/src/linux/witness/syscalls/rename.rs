//! Renames files and directories.

use std::path::Path;

use haft_policy::{Guard, guard_in};
use haft_tool::DirectoryEvent;
use rustix::fs::{AtFlags, FileType, RenameFlags};
use rustix::io::Errno;

use super::guards::is_git_control_path;
use crate::linux::witness::notifications::Syscall;
use crate::linux::witness::paths::DirectoryEntry;
use crate::linux::witness::recorder::capture_entry;
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
        let from = self.entry(call, old_base, old)?;
        let to = self.entry(call, new_base, new)?;
        if from.dots > 0 || to.dots > 0 {
            return Err(Errno::BUSY);
        }
        let kind = from.file_type()?;
        let replaced = to.file_type().ok();
        let is_directory = kind == FileType::Directory;
        if replaced.is_some() && flags.contains(RenameFlags::NOREPLACE) {
            return Err(Errno::EXIST);
        }
        if !self.may_change("move", &from) || !self.may_change("move", &to) {
            return Err(Errno::ACCESS);
        }
        for entry in [&from, &to] {
            self.check_contains_nothing_restricted(entry)?;
        }
        if (from.dir.area == WriteArea::Workspace) != (to.dir.area == WriteArea::Workspace) {
            // The program then copies and removes, and both are recorded as such.
            return Err(Errno::XDEV);
        }
        if from.is_not_a_directory() || (to.has_slash && !is_directory) {
            return Err(Errno::NOTDIR);
        }
        if flags.contains(RenameFlags::EXCHANGE) {
            let replaced = replaced.ok_or(Errno::NOENT)?;
            return self.exchange(&from, &to, is_directory || replaced == FileType::Directory);
        }
        if !is_directory && self.policy.is_secret(from.path()) && !self.policy.is_secret(to.path()) {
            // It could be read under the new name.
            return Err(self.refuse_read(from.path()));
        }
        self.check_moves_no_settings(&from, is_directory)?;
        match self.guard_of(&to) {
            None => {}
            Some(Guard::GitConfig) if kind == FileType::RegularFile => {
                return Ok(self.replace_config(&from, &to).into());
            }
            // The contents of a directory named .git are checked below.
            Some(Guard::GitLink) if is_directory => {}
            Some(guard) => return Err(self.refuse_guarded("move", to.path(), guard, "")),
        }
        if kind == FileType::Symlink && to.dir.area == WriteArea::Workspace && is_git_control_path(to.path())
        {
            return Err(self.refuse_guarded("move", to.path(), Guard::GitLink, "a link"));
        }
        if is_directory {
            self.check_moved_tree(&from, &to)?;
            return self.move_directory(&from, &to, replaced, flags);
        }
        self.before_change(&from)?;
        self.before_change(&to)?;
        if kind == FileType::Symlink || replaced == Some(FileType::Symlink) {
            self.paths.clear();
        }
        rename(&from, &to, flags)?;
        self.recorder.after_creation(&to);
        Ok(Reply::Value(0))
    }

    /// Restricted files are known by their path, so the directories above them must keep their names.
    fn check_contains_nothing_restricted(&mut self, entry: &DirectoryEntry) -> Result<(), Errno> {
        if !self.policy.contains_restricted(entry.path()) {
            return Ok(());
        }
        let rule =
            "it contains a file that may not be accessed, which would be accessible under another name";
        self.denials.add("move", entry.path().display().to_string(), rule, None);
        Err(Errno::ACCESS)
    }

    /// Settings must stay in place, also together with the directory around them.
    fn check_moves_no_settings(&mut self, from: &DirectoryEntry, is_directory: bool) -> Result<(), Errno> {
        if let Some(guard @ Guard::Settings) = self.guard_of(from) {
            return Err(self.refuse_guarded("move", from.path(), guard, ""));
        }
        let is_claude = from.name == ".claude" && from.dir.area == WriteArea::Workspace;
        if !is_directory || !is_claude || from.dir.is_created {
            return Ok(());
        }
        for name in ["settings.json", "settings.local.json"] {
            let inside = Path::new(&from.name).join(name);
            if rustix::fs::statat(&from.dir.fd, &inside, AtFlags::SYMLINK_NOFOLLOW).is_ok()
                && guard_in(&self.policy.scope, &from.dir.path.join(&inside)).is_some()
            {
                return Err(self.refuse_guarded("move", from.path(), Guard::Settings, name));
            }
        }
        Ok(())
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
            // The kernel would replace an empty directory. It is recorded as a removal.
            self.before_change(to)?;
            let act = || rustix::fs::unlinkat(&to.dir.fd, &to.name, AtFlags::REMOVEDIR);
            self.recorder.change_directory(DirectoryEvent::Removed(new), act)?;
        }
        self.before_change(to)?;
        let node = capture_entry(&from.dir.fd, &from.name)?.node;
        let event = DirectoryEvent::Moved { from: old, to: new, node: &node };
        self.recorder.change_directory(event, || rename(from, to, flags))?;
        self.after_move();
        self.recorder.after_creation(to);
        Ok(Reply::Value(0))
    }

    fn exchange(
        &mut self,
        from: &DirectoryEntry,
        to: &DirectoryEntry,
        with_directory: bool,
    ) -> Result<Reply, Errno> {
        if with_directory {
            // Programs fall back to several renames.
            return Err(Errno::INVAL);
        }
        self.check_not_guarded("move", from)?;
        self.check_not_guarded("move", to)?;
        for entry in [from, to] {
            if self.policy.is_secret(entry.path()) {
                return Err(self.refuse_read(entry.path()));
            }
        }
        self.before_change(from)?;
        self.before_change(to)?;
        self.paths.clear();
        rename(from, to, RenameFlags::EXCHANGE)?;
        self.recorder.after_creation(from);
        self.recorder.after_creation(to);
        Ok(Reply::Value(0))
    }
}

fn rename(from: &DirectoryEntry, to: &DirectoryEntry, flags: RenameFlags) -> Result<(), Errno> {
    let (old, new) = (from.name_as_written(), to.name_as_written());
    if flags.is_empty() {
        return rustix::fs::renameat(&from.dir.fd, old, &to.dir.fd, new);
    }
    rustix::fs::renameat_with(&from.dir.fd, old, &to.dir.fd, new, flags)
}
