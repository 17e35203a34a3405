//! Moving finished bytes into place, so that every moment shows the old file or the new one.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use haft_tool::{ErrorKind, FileNode, ToolError};
use rustix::fs::{AtFlags, FileType, FlockOperation, Gid, Mode, OFlags, RenameFlags, Stat, Uid, XattrFlags};
use rustix::io::Errno;

use super::node::xattrs;

/// How long a call waits for another one that is writing into the same directory.
const PATIENCE: Duration = Duration::from_secs(10);

/// Holds the directory against other Haft calls until dropped. Other programs do not know of it; see [`Spot::install`].
pub(super) fn lock(parent: &OwnedFd, path: &Path) -> Result<Option<OwnedFd>, ToolError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(fd) = rustix::fs::openat(parent, ".", flags, Mode::empty()) else { return Ok(None) };
    let start = Instant::now();
    let mut wait = Duration::from_micros(50);
    loop {
        match rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Some(fd)),
            Err(Errno::WOULDBLOCK | Errno::INTR) if start.elapsed() < PATIENCE => {
                std::thread::sleep(wait);
                // Seldom asking would lose every time against a call that asks at the right moment.
                wait = (wait * 2).min(Duration::from_millis(1));
            }
            Err(Errno::WOULDBLOCK | Errno::INTR) => {
                return Err(ToolError::new(
                    ErrorKind::Conflict,
                    format!(
                        "{}: another call has been writing in its directory for {PATIENCE:?}; try again",
                        path.display()
                    ),
                ));
            }
            // A file system without locks still has the exchange in `Spot::install`.
            Err(_) => return Ok(None),
        }
    }
}

/// A name no one else uses, easy to recognise when a crash leaves it behind.
pub(super) fn temp_name() -> Result<OsString, ToolError> {
    let mut random = [0_u8; 8];
    getrandom::fill(&mut random).map_err(|error| ToolError::internal(format!("no random bytes: {error}")))?;
    Ok(format!(".haft-{:016x}.tmp", u64::from_ne_bytes(random)).into())
}

/// Writes `bytes` under the temporary name and gives it the mode, owner and attributes of `like`.
pub(super) fn write_temp(
    parent: &OwnedFd,
    temp: &OsStr,
    bytes: &[u8],
    like: Option<&FileNode>,
) -> Result<Stat, std::io::Error> {
    // Nobody else may look into the new bytes before they have the old file's permissions.
    let mut file = new_temp(parent, temp, if like.is_some() { 0o600 } else { 0o666 })?;
    let mut fill = || {
        file.write_all(bytes)?;
        if let Some(like) = like {
            dress(&file, like)?;
        }
        file.sync_all()?;
        Ok(rustix::fs::fstat(&file)?)
    };
    fill().inspect_err(|_| {
        let _ = rustix::fs::unlinkat(parent, temp, AtFlags::empty());
    })
}

/// Makes a file under the temporary name.
pub(super) fn new_temp(parent: &OwnedFd, temp: &OsStr, mode: u32) -> Result<File, Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(parent, temp, flags, Mode::from_raw_mode(mode)).map(File::from)
}

/// Gives a file the mode, owner and attributes of `like`, as far as this process may.
pub(super) fn dress(file: impl AsFd, like: &FileNode) -> Result<(), std::io::Error> {
    let own = || (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let (uid, gid) = like.owner.unwrap_or_else(own);
    let stat = rustix::fs::fstat(&file)?;
    let mut mode = like.mode;
    if (stat.st_uid, stat.st_gid) != (uid, gid) {
        let (uid, gid) = (Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
        if rustix::fs::fchown(&file, uid, gid).is_err() {
            // Another's file can only stay another's if we are root; the bytes matter more. Its group we may know,
            // but what ran as its owner must not run as us.
            let _ = rustix::fs::fchown(&file, None, gid);
            mode &= 0o1777;
        }
    }
    // A directory can hand its entries attributes (default access lists) that the old file did not have.
    for (name, _) in xattrs(&file) {
        if !like.xattrs.iter().any(|(wanted, _)| *wanted == name) {
            let _ = rustix::fs::fremovexattr(&file, name.as_str());
        }
    }
    for (name, value) in &like.xattrs {
        let _ = rustix::fs::fsetxattr(&file, name.as_str(), value, XattrFlags::empty());
    }
    // After the owner, because changing that clears setuid.
    rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?;
    Ok(())
}

/// How an installation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Installed {
    Yes,
    /// Somebody else's change came first; nothing was changed.
    Overtaken,
    /// The same, and somebody else's bytes are kept under the temporary name because they have no other.
    Kept,
}

/// A name in a directory and the temporary name beside it.
pub(super) struct Spot<'a> {
    pub(super) parent: &'a OwnedFd,
    pub(super) name: &'a OsStr,
    pub(super) temp: &'a OsStr,
}

impl Spot<'_> {
    /// Moves `made`, which stands under the temporary name, to the name where `expect` was seen (`None`: nothing).
    ///
    /// The two names are exchanged in one step and only then the old file is looked at: if it is not the one that was
    /// seen, they are exchanged back. So a writer that knows nothing of Haft's lock loses no byte either. Unless the
    /// answer is `Kept`, nothing is left under the temporary name.
    pub(super) fn install(&self, made: &Stat, expect: Option<&Stat>) -> Result<Installed, Errno> {
        let done = match expect {
            None => self.move_new(self.temp, self.name, made),
            // A look before the exchange keeps the moment rare in which others see what is then taken back.
            Some(expect) if !is(self.parent, self.name, expect) => Ok(Installed::Overtaken),
            Some(expect) => self.exchange(made, expect),
        };
        if matches!(done, Ok(Installed::Overtaken) | Err(_)) && is(self.parent, self.temp, made) {
            let _ = self.delete(self.temp, made);
        }
        done
    }

    fn exchange(&self, made: &Stat, expect: &Stat) -> Result<Installed, Errno> {
        let exchange = || {
            rustix::fs::renameat_with(self.parent, self.temp, self.parent, self.name, RenameFlags::EXCHANGE)
        };
        match exchange() {
            Ok(()) => {}
            Err(Errno::NOENT) => return Ok(Installed::Overtaken),
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => return self.replace(made, expect),
            Err(error) => return Err(error),
        }
        let failure = if is(self.parent, self.temp, expect) {
            match self.delete(self.temp, expect) {
                Ok(()) => return Ok(Installed::Yes),
                Err(error) => Some(error),
            }
        } else {
            None
        };
        let back = exchange();
        if back.is_ok() && is(self.parent, self.temp, made) {
            return failure.map_or(Ok(Installed::Overtaken), Err);
        }
        if back.is_ok() {
            // What came back is newer than what it was exchanged for.
            let _ = exchange();
        }
        Ok(Installed::Kept)
    }

    /// The same for file systems that cannot exchange: a look, then the move.
    fn replace(&self, made: &Stat, expect: &Stat) -> Result<Installed, Errno> {
        if !is(self.parent, self.name, expect) {
            return Ok(Installed::Overtaken);
        }
        if is_directory(made) || is_directory(expect) {
            self.delete(self.name, expect)?;
            return self.move_new(self.temp, self.name, made);
        }
        rustix::fs::renameat(self.parent, self.temp, self.parent, self.name).map(|()| Installed::Yes)
    }

    /// Removes the name, if it still is what was seen; nothing is lost if it is not.
    pub(super) fn remove(&self, expect: &Stat) -> Result<Installed, Errno> {
        if !is(self.parent, self.name, expect) {
            return Ok(Installed::Overtaken);
        }
        match rustix::fs::renameat(self.parent, self.name, self.parent, self.temp) {
            Ok(()) => {}
            Err(Errno::NOENT) => return Ok(Installed::Overtaken),
            Err(error) => return Err(error),
        }
        let done = if is(self.parent, self.temp, expect) {
            self.delete(self.temp, expect).map(|()| Installed::Yes)
        } else {
            Ok(Installed::Overtaken)
        };
        if done == Ok(Installed::Yes) {
            return done;
        }
        let taken = rustix::fs::statat(self.parent, self.temp, AtFlags::SYMLINK_NOFOLLOW)?;
        match self.move_new(self.temp, self.name, &taken) {
            Ok(Installed::Yes) => done,
            _ => Ok(Installed::Kept),
        }
    }

    /// Moves `what` to a name that nobody else has taken.
    fn move_new(&self, from: &OsStr, to: &OsStr, what: &Stat) -> Result<Installed, Errno> {
        let moved =
            match rustix::fs::renameat_with(self.parent, from, self.parent, to, RenameFlags::NOREPLACE) {
                // A directory never takes the place of anything but an empty one.
                Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) if is_directory(what) => {
                    rustix::fs::renameat(self.parent, from, self.parent, to)
                }
                Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                    rustix::fs::linkat(self.parent, from, self.parent, to, AtFlags::empty())
                        .and_then(|()| rustix::fs::unlinkat(self.parent, from, AtFlags::empty()))
                }
                other => other,
            };
        match moved {
            Ok(()) => Ok(Installed::Yes),
            Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => Ok(Installed::Overtaken),
            Err(error) => Err(error),
        }
    }

    fn delete(&self, name: &OsStr, what: &Stat) -> Result<(), Errno> {
        let flags = if is_directory(what) { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        rustix::fs::unlinkat(self.parent, name, flags)
    }
}

fn is_directory(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
}

/// Whether the same file with the same contents stands under `name`.
fn is(parent: &OwnedFd, name: &OsStr, seen: &Stat) -> bool {
    rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|now| same(&now, seen))
}

/// Whether the same file with the same contents was seen twice; a directory is the same whatever is in it.
pub(super) fn same(now: &Stat, seen: &Stat) -> bool {
    let same_bytes = now.st_size == seen.st_size
        && now.st_mtime == seen.st_mtime
        && now.st_mtime_nsec == seen.st_mtime_nsec;
    // A number can be given again to something of another kind.
    let same_file = now.st_dev == seen.st_dev && now.st_ino == seen.st_ino;
    same_file && (same_bytes || is_directory(now) && is_directory(seen))
}

/// Removes temporary files that a call left behind when its process died. Only names that [`temp_name`] gives.
pub fn remove_leftovers(temps: &[PathBuf]) {
    for temp in temps {
        let ours =
            |name: &str| name.strip_prefix(".haft-").is_some_and(|rest| rest.strip_suffix(".tmp").is_some());
        if temp.file_name().and_then(OsStr::to_str).is_some_and(ours) && std::fs::remove_file(temp).is_err() {
            let _ = std::fs::remove_dir(temp);
        }
    }
}
