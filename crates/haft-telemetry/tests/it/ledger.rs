//! A ledger with calls, and its listener.

use std::path::Path;
use std::sync::{Arc, Mutex};

use haft_ledger::{
    CallRecord, EventLog, Expected, Ledger, LedgerHandle, LedgerListener, LedgerWrite, NewSession,
    SessionChoice,
};
use haft_telemetry::{ContentCapture, TelemetryResource, session_batches, session_spans, trace_request};
use haft_tool::{CallEnd, ErrorKind, Receipt, ReceiptState, TraceContext, json, now_ms};

/// A ledger with a session of the dialect `claude`.
pub(crate) struct LedgerFixture {
    _dir: tempfile::TempDir,
    handle: Arc<LedgerHandle>,
    pub(crate) ledger: Ledger,
    pub(crate) session: String,
}

impl LedgerFixture {
    pub(crate) fn new() -> Self {
        Self::with(|handle| handle)
    }

    fn with(change: impl FnOnce(LedgerHandle) -> LedgerHandle) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let handle = Arc::new(change(handle(&dir.path().join("home"))));
        let (ledger, session) = (handle.ledger().unwrap().clone(), handle.session().unwrap().to_owned());
        Self { _dir: dir, handle, ledger, session }
    }

    /// A call that has begun.
    pub(crate) fn begin(&self, change: impl FnOnce(&mut Receipt)) -> CallRecord {
        let mut receipt = Receipt::new("call_1", "Bash", "/w", now_ms());
        change(&mut receipt);
        let record = CallRecord::new(Arc::clone(&self.handle), receipt);
        record.begin().unwrap();
        record
    }

    /// A call of a tool that has ended in this way.
    pub(crate) fn call(&self, tool: &str, error: Option<ErrorKind>) -> Receipt {
        end(&self.begin(|receipt| tool.clone_into(&mut receipt.tool)), error)
    }
}

pub(crate) fn end(record: &CallRecord, error: Option<ErrorKind>) -> Receipt {
    let state = if error.is_some() { ReceiptState::Failed } else { ReceiptState::Completed };
    record.finish(&CallEnd { state, error_kind: error, ..CallEnd::default() }).unwrap()
}

fn handle(home: &Path) -> LedgerHandle {
    let new = NewSession { workspace: "/w".into(), dialect: "claude".into(), entry_point: "cli".into() };
    LedgerHandle::new(home.to_owned(), new, SessionChoice::New)
}

#[test]
fn a_listener_is_told_of_calls_that_end_and_of_events_and_of_nothing_else() {
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let sink = Arc::clone(&heard);
    let listener = LedgerListener::new(move |write| {
        let text = match write {
            LedgerWrite::CallEnded { call, .. } => format!("call {call}"),
            LedgerWrite::Event { seq, .. } => format!("event {seq}"),
            _ => "other".to_owned(),
        };
        sink.lock().unwrap().push(text);
    });
    let fixture = LedgerFixture::with(|handle| handle.with_listener(listener));
    let record = fixture.begin(|_| {});
    assert!(heard.lock().unwrap().is_empty());
    end(&record, None);
    fixture.ledger.append(&fixture.session, Expected::Any, &json!({"event": "later"})).unwrap();
    assert_eq!(*heard.lock().unwrap(), ["call 1", "event 1"]);
}

#[test]
fn a_call_is_below_the_span_that_its_receipt_names_and_has_nothing_of_its_content() {
    let fixture = LedgerFixture::new();
    let parent =
        TraceContext::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", None).unwrap();
    let record = fixture.begin(|receipt| {
        receipt.trace_parent = Some(parent.clone());
        receipt.input = json!({"command": "echo canary"});
        receipt.workspace = "/canary".into();
    });
    end(&record, Some(ErrorKind::Timeout));
    // The name of a tool that does not exist was written by a model.
    fixture.call("canary", Some(ErrorKind::NotFound));
    let info = fixture.ledger.session(&fixture.session).unwrap();
    let mut spans = Vec::new();
    session_spans(&fixture.ledger, &info, None, &mut |span| {
        spans.push(span);
        Ok(())
    })
    .unwrap();
    assert_eq!(spans.len(), 2);
    assert!(!format!("{spans:?}").contains("canary"));
    let of = spans.iter().find(|span| span.name == "execute_tool Bash").unwrap();
    assert_eq!((of.context.trace_id, of.parent), (parent.trace_id, Some(parent.span_id)));
    assert_eq!(of.error.as_deref(), Some("timeout"));
    let unknown = spans.iter().find(|span| span.name == "execute_tool unknown").unwrap();
    assert_eq!(unknown.parent, None);
    assert_ne!(unknown.context.trace_id, parent.trace_id);
}

#[test]
fn a_session_with_long_contents_is_sent_in_requests_that_collectors_take() {
    let fixture = LedgerFixture::new();
    for _ in 0..600 {
        let call = |receipt: &mut Receipt| receipt.input = json!({ "command": "tea ".repeat(10_000) });
        end(&fixture.begin(call), None);
    }
    let info = fixture.ledger.session(&fixture.session).unwrap();
    let (mut spans, mut sizes) = (0, Vec::new());
    session_batches(&fixture.ledger, &info, Some(&ContentCapture::new([])), &mut |batch| {
        spans += batch.len();
        sizes.push(trace_request(&TelemetryResource::default(), batch).len());
        Ok(())
    })
    .unwrap();
    assert_eq!(spans, 600);
    assert!(sizes.len() > 1 && sizes.iter().all(|size| *size <= 4 << 20), "{sizes:?}");
}
