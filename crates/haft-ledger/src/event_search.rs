//! Searching event logs: rows are examined newest first, and parsed only if their stored text may match.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::path::PathBuf;

use haft_tool::{ToolError, path_to_text};
use regex::bytes::Regex;
use rusqlite::{Connection, OptionalExtension, params};

use crate::error::TxResult;
use crate::search::{inside_json, literal};
use crate::{Ledger, StoredEvent};

/// The newest event of each session. The numbers of a session's events lead from it to the older ones, so that no list of all events
/// is made and sorted.
const NEWEST_EVENTS: &str = "
SELECT e.at, e.session, e.seq FROM sessions s JOIN events e ON e.session = s.id
AND e.seq = (SELECT max(seq) FROM events WHERE session = s.id)
WHERE (?1 IS NULL OR s.workspace = ?1) AND (?2 IS NULL OR s.id = ?2)";
const EVENT_BEFORE: &str =
    "SELECT at, session, seq FROM events WHERE session = ?1 AND seq < ?2 ORDER BY seq DESC LIMIT 1";
const EVENT_BODY: &str = "SELECT body FROM events WHERE session = ?1 AND seq = ?2";

/// Events that are looked at in one transaction, so that others can use the connection in between.
const MAX_PART_EVENTS: usize = 200;
/// The size of the events that are passed on after one transaction.
const MAX_PART_BYTES: usize = 1 << 20;

/// Which events to search.
#[derive(Debug, Clone, Default)]
pub struct EventQuery {
    /// Only those of this workspace's sessions.
    pub workspace: Option<PathBuf>,
    /// Only those of this session.
    pub session: Option<String>,
    /// The text that the stored event contains, in any case.
    pub text: String,
}

impl Ledger {
    /// Examines the events that may have the text, newest first, until `examine` returns false. It is told the session, and may use
    /// the ledger.
    pub fn search_events(
        &self,
        query: &EventQuery,
        examine: &mut dyn FnMut(&str, StoredEvent) -> bool,
    ) -> Result<(), ToolError> {
        let text = literal(&inside_json(&query.text)?, true)?;
        let mut next = self.newest_events(query)?;
        while !next.is_empty() {
            self.check_cancelled()?;
            for (session, event) in self.db.read(|conn| read_part(conn, &text, &mut next))? {
                if !examine(&session, event) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The sessions with an event that has the text and is wanted. The other events of a session that was found are not read.
    pub fn sessions_with_event(
        &self,
        query: &EventQuery,
        is_wanted: &dyn Fn(&StoredEvent) -> bool,
    ) -> Result<HashSet<String>, ToolError> {
        let text = literal(&inside_json(&query.text)?, true)?;
        let mut next = self.newest_events(query)?;
        let mut found = HashSet::new();
        while !next.is_empty() {
            self.check_cancelled()?;
            for (session, event) in self.db.read(|conn| read_part(conn, &text, &mut next))? {
                if !found.contains(&session) && is_wanted(&event) {
                    found.insert(session);
                }
            }
            next.retain(|key| !found.contains(&key.session.0));
        }
        Ok(found)
    }

    fn newest_events(&self, query: &EventQuery) -> Result<BinaryHeap<EventKey>, ToolError> {
        let workspace = query.workspace.as_deref().map(path_to_text);
        self.db.read(|conn| {
            let mut statement = conn.prepare(NEWEST_EVENTS)?;
            let rows = statement.query_map(params![workspace, query.session], EventKey::of_row)?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }
}

/// The next event of a session. The order is that in which events are examined: the greatest first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct EventKey {
    at: u64,
    session: Reverse<String>,
    seq: i64,
}

impl EventKey {
    fn of_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self { at: row.get(0)?, session: Reverse(row.get(1)?), seq: row.get(2)? })
    }
}

/// Looks at the next events, and returns those that may have the text.
fn read_part(
    conn: &Connection,
    text: &Regex,
    next: &mut BinaryHeap<EventKey>,
) -> TxResult<Vec<(String, StoredEvent)>> {
    let mut bodies = conn.prepare_cached(EVENT_BODY)?;
    let mut before = conn.prepare_cached(EVENT_BEFORE)?;
    let (mut found, mut bytes) = (Vec::new(), 0);
    for _ in 0..MAX_PART_EVENTS {
        let Some(EventKey { at, session: Reverse(session), seq }) = next.pop() else { break };
        next.extend(before.query_row(params![session, seq], EventKey::of_row).optional()?);
        let mut rows = bodies.query(params![session, seq])?;
        let Some(row) = rows.next()? else { continue };
        let body = row.get_ref(0)?.as_bytes().unwrap_or_default();
        // An event that cannot be read is reported where its run is read.
        if text.is_match(body)
            && let Ok(value) = serde_json::from_slice(body)
        {
            bytes += body.len();
            let seq = u64::try_from(seq).unwrap_or(0);
            found.push((session, StoredEvent { seq, at, body: value }));
            if bytes > MAX_PART_BYTES {
                break;
            }
        }
    }
    Ok(found)
}
