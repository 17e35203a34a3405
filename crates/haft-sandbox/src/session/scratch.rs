//! Private directories that are removed when they are no longer used, also if Haft was killed.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

/// Directories nested deeper than this are not made writable before their removal.
const MAX_DEPTH: u32 = 200;

/// Less space in memory is left to others: containers have little.
#[cfg(target_os = "linux")]
const MIN_MEMORY_BYTES: u64 = 1 << 30;

/// How the names of the directories begin.
const NAME_PREFIX: &str = "session-";
/// How the name of the directory that holds them begins.
const USER_PREFIX: &str = "haft-";

/// A private directory. Dropping it removes it.
#[derive(Debug)]
pub(crate) struct ScratchDir {
    path: PathBuf,
    /// Locked as long as a process of the session lives, by which others know that it is in use. The number of its process says
    /// nothing in another container that shares the directory.
    _lock: OwnedFd,
}

impl ScratchDir {
    /// Creates a directory in the user's directory for temporary files.
    pub(crate) fn new() -> io::Result<Self> {
        Self::new_in(&user_directory()?)
    }

    /// Creates a directory in memory, where small files are created and removed much faster than on a disk.
    #[cfg(target_os = "linux")]
    pub(crate) fn in_memory() -> io::Result<Self> {
        const TMPFS_MAGIC: u64 = 0x0102_1994;
        let memory = Path::new("/dev/shm");
        let kind = rustix::fs::statfs(memory)?.f_type;
        let space = rustix::fs::statvfs(memory)?;
        let free = space.f_bavail.saturating_mul(space.f_frsize);
        if u64::try_from(kind) != Ok(TMPFS_MAGIC) || free < MIN_MEMORY_BYTES {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Self::new_in(&user_directory_in(memory)?)
    }

    /// Creates a directory in `parent`, and removes those of processes that were killed.
    pub(crate) fn new_in(parent: &Path) -> io::Result<Self> {
        let parent_lock = open_directory(parent)?;
        // Nothing is removed between the creation of a directory and its lock.
        if rustix::fs::flock(&parent_lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            remove_leftovers(parent);
        }
        rustix::io::retry_on_intr(|| rustix::fs::flock(&parent_lock, FlockOperation::LockShared))?;
        let path = parent.join(format!("{NAME_PREFIX}{:016x}", random()?));
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        let lock = open_directory(&path)?;
        rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self { path, _lock: lock })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ScratchDir {
    fn drop(&mut self) {
        remove_tree(&self.path);
    }
}

/// The directory that holds those of all sessions of this user; others cannot look into it.
pub(crate) fn user_directory() -> io::Result<PathBuf> {
    let temp = std::env::temp_dir();
    user_directory_in(&temp.canonicalize().unwrap_or(temp))
}

/// Whether a path is in a private directory of any session, judged by its name.
pub(crate) fn is_in_scratch(path: &Path) -> bool {
    let names: Vec<_> = path.iter().map(OsStr::as_encoded_bytes).collect();
    names.windows(2).any(|pair| {
        pair[0].starts_with(USER_PREFIX.as_bytes()) && pair[1].starts_with(NAME_PREFIX.as_bytes())
    })
}

fn user_directory_in(temp: &Path) -> io::Result<PathBuf> {
    let uid = rustix::process::geteuid().as_raw();
    let path = temp.join(format!("{USER_PREFIX}{uid}"));
    // It usually exists.
    let _ = fs::DirBuilder::new().mode(0o700).create(&path);
    let is_private = |meta: fs::Metadata| meta.is_dir() && meta.uid() == uid && meta.mode() & 0o777 == 0o700;
    if path.symlink_metadata().is_ok_and(is_private) {
        return Ok(path);
    }
    // Another user has taken the name.
    let path = temp.join(format!("{USER_PREFIX}{uid}-{:016x}", random()?));
    fs::DirBuilder::new().mode(0o700).create(&path)?;
    Ok(path)
}

/// Creates and opens a directory of Haft's own in a directory that commands may write: what they have put in its place is
/// removed, not followed.
pub(crate) fn create_own_directory(path: &Path, mode: u32) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let create = || match rustix::fs::mkdir(path, haft_files::mode(mode)) {
        Ok(()) | Err(Errno::EXIST) => rustix::fs::open(path, flags, Mode::empty()),
        Err(error) => Err(error),
    };
    let directory = create().or_else(|error| match error {
        Errno::NOTDIR | Errno::LOOP => rustix::fs::unlink(path).and_then(|()| create()),
        error => Err(error),
    })?;
    rustix::fs::fchmod(&directory, haft_files::mode(mode))?;
    Ok(directory)
}

fn random() -> io::Result<u64> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(u64::from_ne_bytes(bytes))
}

fn open_directory(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
}

/// Removes the directories of processes that have ended.
fn remove_leftovers(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let is_session = entry.file_name().to_str().is_some_and(|name| name.starts_with(NAME_PREFIX));
        // Only directories of this user can be opened and locked here: no one else may write the parent.
        let lock = if is_session { open_directory(&entry.path()).ok() } else { None };
        let is_left =
            |lock: &OwnedFd| rustix::fs::flock(lock, FlockOperation::NonBlockingLockExclusive).is_ok();
        if lock.as_ref().is_some_and(is_left) {
            remove_tree(&entry.path());
        }
    }
}

/// Removes a tree, also if its directories deny their owner access.
pub(super) fn remove_tree(path: &Path) {
    // Most are empty.
    if fs::remove_dir(path).is_ok() {
        return;
    }
    if fs::remove_dir_all(path).is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied) {
        make_writable(path, 0);
        // What is left then belongs to another user.
        let _ = fs::remove_dir_all(path);
    }
}

fn make_writable(path: &Path, depth: u32) {
    if depth > MAX_DEPTH || !path.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
        return;
    }
    let _ = fs::set_permissions(path, fs::Permissions::from_mode(0o700));
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        make_writable(&entry.path(), depth + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_directories_that_no_process_has_locked_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let used = ScratchDir::new_in(parent.path()).unwrap();
        let left = parent.path().join(format!("{NAME_PREFIX}0123456789abcdef"));
        fs::create_dir_all(left.join("closed/below")).unwrap();
        fs::set_permissions(left.join("closed"), fs::Permissions::from_mode(0o000)).unwrap();
        fs::create_dir(parent.path().join("other")).unwrap();
        let next = ScratchDir::new_in(parent.path()).unwrap();
        assert!(used.path().exists() && next.path().exists() && !left.exists());
        assert!(parent.path().join("other").exists());
        let path = used.path().to_owned();
        drop(used);
        assert!(!path.exists());
    }
}
