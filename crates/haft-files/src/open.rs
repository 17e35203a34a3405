//! Opening for reading: contained, never blocking, never a protected file.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirEntryExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_policy::read_refusal;
use haft_tool::{FileKind, OpenFile, Reads, ToolError};
use rustix::fs::{FileType, OFlags, Stat};

use crate::error::{ResolveError, denied, not_a_file, os_error, outside, protected};
use crate::resolve::{FinalLink, ResolvedPath, resolve};
use crate::root::{Root, is_process_file};
use crate::stat::{self, file_id};
use crate::{LocalFiles, os};

/// Opens for reading; `NONBLOCK` keeps FIFOs and devices from blocking.
pub(crate) const READ_FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

impl LocalFiles {
    pub(crate) fn open_regular(&self, path: &Path) -> Result<OpenFile, ToolError> {
        // Opening a device can have an effect (start a watchdog, rewind a tape), so outside the roots the type is checked
        // first.
        if self.root_of(path).is_none() {
            require_regular(path, &self.stat_of(path)?)?;
        }
        let (fd, stat) = self.open_any(path, READ_FLAGS)?;
        require_regular(path, &stat)?;
        Ok(OpenFile { reader: Box::new(File::from(fd)), size: stat::size(&stat), path: path.to_owned() })
    }

    /// The type of `path`, links followed.
    pub(crate) fn kind_of(&self, path: &Path) -> Result<FileKind, ToolError> {
        Ok(file_kind(stat::file_type(&self.stat_of(path)?)))
    }

    /// The path that the kernel reports for `path`, links followed.
    pub(crate) fn real_path_of(&self, path: &Path) -> Result<PathBuf, ToolError> {
        let (fd, _) = self.open_any(path, os::METADATA_FLAGS)?;
        Ok(os::path_of(&fd).unwrap_or_else(|| path.to_owned()))
    }

    /// The metadata of `path`, links followed.
    pub(crate) fn stat_of(&self, path: &Path) -> Result<Stat, ToolError> {
        self.open_any(path, os::METADATA_FLAGS).map(|(_, stat)| stat)
    }

    /// Opens a file of any type, links followed, if the scope allows the call to read it.
    pub(crate) fn open_any(&self, path: &Path, flags: OFlags) -> Result<(OwnedFd, Stat), ToolError> {
        if self.scope.is_protected(path) {
            return Err(protected(path));
        }
        let contained = self.root_of(path);
        let (fd, real) = match &contained {
            Some(root) => open_in(root, &self.roots, path, flags)?,
            None if self.scope.reads == Reads::Everywhere => {
                let root = self.filesystem()?;
                let inside = self.session_path.as_ref().and_then(|session_path| session_path(path));
                let path = inside.as_deref().unwrap_or(path);
                open_in(&root, std::slice::from_ref(&root), path, flags)?
            }
            None => {
                let granted = self.resolve_granted(path)?;
                (granted.open(flags).map_err(|error| os_error(path, error))?, granted.path())
            }
        };
        let stat = rustix::fs::fstat(&fd).map_err(|error| os_error(path, error))?;
        let real = without_removal_mark(real, &stat);
        if contained.is_none() || self.protected_near_roots {
            self.check_real_path(path, &fd, &real)?;
        }
        if let Some(why) = read_refusal(&self.scope, &real) {
            return Err(denied(&why));
        }
        self.check_hard_link(path, &stat)?;
        Ok((fd, stat))
    }

    /// Resolves a path to the entry itself, without following a final link; `None` if nothing can be there, because something
    /// on the way is not a directory.
    pub(crate) fn resolve_entry(&self, path: &Path) -> Result<Option<ResolvedPath>, ToolError> {
        if self.scope.is_protected(path) {
            return Err(protected(path));
        }
        let found = match self.root_of(path) {
            Some(root) => resolve(&root, &self.roots, root.relative(path)?, FinalLink::Keep),
            None if self.scope.reads == Reads::Everywhere => {
                let root = self.filesystem()?;
                resolve(&root, std::slice::from_ref(&root), root.relative(path)?, FinalLink::Keep)
            }
            None => Ok(self.resolve_granted(path)?),
        };
        let found = match found {
            Err(ResolveError::NotADirectory(_)) => return Ok(None),
            found => found.map_err(|error| error.at(path))?,
        };
        self.check_resolved(path, &found)?;
        Ok(Some(found))
    }

    /// Resolves a path outside the roots that the scope grants by name. It is refused if a link on the way leads elsewhere.
    pub(crate) fn resolve_granted(&self, path: &Path) -> Result<ResolvedPath, ToolError> {
        if !self.scope.grants.iter().any(|grant| grant == path) {
            return Err(outside(path));
        }
        let root = self.filesystem()?;
        let found = resolve(&root, &[], root.relative(path)?, FinalLink::Keep);
        let found = found.map_err(|error| error.at(path))?;
        if found.path() == path { Ok(found) } else { Err(outside(path)) }
    }

    /// Refuses a resolved path that no call may see.
    pub(crate) fn check_resolved(&self, asked: &Path, found: &ResolvedPath) -> Result<(), ToolError> {
        if self.root_of(asked).is_some() && !self.protected_near_roots {
            return Ok(());
        }
        let by_name = found.path();
        if self.scope.is_protected(&by_name) {
            return Err(protected(asked));
        }
        let real = os::path_of(&found.parent).map(|mut real| {
            real.extend(&found.missing);
            real.push(&found.name);
            real
        });
        self.check_real_path(asked, &found.parent, &real.unwrap_or(by_name))
    }

    /// Refuses `real`, the path of `fd` or of an entry of it, if no call may see it.
    fn check_real_path(&self, asked: &Path, fd: &OwnedFd, real: &Path) -> Result<(), ToolError> {
        if self.scope.is_protected(real) {
            return Err(protected(asked));
        }
        if is_process_file(fd, real) {
            return Err(ToolError::denied(format!(
                "{}: file tools do not read the files of processes in /proc (environments, memory)",
                asked.display()
            )));
        }
        Ok(())
    }

    /// Refuses a file that is a hard link to a protected one.
    pub(crate) fn check_hard_link(&self, asked: &Path, stat: &Stat) -> Result<(), ToolError> {
        let linked = stat::is_file(stat) && stat::link_count(stat) > 1;
        if linked && self.protected_files().contains(&file_id(stat)) { Err(protected(asked)) } else { Ok(()) }
    }

    /// Device and inode of every protected file and directory.
    fn protected_files(&self) -> &HashSet<haft_tool::FileId> {
        self.protected_files.get_or_init(|| {
            let mut files = HashSet::new();
            let mut todo = self.scope.protected.clone();
            while let Some(path) = todo.pop() {
                let Ok(stat) = rustix::fs::lstat(&path) else { continue };
                let id = file_id(&stat);
                files.insert(id);
                if !stat::is_directory(&stat) {
                    continue;
                }
                for entry in std::fs::read_dir(&path).into_iter().flatten().flatten() {
                    if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                        todo.push(entry.path());
                    } else {
                        files.insert((id.0, entry.ino()));
                    }
                }
            }
            files
        })
    }
}

/// The path that the kernel reports for an open file, without the mark that it appends if the file was removed meanwhile.
fn without_removal_mark(path: PathBuf, stat: &Stat) -> PathBuf {
    match path.as_os_str().as_bytes().strip_suffix(b" (deleted)") {
        Some(name) if stat::link_count(stat) == 0 => OsStr::from_bytes(name).into(),
        _ => path,
    }
}

/// Opens `path` below `root`; absolute links may lead into any of `roots`. Also returns the path that the kernel reports for
/// it, so that neither a link nor a race can hide what was opened.
fn open_in(
    root: &Arc<Root>,
    roots: &[Arc<Root>],
    path: &Path,
    flags: OFlags,
) -> Result<(OwnedFd, PathBuf), ToolError> {
    let relative = root.relative(path)?;
    if let Some(opened) = os::open_beneath(root.fd.as_fd(), root.is_slash(), relative, flags) {
        let fd = opened.map_err(|error| os_error(path, error))?;
        // Without /proc only the walk knows which path was opened.
        if let Some(real) = os::path_of(&fd) {
            return Ok((fd, real));
        }
    }
    let found = resolve(root, roots, relative, FinalLink::Follow).map_err(|error| error.at(path))?;
    let fd = found.open(flags).map_err(|error| os_error(path, error))?;
    let real = os::path_of(&fd).unwrap_or_else(|| found.path());
    Ok((fd, real))
}

pub(crate) fn require_regular(path: &Path, stat: &Stat) -> Result<(), ToolError> {
    if stat::is_file(stat) { Ok(()) } else { Err(not_a_file(path, stat::file_type(stat))) }
}

pub(crate) fn file_kind(file_type: FileType) -> FileKind {
    match file_type {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Dir,
        FileType::Symlink => FileKind::Link,
        _ => FileKind::Special,
    }
}
