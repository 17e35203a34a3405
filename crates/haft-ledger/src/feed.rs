//! The feed: what happened in the ledger, in order, so that a process can follow what others do.
//!
//! Database triggers write it, so that no writer can forget to. Only the newest entries are kept.

use haft_tool::ToolError;
use rusqlite::{OptionalExtension, params};

use crate::sql::{self, int};
use crate::{Ledger, QuestionId};

/// An entry of the feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedEntry {
    /// Its position; later entries have larger ones.
    pub position: u64,
    /// The session it is about.
    pub session: String,
    /// What happened.
    pub item: FeedItem,
}

/// What happened in a session.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FeedItem {
    /// It began.
    Session,
    /// This call began, ended, or was undone or redone.
    Call(i64),
    /// The event of this number was appended to its log.
    Event(u64),
    /// A process began or stopped driving its run.
    Driver,
    /// This question was asked, answered or withdrawn.
    Question(QuestionId),
    /// Something that this version does not know.
    Other,
}

impl Ledger {
    /// The position of the newest entry of the feed; 0 if there is none.
    pub fn feed_position(&self) -> Result<u64, ToolError> {
        self.db.read(|conn| {
            let newest: Option<Option<u64>> =
                conn.prepare_cached(sql::FEED_END)?.query_row([], |row| row.get(0)).optional()?;
            Ok(newest.flatten().unwrap_or(0))
        })
    }

    /// At most `limit` entries of the feed after a position, oldest first; `None` if the next ones are no longer kept.
    pub fn feed_after(&self, position: u64, limit: usize) -> Result<Option<Vec<FeedEntry>>, ToolError> {
        self.db.read(|conn| {
            let oldest: Option<u64> =
                conn.prepare_cached(sql::FEED_START)?.query_row([], |row| row.get(0))?;
            // An empty feed has no position but 0.
            if oldest.map_or(position > 0, |oldest| position + 1 < oldest) {
                return Ok(None);
            }
            let mut statement = conn.prepare_cached(sql::FEED_AFTER)?;
            let mut rows = statement.query(params![int(position), int(limit)])?;
            let mut entries = Vec::new();
            while let Some(row) = rows.next()? {
                let (position, kind, session): (u64, String, String) =
                    (row.get(0)?, row.get(1)?, row.get(2)?);
                let item = match kind.as_str() {
                    "session" => FeedItem::Session,
                    "call" => FeedItem::Call(row.get(3)?),
                    "event" => FeedItem::Event(row.get(3)?),
                    "driver" => FeedItem::Driver,
                    "question" => FeedItem::Question(row.get(3)?),
                    _ => FeedItem::Other,
                };
                entries.push(FeedEntry { position, session, item });
            }
            Ok(Some(entries))
        })
    }
}
