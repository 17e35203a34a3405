//! Refuses changes of git's configuration before they happen, where that is possible, because programs outside the sandbox read
//! it all the time. Everything else that is guarded is judged after it was written.

use std::ffi::OsStr;
use std::io::Read;
use std::os::fd::OwnedFd;

use haft_policy::{Guard, guard_in};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::git_config::new_programs;
use crate::linux::witness::paths::DirectoryEntry;
use crate::linux::witness::supervisor::Supervisor;
use crate::linux::witness::write_policy::WriteArea;

/// Larger configurations are refused.
const MAX_CONFIG_BYTES: u64 = 1 << 20;

impl Supervisor {
    /// Whether an entry is the configuration of a git directory that the command did not create.
    pub(super) fn is_git_config(&self, entry: &DirectoryEntry) -> bool {
        let is_config = entry.name == "config" || entry.name == "config.worktree";
        if !is_config || entry.dir.area != WriteArea::Workspace || entry.dir.is_new {
            return false;
        }
        let has = |name: &str| rustix::fs::statat(&entry.dir.fd, name, AtFlags::SYMLINK_NOFOLLOW).is_ok();
        let is_granted =
            || self.policy.scope.unguarded.iter().any(|granted| entry.path().starts_with(granted));
        let is_in_git = entry.dir.path.file_name().is_some_and(|name| name == ".git");
        (is_in_git || (has("HEAD") && has("objects") && has("refs"))) && !is_granted()
    }

    /// Refuses to write to git's configuration in place: git itself replaces it.
    pub(super) fn check_no_git_config(
        &mut self,
        what: &'static str,
        entry: &DirectoryEntry,
    ) -> Result<(), Errno> {
        if self.is_git_config(entry) {
            return Err(self.refuse_guarded(what, entry.path(), Guard::GitConfig, ""));
        }
        Ok(())
    }

    /// Refuses to give a guarded file another name, under which it could be changed.
    pub(super) fn check_not_guarded(
        &mut self,
        what: &'static str,
        entry: &DirectoryEntry,
    ) -> Result<(), Errno> {
        let is_recorded = entry.dir.area == WriteArea::Workspace;
        match guard_in(&self.policy.scope, entry.path()).filter(|_| is_recorded) {
            Some(guard) => Err(self.refuse_guarded(what, entry.path(), guard, "")),
            None => self.check_no_git_config(what, entry),
        }
    }

    /// Replaces a git configuration if the new one names no new programs. What is put in place is a copy of the checked bytes,
    /// because a process may still have the original open for writing.
    pub(super) fn replace_config(&mut self, from: &DirectoryEntry, to: &DirectoryEntry) -> Result<(), Errno> {
        let (new, mode) = read_file(&from.dir.fd, &from.name)?;
        let old = match read_file(&to.dir.fd, &to.name) {
            Ok((old, _)) => old,
            Err(Errno::NOENT) => Vec::new(),
            Err(error) => return Err(error),
        };
        let programs = new_programs(to.path(), &old, &new);
        if !programs.is_empty() {
            return Err(self.refuse_guarded("write", to.path(), Guard::GitConfig, &programs.join(", ")));
        }
        self.before_change(from)?;
        self.before_change(to)?;
        let temp = format!(".haft-{:016x}", random()?);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&to.dir.fd, &temp, flags, Mode::RUSR | Mode::WUSR)?;
        let replaced = write_all(&fd, &new)
            .and_then(|()| rustix::fs::fchmod(&fd, mode))
            .and_then(|()| rustix::fs::renameat(&to.dir.fd, &temp, &to.dir.fd, &to.name));
        if replaced.is_err() {
            let _ = rustix::fs::unlinkat(&to.dir.fd, &temp, AtFlags::empty());
            return replaced;
        }
        self.recorder.after_creation(to);
        rustix::fs::unlinkat(&from.dir.fd, &from.name, AtFlags::empty())
    }
}

fn read_file(dir: &OwnedFd, name: &OsStr) -> Result<(Vec<u8>, Mode), Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(dir, name, flags, Mode::empty())?;
    let stat = rustix::fs::fstat(&fd)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Errno::ACCESS);
    }
    let mut bytes = Vec::new();
    let read = std::fs::File::from(fd).take(MAX_CONFIG_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    if bytes.len() as u64 > MAX_CONFIG_BYTES {
        return Err(Errno::FBIG);
    }
    Ok((bytes, Mode::from_raw_mode(stat.st_mode & 0o777)))
}

fn write_all(fd: &OwnedFd, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match rustix::io::write(fd, bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn random() -> Result<u64, Errno> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|_| Errno::IO)?;
    Ok(u64::from_ne_bytes(bytes))
}
