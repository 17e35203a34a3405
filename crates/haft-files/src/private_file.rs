//! Small files of Haft's own that nobody but their user may read, shared by every Haft that runs for that user.

use std::fs::{DirBuilder, File};
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use haft_tool::{Cancel, ErrorKind, ToolError};
use rustix::fs::{AtFlags, CWD, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::{hash, read_bounded};

/// How long a writer waits for the others.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often a lock that another holds is asked for again, at the most and at the least.
const PAUSES: (Duration, Duration) = (Duration::from_micros(200), Duration::from_millis(50));
const PRIVATE: u32 = 0o600;

/// One file in a folder of Haft's own.
#[derive(Debug, Clone)]
pub struct Vault {
    folder: PathBuf,
    name: String,
    most: u64,
}

/// A lock, held until it is dropped or its process ends.
#[derive(Debug)]
pub struct Turn(#[expect(dead_code, reason = "held for its lock")] Option<OwnedFd>);

impl Vault {
    /// The file `name` in `folder`, which holds at most `most` bytes. Nothing is touched yet.
    pub fn new(folder: impl Into<PathBuf>, name: impl Into<String>, most: u64) -> Self {
        Self { folder: folder.into(), name: name.into(), most }
    }

    /// Where it lies.
    pub fn path(&self) -> PathBuf {
        self.folder.join(&self.name)
    }

    /// What it holds, if it is there.
    pub fn read(&self) -> Result<Option<Vec<u8>>, ToolError> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(CWD, self.path(), flags, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => return Err(self.odd("it is a link")),
            Err(error) => return Err(self.failed(error)),
        };
        let stat = rustix::fs::fstat(&file).map_err(|error| self.failed(error))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(self.odd("it is no regular file"));
        }
        if stat.st_uid != rustix::process::geteuid().as_raw() {
            return Err(self.odd("it belongs to somebody else"));
        }
        if stat.st_mode & 0o077 != 0 {
            rustix::fs::fchmod(&file, Mode::from_raw_mode(PRIVATE)).map_err(|error| self.failed(error))?;
        }
        let bytes = read_bounded(File::from(file), self.most)?;
        bytes.map(Some).ok_or_else(|| self.odd(&format!("it has more than {} bytes", self.most)))
    }

    /// Puts what `change` makes of the contents in their place, in one step and with nobody else between. Nothing is
    /// written if `change` gives nothing.
    pub fn update<T>(
        &self,
        change: impl FnOnce(Option<Vec<u8>>) -> Result<(T, Option<Vec<u8>>), ToolError>,
    ) -> Result<T, ToolError> {
        let _turn = self.lock(&format!("{}.lock", self.name), PATIENCE, &Cancel::new())?;
        let (done, bytes) = change(self.read()?)?;
        if let Some(bytes) = bytes {
            if bytes.len() as u64 > self.most {
                return Err(self.odd(&format!("it would have more than {} bytes", self.most)));
            }
            self.replace(&bytes).map_err(|error| ToolError::io(self.path().display(), &error))?;
        }
        Ok(done)
    }

    /// Waits until nobody else, here or in another process, is at `topic`.
    pub fn turn(&self, topic: &str, limit: Duration, cancel: &Cancel) -> Result<Turn, ToolError> {
        let topic = hash(topic.as_bytes());
        self.lock(&format!("{}.{}.lock", self.name, topic.get(..16).unwrap_or(&topic)), limit, cancel)
    }

    fn lock(&self, name: &str, limit: Duration, cancel: &Cancel) -> Result<Turn, ToolError> {
        let failed = |path: &Path, error: io::Error| ToolError::io(path.display(), &error);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)
            .map_err(|error| failed(&self.folder, error))?;
        let path = self.folder.join(name);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(CWD, &path, flags, Mode::from_raw_mode(PRIVATE));
        let file = file.map_err(|error| failed(&path, error.into()))?;
        let (start, mut pause) = (Instant::now(), PAUSES.0);
        loop {
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Turn(Some(file))),
                Err(Errno::WOULDBLOCK | Errno::INTR) if start.elapsed() < limit => {
                    if cancel.wait(pause) {
                        return Err(ToolError::new(
                            ErrorKind::Interrupted,
                            format!("{}: the wait for another Haft was cancelled", path.display()),
                        ));
                    }
                    pause = (pause * 2).min(PAUSES.1);
                }
                Err(Errno::WOULDBLOCK | Errno::INTR) => {
                    return Err(ToolError::new(
                        ErrorKind::Conflict,
                        format!(
                            "{}: another Haft has held it for {} s; wait for it, or end it",
                            path.display(),
                            limit.as_secs()
                        ),
                    ));
                }
                // A file system without locks: the file is still replaced in one step.
                Err(_) => return Ok(Turn(None)),
            }
        }
    }

    /// Only under the lock: the temporary name is always the same, so that none is left behind for ever.
    fn replace(&self, bytes: &[u8]) -> io::Result<()> {
        let directory = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::openat(CWD, &self.folder, directory, Mode::empty())?;
        let temp = format!("{}.new", self.name);
        match rustix::fs::unlinkat(&folder, &temp, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(rustix::fs::openat(&folder, &temp, flags, Mode::from_raw_mode(PRIVATE))?);
        file.write_all(bytes)?;
        file.sync_all()?;
        rustix::fs::renameat(&folder, &temp, &folder, &self.name)?;
        rustix::fs::fsync(&folder)?;
        Ok(())
    }

    fn failed(&self, error: Errno) -> ToolError {
        ToolError::io(self.path().display(), &error.into())
    }

    fn odd(&self, why: &str) -> ToolError {
        let path = self.path();
        ToolError::failed(format!("{}: {why}; look at it and move it away", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
    use std::sync::atomic::{AtomicBool, Ordering};

    fn vault() -> (tempfile::TempDir, Vault) {
        let home = tempfile::tempdir().unwrap();
        let vault = Vault::new(home.path().join("state/haft"), "tokens.json", 64);
        (home, vault)
    }

    fn put(vault: &Vault, bytes: &[u8]) -> Result<(), ToolError> {
        vault.update(|_| Ok(((), Some(bytes.to_vec()))))
    }

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn only_its_user_may_read_what_is_kept_or_see_its_folder() {
        let (_home, vault) = vault();
        assert_eq!(vault.read().unwrap(), None);
        assert!(!vault.folder.exists(), "reading makes nothing");
        put(&vault, b"one").unwrap();
        put(&vault, b"two").unwrap();
        assert_eq!(vault.read().unwrap().unwrap(), b"two");
        assert_eq!((mode(&vault.path()), mode(&vault.folder)), (0o600, 0o700));
        for entry in std::fs::read_dir(&vault.folder).unwrap() {
            let path = entry.unwrap().path();
            assert_eq!(mode(&path), 0o600, "{}", path.display());
        }
        std::fs::set_permissions(vault.path(), std::fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(vault.read().unwrap().unwrap(), b"two");
        assert_eq!(mode(&vault.path()), 0o600);
    }

    #[test]
    fn a_link_a_pipe_and_a_flood_are_no_vault() {
        let (home, vault) = vault();
        put(&vault, b"one").unwrap();
        assert!(put(&vault, &[b'x'; 65]).is_err());
        assert_eq!(vault.read().unwrap().unwrap(), b"one");
        std::fs::remove_file(vault.path()).unwrap();
        std::fs::write(home.path().join("elsewhere"), b"x").unwrap();
        symlink(home.path().join("elsewhere"), vault.path()).unwrap();
        assert!(vault.read().unwrap_err().message.contains("it is a link"));
        std::fs::remove_file(vault.path()).unwrap();
        rustix::fs::mkfifoat(CWD, vault.path(), 0o600.into()).unwrap();
        assert!(vault.read().unwrap_err().message.contains("no regular file"));
        std::fs::remove_file(vault.path()).unwrap();
        std::fs::write(vault.path(), [b'x'; 65]).unwrap();
        assert!(vault.read().unwrap_err().message.contains("more than 64 bytes"));
    }

    #[test]
    fn what_a_killed_writer_left_is_not_in_the_way() {
        let (_home, vault) = vault();
        put(&vault, b"one").unwrap();
        symlink("/etc/passwd", vault.folder.join("tokens.json.new")).unwrap();
        put(&vault, b"two").unwrap();
        assert_eq!(vault.read().unwrap().unwrap(), b"two");
        assert!(!vault.folder.join("tokens.json.new").exists());
    }

    #[test]
    fn writers_side_by_side_lose_nothing_of_each_other() {
        let (_home, vault) = vault();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..8 {
                        let more = |held: Option<Vec<u8>>| [held.unwrap_or_default(), vec![b'.']].concat();
                        vault.update(|held| Ok(((), Some(more(held))))).unwrap();
                    }
                });
            }
        });
        assert_eq!(vault.read().unwrap().unwrap().len(), 32);
    }

    #[test]
    fn one_at_a_time_is_at_a_topic_and_a_wait_can_be_given_up() {
        let (_home, vault) = vault();
        let held = vault.turn("a", Duration::ZERO, &Cancel::new()).unwrap();
        assert!(vault.turn("b", Duration::ZERO, &Cancel::new()).is_ok());
        assert_eq!(vault.turn("a", Duration::ZERO, &Cancel::new()).unwrap_err().kind, ErrorKind::Conflict);
        let cancel = Cancel::new();
        cancel.cancel();
        let given_up = vault.turn("a", Duration::from_mins(1), &cancel).unwrap_err();
        assert_eq!(given_up.kind, ErrorKind::Interrupted);
        let free = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let next = scope.spawn(|| {
                vault.turn("a", Duration::from_mins(1), &Cancel::new()).unwrap();
                free.load(Ordering::SeqCst)
            });
            free.store(true, Ordering::SeqCst);
            drop(held);
            assert!(next.join().unwrap());
        });
    }
}
