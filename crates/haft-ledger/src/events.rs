//! Event logs: a run of the agent loop is the log of its session. Another store can implement the same trait.

use haft_tool::{ErrorKind, ToolError, Value, json, now_ms};
use rusqlite::{Connection, OptionalExtension, params};

use crate::database::{Durability, execute};
use crate::error::{TxResult, damaged, not_found};
use crate::recorded_input::{MAX_JSON_DEPTH, is_deeper_than};
use crate::{Ledger, LedgerWrite, sql};

/// The expected end of a session's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// Any.
    Any,
    /// The last event has this sequence number; 0 if there is none yet. Anything else is a conflict.
    Seq(u64),
}

/// An event in a log.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredEvent {
    /// Its sequence number in the session: 1, 2, 3, …
    pub seq: u64,
    /// When it was appended, in milliseconds since 1970.
    pub at: u64,
    /// The event. Its writer chooses the format; a tag with a version keeps old logs readable.
    pub body: Value,
}

/// A store of event logs. Appending at an expected position is what keeps two workers from driving one run.
pub trait EventLog: Send + Sync {
    /// Appends an event to the log of a session and returns its sequence number. Fails with [`ErrorKind::Conflict`] and
    /// the detail `last_seq` if the log does not end as expected.
    fn append(&self, session: &str, expected: Expected, body: &Value) -> Result<u64, ToolError>;

    /// At most `limit` events of a session, starting with the sequence number `from`.
    fn read(&self, session: &str, from: u64, limit: usize) -> Result<Vec<StoredEvent>, ToolError>;
}

impl EventLog for Ledger {
    fn append(&self, session: &str, expected: Expected, body: &Value) -> Result<u64, ToolError> {
        if is_deeper_than(body, MAX_JSON_DEPTH) {
            return Err(ToolError::invalid_arguments("The event is nested too deep to be read again."));
        }
        let body = body.to_string();
        let seq = self.db.write(Durability::ProcessCrash, |conn| {
            let seq = next_seq(conn, session, expected)?;
            execute(conn, sql::INSERT_EVENT, params![session, sql::int(seq), sql::int(now_ms()), body])?;
            Ok(seq)
        })?;
        self.notify(&LedgerWrite::Event { session, seq });
        Ok(seq)
    }

    fn read(&self, session: &str, from: u64, limit: usize) -> Result<Vec<StoredEvent>, ToolError> {
        self.db.read(|conn| {
            let mut statement = conn.prepare_cached(sql::READ_EVENTS)?;
            let mut rows = statement.query(params![session, sql::int(from), sql::int(limit)])?;
            let mut events = Vec::new();
            while let Some(row) = rows.next()? {
                let (seq, at, body): (u64, u64, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
                let body = serde_json::from_str(&body).map_err(|error| {
                    damaged(format!("Event {seq} of session {session} cannot be read: {error}"))
                })?;
                events.push(StoredEvent { seq, at, body });
            }
            Ok(events)
        })
    }
}

impl Ledger {
    /// When the last event of a session was appended, in milliseconds since 1970; `None` if it has none.
    pub fn last_event_at(&self, session: &str) -> Result<Option<u64>, ToolError> {
        self.db.read(|conn| {
            let mut statement = conn.prepare_cached(sql::LAST_EVENT_AT)?;
            Ok(statement.query_row([session], |row| row.get(0)).optional()?)
        })
    }
}

/// The sequence number of the next event of a session.
fn next_seq(conn: &Connection, session: &str, expected: Expected) -> TxResult<u64> {
    let last: Option<u64> =
        conn.prepare_cached(sql::LAST_SEQ)?.query_row([session], |row| row.get(0)).optional()?;
    if last.is_none() && !conn.prepare_cached(sql::HAS_SESSION)?.exists([session])? {
        return Err(not_found(format!("There is no session {session:?} in the ledger.")).into());
    }
    let last = last.unwrap_or(0);
    match expected {
        Expected::Seq(seq) if seq != last => Err(ToolError::new(
            ErrorKind::Conflict,
            format!("Session {session} ends with event {last}, not {seq}: another process drives it too."),
        )
        .with_details(json!({ "last_seq": last }))
        .into()),
        _ => Ok(last + 1),
    }
}
