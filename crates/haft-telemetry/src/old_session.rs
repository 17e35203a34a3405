//! The spans of a recorded session and its subagents, from the ledger.

use std::collections::HashMap;

use haft_agent::{LoggedEvent, RunEvent, agent_entry_point};
use haft_ledger::{EventLog, Ledger, ReceiptQuery, SessionInfo};
use haft_tool::{ErrorKind, ToolError, TraceContext};

use crate::call_span::call_span;
use crate::content::ContentCapture;
use crate::run_spans::RunSpans;
use crate::span::ExportedSpan;
use crate::span_queue::SpanQueue;

/// How many rows are read at once.
const READ_COUNT: usize = 200;
/// More agents of one session are not visited.
const MAX_AGENTS: usize = 10_000;
/// How deep agents are visited. They cannot be nested that deep.
const MAX_AGENT_DEPTH: usize = 16;

/// Receives spans.
type SpanSink<'a> = &'a mut dyn FnMut(ExportedSpan) -> Result<(), ToolError>;

/// Passes every span of a session and of its subagents to `sink`.
pub fn session_spans(
    ledger: &Ledger,
    session: &SessionInfo,
    content: Option<&ContentCapture>,
    sink: SpanSink<'_>,
) -> Result<(), ToolError> {
    with_agents(ledger, session, content, 0, sink)
}

/// The same in batches, each small enough for one request.
pub fn session_batches(
    ledger: &Ledger,
    session: &SessionInfo,
    content: Option<&ContentCapture>,
    send: &mut dyn FnMut(&[ExportedSpan]) -> Result<(), ToolError>,
) -> Result<(), ToolError> {
    let mut queue = SpanQueue::default();
    let mut send_batch = |queue: &mut SpanQueue| {
        let batch = queue.batch();
        let count = batch.len();
        send(batch)?;
        queue.remove(count);
        Ok(())
    };
    session_spans(ledger, session, content, &mut |span| {
        queue.push(span);
        if queue.is_full() { send_batch(&mut queue) } else { Ok(()) }
    })?;
    while !queue.is_empty() {
        send_batch(&mut queue)?;
    }
    Ok(())
}

fn with_agents(
    ledger: &Ledger,
    session: &SessionInfo,
    content: Option<&ContentCapture>,
    depth: usize,
    sink: SpanSink<'_>,
) -> Result<(), ToolError> {
    let turns = add_run(ledger, session, content, sink)?;
    add_calls(ledger, session, &turns, content, sink)?;
    if depth < MAX_AGENT_DEPTH {
        for agent in ledger.sessions_from(&agent_entry_point(&session.id), 0, MAX_AGENTS)? {
            with_agents(ledger, &agent, content, depth + 1, sink)?;
        }
    }
    Ok(())
}

/// Passes on the spans of the session's run. Returns the turn of each call by receipt number, for receipts that do not name it.
fn add_run(
    ledger: &Ledger,
    session: &SessionInfo,
    content: Option<&ContentCapture>,
    sink: SpanSink<'_>,
) -> Result<HashMap<i64, TraceContext>, ToolError> {
    let mut run = RunSpans::new(session.clone());
    let mut turns = HashMap::new();
    loop {
        let events = read_events(ledger, &session.id, run.seq + 1, READ_COUNT)?;
        for logged in &events {
            if let (RunEvent::CallFinished { receipt: Some(receipt), .. }, Some(turn)) =
                (&logged.event, run.turn())
            {
                turns.insert(*receipt, turn.clone());
            }
            run.apply(logged, content).into_iter().try_for_each(&mut *sink)?;
        }
        if events.len() < READ_COUNT {
            break;
        }
    }
    run.end().into_iter().try_for_each(sink)?;
    Ok(turns)
}

fn add_calls(
    ledger: &Ledger,
    session: &SessionInfo,
    turns: &HashMap<i64, TraceContext>,
    content: Option<&ContentCapture>,
    sink: SpanSink<'_>,
) -> Result<(), ToolError> {
    let mut query =
        ReceiptQuery { session: Some(session.id.clone()), limit: READ_COUNT, ..ReceiptQuery::default() };
    loop {
        let read = ledger.summaries(&query)?;
        let Some(oldest) = read.last().map(|summary| summary.receipt.id) else { return Ok(()) };
        for summary in &read {
            let turn = turns.get(&summary.receipt.id);
            let content = content.map(|capture| (capture, ledger));
            call_span(summary, session, turn, content)?.into_iter().try_for_each(&mut *sink)?;
        }
        query.before = Some(oldest);
    }
}

/// At most `limit` events of a session's run, from number `from` on.
pub(crate) fn read_events(
    ledger: &Ledger,
    session: &str,
    from: u64,
    limit: usize,
) -> Result<Vec<LoggedEvent>, ToolError> {
    let stored = ledger.read(session, from, limit)?;
    let read = stored.into_iter().map(|stored| {
        let event = serde_json::from_value(stored.body).map_err(|error| {
            let why = format!("Event {} of session {session} is not an event of a run: {error}", stored.seq);
            ToolError::new(ErrorKind::Serialization, why)
        })?;
        Ok(LoggedEvent { seq: stored.seq, at: stored.at, event })
    });
    read.collect()
}
