//! Conversion of low-level errors into [`ToolError`], at the boundary of this crate.

use std::path::{Path, PathBuf};

use haft_tool::{ErrorKind, ToolError};
use rustix::fs::FileType;
use rustix::io::Errno;

/// Why a path could not be resolved inside the scope.
#[derive(Debug)]
pub(crate) enum ResolveError {
    /// `..` leads above the root.
    Outside,
    /// This link leads out of all roots.
    LinkOutside {
        link: PathBuf,
        target: PathBuf,
    },
    TooManyLinks,
    /// A link in a process's directory in /proc: it acts as a handle and does not lead to the path that it shows.
    ProcessLink,
    /// A directory on the way does not exist, and `.` or `..` follow it.
    MissingDirectory,
    /// This part of the path is not a directory.
    NotADirectory(PathBuf),
    Os(Errno),
}

impl From<Errno> for ResolveError {
    fn from(error: Errno) -> Self {
        Self::Os(error)
    }
}

impl ResolveError {
    /// The error of an operation on `path`.
    pub(crate) fn at(self, path: &Path) -> ToolError {
        let path_text = path.display();
        match self {
            Self::Outside => outside(path),
            Self::LinkOutside { link, target } => ToolError::invalid_path(format!(
                "{path_text} leads outside the workspace: the link {} points to {}",
                link.display(),
                target.display()
            )),
            Self::TooManyLinks => ToolError::invalid_path(format!("{path_text}: too many links")),
            Self::ProcessLink => ToolError::denied(format!(
                "{path_text} leads through a process's links in /proc, which are not followed"
            )),
            Self::MissingDirectory => ToolError::new(
                ErrorKind::FileNotFound,
                format!("{path_text}: a directory on the way does not exist"),
            ),
            Self::NotADirectory(file) => ToolError::new(
                ErrorKind::FileNotFound,
                format!("{path_text}: {} is not a directory", file.display()),
            ),
            Self::Os(error) => os_error(path, error),
        }
    }
}

/// The error of a system call on `path`.
pub(crate) fn os_error(path: &Path, error: Errno) -> ToolError {
    let path_text = path.display();
    match error {
        Errno::NXIO => ToolError::invalid_path(format!("{path_text} is a socket or device, not a file")),
        Errno::NOENT => ToolError::new(ErrorKind::FileNotFound, format!("{path_text} does not exist")),
        Errno::NOTDIR => ToolError::new(
            ErrorKind::FileNotFound,
            format!("{path_text} does not exist: a part of the path is not a directory"),
        ),
        Errno::NAMETOOLONG => {
            ToolError::invalid_path(format!("the path is too long ({} bytes)", path.as_os_str().len()))
        }
        Errno::LOOP => ToolError::invalid_path(format!("{path_text}: too many links")),
        error => ToolError::io(path_text, &error.into()),
    }
}

pub(crate) fn outside(path: &Path) -> ToolError {
    ToolError::invalid_path(format!("{} leads outside the workspace", path.display()))
}

/// The error of an operation that the scope does not allow.
pub(crate) fn denied(why: &str) -> ToolError {
    ToolError::denied(format!("Denied: {why}"))
}

pub(crate) fn protected(path: &Path) -> ToolError {
    ToolError::denied(format!(
        "{} is protected: tools do not touch Haft's ledger and configuration",
        path.display()
    ))
}

/// The error of an operation on a regular file, where `path` is of another type.
pub(crate) fn not_a_file(path: &Path, file_type: FileType) -> ToolError {
    let noun = match file_type {
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Symlink => "a symbolic link",
        FileType::Directory => "a directory",
        _ => "a special file",
    };
    ToolError::invalid_path(format!("{} is {noun}, not a file", path.display()))
}

pub(crate) fn conflict(path: &Path, why: &str) -> ToolError {
    ToolError::new(ErrorKind::Conflict, format!("{}: {why}", path.display()))
}

pub(crate) fn changed_meanwhile(path: &Path) -> ToolError {
    conflict(path, "another program is changing it; nothing was written. Read it again and retry")
}

/// Another program changed the file twice during the exchange, and one of its two versions is left only under the temporary
/// name.
pub(crate) fn changed_twice(path: &Path, temp: &Path) -> ToolError {
    let why = format!(
        "another program changed it twice at this moment; nothing was written, and the version between is kept as {}",
        temp.display()
    );
    conflict(path, &why)
}
