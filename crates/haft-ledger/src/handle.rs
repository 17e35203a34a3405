//! The ledger and one session in it, opened at first use.

use std::path::PathBuf;
use std::sync::{Mutex, OnceLock};

use haft_tool::{ToolError, lock};

use crate::{Ledger, NewSession};

/// The ledger of a runtime and its session, both opened at first use.
#[derive(Debug)]
pub struct LedgerHandle {
    home: PathBuf,
    new_session: NewSession,
    resumed: Option<String>,
    opened: OnceLock<(Ledger, String)>,
    opening: Mutex<()>,
}

impl LedgerHandle {
    /// A handle that opens the ledger in `home` and starts `new_session`, or continues the session `resumed`.
    pub fn new(home: PathBuf, new_session: NewSession, resumed: Option<String>) -> Self {
        Self { home, new_session, resumed, opened: OnceLock::new(), opening: Mutex::new(()) }
    }

    /// The ledger.
    pub fn ledger(&self) -> Result<&Ledger, ToolError> {
        self.open().map(|(ledger, _)| ledger)
    }

    /// The id of the session.
    pub fn session(&self) -> Result<&str, ToolError> {
        self.open().map(|(_, session)| session)
    }

    /// The ledger and the id of the session.
    pub(crate) fn open(&self) -> Result<(&Ledger, &str), ToolError> {
        let _one_thread = self.opened.get().is_none().then(|| lock(&self.opening));
        if self.opened.get().is_none() {
            let ledger = Ledger::open(&self.home)?;
            let session = match &self.resumed {
                Some(id) => ledger.session(id)?.id,
                None => ledger.start_session(&self.new_session)?,
            };
            // Only the thread that holds the lock gets here.
            let _ = self.opened.set((ledger, session));
        }
        let opened = self.opened.get().ok_or_else(|| ToolError::internal("the ledger did not open"))?;
        Ok((&opened.0, &opened.1))
    }
}
