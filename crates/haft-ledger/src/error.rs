//! Errors inside a transaction, and the messages that users get for them.

use std::path::Path;

use haft_tool::{ErrorKind, ToolError};
use rusqlite::ErrorCode;

/// A failure inside a transaction.
#[derive(Debug)]
pub(crate) enum TransactionError {
    /// SQLite's own; it becomes a message at the end of the transaction, where the database's path is known.
    Sql(rusqlite::Error),
    /// One that already has a message.
    Tool(ToolError),
}

impl From<rusqlite::Error> for TransactionError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<ToolError> for TransactionError {
    fn from(error: ToolError) -> Self {
        Self::Tool(error)
    }
}

/// The result of work inside a transaction.
pub(crate) type TxResult<T> = Result<T, TransactionError>;

impl TransactionError {
    /// The error with a message: what happened, where, what to do.
    pub(crate) fn into_tool_error(self, database: &Path) -> ToolError {
        match self {
            Self::Tool(error) => error,
            Self::Sql(error) => sql_error(&error, database),
        }
    }
}

fn sql_error(error: &rusqlite::Error, database: &Path) -> ToolError {
    let at = database.display();
    let rusqlite::Error::SqliteFailure(failure, _) = error else {
        return damaged(format!("The ledger {at} has a row that does not fit its table ({error})."));
    };
    match failure.code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => ToolError::new(
            ErrorKind::Timeout,
            format!("The ledger {at} is locked by another process. Try again when that process is done."),
        ),
        ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::AuthorizationForStatementDenied => {
            ToolError::denied(format!(
                "The ledger {at} cannot be written. Make it writable or set HAFT_HOME to a writable directory."
            ))
        }
        ErrorCode::CannotOpen => ToolError::denied(format!(
            "The ledger {at} cannot be opened. Make its directory writable or set HAFT_HOME to another one."
        )),
        ErrorCode::DiskFull => ToolError::new(
            ErrorKind::Io,
            format!(
                "The disk is full, so the ledger {at} cannot grow. Free some space, for example with `haft gc --max-size SIZE`."
            ),
        ),
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => damaged(format!(
            "The ledger {at} is damaged ({error}). Move its directory away; the next call creates a new ledger."
        )),
        ErrorCode::SystemIoFailure => {
            ToolError::new(ErrorKind::Io, format!("Reading or writing the ledger {at} failed: {error}"))
        }
        _ => ToolError::internal(format!("The ledger {at} failed: {error}")),
    }
}

/// Something in the ledger is not what Haft wrote.
pub(crate) fn damaged(message: impl Into<String>) -> ToolError {
    ToolError::new(ErrorKind::Io, message)
}

/// Something requested is not in the ledger.
pub(crate) fn not_found(message: impl Into<String>) -> ToolError {
    ToolError::new(ErrorKind::NotFound, message)
}
