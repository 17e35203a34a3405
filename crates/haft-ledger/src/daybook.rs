//! A session's way to write down calls that changed nothing, without opening the database.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use haft_tool::{Receipt, State, ToolError};

use crate::db::Db;
use crate::home::Home;
use crate::slips::{Opening, Slips};
use crate::{Ledger, NewSession};

/// How much whoever has something else to do comes before the slips that gather.
const GIVES_WAY: i32 = 10;

/// A session's slips.
#[derive(Debug)]
pub struct Daybook {
    home: PathBuf,
    slips: Arc<Slips>,
    opening: Opening,
    /// Whether the session has been told.
    told: AtomicBool,
    /// Whether somebody is entering the slips.
    entering: Arc<AtomicBool>,
}

impl Daybook {
    /// The daybook of a new session; nothing where the ledger has to be opened first.
    pub fn open(home: &Path, new: &NewSession) -> Result<Option<Self>, ToolError> {
        let Some(slips) = Slips::open(home) else { return Ok(None) };
        Ok(Some(Self::new(home.to_owned(), Arc::new(slips), Opening::of(new)?, false)))
    }

    fn new(home: PathBuf, slips: Arc<Slips>, opening: Opening, told: bool) -> Self {
        Self { home, slips, opening, told: AtomicBool::new(told), entering: Arc::default() }
    }

    /// The session's id.
    pub fn session(&self) -> &str {
        &self.opening.id
    }

    /// Writes down that a call begins, or that one has ended that changed nothing, at once or `later`; one without a number
    /// gets it here.
    pub fn note(&self, receipt: &mut Receipt, later: bool) -> Result<(), ToolError> {
        let first = !self.told.swap(true, Ordering::SeqCst);
        let owner = (receipt.state == State::Running).then_some(self.opening.owner.as_str());
        let noted = self.slips.append(first.then_some(&self.opening), owner, receipt, later);
        if first && noted.is_err() {
            self.told.store(false, Ordering::SeqCst);
        }
        self.enter_if(noted?);
        Ok(())
    }

    /// Writes down what was left for later.
    pub fn settle(&self) -> Result<(), ToolError> {
        self.enter_if(self.slips.settle()?);
        Ok(())
    }

    /// Has the slips entered if they are many. Nobody waits for it; if it comes to nothing, whoever looks next does it.
    fn enter_if(&self, many: bool) {
        if !many || self.entering.swap(true, Ordering::SeqCst) {
            return;
        }
        let (home, slips, entering) =
            (self.home.clone(), Arc::clone(&self.slips), Arc::clone(&self.entering));
        std::thread::spawn(move || {
            let _ = rustix::process::setpriority_process(None, GIVES_WAY);
            slips.wait_until_quiet();
            // A database of its own, which is closed again: it takes as much memory as all the rest.
            let entered = open(&home, slips).and_then(|db| db.enter_slips());
            entering.store(false, Ordering::SeqCst);
            entered
        });
    }

    /// The ledger, with the session in it.
    pub fn ledger(&self) -> Result<Ledger, ToolError> {
        let db = open(&self.home, Arc::clone(&self.slips))?;
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
        Ok(Daybook::new(home, Arc::clone(self.db.slips()), opening, true))
    }
}

fn open(home: &Path, slips: Arc<Slips>) -> Result<Db, ToolError> {
    Db::open(Home::prepare(home)?, Some(slips))
}
