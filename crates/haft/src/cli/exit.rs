//! The exit codes, which scripts rely on.

use haft_tool::ErrorKind;

/// How the command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Exit {
    Done = 0,
    Failed = 1,
    Usage = 2,
    Denied = 3,
    Unknown = 4,
    Timeout = 124,
    Interrupted = 130,
}

/// The exit code for a kind of error.
pub(super) fn code(kind: ErrorKind) -> Exit {
    match kind {
        ErrorKind::InvalidArguments | ErrorKind::Serialization => Exit::Usage,
        ErrorKind::PermissionDenied => Exit::Denied,
        ErrorKind::NotFound => Exit::Unknown,
        ErrorKind::Timeout => Exit::Timeout,
        ErrorKind::Interrupted => Exit::Interrupted,
        ErrorKind::ExecutionFailed
        | ErrorKind::FileNotFound
        | ErrorKind::InvalidPath
        | ErrorKind::TargetNotFound
        | ErrorKind::Conflict
        | ErrorKind::Io
        | ErrorKind::Internal => Exit::Failed,
    }
}
