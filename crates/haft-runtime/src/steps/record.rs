//! record: what a call will change is in the ledger before it changes, and what it did afterwards.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use haft_ledger::{Ledger, NewSession};
use haft_tool::{Change, Decision, ErrorKind, Receipt, Reversible, ToolError, Value};
use haft_world::{Intent, Journal, hash};

/// Strings longer than this are named in a receipt, not repeated.
const LONGEST_STRING: usize = 4 * 1024;

/// The ledger and this runtime's session in it; both are opened when they are first needed.
pub(crate) struct Book {
    home: PathBuf,
    new: NewSession,
    resumed: Option<String>,
    opened: OnceLock<(Ledger, String)>,
    opening: Mutex<()>,
}

impl Book {
    pub(crate) fn new(home: PathBuf, new: NewSession, resumed: Option<String>) -> Self {
        Self { home, new, resumed, opened: OnceLock::new(), opening: Mutex::new(()) }
    }

    fn open(&self) -> Result<&(Ledger, String), ToolError> {
        if let Some(opened) = self.opened.get() {
            return Ok(opened);
        }
        let _one = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        if self.opened.get().is_none() {
            let ledger = Ledger::open(&self.home)?;
            let session = match &self.resumed {
                Some(id) => ledger.session(id)?.id,
                None => ledger.start_session(&self.new)?,
            };
            let _ = self.opened.set((ledger, session));
        }
        self.opened.get().ok_or_else(|| ToolError::internal("the ledger did not open"))
    }

    pub(crate) fn ledger(&self) -> Result<&Ledger, ToolError> {
        self.open().map(|(ledger, _)| ledger)
    }

    pub(crate) fn session(&self) -> Result<&str, ToolError> {
        self.open().map(|(_, session)| session.as_str())
    }
}

/// One call's page: what it meant to change, what it did change, what will not come back.
pub(crate) struct Page {
    book: Arc<Book>,
    receipt: Mutex<Receipt>,
    done: Mutex<(Vec<Change>, Vec<String>)>,
    /// Set with the last line, under the receipt's lock: nothing is changed in the name of a call that has ended.
    closed: AtomicBool,
}

impl Page {
    pub(crate) fn new(book: Arc<Book>, receipt: Receipt) -> Self {
        Self { book, receipt: Mutex::new(receipt), done: Mutex::default(), closed: AtomicBool::new(false) }
    }

    /// Writes down what was decided.
    pub(crate) fn decided(&self, decision: Decision) {
        self.receipt.lock().unwrap_or_else(PoisonError::into_inner).decision = Some(decision);
    }

    /// Writes down that the call was cancelled and did not stop. What it meant to change may be changed or not; it is
    /// told as it was meant, and nothing more can be changed.
    /// `None` if the call came to its end just now.
    pub(crate) fn abandon(&self, end: impl FnOnce(&mut Receipt)) -> Option<Receipt> {
        let mut receipt = self.receipt.lock().unwrap_or_else(PoisonError::into_inner);
        self.close().ok()?;
        end(&mut receipt);
        let recorded = self.book.open().and_then(|(ledger, session)| {
            receipt.session.clone_from(session);
            ledger.finish(&mut receipt)
        });
        if let Err(error) = recorded {
            // The caller must not wait any longer all the same; the next recovery tells what became of the call.
            receipt.error = Some(format!("{}; it could not be recorded: {error}", abandoned()));
        }
        Some(receipt.clone())
    }

    fn close(&self) -> Result<(), ToolError> {
        if self.closed.swap(true, Ordering::SeqCst) { Err(abandoned()) } else { Ok(()) }
    }

    /// Writes down that the call is under way, so that a crash leaves a trace.
    pub(crate) fn begin(&self) -> Result<(), ToolError> {
        let (ledger, session) = self.book.open()?;
        let mut receipt = self.receipt.lock().unwrap_or_else(PoisonError::into_inner);
        receipt.session.clone_from(session);
        ledger.begin(&mut receipt)
    }

    /// Writes down how the call ended and gives the receipt.
    pub(crate) fn finish(
        &self,
        end: impl FnOnce(&mut Receipt),
        full_output: Option<&str>,
    ) -> Result<Receipt, ToolError> {
        let (ledger, session) = self.book.open()?;
        let mut receipt = self.receipt.lock().unwrap_or_else(PoisonError::into_inner);
        self.close()?;
        receipt.session.clone_from(session);
        let (changes, losses) =
            std::mem::take(&mut *self.done.lock().unwrap_or_else(PoisonError::into_inner));
        receipt.changes = changes;
        if !losses.is_empty() && receipt.reversible == Reversible::Yes {
            receipt.reversible = Reversible::Partly { why: losses.join("; ") };
        }
        if let Some(text) = full_output {
            receipt.full_output = Some(ledger.keep(text.as_bytes())?);
        }
        end(&mut receipt);
        ledger.finish(&mut receipt)?;
        Ok(receipt.clone())
    }
}

impl Journal for Page {
    fn before(&self, intents: &[Intent<'_>]) -> Result<(), ToolError> {
        let (ledger, session) = self.book.open()?;
        let mut receipt = self.receipt.lock().unwrap_or_else(PoisonError::into_inner);
        if self.closed.load(Ordering::SeqCst) {
            return Err(abandoned());
        }
        receipt.session.clone_from(session);
        let intents: Vec<haft_ledger::Intent<'_>> = intents
            .iter()
            .map(|intent| haft_ledger::Intent {
                change: &intent.change,
                before: intent.before,
                temp: intent.temp.as_deref(),
            })
            .collect();
        ledger.before_changes(&mut receipt, &intents)
    }

    fn changed(&self, change: Change) {
        self.done.lock().unwrap_or_else(PoisonError::into_inner).0.push(change);
    }

    fn not_reversible(&self, why: String) {
        self.done.lock().unwrap_or_else(PoisonError::into_inner).1.push(why);
    }
}

/// What a call is told that goes on after it was given up.
pub(crate) fn abandoned() -> ToolError {
    ToolError::new(ErrorKind::Interrupted, "The call was cancelled, did not stop, and was given up")
}

/// The arguments as a receipt keeps them: long strings by size and hash.
pub(crate) fn kept_input(value: &Value) -> Value {
    match value {
        Value::String(text) if text.len() > LONGEST_STRING => {
            Value::String(format!("<{} bytes, blake3 {}>", text.len(), hash(text.as_bytes())))
        }
        Value::Array(items) => Value::Array(items.iter().map(kept_input).collect()),
        Value::Object(members) => {
            Value::Object(members.iter().map(|(name, value)| (name.clone(), kept_input(value))).collect())
        }
        other => other.clone(),
    }
}
