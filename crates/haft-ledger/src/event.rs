//! The event log: the one thing a session is, and the seam at which another store can take its place.

use std::borrow::Cow;
use std::collections::HashSet;

use haft_tool::{Change, Hash, Receipt, ToolError};
use rusqlite::{OptionalExtension, params};
use serde::{Deserialize, Serialize};

use crate::blobs::{Image, Row, key_of, row_of};
use crate::codec::Encoded;
use crate::db::{Survives, run};
use crate::fault::{Attempt, damaged};
use crate::{Ledger, codec, record, sql};

/// Something that happened in a session. Each event can be understood without any other.
///
/// The tag names the event and the version of its shape; a new shape gets a new variant beside the old one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event")]
pub enum Event<'a> {
    /// A call was allowed and is about to be performed.
    #[serde(rename = "call_started.v1")]
    CallStarted {
        /// What is known of it so far.
        receipt: Cow<'a, Receipt>,
    },
    /// A call has ended, one way or the other.
    #[serde(rename = "call_finished.v1")]
    CallFinished {
        /// What it did.
        receipt: Cow<'a, Receipt>,
    },
}

impl Event<'_> {
    /// The receipt that the event is about.
    pub fn receipt(&self) -> &Receipt {
        match self {
            Self::CallStarted { receipt } | Self::CallFinished { receipt } => receipt,
        }
    }

    /// The same event about another receipt.
    pub(crate) fn with<'b>(&self, receipt: Cow<'b, Receipt>) -> Event<'b> {
        match self {
            Self::CallStarted { .. } => Event::CallStarted { receipt },
            Self::CallFinished { .. } => Event::CallFinished { receipt },
        }
    }

    /// The receipt that the event is about, to keep.
    pub fn into_receipt(self) -> Receipt {
        match self {
            Self::CallStarted { receipt } | Self::CallFinished { receipt } => receipt.into_owned(),
        }
    }
}

/// Where a writer believes a session's log ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// It does not matter.
    Any,
    /// The last event has this sequence number; 0 if there is none yet. Anything else is a conflict.
    Seq(u64),
}

/// An event as it stands in the log.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    /// Its number in the session: 1, 2, 3, …
    pub seq: u64,
    /// When it was written, in milliseconds since 1970.
    pub at: u64,
    /// What happened.
    pub event: Event<'static>,
}

/// A store of events: appending at an expected place and reading from a place is all that is asked of one.
pub trait EventLog: Send + Sync {
    /// Adds an event at the end of a session's log and gives its sequence number.
    ///
    /// A log that does not end where the caller expects is a conflict: somebody else drives the session too.
    fn append(&self, session: &str, expected: Expected, event: &Event<'_>) -> Result<u64, ToolError>;

    /// At most `limit` events of a session, beginning with the sequence number `from`.
    fn read(&self, session: &str, from: u64, limit: usize) -> Result<Vec<Stored>, ToolError>;
}

impl EventLog for Ledger {
    fn append(&self, session: &str, expected: Expected, event: &Event<'_>) -> Result<u64, ToolError> {
        let mut receipt = event.receipt().clone();
        if receipt.session != session || receipt.id == 0 {
            return Err(ToolError::invalid_arguments(
                "the event speaks of a call that the session has not numbered; begin or finish the call instead",
            ));
        }
        self.db.write(Survives::Crash, |conn| match event {
            Event::CallStarted { .. } => record::started(conn, &mut receipt, expected),
            Event::CallFinished { .. } => record::finished(conn, &mut receipt, expected, &HashSet::new()),
        })
    }

    fn read(&self, session: &str, from: u64, limit: usize) -> Result<Vec<Stored>, ToolError> {
        self.db.read(|conn| {
            let mut statement = conn.prepare_cached(sql::READ_EVENTS)?;
            let mut rows = statement.query(params![session, sql::int(from), sql::int(limit)])?;
            let mut stored = Vec::new();
            while let Some(row) = rows.next()? {
                let (seq, at, body): (u64, u64, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
                match codec::decode(&body) {
                    Ok((event, None)) => stored.push(Stored { seq, at, event }),
                    Ok((event, Some(changes))) => {
                        let mut receipt = event.receipt().clone();
                        receipt.changes = changes_in(conn, &changes)?;
                        stored.push(Stored { seq, at, event: event.with(Cow::Owned(receipt)) });
                    }
                    Err(why) => {
                        let what = "cannot be read";
                        return Err(damaged(format!(
                            "event {seq} of session {session} {what} ({why}); it was changed"
                        ))
                        .into());
                    }
                }
            }
            Ok(stored)
        })
    }
}

/// The changes that an event keeps elsewhere.
pub(crate) fn changes_in(conn: &rusqlite::Connection, hash: &Hash) -> Attempt<Vec<Change>> {
    let row = key_of(hash).map(|key| row_of(conn, key)).transpose()?.flatten();
    let Some(Row::Bytes(list)) = row else {
        return Err(damaged(format!("the ledger no longer has the changes {hash}")).into());
    };
    let changes = serde_json::from_slice(&list);
    Ok(changes.map_err(|why| damaged(format!("the changes {hash} cannot be read ({why})")))?)
}

/// The number that the next event of a session gets.
pub(crate) fn next_seq(conn: &rusqlite::Connection, session: &str, expected: Expected) -> Attempt<u64> {
    let mut last: Option<u64> =
        conn.prepare_cached(sql::LAST_SEQ)?.query_row([session], |row| row.get(0)).optional()?;
    if last.is_none() {
        // Forgotten events keep their numbers, so that no number ever means two events.
        last = conn.prepare_cached(sql::FORGOTTEN_SEQ)?.query_row([session], |row| row.get(0)).optional()?;
    }
    let last = last.unwrap_or(0);
    match expected {
        Expected::Seq(seq) if seq != last => Err(ToolError::new(
            haft_tool::ErrorKind::Conflict,
            format!("session {session} ends with event {last}, not {seq}: somebody else drives it too"),
        )
        .with_details(haft_tool::json!({ "last_seq": last }))
        .into()),
        _ => Ok(last + 1),
    }
}

/// Writes one event, and gives the hash of its changes if they stand elsewhere.
pub(crate) fn insert(conn: &rusqlite::Connection, seq: u64, event: &Event<'_>) -> Attempt<Option<Hash>> {
    let Encoded { body, changes } = codec::encode(event)?;
    run(
        conn,
        sql::INSERT_EVENT,
        params![event.receipt().session, sql::int(seq), sql::int(haft_tool::now_ms()), body],
    )?;
    let Some((hash, list)) = changes else { return Ok(None) };
    let image = Image::row(hash, &list);
    image.insert(conn, false)?;
    Ok(Some(image.hash()))
}
