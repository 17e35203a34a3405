//! The record of one call while it is performed: the ledger's implementation of [`Record`].

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use haft_policy::build_files;
use haft_tool::{
    CallEnd, Change, Denial, DirectoryEvent, ErrorKind, Exit, FileContent, FileId, FileNode, GitBlob,
    GitObjectEvent, Hash, Intent, LiveOutput, Node, Receipt, ReceiptState, Record, Reversible, StagedStep,
    ToolError, Value, lock, now_ms,
};

use crate::blobs::MAX_ROW_BYTES;
use crate::handle::{ContentReader, LedgerHandle};
use crate::live_text::LiveSource;
use crate::receipts::CallTexts;
use crate::spool::{Spool, spool_path};
use crate::undo::unrestorable;

/// Further reasons why a call cannot be undone completely are only counted.
const MAX_LISTED_LOSSES: usize = 20;
/// The file in the ledger's directory by whose locks calls that write the same path take turns. It stays empty.
const WRITE_LOCKS: &str = "writes.lock";
/// The new contents of a call that changed more paths than this are not kept: a build or an installation can be repeated.
const MAX_KEPT_CONTENTS: usize = 100;

/// Collects what one call reports, and writes its receipt.
#[derive(Debug)]
pub struct CallRecord {
    handle: Arc<LedgerHandle>,
    start: Instant,
    state: Mutex<RecordState>,
}

/// What the call has reported so far.
#[derive(Debug)]
struct RecordState {
    /// Until the call has ended, its changes are those that were intended.
    receipt: Receipt,
    /// The changes that were made.
    made: Vec<Change>,
    losses: Vec<String>,
    /// Whether a command's changes were witnessed, so that they can be undone.
    witnessed: bool,
    /// What the call's command is about to touch, while it runs.
    spool: Option<Spool>,
    /// Whether the receipt was written. Nothing may be changed by a call that has ended.
    closed: bool,
}

impl CallRecord {
    /// The record of a call of the handle's session; nothing is written yet.
    pub fn new(handle: Arc<LedgerHandle>, receipt: Receipt) -> Self {
        let state = RecordState {
            receipt,
            made: Vec::new(),
            losses: Vec::new(),
            witnessed: false,
            spool: None,
            closed: false,
        };
        Self { handle, start: Instant::now(), state: Mutex::new(state) }
    }

    /// Changes the receipt of a call that has not ended.
    pub fn update(&self, change: impl FnOnce(&mut Receipt)) {
        change(&mut self.state().receipt);
    }

    /// Writes that the call is running, so that a crash leaves a trace, and returns its number.
    pub fn begin(&self) -> Result<i64, ToolError> {
        self.begin_in(&mut *self.open()?)
    }

    /// Whether the ledger has the call, and with it what the call is going to change.
    pub fn has_begun(&self) -> bool {
        self.state().receipt.id != 0
    }

    fn begin_in(&self, state: &mut RecordState) -> Result<i64, ToolError> {
        let receipt = &mut state.receipt;
        if receipt.id == 0 {
            let (ledger, session) = self.handle.open()?;
            session.clone_into(&mut receipt.session);
            ledger.begin(receipt)?;
        }
        Ok(receipt.id)
    }

    /// Writes how the call ended, and returns the receipt.
    pub fn finish(&self, end: &CallEnd) -> Result<Receipt, ToolError> {
        let mut state = self.open()?;
        state.closed = true;
        let RecordState { receipt, made, losses, witnessed, spool, .. } = &mut *state;
        receipt.changes = std::mem::take(made);
        losses.extend(unrestorable(&receipt.changes));
        receipt.runs_on_build = build_files(&receipt.changes, &receipt.workspace);
        if *witnessed {
            receipt.reversible = Reversible::Yes;
        }
        if !losses.is_empty() && receipt.reversible == Reversible::Yes {
            receipt.reversible = Reversible::Partly { why: summary(losses) };
        }
        let (ledger, session) = self.handle.open()?;
        session.clone_into(&mut receipt.session);
        self.set_end(receipt, end);
        let contents = self.handle.content_reader().map(|read| new_contents(&receipt.changes, read));
        let texts = CallTexts { contents: &contents.unwrap_or_default(), ..texts(end) };
        ledger.finish(receipt, texts, spool.take().as_ref())?;
        Ok(std::mem::take(receipt))
    }

    /// Writes that the call was cancelled and did not stop; from now on it can change nothing. Its intended changes
    /// may or may not have been made. `None` if the call has just ended.
    pub fn abandon(&self, end: &CallEnd) -> Option<Receipt> {
        let mut state = self.open().ok()?;
        state.closed = true;
        let RecordState { receipt, spool, .. } = &mut *state;
        self.set_end(receipt, end);
        let recorded = self.handle.open().and_then(|(ledger, session)| {
            session.clone_into(&mut receipt.session);
            match spool {
                // The command may still write to files that it has open; the next recovery determines its changes.
                Some(_) => ledger.abandon(receipt),
                None => ledger.finish(receipt, texts(end), None),
            }
        });
        if let Err(error) = recorded {
            // The caller gets its result anyway; the next recovery writes the receipt.
            receipt.error = Some(format!("{}; it could not be recorded: {error}", Self::abandoned()));
        }
        Some(receipt.clone())
    }

    /// The error of a call that goes on after it was abandoned.
    pub fn abandoned() -> ToolError {
        ToolError::new(ErrorKind::Interrupted, "The call was cancelled, did not stop, and was given up")
    }

    fn set_end(&self, receipt: &mut Receipt, end: &CallEnd) {
        receipt.state = end.state;
        receipt.error_kind = end.error_kind;
        receipt.error.clone_from(&end.error);
        receipt.duration_us = u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX);
    }

    fn state(&self) -> MutexGuard<'_, RecordState> {
        lock(&self.state)
    }

    /// The state of a call that has not ended.
    fn open(&self) -> Result<MutexGuard<'_, RecordState>, ToolError> {
        let state = self.state();
        if state.closed { Err(Self::abandoned()) } else { Ok(state) }
    }

    /// Writes into the call's spool, which is created at first use.
    fn spooled<T>(&self, write: impl FnOnce(&mut Spool) -> Result<T, ToolError>) -> Result<T, ToolError> {
        let mut state = self.open()?;
        if state.spool.is_none() {
            let id = self.begin_in(&mut state)?;
            state.spool = Some(self.handle.ledger()?.spool(id)?);
        }
        state.spool.as_mut().map_or_else(|| Err(ToolError::internal("no spool is open")), write)
    }
}

/// The first losses, and how many more there are.
fn summary(losses: &[String]) -> String {
    match losses.split_at_checked(MAX_LISTED_LOSSES) {
        Some((listed, more)) if !more.is_empty() => format!("{}; and {} more", listed.join("; "), more.len()),
        _ => losses.join("; "),
    }
}

fn texts(end: &CallEnd) -> CallTexts<'_> {
    CallTexts { result: end.result.as_deref(), full_output: end.full_output.as_deref(), contents: &[] }
}

/// The new contents of small files, which diffs, `blame` and the merge of a conflict need once the files have changed again.
fn new_contents(changes: &[Change], read: ContentReader) -> Vec<Vec<u8>> {
    if changes.len() > MAX_KEPT_CONTENTS {
        return Vec::new();
    }
    let is_small = |file: &&FileNode| !file.hash.is_empty() && file.size <= MAX_ROW_BYTES as u64;
    let files = changes.iter().filter_map(|change| {
        let file = change.after.as_file().filter(is_small)?;
        let bytes = read(&change.path, MAX_ROW_BYTES as u64)?;
        // Another program may have changed it already.
        (blake3::hash(&bytes).to_hex().as_str() == file.hash).then_some(bytes)
    });
    files.collect()
}

impl Record for CallRecord {
    fn intend(&self, intents: &mut [Intent<'_>]) -> Result<(), ToolError> {
        let (ledger, session) = self.handle.open()?;
        let mut state = self.open()?;
        session.clone_into(&mut state.receipt.session);
        ledger.intend(&mut state.receipt, intents)
    }

    fn changed(&self, change: Change) {
        self.state().made.push(change);
    }

    fn lock_file(&self) -> Result<Option<PathBuf>, ToolError> {
        Ok(Some(self.handle.ledger()?.home().join(WRITE_LOCKS)))
    }

    fn spool_file(&self) -> Result<Option<PathBuf>, ToolError> {
        let id = self.spooled(|spool| Ok(spool.receipt()))?;
        Ok(Some(spool_path(self.handle.ledger()?.db.dir(), id)))
    }

    fn unwitnessed(&self) -> Result<(), ToolError> {
        self.spooled(Spool::unwitnessed)
    }

    fn not_reversible(&self, reason: String) {
        self.state().losses.push(reason);
    }

    fn witness(
        &self,
        path: &Path,
        node: &Node,
        content: FileContent<'_>,
    ) -> Result<Option<(Hash, u64)>, ToolError> {
        self.spooled(|spool| spool.before(path, false, node, content))
    }

    fn witness_in_new(
        &self,
        path: &Path,
        node: &Node,
        content: FileContent<'_>,
    ) -> Result<Option<(Hash, u64)>, ToolError> {
        self.spooled(|spool| spool.before(path, true, node, content))
    }

    fn witness_directory(&self, event: DirectoryEvent<'_>) -> Result<(), ToolError> {
        self.spooled(|spool| spool.directory(event))
    }

    fn witness_own(&self, file: FileId, is_own: bool) -> Result<(), ToolError> {
        self.spooled(|spool| spool.own(file, is_own))
    }

    fn cancel_directory(&self) -> Result<(), ToolError> {
        self.spooled(Spool::cancel_directory)
    }

    fn stored_content(&self, hash: &str) -> Result<Option<Vec<u8>>, ToolError> {
        let id = self.receipt_id();
        if id == 0 { Ok(None) } else { self.handle.ledger()?.spooled_content(id, hash) }
    }

    fn files_before_calls(&self, hash: &str) -> Result<Vec<(PathBuf, FileNode)>, ToolError> {
        self.handle.ledger()?.files_before_calls(hash)
    }

    fn is_from_call(
        &self,
        hash: &str,
        was_judged: &dyn Fn(&Path, &FileNode) -> bool,
    ) -> Result<bool, ToolError> {
        self.handle.ledger()?.is_from_call(hash, was_judged)
    }

    fn runs_beside_another(&self, changed_at: u64) -> Result<bool, ToolError> {
        Ok(self.handle.ledger()?.runs_beside_another(self.receipt_id(), changed_at))
    }

    fn was_followed(&self) -> Result<bool, ToolError> {
        self.handle.ledger()?.was_followed(self.receipt_id())
    }

    fn keep_index(&self, content: &mut dyn Read) -> Result<(), ToolError> {
        self.spooled(|spool| spool.keep(content))
    }

    fn blob_events(&self, blob: &GitBlob<'_>) -> Result<Vec<GitObjectEvent>, ToolError> {
        self.handle.ledger()?.blob_events(blob)
    }

    fn begin_restore(&self, steps: &[StagedStep]) -> Result<(), ToolError> {
        self.spooled(|spool| spool.begin_restore(steps))
    }

    fn restore_step(&self, made: usize) -> Result<(), ToolError> {
        self.spooled(|spool| spool.restore_step(made))
    }

    fn end_restore(&self) -> Result<(), ToolError> {
        self.spooled(Spool::end_restore)
    }

    fn witnessed(&self, changes: Vec<Change>) {
        let mut state = self.state();
        state.witnessed = true;
        if state.made.is_empty() {
            state.made = changes;
        } else {
            state.made.extend(changes);
        }
    }

    fn enforced(&self, how: String) {
        self.state().receipt.enforcement = Some(how);
    }

    fn refused(&self, denials: &[Denial]) {
        self.state().receipt.denials.extend_from_slice(denials);
    }

    fn exited(&self, exit: Exit) {
        self.state().receipt.exit_code = Some(exit.code());
    }

    fn open_task(&self) -> Result<Arc<dyn Record>, ToolError> {
        if self.has_begun() {
            self.unwitnessed()?;
        }
        let mut state = self.open()?;
        let started = &state.receipt;
        let mut receipt = started.clone();
        receipt.id = 0;
        receipt.call_id.push_str("/task");
        receipt.started_at = now_ms();
        receipt.state = ReceiptState::Running;
        receipt.changes.clear();
        receipt.denials.clear();
        receipt.notes.clear();
        receipt.exit_code = None;
        let task = Self::new(Arc::clone(&self.handle), receipt);
        task.begin()?;
        // The task's changes are on its own receipt, so the call itself has nothing irreversible.
        state.witnessed = true;
        Ok(Arc::new(task))
    }

    fn live_output(&self) -> Option<Box<dyn LiveOutput>> {
        let id = self.receipt_id();
        let writer = (id != 0).then(|| self.handle.ledger()?.begin_live_text(LiveSource::Call(id)))?;
        Some(Box::new(writer.ok()?))
    }

    fn receipt_id(&self) -> i64 {
        self.state().receipt.id
    }

    fn finish_task(&self, end: CallEnd) -> Result<(), ToolError> {
        self.finish(&end).map(drop)
    }

    fn note(&self, name: &str) -> Result<Option<Value>, ToolError> {
        if let Some(own) = self.state().receipt.notes.get(name) {
            return Ok(Some(own.clone()));
        }
        let (ledger, session) = self.handle.open()?;
        ledger.note(session, name)
    }

    fn set_note(&self, name: &str, value: Value) {
        self.state().receipt.notes.insert(name.to_owned(), value);
    }
}
