//! Creates and removes directory entries: directories, links, nodes.

use std::ffi::OsStr;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;

use haft_tool::DirectoryEvent;
use rustix::fs::{AtFlags, FileType, Mode};
use rustix::io::Errno;

use super::open::without_setid;
use crate::linux::witness::link_count;
use crate::linux::witness::notifications::Syscall;
use crate::linux::witness::paths::{DirectoryEntry, ResolvedTarget};
use crate::linux::witness::recorder::number_to_remove;
use crate::linux::witness::supervisor::{Reply, Supervisor};
use crate::linux::witness::write_policy::WriteArea;

/// The part of a mode that is the type of the file.
const S_IFMT: u32 = 0o170_000;

impl Supervisor {
    /// The entry that a path names, without following a link at its end.
    pub(super) fn entry(&mut self, call: &Syscall, base: i32, path: &[u8]) -> Result<DirectoryEntry, Errno> {
        match self.resolve(call, base, path)? {
            ResolvedTarget::Entry(entry) => Ok(entry),
            ResolvedTarget::Fd(_) => Err(Errno::ACCESS),
        }
    }

    /// An entry that is about to be created.
    fn new_entry(&mut self, call: &Syscall, base: i32, path: &[u8]) -> Result<DirectoryEntry, Errno> {
        let entry = self.entry(call, base, path)?;
        if entry.exists() {
            return Err(Errno::EXIST);
        }
        if !self.may_change("create", &entry) {
            return Err(Errno::ACCESS);
        }
        Ok(entry)
    }

    pub(super) fn make_directory(
        &mut self,
        call: &Syscall,
        base: i32,
        path: usize,
        mode: u64,
    ) -> Result<Reply, Errno> {
        let path = self.read_path(call, path)?;
        let entry = self.new_entry(call, base, &path)?;
        self.before_change(&entry)?;
        self.use_umask_of(call);
        let mode = Mode::from_raw_mode(u32::try_from(mode & 0o7777).unwrap_or_default());
        let act = || rustix::fs::mkdirat(&entry.dir.fd, entry.name_as_written(), mode & without_setid());
        if entry.dir.area != WriteArea::Workspace {
            return Ok(act().into());
        }
        self.recorder.change_directory(DirectoryEvent::Created(entry.path()), act)?;
        self.recorder.after_creation(&entry);
        Ok(Reply::Value(0))
    }

    pub(super) fn make_node(
        &mut self,
        call: &Syscall,
        base: i32,
        path: usize,
        mode: u64,
    ) -> Result<Reply, Errno> {
        let mode = u32::try_from(mode & 0o177_777).unwrap_or_default();
        let kind = match FileType::from_raw_mode(mode) {
            FileType::Unknown if mode & S_IFMT == 0 => FileType::RegularFile,
            kind @ (FileType::RegularFile | FileType::Fifo | FileType::Socket) => kind,
            FileType::Symlink | FileType::Unknown => return Err(Errno::INVAL),
            _ => return Err(Errno::PERM),
        };
        let path = self.read_path(call, path)?;
        let entry = self.new_entry(call, base, &path)?;
        self.check_no_git_config("create", &entry)?;
        self.before_change(&entry)?;
        self.use_umask_of(call);
        let mode = Mode::from_raw_mode(mode) & without_setid();
        rustix::fs::mknodat(&entry.dir.fd, entry.name_as_written(), kind, mode, 0)?;
        self.recorder.after_creation(&entry);
        Ok(Reply::Value(0))
    }

    pub(super) fn make_symlink(
        &mut self,
        call: &Syscall,
        target: usize,
        base: i32,
        path: usize,
    ) -> Result<Reply, Errno> {
        let (target, path) = (self.read_path(call, target)?, self.read_path(call, path)?);
        let entry = self.new_entry(call, base, &path)?;
        self.check_no_git_config("create", &entry)?;
        self.before_change(&entry)?;
        self.paths.clear();
        let target = OsStr::from_bytes(&target);
        rustix::fs::symlinkat(target, &entry.dir.fd, entry.name_as_written())?;
        if entry.dir.area == WriteArea::Workspace && self.leads_to_private(entry.path()) {
            rustix::fs::unlinkat(&entry.dir.fd, &entry.name, AtFlags::empty())?;
            self.refuse_private_link(entry.path());
            return Err(Errno::ACCESS);
        }
        self.recorder.after_creation(&entry);
        Ok(Reply::Value(0))
    }

    /// Creates a hard link, but none to guarded, secret or outside files, because it would give access to them.
    pub(super) fn make_hard_link(
        &mut self,
        call: &Syscall,
        (old_base, old): (i32, usize),
        (new_base, new): (i32, usize),
        flags: i32,
    ) -> Result<Reply, Errno> {
        if flags & !(libc::AT_SYMLINK_FOLLOW | libc::AT_EMPTY_PATH) != 0 {
            return Err(Errno::INVAL);
        }
        let (path, new) = (self.read_path(call, old)?, self.read_path(call, new)?);
        let target = if path.is_empty() && flags & libc::AT_EMPTY_PATH != 0 {
            ResolvedTarget::Fd(self.copy_fd(call, old_base)?)
        } else {
            let target = self.resolve(call, old_base, &path)?;
            if flags & libc::AT_SYMLINK_FOLLOW != 0 { self.follow(call, target)? } else { target }
        };
        let source = match target {
            ResolvedTarget::Fd(fd) if link_count(&rustix::fs::fstat(&fd)?) == 0 => {
                // A file without a name (O_TMPFILE) was opened by the witness itself.
                let entry = self.new_entry(call, new_base, &new)?;
                self.check_no_git_config("create", &entry)?;
                self.before_change(&entry)?;
                let file = format!("/proc/self/fd/{}", fd.as_raw_fd());
                let (cwd, follow) = (rustix::fs::CWD, AtFlags::SYMLINK_FOLLOW);
                rustix::fs::linkat(cwd, file, &entry.dir.fd, entry.name_as_written(), follow)?;
                self.recorder.after_creation(&entry);
                return Ok(Reply::Value(0));
            }
            ResolvedTarget::Fd(fd) => self.entry_of_fd(&fd)?,
            ResolvedTarget::Entry(entry) => entry,
        };
        let entry = self.new_entry(call, new_base, &new)?;
        match source.file_type()? {
            FileType::Directory => return Err(Errno::PERM),
            FileType::Symlink if source.has_slash => return Err(Errno::PERM),
            _ if source.has_slash => return Err(Errno::NOTDIR),
            _ => {}
        }
        if !self.may_change("link", &source) {
            return Err(Errno::ACCESS);
        }
        if self.is_secret(&source) {
            return Err(self.refuse_read(source.path()));
        }
        self.check_not_guarded("link", &source)?;
        self.check_no_git_config("create", &entry)?;
        if source.dir.area != entry.dir.area {
            // A change under the new name would not be recorded.
            return Err(Errno::XDEV);
        }
        // A change under the new name is a change under the old one.
        self.before_change(&source)?;
        self.before_change(&entry)?;
        let (from, to) = (&source.dir.fd, &entry.dir.fd);
        let stat = source.stat()?;
        rustix::fs::linkat(from, &source.name, to, entry.name_as_written(), AtFlags::empty())?;
        self.outside_names.add_name(&stat);
        self.recorder.after_creation(&entry);
        Ok(Reply::Value(0))
    }

    pub(super) fn remove(
        &mut self,
        call: &Syscall,
        base: i32,
        path: usize,
        directory: bool,
    ) -> Result<Reply, Errno> {
        let path = self.read_path(call, path)?;
        let entry = self.entry(call, base, &path)?;
        match (entry.dots, directory) {
            (0, _) => {}
            (_, true) if entry.is_root() => return Err(Errno::BUSY),
            (1, true) => return Err(Errno::INVAL),
            (_, true) => return Err(Errno::NOTEMPTY),
            (_, false) => return Err(Errno::ISDIR),
        }
        let stat = entry.stat()?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        match (directory, kind) {
            (true, FileType::Directory) => {}
            (true, _) => return Err(Errno::NOTDIR),
            (false, FileType::Directory) => return Err(Errno::ISDIR),
            (false, _) if entry.has_slash => return Err(Errno::NOTDIR),
            (false, _) => {}
        }
        if !self.may_change("delete", &entry) {
            return Err(Errno::ACCESS);
        }
        if self.policy.is_fixed(entry.path()) {
            return Err(Errno::BUSY);
        }
        self.before_removal(&entry)?;
        let file = number_to_remove(&entry);
        let flags = if directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        let act = || rustix::fs::unlinkat(&entry.dir.fd, entry.name_as_written(), flags);
        let removed = if directory && entry.dir.area == WriteArea::Workspace {
            self.recorder.change_directory(DirectoryEvent::Removed(entry.path()), act)
        } else {
            act()
        };
        if removed.is_ok() {
            self.recorder.after_removal(&entry, &stat, file);
        }
        if removed.is_ok() && matches!(kind, FileType::Directory | FileType::Symlink) {
            self.paths.clear();
        }
        Ok(removed.into())
    }
}
