//! Opening for reading: contained, never a hang, never a protected file.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use haft_tool::{ErrorKind, FileKind, OpenFile, Reads, ToolError};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::resolve::{Leaf, outside, resolve};
use super::root::{Root, true_path};
use super::{LocalFiles, special};

/// FIFOs and devices must not make the open wait.
const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

impl LocalFiles {
    pub(super) fn open_regular(&self, path: &Path) -> Result<OpenFile, ToolError> {
        let (fd, stat) = self.open_any(path, READ)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {}
            FileType::Directory => {
                return Err(ToolError::invalid_path(format!("{} is a directory, not a file", path.display())));
            }
            other => return Err(special(path, other)),
        }
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        Ok(OpenFile { file: File::from(fd), size, path: path.to_owned() })
    }

    pub(super) fn kind_of(&self, path: &Path) -> Result<FileKind, ToolError> {
        #[cfg(target_os = "linux")]
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        #[cfg(not(target_os = "linux"))]
        let flags = READ;
        let (_, stat) = self.open_any(path, flags)?;
        Ok(super::kind(FileType::from_raw_mode(stat.st_mode)))
    }

    /// Opens whatever stands at `path`, links followed, if the scope lets the call read it.
    pub(super) fn open_any(&self, path: &Path, flags: OFlags) -> Result<(OwnedFd, Stat), ToolError> {
        if self.scope.is_protected(path) {
            return Err(protected(path));
        }
        let (root, contained) = match self.root_of(path) {
            Some(root) => (root, true),
            None if self.scope.reads == Reads::Everywhere => (self.filesystem()?, false),
            None => return Err(outside(path)),
        };
        let rest = path.strip_prefix(&root.path).map_err(|_| outside(path))?;
        let fd = if contained { self.open_inside(&root, path, rest, flags)? } else { open_anywhere(&root, path, rest, flags)? };
        let stat = rustix::fs::fstat(&fd).map_err(|error| ToolError::io(path.display(), &error.into()))?;
        if !contained {
            self.refuse_protected(path, &fd)?;
        }
        let file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        if file && stat.st_nlink > 1 && self.is_protected_inode(&stat) {
            return Err(protected(path));
        }
        Ok((fd, stat))
    }

    fn open_inside(&self, root: &Arc<Root>, path: &Path, rest: &Path, flags: OFlags) -> Result<OwnedFd, ToolError> {
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::ResolveFlags;
            let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
            let name = if rest.as_os_str().is_empty() { Path::new(".") } else { rest };
            match rustix::fs::openat2(&root.fd, name, flags, Mode::empty(), beneath) {
                Ok(fd) => return Ok(fd),
                // An absolute link, a race, or a kernel without the call: the walk below settles it.
                Err(Errno::XDEV | Errno::LOOP | Errno::AGAIN | Errno::NOSYS | Errno::PERM) => {}
                Err(error) => return Err(open_error(path, error)),
            }
        }
        let place = resolve(root, &self.roots, rest, Leaf::Follow)?;
        if !place.missing.is_empty() {
            return Err(open_error(path, Errno::NOENT));
        }
        rustix::fs::openat(&place.parent, &place.name, flags | OFlags::NOFOLLOW, Mode::empty())
            .map_err(|error| open_error(path, error))
    }

    /// The opened file itself says where it is, so a link or a race cannot hide a protected one.
    fn refuse_protected(&self, asked: &Path, fd: &OwnedFd) -> Result<(), ToolError> {
        let Some(path) = true_path(fd) else { return Ok(()) };
        if self.scope.is_protected(&path) {
            return Err(protected(asked));
        }
        let mut parts = path.components().skip(1).map(|part| part.as_os_str().to_string_lossy().into_owned());
        let process = |name: &str| name == "self" || name == "thread-self" || name.bytes().all(|b| b.is_ascii_digit());
        if parts.next().as_deref() == Some("proc") && parts.next().is_some_and(|name| process(&name)) {
            return Err(ToolError::denied(format!(
                "{}: what /proc tells about processes (environments, memory) is not read by file tools",
                asked.display()
            )));
        }
        Ok(())
    }

    /// A hard link gives a protected file a second, innocent name.
    pub(super) fn is_protected_inode(&self, stat: &Stat) -> bool {
        let inodes = self.protected_inodes.get_or_init(|| {
            let mut inodes = Vec::new();
            for path in &self.scope.protected {
                let inside = std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
                for path in inside.chain(std::iter::once(path.clone())) {
                    if let Ok(stat) = rustix::fs::lstat(&path) {
                        inodes.push((stat.st_dev, stat.st_ino));
                    }
                }
            }
            inodes
        });
        inodes.contains(&(stat.st_dev, stat.st_ino))
    }

    /// The permission bits, size and time of what stands at `path` itself.
    pub(super) fn stat_of(&self, path: &Path) -> Option<Stat> {
        let root = self.root_of(path).or_else(|| self.filesystem().ok())?;
        let rest = path.strip_prefix(&root.path).ok()?;
        rustix::fs::statat(&root.fd, rest, AtFlags::SYMLINK_NOFOLLOW).ok()
    }
}

#[cfg(target_os = "linux")]
fn open_anywhere(root: &Root, path: &Path, rest: &Path, flags: OFlags) -> Result<OwnedFd, ToolError> {
    use rustix::fs::ResolveFlags;
    let name = if rest.as_os_str().is_empty() { Path::new(".") } else { rest };
    match rustix::fs::openat2(&root.fd, name, flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS) {
        Err(Errno::NOSYS | Errno::PERM) => {
            rustix::fs::openat(&root.fd, name, flags, Mode::empty()).map_err(|error| open_error(path, error))
        }
        Err(Errno::LOOP) => {
            Err(ToolError::denied(format!("{}: leads through a link of /proc", path.display())))
        }
        other => other.map_err(|error| open_error(path, error)),
    }
}

#[cfg(not(target_os = "linux"))]
fn open_anywhere(root: &Root, path: &Path, rest: &Path, flags: OFlags) -> Result<OwnedFd, ToolError> {
    let name = if rest.as_os_str().is_empty() { Path::new(".") } else { rest };
    rustix::fs::openat(&root.fd, name, flags, Mode::empty()).map_err(|error| open_error(path, error))
}

fn open_error(path: &Path, error: Errno) -> ToolError {
    match error {
        Errno::NXIO => ToolError::invalid_path(format!("{} is a socket or device, not a file", path.display())),
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

pub(super) fn protected(path: &Path) -> ToolError {
    ToolError::denied(format!("{} is protected: tools do not touch Haft's ledger and configuration", path.display()))
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
