//! Moving finished bytes into place, so that every moment shows the old file or the new one.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use haft_tool::{ErrorKind, FileNode, ToolError};
use rustix::fs::{AtFlags, FlockOperation, Gid, Mode, OFlags, RenameFlags, Stat, Uid, XattrFlags};
use rustix::io::Errno;

/// How long a call waits for another one that is writing into the same directory.
const PATIENCE: Duration = Duration::from_secs(10);

/// Holds the directory against other Haft calls until dropped. Other programs do not know of it; see [`install`].
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
                wait = (wait * 2).min(Duration::from_millis(20));
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
            // A file system without locks still has the exchange in `install`.
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
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // Nobody else may look into the new bytes before they have the old file's permissions.
    let mode = if like.is_some() { Mode::from_raw_mode(0o600) } else { Mode::from_raw_mode(0o666) };
    let mut file = File::from(rustix::fs::openat(parent, temp, flags, mode)?);
    file.write_all(bytes)?;
    if let Some(like) = like {
        dress(&file, like)?;
    }
    file.sync_all()?;
    Ok(rustix::fs::fstat(&file)?)
}

/// Gives a file the mode, owner and attributes of `like`, as far as this process may.
fn dress(file: impl AsFd, like: &FileNode) -> Result<(), std::io::Error> {
    if let Some((uid, gid)) = like.owner {
        // Another's file can only stay another's if we are root; the bytes matter more.
        let _ = rustix::fs::fchown(&file, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
    }
    for (name, value) in &like.xattrs {
        let _ = rustix::fs::fsetxattr(&file, name.as_str(), value, XattrFlags::empty());
    }
    // After the owner, because changing that clears setuid.
    rustix::fs::fchmod(&file, Mode::from_raw_mode(like.mode))?;
    Ok(())
}

/// How an installation ended.
pub(super) enum Installed {
    Yes,
    /// Somebody else's change came first; nothing was changed.
    Overtaken,
}

/// Moves `temp` to `name`, where `expect` was seen (`None`: nothing).
///
/// The two names are exchanged in one step and only then the old file is looked at: if it is not the one that was
/// seen, they are exchanged back. So a writer that knows nothing of Haft's lock loses no byte either.
pub(super) fn install(
    parent: &OwnedFd,
    temp: &OsStr,
    name: &OsStr,
    expect: Option<&Stat>,
) -> Result<Installed, Errno> {
    let Some(expect) = expect else {
        return match rustix::fs::renameat_with(parent, temp, parent, name, RenameFlags::NOREPLACE) {
            Ok(()) => Ok(Installed::Yes),
            Err(Errno::EXIST) => Ok(Installed::Overtaken),
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                match rustix::fs::linkat(parent, temp, parent, name, AtFlags::empty()) {
                    Ok(()) => rustix::fs::unlinkat(parent, temp, AtFlags::empty()).map(|()| Installed::Yes),
                    Err(Errno::EXIST) => Ok(Installed::Overtaken),
                    Err(error) => Err(error),
                }
            }
            Err(error) => Err(error),
        };
    };
    match rustix::fs::renameat_with(parent, temp, parent, name, RenameFlags::EXCHANGE) {
        Ok(()) => {
            if is(parent, temp, expect) {
                rustix::fs::unlinkat(parent, temp, AtFlags::empty())?;
                return Ok(Installed::Yes);
            }
            rustix::fs::renameat_with(parent, temp, parent, name, RenameFlags::EXCHANGE)?;
            Ok(Installed::Overtaken)
        }
        Err(Errno::NOENT) => Ok(Installed::Overtaken),
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            if !is(parent, name, expect) {
                return Ok(Installed::Overtaken);
            }
            rustix::fs::renameat(parent, temp, parent, name).map(|()| Installed::Yes)
        }
        Err(error) => Err(error),
    }
}

/// Moves `name` away, if it still is what was seen; nothing is lost if it is not.
pub(super) fn remove(
    parent: &OwnedFd,
    name: &OsStr,
    temp: &OsStr,
    expect: &Stat,
) -> Result<Installed, Errno> {
    match rustix::fs::renameat(parent, name, parent, temp) {
        Ok(()) => {}
        Err(Errno::NOENT) => return Ok(Installed::Overtaken),
        Err(error) => return Err(error),
    }
    if is(parent, temp, expect) {
        return rustix::fs::unlinkat(parent, temp, AtFlags::empty()).map(|()| Installed::Yes);
    }
    rustix::fs::renameat_with(parent, temp, parent, name, RenameFlags::NOREPLACE)?;
    Ok(Installed::Overtaken)
}

/// Whether the same file with the same contents stands under `name`.
fn is(parent: &OwnedFd, name: &OsStr, seen: &Stat) -> bool {
    rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|now| {
        now.st_dev == seen.st_dev
            && now.st_ino == seen.st_ino
            && now.st_size == seen.st_size
            && now.st_mtime == seen.st_mtime
            && now.st_mtime_nsec == seen.st_mtime_nsec
    })
}

/// Removes temporary files that a call left behind when its process died. Only names that [`temp_name`] gives.
pub fn remove_leftovers(temps: &[PathBuf]) {
    for temp in temps {
        let ours = |name: &str| name.starts_with(".haft-") && name.ends_with(".tmp");
        if temp.file_name().and_then(OsStr::to_str).is_some_and(ours) {
            let _ = std::fs::remove_file(temp);
        }
    }
}
