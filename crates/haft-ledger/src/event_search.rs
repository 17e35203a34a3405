//! Searching event logs: rows are examined newest first, and parsed only if their stored text may match.

use std::path::PathBuf;

use haft_tool::{ToolError, path_to_text};
use rusqlite::{Connection, params};

use crate::error::TxResult;
use crate::search::{inside_json, literal};
use crate::{Ledger, StoredEvent};

const EVENT_KEYS: &str = "
SELECT e.session, e.seq, e.at FROM events e JOIN sessions s ON s.id = e.session
WHERE (?1 IS NULL OR s.workspace = ?1) AND (?2 IS NULL OR e.session = ?2)
ORDER BY e.at DESC, e.session, e.seq DESC";
const EVENT_BODY: &str = "SELECT body FROM events WHERE session = ?1 AND seq = ?2";

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
    /// Examines the events that may have the text, newest first, until `examine` returns false. It is told the session.
    pub fn search_events(
        &self,
        query: &EventQuery,
        examine: &mut dyn FnMut(&str, StoredEvent) -> bool,
    ) -> Result<(), ToolError> {
        let text = literal(&inside_json(&query.text)?, true)?;
        let workspace = query.workspace.as_deref().map(path_to_text);
        self.db.read(|conn| {
            for (session, seq, at) in keys(conn, workspace.as_deref(), query.session.as_deref())? {
                let mut statement = conn.prepare_cached(EVENT_BODY)?;
                let mut rows = statement.query(params![session, seq])?;
                let Some(row) = rows.next()? else { continue };
                let body = row.get_ref(0)?.as_bytes().unwrap_or_default();
                // An event that cannot be read is reported where its run is read.
                if text.is_match(body)
                    && let Ok(body) = serde_json::from_slice(body)
                    && !examine(&session, StoredEvent { seq: u64::try_from(seq).unwrap_or(0), at, body })
                {
                    break;
                }
            }
            Ok(())
        })
    }
}

fn keys(
    conn: &Connection,
    workspace: Option<&str>,
    session: Option<&str>,
) -> TxResult<Vec<(String, i64, u64)>> {
    let mut statement = conn.prepare(EVENT_KEYS)?;
    let rows = statement
        .query_map(params![workspace, session], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}
