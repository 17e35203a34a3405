//! The ledger.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use haft_tool::{Cancel, ErrorKind, ToolError, lock};

use crate::database::Database;
use crate::directory::{self, LedgerDir};
use crate::error::{TransactionError, TxResult};

/// Something that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LedgerWrite<'a> {
    /// A call has ended.
    CallEnded {
        /// Its session.
        session: &'a str,
        /// Its number.
        call: i64,
    },
    /// An event was appended to a session's log.
    Event {
        /// The session.
        session: &'a str,
        /// The number of the event.
        seq: u64,
    },
}

/// Is told what a process writes, on the thread that writes, after it was committed. It must not block.
#[derive(Clone)]
pub struct LedgerListener(Arc<dyn Fn(&LedgerWrite<'_>) + Send + Sync>);

impl LedgerListener {
    /// A listener that calls `on_write`.
    pub fn new(on_write: impl Fn(&LedgerWrite<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(on_write))
    }
}

impl fmt::Debug for LedgerListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LedgerListener")
    }
}

/// The store of sessions, events and receipts, with the contents that undo needs.
///
/// Clones share one connection; any number of threads and processes may use the same directory.
#[derive(Debug, Clone)]
pub struct Ledger {
    pub(crate) db: Arc<Database>,
    /// Calls whose rows could not be read.
    pub(crate) damaged: Arc<Mutex<BTreeSet<i64>>>,
    pub(crate) listener: Option<LedgerListener>,
    /// Ends searches.
    cancel: Option<Cancel>,
}

impl Ledger {
    /// The default directory: `$HAFT_HOME`, else `$XDG_STATE_HOME/haft`, else `~/.local/state/haft`; on macOS
    /// `$HAFT_HOME`, else `~/Library/Application Support/haft`.
    pub fn home_from_env() -> Result<PathBuf, ToolError> {
        directory::from_env()
    }

    /// Opens the ledger in the directory `home`, and creates it if there is none.
    ///
    /// The directory and its files are accessible to the user alone, whatever the umask is; if other users have access,
    /// it is removed.
    pub fn open(home: impl AsRef<Path>) -> Result<Self, ToolError> {
        let db = Database::open(LedgerDir::prepare(home.as_ref())?)?;
        Ok(Self { db: Arc::new(db), damaged: Arc::default(), listener: None, cancel: None })
    }

    /// The ledger, which tells `listener` what this process writes through it.
    #[must_use]
    pub fn with_listener(mut self, listener: LedgerListener) -> Self {
        self.listener = Some(listener);
        self
    }

    /// The ledger, whose searches end with an error when `cancel` fires.
    #[must_use]
    pub fn with_cancel(mut self, cancel: Cancel) -> Self {
        self.cancel = Some(cancel);
        self
    }

    /// Fails when the search is cancelled.
    pub(crate) fn check_cancelled(&self) -> Result<(), ToolError> {
        match &self.cancel {
            Some(cancel) if cancel.is_cancelled() => {
                Err(ToolError::new(ErrorKind::Interrupted, "The search was cancelled."))
            }
            _ => Ok(()),
        }
    }

    /// Tells the listener, if there is one.
    pub(crate) fn notify(&self, write: &LedgerWrite<'_>) {
        if let Some(LedgerListener(listener)) = &self.listener {
            listener(write);
        }
    }

    /// The calls that lists have left out because their rows cannot be read.
    pub fn damaged_calls(&self) -> Vec<i64> {
        lock(&self.damaged).iter().copied().collect()
    }

    /// Leaves out a row that cannot be read; fails if it is the database that cannot.
    pub(crate) fn skip_damaged<T>(&self, id: i64, read: TxResult<T>) -> TxResult<Option<T>> {
        match read {
            Err(TransactionError::Sql(error @ rusqlite::Error::SqliteFailure(..))) => Err(error.into()),
            Err(_) => {
                lock(&self.damaged).insert(id);
                Ok(None)
            }
            Ok(value) => Ok(Some(value)),
        }
    }

    /// The ledger's directory, which no tool may read or write.
    pub fn home(&self) -> &Path {
        self.db.dir().path()
    }
}
