//! What can go wrong inside a transaction, and what people are told about it.

use std::path::Path;

use haft_tool::{ErrorKind, ToolError};
use rusqlite::ErrorCode;

/// A failure on the way through a transaction, before it is known to whom it will be told.
#[derive(Debug)]
pub(crate) enum Fault {
    /// SQLite's own; it gets its words at the edge of the transaction, where the database's path is known.
    Sql(rusqlite::Error),
    /// One that is already in words.
    Told(ToolError),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<ToolError> for Fault {
    fn from(error: ToolError) -> Self {
        Self::Told(error)
    }
}

/// What happens inside a transaction.
pub(crate) type Attempt<T> = Result<T, Fault>;

impl Fault {
    /// The error that people see: what happened, where, what to do next.
    pub(crate) fn tell(self, database: &Path) -> ToolError {
        match self {
            Self::Told(error) => error,
            Self::Sql(error) => tell_sql(&error, database),
        }
    }
}

fn tell_sql(error: &rusqlite::Error, database: &Path) -> ToolError {
    let at = database.display();
    let rusqlite::Error::SqliteFailure(failure, _) = error else {
        return damaged(format!("the ledger {at} holds a row that does not fit its table ({error})"));
    };
    match failure.code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => ToolError::new(
            ErrorKind::Timeout,
            format!("the ledger {at} is held by another process; try again when that one is done"),
        ),
        ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::AuthorizationForStatementDenied => {
            ToolError::denied(format!(
                "the ledger {at} cannot be written; make it writable or set HAFT_HOME to a directory that is"
            ))
        }
        ErrorCode::CannotOpen => ToolError::denied(format!(
            "the ledger {at} cannot be opened; check that its directory is writable or set HAFT_HOME to another"
        )),
        ErrorCode::DiskFull => ToolError::new(
            ErrorKind::Io,
            format!("the disk is full, so the ledger {at} cannot grow; free some space"),
        ),
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => damaged(format!(
            "the ledger {at} is damaged ({error}); move its directory away, and a new one is made on the next call"
        )),
        ErrorCode::SystemIoFailure => {
            ToolError::new(ErrorKind::Io, format!("reading or writing the ledger {at}: {error}"))
        }
        _ => ToolError::internal(format!("the ledger {at}: {error}")),
    }
}

/// Something in the ledger is not what Haft wrote.
pub(crate) fn damaged(message: impl Into<String>) -> ToolError {
    ToolError::new(ErrorKind::Io, message)
}

/// Something that was asked for is not in the ledger.
pub(crate) fn unknown(message: impl Into<String>) -> ToolError {
    ToolError::new(ErrorKind::NotFound, message)
}
