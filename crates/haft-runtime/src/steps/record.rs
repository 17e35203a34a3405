//! record: what a call will change is in the ledger before it changes, and what it did afterwards.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use haft_files::hash;
use haft_ledger::{Bytes, Daybook, Ledger, NewSession, Spool};
use haft_tool::{Before, Image, Intent, Record};
use haft_tool::{
    Change, Decision, Denial, ErrorKind, Notes, Receipt, Reversible, Text, ToolError, Value, lock, now_ms,
};

/// Strings longer than this are named in a receipt, not repeated.
const LONGEST_STRING: usize = 4 * 1024;

/// The ledger and this runtime's session in it; each is opened when it is first needed. Calls that change nothing need only
/// the daybook.
pub(crate) struct Book {
    home: PathBuf,
    new: NewSession,
    resumed: Option<String>,
    daybook: OnceLock<Daybook>,
    opened: OnceLock<(Ledger, String)>,
    opening: Mutex<()>,
}

impl Book {
    pub(crate) fn new(home: PathBuf, new: NewSession, resumed: Option<String>) -> Self {
        let (daybook, opened, opening) = (OnceLock::new(), OnceLock::new(), Mutex::new(()));
        Self { home, new, resumed, daybook, opened, opening }
    }

    fn open(&self) -> Result<&(Ledger, String), ToolError> {
        if let Some(opened) = self.opened.get() {
            return Ok(opened);
        }
        let _one = lock(&self.opening);
        if self.opened.get().is_none() {
            let opened = match (&self.resumed, self.daybook.get()) {
                (None, Some(daybook)) => (daybook.ledger()?, daybook.session().to_owned()),
                (Some(id), _) => {
                    let ledger = Ledger::open(&self.home)?;
                    let id = ledger.session(id)?.id;
                    (ledger, id)
                }
                (None, _) => {
                    let ledger = Ledger::open(&self.home)?;
                    let daybook = ledger.start(&self.new)?;
                    let id = daybook.session().to_owned();
                    let _ = self.daybook.set(daybook);
                    (ledger, id)
                }
            };
            let _ = self.opened.set(opened);
        }
        self.opened.get().ok_or_else(|| ToolError::internal("the ledger did not open"))
    }

    pub(crate) fn ledger(&self) -> Result<&Ledger, ToolError> {
        self.open().map(|(ledger, _)| ledger)
    }

    pub(crate) fn session(&self) -> Result<&str, ToolError> {
        match self.daybook()? {
            Some(daybook) => Ok(daybook.session()),
            None => self.open().map(|(_, session)| session.as_str()),
        }
    }

    /// Where calls that change nothing are written down; nothing if the session goes on with an earlier one.
    fn daybook(&self) -> Result<Option<&Daybook>, ToolError> {
        if self.resumed.is_some() {
            return Ok(None);
        }
        if let Some(daybook) = self.daybook.get() {
            return Ok(Some(daybook));
        }
        {
            let _one = lock(&self.opening);
            if self.daybook.get().is_none()
                && let Some(daybook) = Daybook::open(&self.home, &self.new)?
            {
                let _ = self.daybook.set(daybook);
            }
        }
        if self.daybook.get().is_none() {
            // There is no ledger here yet, so one is made.
            self.open()?;
        }
        Ok(self.daybook.get())
    }

    /// Writes down that a call begins, or one that changed nothing; not at all if the session goes on with an earlier one.
    fn note(&self, receipt: &mut Receipt, later: bool) -> Result<bool, ToolError> {
        let Some(daybook) = self.daybook()? else { return Ok(false) };
        daybook.session().clone_into(&mut receipt.session);
        daybook.note(receipt, later)?;
        Ok(true)
    }

    /// Writes down what was left for later.
    pub(crate) fn settle(&self) -> Result<(), ToolError> {
        self.daybook.get().map_or(Ok(()), Daybook::settle)
    }
}

/// What a call has done so far.
#[derive(Default)]
struct Done {
    changes: Vec<Change>,
    losses: Vec<String>,
    /// Whether a command's changes were witnessed, so that they can be taken back.
    witnessed: bool,
    enforcement: Option<String>,
    denials: Vec<Denial>,
    notes: serde_json::Map<String, Value>,
}

/// One call's page: what it meant to change, what it did change, what will not come back.
pub(crate) struct Page {
    book: Arc<Book>,
    receipt: Mutex<Receipt>,
    done: Mutex<Done>,
    /// What the call's command is about to touch, as long as it runs.
    spool: Mutex<Option<Spool>>,
    /// Set with the last line, under the receipt's lock: nothing is changed in the name of a call that has ended.
    closed: AtomicBool,
}

impl Page {
    pub(crate) fn new(book: Arc<Book>, receipt: Receipt) -> Self {
        let (done, spool, closed) = (Mutex::default(), Mutex::default(), AtomicBool::new(false));
        Self { book, receipt: Mutex::new(receipt), done, spool, closed }
    }

    /// Writes down what was decided.
    pub(crate) fn decided(&self, decision: Decision) {
        lock(&self.receipt).decision = Some(decision);
    }

    /// Writes down that the call was cancelled and did not stop. What it meant to change may be changed or not; it is
    /// told as it was meant, and nothing more can be changed.
    /// `None` if the call came to its end just now.
    pub(crate) fn abandon(&self, end: impl FnOnce(&mut Receipt)) -> Option<Receipt> {
        let mut receipt = lock(&self.receipt);
        self.close().ok()?;
        end(&mut receipt);
        let recorded = self.book.open().and_then(|(ledger, session)| {
            receipt.session.clone_from(session);
            receipt.enforcement = self.done().enforcement.take();
            match &*self.spool() {
                // Its command may change files that it has open; the next recovery looks what it did.
                Some(_) => ledger.abandon(&mut receipt),
                None => ledger.finish(&mut receipt),
            }
        });
        if let Err(error) = recorded {
            // The caller must not wait any longer all the same; the next recovery tells what became of the call.
            receipt.error = Some(format!("{}; it could not be recorded: {error}", abandoned()));
        }
        Some(receipt.clone())
    }

    /// The page of a task that the call starts, under way, and its number. The call itself then has nothing to take back
    /// but what it does besides.
    pub(crate) fn for_task(&self) -> Result<(Self, i64), ToolError> {
        let mut receipt = lock(&self.receipt).clone();
        if self.closed.load(Ordering::SeqCst) {
            return Err(abandoned());
        }
        receipt.id = 0;
        receipt.call_id.push_str("/task");
        receipt.started_at = now_ms();
        let task = Self::new(Arc::clone(&self.book), receipt);
        task.begin()?;
        self.done().witnessed = true;
        let number = lock(&task.receipt).id;
        Ok((task, number))
    }

    fn close(&self) -> Result<(), ToolError> {
        if self.closed.swap(true, Ordering::SeqCst) { Err(abandoned()) } else { Ok(()) }
    }

    /// Writes down that the call is under way, so that a crash leaves a trace.
    pub(crate) fn begin(&self) -> Result<(), ToolError> {
        let mut receipt = lock(&self.receipt);
        if self.book.note(&mut receipt, false)? {
            return Ok(());
        }
        let (ledger, session) = self.book.open()?;
        receipt.session.clone_from(session);
        ledger.begin(&mut receipt)
    }

    /// Writes down how the call ended, if it changed nothing perhaps `later`, and gives the receipt, which nobody looks at
    /// here any more.
    pub(crate) fn finish(
        &self,
        end: impl FnOnce(&mut Receipt),
        full_output: Option<&str>,
        later: bool,
    ) -> Result<Receipt, ToolError> {
        let mut receipt = lock(&self.receipt);
        self.close()?;
        let Done { changes, losses, witnessed, enforcement, denials, notes } =
            std::mem::take(&mut *self.done());
        receipt.changes = changes;
        receipt.enforcement = enforcement;
        receipt.denials = denials;
        receipt.notes = notes;
        if witnessed {
            receipt.reversible = Reversible::Yes;
        }
        if !losses.is_empty() && receipt.reversible == Reversible::Yes {
            receipt.reversible = Reversible::Partly { why: losses.join("; ") };
        }
        let spool = self.spool().take();
        let nothing = receipt.changes.is_empty() && receipt.notes.is_empty() && receipt.undoes.is_empty();
        if nothing && spool.is_none() && full_output.is_none() {
            end(&mut receipt);
            if !self.book.note(&mut receipt, later)? {
                // A session that goes on with an earlier one writes everything where that one did.
                let (ledger, session) = self.book.open()?;
                receipt.session.clone_from(session);
                ledger.finish(&mut receipt)?;
            }
            return Ok(std::mem::take(&mut receipt));
        }
        let (ledger, session) = self.book.open()?;
        receipt.session.clone_from(session);
        if let Some(text) = full_output {
            receipt.full_output = Some(ledger.keep(text.as_bytes())?);
        }
        end(&mut receipt);
        match spool {
            Some(spool) => ledger.finish_witnessed(&mut receipt, &spool)?,
            None => ledger.finish(&mut receipt)?,
        }
        Ok(std::mem::take(&mut receipt))
    }

    fn done(&self) -> MutexGuard<'_, Done> {
        lock(&self.done)
    }

    fn spool(&self) -> MutexGuard<'_, Option<Spool>> {
        lock(&self.spool)
    }

    /// Writes into the call's spool, which is opened when it is first needed.
    fn spooled(&self, write: impl FnOnce(&mut Spool) -> Result<(), ToolError>) -> Result<(), ToolError> {
        let mut spool = self.spool();
        if spool.is_none() {
            // Whoever ends the call takes the receipt first and then the spool, so it is the same way here.
            drop(spool);
            let opened = self.open_spool()?;
            spool = self.spool();
            spool.get_or_insert(opened);
        }
        // Looked at while the spool is held: whoever closes the page afterwards finds what is written here.
        if self.closed.load(Ordering::SeqCst) {
            return Err(abandoned());
        }
        spool.as_mut().map_or_else(|| Err(ToolError::internal("no spool is open")), write)
    }

    fn open_spool(&self) -> Result<Spool, ToolError> {
        let (ledger, session) = self.book.open()?;
        let mut receipt = lock(&self.receipt);
        if self.closed.load(Ordering::SeqCst) {
            return Err(abandoned());
        }
        if receipt.id == 0 {
            receipt.session.clone_from(session);
            ledger.begin(&mut receipt)?;
        }
        ledger.spool(receipt.id)
    }
}

impl Record for Page {
    fn before(&self, intents: &[Intent<'_>]) -> Result<(), ToolError> {
        let (ledger, session) = self.book.open()?;
        let mut receipt = lock(&self.receipt);
        if self.closed.load(Ordering::SeqCst) {
            return Err(abandoned());
        }
        receipt.session.clone_from(session);
        let intents: Vec<haft_ledger::Intent<'_>> = intents
            .iter()
            .map(|intent| haft_ledger::Intent {
                change: &intent.change,
                before: bytes(intent.before),
                temp: intent.temp.as_deref(),
            })
            .collect();
        ledger.before_changes(&mut receipt, &intents)
    }

    fn changed(&self, change: Change) {
        self.done().changes.push(change);
    }

    fn not_reversible(&self, why: String) {
        self.done().losses.push(why);
    }

    fn witness(&self, before: &Before<'_>) -> Result<(), ToolError> {
        self.spooled(|spool| spool.keep(before.path, before.node, bytes(before.bytes)))
    }

    fn moving(&self, from: &Path, to: &Path) -> Result<(), ToolError> {
        self.spooled(|spool| spool.moving(from, to))
    }

    fn stayed(&self) -> Result<(), ToolError> {
        self.spooled(Spool::stayed)
    }

    fn witnessed(&self, changes: Vec<Change>) -> Result<(), ToolError> {
        let mut done = self.done();
        done.witnessed = true;
        if done.changes.is_empty() {
            done.changes = changes;
        } else {
            done.changes.extend(changes);
        }
        Ok(())
    }

    fn enforced(&self, how: String) {
        self.done().enforcement = Some(how);
    }

    fn refused(&self, denials: &[Denial]) {
        self.done().denials.extend_from_slice(denials);
    }
}

impl Notes for Page {
    fn note(&self, name: &str) -> Result<Option<Value>, ToolError> {
        if let Some(own) = self.done().notes.get(name) {
            return Ok(Some(own.clone()));
        }
        let (ledger, session) = self.book.open()?;
        ledger.note(session, name)
    }

    fn take_note(&self, name: &str, note: Value) -> Result<(), ToolError> {
        self.done().notes.insert(name.to_owned(), note);
        Ok(())
    }
}

fn bytes(image: Image<'_>) -> Bytes<'_> {
    match image {
        Image::None => Bytes::None,
        Image::Small(bytes) => Bytes::Held(bytes),
        Image::Large(file) => Bytes::In(file),
    }
}

/// What a call is told that goes on after it was given up.
pub(crate) fn abandoned() -> ToolError {
    ToolError::new(ErrorKind::Interrupted, "The call was cancelled, did not stop, and was given up")
}

/// A text as the ledger keeps it: with words where something is missing.
pub(crate) fn with_gap(text: &Text) -> String {
    let mut kept = text.head.clone();
    if text.missing_bytes > 0 {
        kept.push_str(&format!("\n[... {} bytes were not kept ...]\n", text.missing_bytes));
    }
    kept.push_str(&text.tail);
    kept
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

#[cfg(test)]
mod tests;
