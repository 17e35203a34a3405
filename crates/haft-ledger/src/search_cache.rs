//! A cache of search engines' answers, so that the same search is paid for only once.

use haft_tool::{ToolError, Value, now_ms};
use rusqlite::{OptionalExtension, params};

use crate::Ledger;
use crate::database::{Durability, execute};
use crate::error::damaged;
use crate::sql::{self, int};

impl Ledger {
    /// The answer that was stored under a key less than `max_age_ms` milliseconds ago.
    pub fn cached_search(&self, key: &str, max_age_ms: u64) -> Result<Option<Value>, ToolError> {
        let since = int(now_ms().saturating_sub(max_age_ms));
        let body: Option<String> = self.db.read(|conn| {
            let mut statement = conn.prepare_cached(sql::FIND_SEARCH)?;
            Ok(statement.query_row(params![key, since], |row| row.get(0)).optional()?)
        })?;
        let parse = |body: String| {
            serde_json::from_str(&body)
                .map_err(|error| damaged(format!("A cached search in the ledger cannot be read: {error}")))
        };
        body.map(parse).transpose()
    }

    /// Stores an answer under a key, and deletes answers older than `max_age_ms`.
    pub fn cache_search(&self, key: &str, answer: &Value, max_age_ms: u64) -> Result<(), ToolError> {
        let (now, body) = (now_ms(), answer.to_string());
        self.db.write(Durability::ProcessCrash, |conn| {
            execute(conn, sql::FORGET_SEARCHES, [int(now.saturating_sub(max_age_ms))])?;
            execute(conn, sql::INSERT_SEARCH, params![key, int(now), body])?;
            Ok(())
        })
    }
}
