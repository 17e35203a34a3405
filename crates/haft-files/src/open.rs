//! Opening for reading: contained, never a hang, never a protected file.

use std::collections::HashSet;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirEntryExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_tool::{ErrorKind, FileKind, OpenFile, Reads, ToolError};
use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::resolve::{Leaf, Place, below, resolve};
use super::root::{Root, tells_about_a_process, true_path};
use super::{LocalFiles, special};

/// FIFOs and devices must not make the open wait.
pub(super) const READ: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// A handle that reads nothing and disturbs nothing, where the system has such a thing.
#[cfg(target_os = "linux")]
const LOOK: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const LOOK: OFlags = READ;

impl LocalFiles {
    pub(super) fn open_regular(&self, path: &Path) -> Result<OpenFile, ToolError> {
        // To open a device can already do something (a watchdog starts, a tape rewinds), so outside is looked at first.
        if self.root_of(path).is_none() {
            only_regular(path, &self.stat_of(path)?)?;
        }
        let (fd, stat) = self.open_any(path, READ)?;
        only_regular(path, &stat)?;
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        Ok(OpenFile { reader: Box::new(File::from(fd)), size, path: path.to_owned() })
    }

    pub(super) fn kind_of(&self, path: &Path) -> Result<FileKind, ToolError> {
        Ok(super::kind(FileType::from_raw_mode(self.stat_of(path)?.st_mode)))
    }

    /// Opens whatever stands at `path`, links followed, if the scope lets the call read it.
    pub(super) fn open_any(&self, path: &Path, flags: OFlags) -> Result<(OwnedFd, Stat), ToolError> {
        if self.scope.is_protected(path) {
            return Err(protected(path));
        }
        let contained = self.root_of(path);
        let (fd, walked) = match &contained {
            Some(root) => open_in(root, &self.roots, path, flags)?,
            None if self.scope.reads == Reads::Everywhere => {
                let root = self.filesystem()?;
                open_in(&root, std::slice::from_ref(&root), path, flags)?
            }
            None => self.open_granted(path, flags)?,
        };
        let stat = rustix::fs::fstat(&fd).map_err(|error| ToolError::io(path.display(), &error.into()))?;
        if contained.is_none() || self.overlap {
            // The opened file itself says where it is, so a link or a race cannot hide a protected one.
            let real = true_path(&fd).or(walked);
            let real = real.ok_or_else(|| {
                ToolError::denied(format!("{}: this system does not tell where it really is", path.display()))
            })?;
            self.refuse_secret(path, &fd, &real)?;
        }
        self.refuse_alias(path, &stat)?;
        Ok((fd, stat))
    }

    /// Opens a path outside the roots that the scope names.
    fn open_granted(&self, path: &Path, flags: OFlags) -> Result<(OwnedFd, Option<PathBuf>), ToolError> {
        let place = self.granted_place(path)?;
        if !place.missing.is_empty() {
            return Err(open_error(path, Errno::NOENT));
        }
        let fd = rustix::fs::openat(&place.parent, &place.name, flags | OFlags::NOFOLLOW, Mode::empty())
            .map_err(|error| open_error(path, error))?;
        Ok((fd, Some(place.path())))
    }

    /// Refuses what no call may see at `real`, where `fd` or its parent is open.
    fn refuse_secret(&self, asked: &Path, fd: &OwnedFd, real: &Path) -> Result<(), ToolError> {
        if self.scope.is_protected(real) {
            return Err(protected(asked));
        }
        if tells_about_a_process(fd, real) {
            return Err(ToolError::denied(format!(
                "{}: what /proc tells about processes (environments, memory) is not read by file tools",
                asked.display()
            )));
        }
        Ok(())
    }

    /// Refuses a place that no call may see; `place` was reached from a root, or from anywhere if not `contained`.
    pub(super) fn refuse_secret_place(
        &self,
        asked: &Path,
        place: &Place,
        contained: bool,
    ) -> Result<(), ToolError> {
        if contained && !self.overlap {
            return Ok(());
        }
        let by_name = place.path();
        if self.scope.is_protected(&by_name) {
            return Err(protected(asked));
        }
        let real = true_path(&place.parent).map(|parent| {
            let mut real = parent;
            real.extend(&place.missing);
            real.push(&place.name);
            real
        });
        self.refuse_secret(asked, &place.parent, &real.unwrap_or(by_name))
    }

    /// A hard link gives a protected file a second, innocent name.
    pub(super) fn refuse_alias(&self, asked: &Path, stat: &Stat) -> Result<(), ToolError> {
        let file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        if file && stat.st_nlink > 1 && self.is_protected_inode(stat) {
            Err(protected(asked))
        } else {
            Ok(())
        }
    }

    fn is_protected_inode(&self, stat: &Stat) -> bool {
        let inodes = self.protected_inodes.get_or_init(|| {
            let mut inodes = HashSet::new();
            let mut todo = self.scope.protected.clone();
            while let Some(path) = todo.pop() {
                let Ok(stat) = rustix::fs::lstat(&path) else { continue };
                inodes.insert((stat.st_dev, stat.st_ino));
                if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
                    continue;
                }
                for entry in std::fs::read_dir(&path).into_iter().flatten().flatten() {
                    if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                        todo.push(entry.path());
                    } else {
                        inodes.insert((stat.st_dev, entry.ino()));
                    }
                }
            }
            inodes
        });
        inodes.contains(&(stat.st_dev, stat.st_ino))
    }

    /// What stands at `path`, links followed, by its permission bits, size and time.
    pub(super) fn stat_of(&self, path: &Path) -> Result<Stat, ToolError> {
        self.open_any(path, LOOK).map(|(_, stat)| stat)
    }
}

/// Opens `path` below `root`; absolute links may lead into any of `roots`. Also tells where that is, if the walk knows.
fn open_in(
    root: &Arc<Root>,
    roots: &[Arc<Root>],
    path: &Path,
    flags: OFlags,
) -> Result<(OwnedFd, Option<PathBuf>), ToolError> {
    let rest = below(root, path)?;
    #[cfg(target_os = "linux")]
    if let Some(opened) = by_kernel(root, path, rest, flags) {
        return opened.map(|fd| (fd, None));
    }
    let place = resolve(root, roots, rest, Leaf::Follow)?;
    if !place.missing.is_empty() {
        return Err(open_error(path, Errno::NOENT));
    }
    let fd = rustix::fs::openat(&place.parent, &place.name, flags | OFlags::NOFOLLOW, Mode::empty())
        .map_err(|error| open_error(path, error))?;
    Ok((fd, Some(place.path())))
}

/// Lets the kernel do the walk; `None` if it leaves the answer to [`resolve`].
#[cfg(target_os = "linux")]
fn by_kernel(root: &Root, path: &Path, rest: &Path, flags: OFlags) -> Option<Result<OwnedFd, ToolError>> {
    use rustix::fs::ResolveFlags;
    let whole = root.path == Path::new("/");
    let within = if whole { ResolveFlags::IN_ROOT } else { ResolveFlags::BENEATH };
    let name = if rest.as_os_str().is_empty() { Path::new(".") } else { rest };
    match rustix::fs::openat2(&root.fd, name, flags, Mode::empty(), within | ResolveFlags::NO_MAGICLINKS) {
        Ok(fd) => Some(Ok(fd)),
        // An absolute link, a circle, a link of /proc, a race, a path too long for one call, or a kernel without the call.
        Err(Errno::XDEV | Errno::LOOP | Errno::AGAIN | Errno::NOSYS | Errno::PERM | Errno::NAMETOOLONG) => {
            None
        }
        Err(error) => Some(Err(open_error(path, error))),
    }
}

fn open_error(path: &Path, error: Errno) -> ToolError {
    match error {
        Errno::NXIO => {
            ToolError::invalid_path(format!("{} is a socket or device, not a file", path.display()))
        }
        Errno::NOENT => ToolError::new(ErrorKind::FileNotFound, format!("{} does not exist", path.display())),
        Errno::NOTDIR => ToolError::new(
            ErrorKind::FileNotFound,
            format!("{} does not exist: a part of the path is not a directory", path.display()),
        ),
        Errno::NAMETOOLONG => {
            ToolError::invalid_path(format!("the path is too long ({} bytes)", path.as_os_str().len()))
        }
        Errno::LOOP => ToolError::invalid_path(format!("{}: too many links", path.display())),
        error => ToolError::io(path.display(), &error.into()),
    }
}

pub(super) fn only_regular(path: &Path, stat: &Stat) -> Result<(), ToolError> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(()),
        other => Err(special(path, other)),
    }
}

pub(super) fn protected(path: &Path) -> ToolError {
    ToolError::denied(format!(
        "{} is protected: tools do not touch Haft's ledger and configuration",
        path.display()
    ))
}

/// What holds paths to their root on this system, in words.
#[cfg(target_os = "linux")]
pub fn containment() -> &'static str {
    use rustix::fs::ResolveFlags;
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    match rustix::fs::openat2(rustix::fs::CWD, ".", flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS) {
        Err(Errno::NOSYS | Errno::PERM) => "a walk from held directories (this kernel has no openat2)",
        _ => "openat2 (RESOLVE_BENEATH)",
    }
}

/// What holds paths to their root on this system, in words.
#[cfg(not(target_os = "linux"))]
pub fn containment() -> &'static str {
    "a walk from held directories (O_NOFOLLOW)"
}
