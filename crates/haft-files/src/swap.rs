//! One path on its way from what stands there to what shall.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{ErrorKind as IoErrorKind, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

use haft_tool::{ErrorKind, FileNode, Node, OpenContent, ToolError};
use rustix::fs::{AtFlags, Dir, DirEntry, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::node::look;
use super::place::{Installed, Spot, dress, new_temp, same};
use super::root::HOLD;

/// The content of a file is copied in buffers of this size.
const COPY_BYTES: usize = 1 << 20;
/// Aligned blocks of this many zeros become holes.
const HOLE_BYTES: usize = 64 << 10;
const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const FILE: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// One path on its way from what stands there to what shall.
pub(super) struct Swap<'a> {
    pub(super) spot: Spot<'a>,
    pub(super) path: &'a Path,
    pub(super) now: &'a Node,
    pub(super) stat: Option<&'a Stat>,
}

impl Swap<'_> {
    /// Refuses to replace a directory that holds something.
    pub(super) fn refuse_full_directory(&self) -> Result<(), ToolError> {
        // One that cannot be listed is told by the kernel when it is to go.
        let Ok(entries) = Dir::read_from(self.open_directory()?) else { return Ok(()) };
        let foreign = |entry: &DirEntry| !matches!(entry.file_name().to_bytes(), b"." | b"..");
        if entries.flatten().any(|entry| foreign(&entry)) { Err(self.not_empty()) } else { Ok(()) }
    }

    /// Writes the bytes of `file` under the temporary name. It is the caller's to see them to the disk.
    pub(super) fn prepare(
        &self,
        file: &FileNode,
        content: &OpenContent<'_>,
    ) -> Result<(File, Stat), ToolError> {
        let Spot { parent, temp, .. } = self.spot;
        // Nobody else may look into the bytes before they have the old file's permissions.
        let mut made = new_temp(parent, temp, 0o600).map_err(|error| self.failed(error))?;
        let mut fill = || {
            self.copy(file, &mut *content(file)?, &mut made)?;
            dress(&made, file).map_err(|error| self.failed_io(&error))?;
            let stat = rustix::fs::fstat(&made).map_err(|error| self.failed(error))?;
            Ok(stat)
        };
        match fill() {
            Ok(stat) => Ok((made, stat)),
            Err(error) => {
                self.forget();
                Err(error)
            }
        }
    }

    /// Copies the stored content of `file` and checks it against its hash. Blocks of zeros become holes.
    fn copy(&self, file: &FileNode, from: &mut dyn Read, to: &mut File) -> Result<(), ToolError> {
        let mut hasher = blake3::Hasher::new();
        let mut buffer = vec![0; COPY_BYTES];
        loop {
            let count = fill(from, &mut buffer).map_err(|error| self.failed_io(&error))?;
            hasher.update(&buffer[..count]);
            for block in buffer[..count].chunks(HOLE_BYTES) {
                if block.len() == HOLE_BYTES && block.iter().all(|byte| *byte == 0) {
                    to.seek(SeekFrom::Current(HOLE_BYTES as i64))
                } else {
                    to.write_all(block).map(|()| 0)
                }
                .map_err(|error| self.failed_io(&error))?;
            }
            if count < buffer.len() {
                break;
            }
        }
        let size = to.stream_position().map_err(|error| self.failed_io(&error))?;
        to.set_len(size).map_err(|error| self.failed_io(&error))?;
        if *hasher.finalize().to_hex() == *file.hash {
            return Ok(());
        }
        Err(ToolError::failed(format!(
            "{}: the stored content is damaged, its hash is not {}; the file was not restored",
            self.path.display(),
            file.hash
        )))
    }

    /// Makes the temporary name one more name of `name` in `from`, if that is all that `file` says.
    pub(super) fn link(&self, from: &OwnedFd, name: &OsStr, file: &FileNode) -> Option<Stat> {
        let Spot { parent, temp, .. } = self.spot;
        rustix::fs::linkat(from, name, parent, temp, AtFlags::empty()).ok()?;
        let seen = look(parent, temp, self.path).ok();
        let same = |now: &FileNode| FileNode { linked: file.linked, ..now.clone() } == *file;
        let stat = seen.and_then(|seen| seen.stat.filter(|_| seen.node.as_file().is_some_and(same)));
        if stat.is_none() {
            self.forget();
        }
        stat
    }

    /// Removes what stands under the temporary name.
    pub(super) fn forget(&self) {
        let _ = rustix::fs::unlinkat(self.spot.parent, self.spot.temp, AtFlags::empty());
    }

    /// Puts `to` in place; a file stands prepared under the temporary name, as `made` says.
    pub(super) fn to(&self, to: &Node, made: Option<&Stat>) -> Result<Installed, ToolError> {
        let failed = |error| self.failed(error);
        match (self.now, self.stat, to) {
            (Node::Dir { .. }, _, Node::Dir { mode }) => {
                let fd = self.open_directory()?;
                chmod(&fd, *mode).map(|()| Installed::Yes).map_err(failed)
            }
            (_, None, Node::Absent) => Ok(Installed::Yes),
            (_, Some(stat), Node::Absent) => self.spot.remove(stat).map_err(failed),
            (_, stat, Node::File(_)) => {
                let made = made.ok_or_else(|| ToolError::internal("the file was not prepared"))?;
                self.spot.install(made, stat).map_err(failed)
            }
            (_, stat, to) => self.spot.install(&self.make(to)?, stat).map_err(failed),
        }
    }

    /// Makes a link or a directory under the temporary name.
    fn make(&self, to: &Node) -> Result<Stat, ToolError> {
        let Spot { parent, temp, .. } = self.spot;
        let failed = |error: Errno| self.failed(error);
        match to {
            Node::Link { target } => rustix::fs::symlinkat(target, parent, temp).map_err(failed)?,
            Node::Dir { mode } => {
                rustix::fs::mkdirat(parent, temp, Mode::RWXU).map_err(failed)?;
                let made = rustix::fs::openat(parent, temp, DIRECTORY, Mode::empty());
                if let Err(error) = made.and_then(|fd| chmod(&fd, *mode)) {
                    let _ = rustix::fs::unlinkat(parent, temp, AtFlags::REMOVEDIR);
                    return Err(failed(error));
                }
            }
            _ => return Err(ToolError::internal("there is nothing to make")),
        }
        rustix::fs::statat(parent, temp, AtFlags::SYMLINK_NOFOLLOW).map_err(failed)
    }

    /// Writes the prepared bytes into the very file that stands there, because it has other names that shall show
    /// them too. This cannot be done in one moment.
    pub(super) fn write_over(&self, file: &FileNode) -> Result<Installed, ToolError> {
        let Spot { parent, name, temp } = self.spot;
        let failed = |error| self.failed(error);
        let open = |name, how| rustix::fs::openat(parent, name, FILE | how, Mode::empty());
        let mut from = File::from(open(temp, OFlags::RDONLY).map_err(failed)?);
        let held = open(name, OFlags::RDONLY).map_err(failed)?;
        let now = rustix::fs::fstat(&held).map_err(failed)?;
        if !self.stat.is_some_and(|seen| same(&now, seen)) {
            self.forget();
            return Ok(Installed::Overtaken);
        }
        let mut to = match open(name, OFlags::WRONLY) {
            Err(Errno::ACCESS) => {
                let writable = Mode::from_raw_mode(now.st_mode & 0o7777 | 0o200);
                rustix::fs::fchmod(&held, writable).map_err(failed)?;
                open(name, OFlags::WRONLY)
            }
            other => other,
        }
        .map(File::from)
        .map_err(failed)?;
        if rustix::fs::fstat(&to).map_err(failed)?.st_ino != now.st_ino {
            self.forget();
            return Ok(Installed::Overtaken);
        }
        let mut write = || {
            to.set_len(0)?;
            from.seek(SeekFrom::Start(0))?;
            std::io::copy(&mut from, &mut to)?;
            dress(&to, file)?;
            to.sync_all()
        };
        write().map_err(|error| self.failed_io(&error))?;
        self.forget();
        Ok(Installed::Yes)
    }

    fn open_directory(&self) -> Result<OwnedFd, ToolError> {
        let Spot { parent, name, .. } = self.spot;
        match rustix::fs::openat(parent, name, DIRECTORY, Mode::empty()) {
            // A directory that its owner may not list can still be held, emptied of nothing and given its mode.
            Err(Errno::ACCESS) => rustix::fs::openat(parent, name, HOLD | OFlags::NOFOLLOW, Mode::empty()),
            other => other,
        }
        .map_err(|error| self.failed(error))
    }

    fn not_empty(&self) -> ToolError {
        conflict(self.path, "the directory holds entries that the call did not make")
    }

    fn failed(&self, error: Errno) -> ToolError {
        match error {
            Errno::NOTEMPTY => self.not_empty(),
            error => self.failed_io(&error.into()),
        }
    }

    fn failed_io(&self, error: &std::io::Error) -> ToolError {
        ToolError::io(format!("restore {}", self.path.display()), error)
    }
}

/// Sets the mode of the very directory that is held, whatever its name means by now.
fn chmod(fd: &OwnedFd, mode: u32) -> Result<(), Errno> {
    let mode = Mode::from_raw_mode(mode);
    match rustix::fs::fchmod(fd, mode) {
        // A handle that only holds; its link in /proc leads to what it holds.
        Err(Errno::BADF) => rustix::fs::chmod(format!("/proc/self/fd/{}", fd.as_raw_fd()), mode),
        other => other,
    }
}

/// Reads until `buffer` is full or the stream ends.
fn fill(from: &mut dyn Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut count = 0;
    while count < buffer.len() {
        match from.read(&mut buffer[count..]) {
            Ok(0) => break,
            Ok(more) => count += more,
            Err(error) if error.kind() == IoErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(count)
}

/// Makes everything on the file system that `on` is on durable; not every system can.
pub(super) fn sync_file_system(on: impl AsFd) -> Result<(), Errno> {
    #[cfg(target_os = "linux")]
    return rustix::fs::syncfs(on);
    #[cfg(not(target_os = "linux"))]
    rustix::fs::fsync(on)
}

pub(super) fn conflict(path: &Path, why: &str) -> ToolError {
    ToolError::new(ErrorKind::Conflict, format!("{}: {why}", path.display()))
}
