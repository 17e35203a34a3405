//! The exit codes, which scripts rely on.

use haft_tool::ErrorKind;

/// How the command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CliExit {
    Done,
    Failed,
    Usage,
    Denied,
    Unknown,
    Timeout,
    Interrupted,
    /// The exit code of a command in the sandbox.
    Other(u8),
}

impl CliExit {
    /// The number that the shell sees.
    pub(super) const fn number(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Denied => 3,
            Self::Unknown => 4,
            Self::Timeout => 124,
            Self::Interrupted => 130,
            Self::Other(number) => number,
        }
    }
}

/// The exit code for a kind of error.
pub(super) fn code(kind: ErrorKind) -> CliExit {
    match kind {
        ErrorKind::InvalidArguments | ErrorKind::Serialization => CliExit::Usage,
        ErrorKind::PermissionDenied => CliExit::Denied,
        ErrorKind::NotFound => CliExit::Unknown,
        ErrorKind::Timeout => CliExit::Timeout,
        ErrorKind::Interrupted => CliExit::Interrupted,
        _ => CliExit::Failed,
    }
}
