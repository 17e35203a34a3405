//! Checks guarded files: by their name, by their directory, and by their content.

use std::ffi::{CStr, OsStr};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use haft_policy::Guard;
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::git_config::{new_programs, unguarded_target};
use crate::linux::witness::new_tree::LIST_FLAGS;
use crate::linux::witness::paths::DirectoryEntry;
use crate::linux::witness::recorder::has_no_writer;
use crate::linux::witness::supervisor::Supervisor;
use crate::linux::witness::write_policy::WriteArea;

/// Larger configurations are refused.
const MAX_CONFIG_BYTES: u64 = 1 << 20;
/// A directory with more entries cannot be moved to a guarded place.
const MAX_ENTRIES: usize = 20_000;
/// Directory names whose contents are guarded.
const GUARDED_PARENTS: &[&str] = &[".git", ".claude", ".config"];

impl Supervisor {
    /// Why an entry is guarded.
    pub(super) fn guard_of(&self, entry: &DirectoryEntry) -> Option<Guard> {
        if entry.dir.area != WriteArea::Workspace {
            return None;
        }
        self.policy.guard(entry.path(), entry.dir.is_created).or_else(|| self.bare_repository_guard(entry))
    }

    /// The guard of hooks and configurations in git directories with other names than `.git`.
    fn bare_repository_guard(&self, entry: &DirectoryEntry) -> Option<Guard> {
        let is_granted =
            || self.policy.scope.unguarded.iter().any(|granted| entry.path().starts_with(granted));
        let is_git_directory = |prefix: &str| {
            ["HEAD", "objects", "refs"].iter().all(|name| {
                let name = format!("{prefix}{name}");
                rustix::fs::statat(&entry.dir.fd, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
            })
        };
        let in_hooks = entry.dir.path.file_name().is_some_and(|name| name == "hooks");
        if in_hooks && !entry.name.to_string_lossy().ends_with(".sample") && is_git_directory("../") {
            return Some(Guard::Hook).filter(|_| !is_granted());
        }
        if (entry.name == "config" || entry.name == "config.worktree") && is_git_directory("") {
            return Some(Guard::GitConfig).filter(|_| !is_granted());
        }
        None
    }

    /// Refuses an entry that is guarded in any way.
    pub(super) fn check_not_guarded(&mut self, what: &str, entry: &DirectoryEntry) -> Result<(), Errno> {
        match self.guard_of(entry) {
            Some(guard) => Err(self.refuse_guarded(what, entry.path(), guard, "")),
            None => Ok(()),
        }
    }

    /// Whether git itself creates link files in this place, for a worktree or a submodule.
    pub(super) fn is_in_git_linkage(path: &Path) -> bool {
        let mut parts = path.iter();
        parts.any(|part| part == ".git") && parts.any(|part| part == "worktrees" || part == "modules")
    }

    /// Renames a new git configuration into place if it names no new programs. A copy of the checked bytes is put in
    /// place, because a process may still have the original open for writing.
    pub(super) fn replace_config(&mut self, from: &DirectoryEntry, to: &DirectoryEntry) -> Result<(), Errno> {
        let (new, mode) = read_file(&from.dir.fd, from.name.as_os_str())?;
        let old = match read_file(&to.dir.fd, to.name.as_os_str()) {
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

    /// Refuses to move a directory if that would bring unsafe files to a guarded place.
    pub(super) fn check_moved_tree(
        &mut self,
        from: &DirectoryEntry,
        to: &DirectoryEntry,
    ) -> Result<(), Errno> {
        let (old, new) = (from.path(), to.path());
        let is_created = self.recorder.is_created(new) || (!to.exists() && self.recorder.never_existed(new));
        let was_created = self.recorder.is_created(old);
        let is_guarded_name =
            |part: &OsStr| GUARDED_PARENTS.iter().any(|name| part.eq_ignore_ascii_case(name));
        if is_created && !new.iter().any(is_guarded_name) {
            return Ok(());
        }
        let top = rustix::fs::openat(&from.dir.fd, &from.name, LIST_FLAGS, Mode::empty())?;
        let mut todo = vec![(top, PathBuf::new())];
        let mut entries = 0;
        while let Some((dir, below)) = todo.pop() {
            for entry in rustix::fs::Dir::read_from(&dir)?.flatten() {
                let name = entry.file_name();
                if matches!(name.to_bytes(), b"." | b"..") {
                    continue;
                }
                entries += 1;
                if entries > MAX_ENTRIES {
                    let detail = "too many files to check";
                    return Err(self.refuse_guarded("move", new, Guard::Hook, detail));
                }
                let below = below.join(OsStr::from_bytes(name.to_bytes()));
                let path = new.join(&below);
                let kind = rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode;
                let kind = FileType::from_raw_mode(kind);
                if kind == FileType::Symlink && is_git_control_path(&path) {
                    return Err(self.refuse_guarded("move", &path, Guard::GitLink, "a link"));
                }
                let old_guard = self.policy.guard(&old.join(&below), was_created);
                let new_guard = self.policy.guard(&path, is_created);
                if kind != FileType::Directory {
                    if let Some(guard) = new_guard.filter(|guard| old_guard != Some(*guard)) {
                        self.check_moved_file(&dir, name, guard, &path)?;
                    }
                    continue;
                }
                // Objects and references in a .git are data, whatever their names.
                let is_data = path.parent().is_some_and(|parent| parent.ends_with(".git"))
                    && matches!(name.to_bytes(), b"objects" | b"refs" | b"logs");
                if !is_data {
                    todo.push((rustix::fs::openat(&dir, name, LIST_FLAGS, Mode::empty())?, below));
                }
            }
        }
        Ok(())
    }

    fn check_moved_file(
        &mut self,
        dir: &OwnedFd,
        name: &CStr,
        guard: Guard,
        path: &Path,
    ) -> Result<(), Errno> {
        let detail = match guard {
            Guard::GitConfig => {
                let programs = new_programs(path, b"", &read_unshared(dir, name)?);
                (!programs.is_empty()).then(|| programs.join(", "))
            }
            Guard::GitLink => unguarded_target(&path.to_string_lossy(), &read_unshared(dir, name)?),
            Guard::Settings | Guard::Hook => Some(String::new()),
        };
        detail.map_or(Ok(()), |detail| Err(self.refuse_guarded("move", path, guard, &detail)))
    }
}

/// Whether a link at this path could lead git to another configuration, or to hooks.
pub(super) fn is_git_control_path(path: &Path) -> bool {
    const NAMES: &[&str] =
        &["hooks", "modules", "worktrees", "config", "config.worktree", "commondir", "gitdir"];
    let mut below_git = path.iter().skip_while(|part| *part != ".git").skip(1);
    below_git.next().is_some_and(|first| NAMES.iter().any(|name| first == *name))
}

/// Reads a file that no process has open for writing.
fn read_unshared(dir: &OwnedFd, name: &CStr) -> Result<Vec<u8>, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(dir, name, flags, Mode::empty())?;
    if !has_no_writer(&fd) {
        return Err(Errno::TXTBSY);
    }
    drop(fd);
    read_file(dir, name).map(|(bytes, _)| bytes)
}

fn read_file(dir: &OwnedFd, name: impl rustix::path::Arg) -> Result<(Vec<u8>, Mode), Errno> {
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
