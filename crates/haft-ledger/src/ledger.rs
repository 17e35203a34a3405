//! The one handle to a ledger.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_tool::ToolError;

use crate::db::Db;
use crate::home::{self, Home};

/// The append-only record of sessions, events and receipts, with a content-addressed store of before-images.
///
/// Clones share one ledger; any number of threads and processes may use the same home at once.
#[derive(Debug, Clone)]
pub struct Ledger {
    pub(crate) db: Arc<Db>,
}

impl Ledger {
    /// Where the ledger lies: `$HAFT_HOME`, else `$XDG_STATE_HOME/haft`, else `~/.local/state/haft`; on macOS
    /// `$HAFT_HOME`, else `~/Library/Application Support/haft`.
    pub fn home_from_env() -> Result<PathBuf, ToolError> {
        home::from_env()
    }

    /// Opens the ledger in `home`, and makes one if there is none.
    ///
    /// The directory and its files are for the user alone, whatever the umask says; where they are found open to
    /// others, they are closed.
    pub fn open(home: impl AsRef<Path>) -> Result<Self, ToolError> {
        let db = Db::open(Home::prepare(home.as_ref())?)?;
        Ok(Self { db: Arc::new(db) })
    }

    /// The directory the ledger lies in, which no tool may touch.
    pub fn home(&self) -> &Path {
        self.db.home().dir()
    }
}
