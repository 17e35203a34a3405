//! Small files of Haft itself that only their user may read, shared by all Haft processes of that user.

use std::fs::{DirBuilder, File};
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use haft_tool::{Cancel, ErrorKind, ToolError};
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

use crate::lock::{LockError, lock_exclusive};
use crate::replace::{PRIVATE_MODE, create_file};
use crate::user_file::read_bounded;
use crate::{hash, os, stat};

/// How long a writer waits for others.
const UPDATE_TIMEOUT: Duration = Duration::from_secs(10);
const PRIVATE_DIR_MODE: u32 = 0o700;
const OTHERS_MODE: u32 = 0o077;
/// How many characters of a topic's hash are in the name of its lock file.
const LOCK_NAME_CHARS: usize = 16;

/// A file in one of Haft's own directories.
#[derive(Debug, Clone)]
pub struct PrivateFile {
    directory: PathBuf,
    name: String,
    max_bytes: u64,
}

/// A lock, held until this is dropped or its process ends.
#[derive(Debug)]
pub struct FileLockGuard(#[expect(dead_code, reason = "open for its lock")] OwnedFd);

impl PrivateFile {
    /// The file `name` in `directory`, of at most `max_bytes`. Nothing is opened yet.
    pub fn new(directory: impl Into<PathBuf>, name: impl Into<String>, max_bytes: u64) -> Self {
        Self { directory: directory.into(), name: name.into(), max_bytes }
    }

    /// Its path.
    pub fn path(&self) -> PathBuf {
        self.directory.join(&self.name)
    }

    /// Its content; `None` if it does not exist.
    pub fn read(&self) -> Result<Option<Vec<u8>>, ToolError> {
        let failed = |error: Errno| self.failed(&error.into());
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(CWD, self.path(), flags, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => return Err(self.refused("it is a link")),
            Err(error) => return Err(failed(error)),
        };
        let metadata = rustix::fs::fstat(&file).map_err(failed)?;
        if !stat::is_file(&metadata) {
            return Err(self.refused("it is not a regular file"));
        }
        if metadata.st_uid != rustix::process::geteuid().as_raw() {
            return Err(self.refused("it belongs to another user"));
        }
        if stat::permissions(&metadata) & OTHERS_MODE != 0 {
            os::set_mode(&file, stat::mode(PRIVATE_MODE)).map_err(failed)?;
        }
        let bytes = read_bounded(File::from(file), self.max_bytes).map_err(|error| self.failed(&error))?;
        bytes.map(Some).ok_or_else(|| self.refused(&format!("it has more than {} bytes", self.max_bytes)))
    }

    /// Replaces the content by what `change` returns for it, atomically and under a lock. Nothing is written if `change`
    /// returns no content.
    pub fn update<T>(
        &self,
        change: impl FnOnce(Option<Vec<u8>>) -> Result<(T, Option<Vec<u8>>), ToolError>,
    ) -> Result<T, ToolError> {
        let _lock = self.lock_file(&self.update_lock_name(), UPDATE_TIMEOUT, &Cancel::new())?;
        let (value, bytes) = change(self.read()?)?;
        if let Some(bytes) = bytes {
            if bytes.len() as u64 > self.max_bytes {
                return Err(self.refused(&format!("it would have more than {} bytes", self.max_bytes)));
            }
            self.replace(&bytes).map_err(|error| self.failed(&error))?;
        }
        Ok(value)
    }

    /// Removes the file and the lock of `topic`, which the caller holds.
    pub fn remove(&self, topic: &str, guard: FileLockGuard) -> Result<(), ToolError> {
        for name in [&self.name, &self.update_lock_name(), &self.lock_name(topic)] {
            match rustix::fs::unlinkat(CWD, self.directory.join(name), AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(self.failed(&error.into())),
            }
        }
        drop(guard);
        Ok(())
    }

    /// Waits until no other thread or process holds the lock of `topic`, and takes it.
    pub fn lock(&self, topic: &str, timeout: Duration, cancel: &Cancel) -> Result<FileLockGuard, ToolError> {
        self.lock_file(&self.lock_name(topic), timeout, cancel)
    }

    fn update_lock_name(&self) -> String {
        format!("{}.lock", self.name)
    }

    fn lock_name(&self, topic: &str) -> String {
        format!("{}.{}.lock", self.name, &hash(topic.as_bytes())[..LOCK_NAME_CHARS])
    }

    fn lock_file(&self, name: &str, timeout: Duration, cancel: &Cancel) -> Result<FileLockGuard, ToolError> {
        let failed = |path: &Path, error: &io::Error| ToolError::io(path.display(), error);
        DirBuilder::new()
            .recursive(true)
            .mode(PRIVATE_DIR_MODE)
            .create(&self.directory)
            .map_err(|error| failed(&self.directory, &error))?;
        let path = self.directory.join(name);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(CWD, &path, flags, stat::mode(PRIVATE_MODE));
        let file = file.map_err(|error| failed(&path, &error.into()))?;
        match lock_exclusive(&file, timeout, cancel) {
            Ok(()) => Ok(FileLockGuard(file)),
            Err(LockError::Cancelled) => Err(ToolError::new(
                ErrorKind::Interrupted,
                format!("{}: the wait for another Haft process was cancelled", path.display()),
            )),
            Err(LockError::Timeout) => Err(ToolError::new(
                ErrorKind::Conflict,
                format!(
                    "{}: another Haft process has locked it for {} s; wait for it, or end it",
                    path.display(),
                    timeout.as_secs()
                ),
            )),
        }
    }

    /// Call it only under the lock: the temporary name is always the same, so that a crash leaves at most one such file.
    fn replace(&self, bytes: &[u8]) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::openat(CWD, &self.directory, flags, Mode::empty())?;
        let temp = format!("{}.new", self.name);
        match rustix::fs::unlinkat(&directory, &temp, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        let mut file = create_file(&directory, temp.as_ref(), PRIVATE_MODE)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        rustix::fs::renameat(&directory, &temp, &directory, &self.name)?;
        rustix::fs::fsync(&directory)?;
        Ok(())
    }

    fn failed(&self, error: &io::Error) -> ToolError {
        ToolError::io(self.path().display(), error)
    }

    fn refused(&self, why: &str) -> ToolError {
        let path = self.path();
        ToolError::failed(format!("{}: {why}; check it and move it away", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
    use std::sync::atomic::{AtomicBool, Ordering};

    fn private_file() -> (tempfile::TempDir, PrivateFile) {
        let home = tempfile::tempdir().unwrap();
        let file = PrivateFile::new(home.path().join("state/haft"), "tokens.json", 64);
        (home, file)
    }

    fn put(file: &PrivateFile, bytes: &[u8]) -> Result<(), ToolError> {
        file.update(|_| Ok(((), Some(bytes.to_vec()))))
    }

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn only_the_user_can_read_file_and_directory() {
        let (_home, file) = private_file();
        assert_eq!(file.read().unwrap(), None);
        assert!(!file.directory.exists(), "reading creates nothing");
        put(&file, b"one").unwrap();
        put(&file, b"two").unwrap();
        assert_eq!(file.read().unwrap().unwrap(), b"two");
        assert_eq!((mode(&file.path()), mode(&file.directory)), (0o600, 0o700));
        for entry in std::fs::read_dir(&file.directory).unwrap() {
            let path = entry.unwrap().path();
            assert_eq!(mode(&path), 0o600, "{}", path.display());
        }
        std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(file.read().unwrap().unwrap(), b"two");
        assert_eq!(mode(&file.path()), 0o600);
    }

    #[test]
    fn link_fifo_and_large_file_are_refused() {
        let (home, file) = private_file();
        put(&file, b"one").unwrap();
        assert!(put(&file, &[b'x'; 65]).is_err());
        assert_eq!(file.read().unwrap().unwrap(), b"one");
        std::fs::remove_file(file.path()).unwrap();
        std::fs::write(home.path().join("elsewhere"), b"x").unwrap();
        symlink(home.path().join("elsewhere"), file.path()).unwrap();
        assert!(file.read().unwrap_err().message.contains("it is a link"));
        std::fs::remove_file(file.path()).unwrap();
        rustix::fs::mkfifoat(CWD, file.path(), stat::mode(0o600)).unwrap();
        assert!(file.read().unwrap_err().message.contains("not a regular file"));
        std::fs::remove_file(file.path()).unwrap();
        std::fs::write(file.path(), [b'x'; 65]).unwrap();
        assert!(file.read().unwrap_err().message.contains("more than 64 bytes"));
    }

    #[test]
    fn leftover_of_a_killed_writer_is_replaced() {
        let (_home, file) = private_file();
        put(&file, b"one").unwrap();
        symlink("/etc/passwd", file.directory.join("tokens.json.new")).unwrap();
        put(&file, b"two").unwrap();
        assert_eq!(file.read().unwrap().unwrap(), b"two");
        assert!(!file.directory.join("tokens.json.new").exists());
    }

    #[test]
    fn concurrent_updates_are_not_lost() {
        let (_home, file) = private_file();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..8 {
                        let more = |old: Option<Vec<u8>>| [old.unwrap_or_default(), vec![b'.']].concat();
                        file.update(|old| Ok(((), Some(more(old))))).unwrap();
                    }
                });
            }
        });
        assert_eq!(file.read().unwrap().unwrap().len(), 32);
    }

    #[test]
    fn topic_lock_is_exclusive_and_cancellable() {
        let (_home, file) = private_file();
        let held = file.lock("a", Duration::ZERO, &Cancel::new()).unwrap();
        assert!(file.lock("b", Duration::ZERO, &Cancel::new()).is_ok());
        assert_eq!(file.lock("a", Duration::ZERO, &Cancel::new()).unwrap_err().kind, ErrorKind::Conflict);
        let cancel = Cancel::new();
        cancel.cancel();
        let cancelled = file.lock("a", Duration::from_mins(1), &cancel).unwrap_err();
        assert_eq!(cancelled.kind, ErrorKind::Interrupted);
        let free = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let next = scope.spawn(|| {
                file.lock("a", Duration::from_mins(1), &Cancel::new()).unwrap();
                free.load(Ordering::SeqCst)
            });
            free.store(true, Ordering::SeqCst);
            drop(held);
            assert!(next.join().unwrap());
        });
    }
}
