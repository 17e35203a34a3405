//! The ledger and one session in it, opened at first use.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};

use haft_tool::{ToolError, lock};

use crate::{Ledger, LedgerListener, NewSession};

/// Which session the calls belong to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum SessionChoice {
    /// One that the first call starts.
    #[default]
    New,
    /// The one with this id, or the only one whose id starts with it, or with this name.
    Existing(String),
    /// The one with this id or name; a new name starts one.
    ExistingOrNew(String),
}

/// Reads a file of at most so many bytes, if there is one.
pub type ContentReader = fn(&Path, u64) -> Option<Vec<u8>>;

/// The ledger of a runtime and its session, both opened at first use.
#[derive(Debug)]
pub struct LedgerHandle {
    home: PathBuf,
    new_session: NewSession,
    choice: SessionChoice,
    content_reader: Option<ContentReader>,
    listener: Option<LedgerListener>,
    ledger: OnceLock<Ledger>,
    session: OnceLock<String>,
    opening: Mutex<()>,
}

impl LedgerHandle {
    /// A handle that opens the ledger in `home`, and starts `new_session` or continues another one.
    pub fn new(home: PathBuf, new_session: NewSession, choice: SessionChoice) -> Self {
        Self {
            home,
            new_session,
            choice,
            content_reader: None,
            listener: None,
            ledger: OnceLock::new(),
            session: OnceLock::new(),
            opening: Mutex::new(()),
        }
    }

    /// The handle, with a reader of files: the new contents of small files are then kept, too.
    #[must_use]
    pub fn with_content_reader(mut self, reader: ContentReader) -> Self {
        self.content_reader = Some(reader);
        self
    }

    /// The handle, whose ledger tells `listener` what this process writes.
    #[must_use]
    pub fn with_listener(mut self, listener: LedgerListener) -> Self {
        self.listener = Some(listener);
        self
    }

    /// The handle, with the ledger of its directory that is open already.
    #[must_use]
    pub fn with_ledger(mut self, ledger: Ledger) -> Self {
        self.ledger = OnceLock::from(ledger);
        self
    }

    /// The dialect of a session that is started.
    pub fn dialect(&self) -> &str {
        &self.new_session.dialect
    }

    /// A handle of another session in the same ledger.
    pub fn for_session(&self, new_session: NewSession, choice: SessionChoice) -> Result<Self, ToolError> {
        let handle =
            Self { content_reader: self.content_reader, ..Self::new(self.home.clone(), new_session, choice) };
        Ok(handle.with_ledger(self.ledger()?.clone()))
    }

    pub(crate) fn content_reader(&self) -> Option<ContentReader> {
        self.content_reader
    }

    /// The ledger.
    pub fn ledger(&self) -> Result<&Ledger, ToolError> {
        if let Some(ledger) = self.ledger.get() {
            return Ok(ledger);
        }
        let _one_thread = lock(&self.opening);
        if let Some(ledger) = self.ledger.get() {
            return Ok(ledger);
        }
        let ledger = Ledger::open(&self.home)?;
        let ledger = match &self.listener {
            Some(listener) => ledger.with_listener(listener.clone()),
            None => ledger,
        };
        Ok(self.ledger.get_or_init(|| ledger))
    }

    /// The id of the session.
    pub fn session(&self) -> Result<&str, ToolError> {
        self.open().map(|(_, session)| session)
    }

    /// The ledger and the id of the session.
    pub(crate) fn open(&self) -> Result<(&Ledger, &str), ToolError> {
        let ledger = self.ledger()?;
        if let Some(session) = self.session.get() {
            return Ok((ledger, session));
        }
        let _one_thread = lock(&self.opening);
        if let Some(session) = self.session.get() {
            return Ok((ledger, session));
        }
        let session = match &self.choice {
            SessionChoice::New => ledger.start_session(&self.new_session)?,
            SessionChoice::Existing(id) => ledger.session_in(id, &self.new_session.workspace)?.id,
            SessionChoice::ExistingOrNew(name) => {
                ledger.continue_or_start_session(name, &self.new_session)?
            }
        };
        Ok((ledger, self.session.get_or_init(|| session)))
    }
}
