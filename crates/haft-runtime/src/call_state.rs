//! What a call's driver shares with the thread that ends the call if it does not stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use haft_ledger::CallRecord;
use haft_tool::{
    CallEnd, Execution, Outcome, Output, Receipt, ReceiptState, ToolError, TraceContext, clip_chars, now_ms,
};

use crate::call::{CallResult, Watch};
use crate::write_order::WriteTurn;

/// The most characters of an error that a receipt keeps.
const MAX_ERROR_CHARS: usize = 2_000;

/// One call, from its request to its result.
pub(crate) struct CallState {
    /// The receipt as it was when the call was made.
    request: Receipt,
    watch: Option<Watch>,
    pub(crate) record: Arc<CallRecord>,
    pub(crate) turn: WriteTurn,
    /// Set by the thread that writes the receipt, so that only one does.
    ended: AtomicBool,
}

impl CallState {
    pub(crate) fn new(request: Receipt, watch: Option<Watch>, record: CallRecord, turn: WriteTurn) -> Self {
        Self { request, watch, record: Arc::new(record), turn, ended: AtomicBool::new(false) }
    }

    /// When the call was made, in milliseconds since 1970.
    pub(crate) fn started_at(&self) -> u64 {
        self.request.started_at
    }

    /// The span that the call belongs to.
    pub(crate) fn trace_parent(&self) -> Option<&TraceContext> {
        self.request.trace_parent.as_ref()
    }

    /// Reports the status to the watcher, if there is one.
    pub(crate) fn report(&self, tool: &str, status: impl FnOnce(String, String) -> Execution) {
        if let Some(watch) = &self.watch {
            watch(&status(self.request.call_id.clone(), tool.to_owned()));
        }
    }

    pub(crate) fn watch(&self) -> Option<&Watch> {
        self.watch.as_ref()
    }

    /// Whether this thread may write the receipt: true only for the first one that asks.
    pub(crate) fn claim_end(&self) -> bool {
        !self.ended.swap(true, Ordering::SeqCst)
    }

    /// Ends a cancelled call that does not stop: it gets its receipt, and further changes are refused.
    pub(crate) fn finish_as_interrupted(&self) -> Option<CallResult> {
        self.end_early(ReceiptState::Interrupted, CallRecord::abandoned())
    }

    /// Ends the call in place of its driver; `None` if it has ended already.
    pub(crate) fn end_early(&self, state: ReceiptState, error: ToolError) -> Option<CallResult> {
        if !self.claim_end() {
            return None;
        }
        let receipt = self.record.abandon(&CallEnd {
            state,
            error_kind: Some(error.kind),
            error: Some(clip_error(&error.message)),
            ..CallEnd::default()
        });
        self.turn.leave();
        let output = Output::from(error);
        Some(match receipt {
            Some(receipt) => self.result(output, receipt),
            None => self.unrecorded(&CallRecord::abandoned()),
        })
    }

    /// The result, reported to the watcher.
    pub(crate) fn result(&self, output: Output, receipt: Receipt) -> CallResult {
        self.report(&receipt.tool, |call_id, tool_name| {
            let outcome = match output.error_kind {
                Some(kind) => Outcome::Error { error: ToolError::new(kind, output.as_text()) },
                None => Outcome::Success { output: output.clone() },
            };
            let (started_at, completed_at) = (self.started_at(), now_ms());
            Execution::Completed { call_id, tool_name, started_at, completed_at, outcome }
        });
        CallResult { call_id: self.request.call_id.clone(), output, receipt, stop: None }
    }

    /// The result of a call whose receipt could not be written: an error, because the call must not look recorded.
    pub(crate) fn unrecorded(&self, error: &ToolError) -> CallResult {
        let done = if self.record.has_begun() {
            "The end of the call could not be recorded, so its result is withheld. The call was performed; `haft log` shows what it \
             changed"
        } else {
            "The call could not be recorded, so its result is withheld. It changed nothing"
        };
        let message = format!("{done}: {}", error.message);
        let mut receipt = self.request.clone();
        receipt.state = ReceiptState::Failed;
        receipt.error = Some(message.clone());
        let output = Output::from(ToolError::new(error.kind, message));
        CallResult { call_id: receipt.call_id.clone(), output, receipt, stop: None }
    }
}

/// An error's message as a receipt keeps it.
pub(crate) fn clip_error(message: &str) -> String {
    clip_chars(message, MAX_ERROR_CHARS, 0).into_owned()
}
