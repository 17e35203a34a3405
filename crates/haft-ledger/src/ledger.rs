//! The ledger.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use haft_tool::{ToolError, lock};

use crate::database::Database;
use crate::directory::{self, LedgerDir};
use crate::error::{TransactionError, TxResult};

/// The store of sessions, events and receipts, with the contents that undo needs.
///
/// Clones share one connection; any number of threads and processes may use the same directory.
#[derive(Debug, Clone)]
pub struct Ledger {
    pub(crate) db: Arc<Database>,
    /// Calls whose rows could not be read.
    pub(crate) damaged: Arc<Mutex<BTreeSet<i64>>>,
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
        Ok(Self { db: Arc::new(db), damaged: Arc::default() })
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
