//! A session's way to write down calls that changed nothing, without opening the database.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use haft_tool::{Receipt, State, ToolError};

use crate::db::Db;
use crate::home::Home;
use crate::slips::{Opening, Slips};
use crate::{Ledger, NewSession};

/// A session's slips.
#[derive(Debug)]
pub struct Daybook {
    home: PathBuf,
    slips: Arc<Slips>,
    opening: Opening,
    /// Whether the session has been told.
    told: AtomicBool,
}

impl Daybook {
    /// The daybook of a new session; nothing where the ledger has to be opened first.
    pub fn open(home: &Path, new: &NewSession) -> Result<Option<Self>, ToolError> {
        let Some(slips) = Slips::open(home) else { return Ok(None) };
        let (slips, opening, told) = (Arc::new(slips), Opening::of(new)?, AtomicBool::new(false));
        Ok(Some(Self { home: home.to_owned(), slips, opening, told }))
    }

    /// The session's id.
    pub fn session(&self) -> &str {
        &self.opening.id
    }

    /// Writes down that a call begins, or that one has ended that changed nothing; one without a number gets it here. Whether it
    /// is time to open the ledger and have the slips entered.
    pub fn note(&self, receipt: &mut Receipt) -> Result<bool, ToolError> {
        let first = !self.told.swap(true, Ordering::SeqCst);
        let owner = (receipt.state == State::Running).then_some(self.opening.owner.as_str());
        let noted = self.slips.append(first.then_some(&self.opening), owner, receipt);
        if first && noted.is_err() {
            self.told.store(false, Ordering::SeqCst);
        }
        noted
    }

    /// The ledger, with the session in it.
    pub fn ledger(&self) -> Result<Ledger, ToolError> {
        let db = Db::open(Home::prepare(&self.home)?, Some(Arc::clone(&self.slips)))?;
        let ledger = Ledger { db: Arc::new(db) };
        ledger.open_session(&self.opening)?;
        self.told.store(true, Ordering::SeqCst);
        Ok(ledger)
    }
}

impl Ledger {
    /// Starts a session and gives its daybook.
    pub fn start(&self, new: &NewSession) -> Result<Daybook, ToolError> {
        let id = self.start_session(new)?;
        let opening = Opening { id, ..Opening::of(new)? };
        let home = self.home().to_owned();
        Ok(Daybook { home, slips: Arc::clone(self.db.slips()), opening, told: AtomicBool::new(true) })
    }

    /// Enters the slips that have gathered.
    pub fn enter_slips(&self) -> Result<(), ToolError> {
        self.db.enter_slips()
    }
}
