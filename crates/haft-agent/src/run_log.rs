//! The event log of a run in its session.

use std::sync::Arc;

use haft_ledger::{EventLog, Expected};
use haft_tool::{ErrorKind, ToolError, now_ms};

use crate::{RUN_LOG_VERSION, RunEvent};

/// Events that are read at once.
const READ_COUNT: usize = 500;

/// An event with its place in the log.
#[derive(Debug, Clone, PartialEq)]
pub struct LoggedEvent {
    /// Its sequence number.
    pub seq: u64,
    /// When it was written, in milliseconds since 1970.
    pub at: u64,
    /// The event.
    pub event: RunEvent,
}

/// The log of one run, of which this process knows the end.
pub(crate) struct RunLog {
    store: Arc<dyn EventLog>,
    session: String,
    seq: u64,
}

impl RunLog {
    pub(crate) fn new(store: Arc<dyn EventLog>, session: String, seq: u64) -> Self {
        Self { store, session, seq }
    }

    /// Appends an event behind the last one that this process knows. If another process appended one, two drive the run.
    pub(crate) fn append(&mut self, event: RunEvent) -> Result<LoggedEvent, ToolError> {
        let body = serde_json::to_value(&event)?;
        let seq = self.store.append(&self.session, Expected::Seq(self.seq), &body).map_err(|error| {
            if error.kind == ErrorKind::Conflict {
                let advice = "Wait until it has ended, or continue a copy with --fork-session.";
                let message = format!("{} {advice}", error.message);
                error.with_message(message)
            } else {
                error
            }
        })?;
        self.seq = seq;
        Ok(LoggedEvent { seq, at: now_ms(), event })
    }
}

/// All events of a session's run; none if it has none.
pub(crate) fn read_events(store: &dyn EventLog, session: &str) -> Result<Vec<LoggedEvent>, ToolError> {
    let mut events = Vec::new();
    loop {
        let from = events.last().map_or(1, |last: &LoggedEvent| last.seq + 1);
        let read = store.read(session, from, READ_COUNT)?;
        let is_last = read.len() < READ_COUNT;
        for stored in read {
            let event: RunEvent = serde_json::from_value(stored.body).map_err(|error| {
                ToolError::new(
                    ErrorKind::Serialization,
                    format!("Event {} of session {session} is not an event of a run: {error}", stored.seq),
                )
            })?;
            if let RunEvent::Started(start) = &event
                && start.version > RUN_LOG_VERSION
            {
                return Err(ToolError::failed(format!(
                    "Session {session} was written by a later version of Haft. Update Haft to continue it."
                )));
            }
            events.push(LoggedEvent { seq: stored.seq, at: stored.at, event });
        }
        if is_last {
            return Ok(events);
        }
    }
}

/// The events of a session's run that count: those that were undone are left out. None if it has no run.
pub fn read_run_events(store: &dyn EventLog, session: &str) -> Result<Vec<LoggedEvent>, ToolError> {
    Ok(live_events(&read_events(store, session)?).into_iter().cloned().collect())
}

/// The events without those that were undone.
pub(crate) fn live_events(events: &[LoggedEvent]) -> Vec<&LoggedEvent> {
    let mut live: Vec<&LoggedEvent> = Vec::with_capacity(events.len());
    for logged in events {
        if let RunEvent::Rewound { to } = logged.event {
            live.retain(|earlier| earlier.seq <= to);
        } else {
            live.push(logged);
        }
    }
    live
}

/// The state of the run of a session; `None` if the session has no run.
pub fn read_run(store: &dyn EventLog, session: &str) -> Result<Option<crate::RunState>, ToolError> {
    Ok(crate::RunState::of(&read_events(store, session)?))
}
