//! An open root directory of the scope: every path is resolved from its handle, never from its name.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use haft_tool::ToolError;
use rustix::fs::Mode;

use crate::error::outside;
use crate::os;

/// An open root directory of the scope.
#[derive(Debug)]
pub struct Root {
    /// Its path, with all links resolved.
    pub path: PathBuf,
    pub(crate) fd: OwnedFd,
}

impl Root {
    /// Opens `path`, following links: the user named it.
    pub fn open(path: &Path) -> Result<Self, ToolError> {
        let open = || -> std::io::Result<Self> {
            let fd = rustix::fs::open(path, os::DIR_HANDLE_FLAGS, Mode::empty())?;
            let path = os::path_of(&fd).map_or_else(|| path.canonicalize(), Ok)?;
            Ok(Self { path, fd })
        };
        open().map_err(|error| ToolError::io(format!("open the directory {}", path.display()), &error))
    }

    /// The part of `path` below this root.
    pub(crate) fn relative<'p>(&self, path: &'p Path) -> Result<&'p Path, ToolError> {
        path.strip_prefix(&self.path).map_err(|_| outside(path))
    }

    pub(crate) fn is_slash(&self) -> bool {
        self.path == Path::new("/")
    }
}

/// Whether this is a file in which Linux shows a process (its environment, memory, open files): one in a directory of procfs
/// named after a process id.
pub(crate) fn is_process_file(fd: impl AsFd, path: &Path) -> bool {
    path.components().skip(1).any(|part| is_number(part.as_os_str())) && os::is_on_procfs(fd)
}

pub(crate) fn is_number(name: &OsStr) -> bool {
    name.as_bytes().iter().all(u8::is_ascii_digit)
}
