//! The inbox of a workspace: messages from channels, from the moment they are accepted until they are handled.

use std::fs::OpenOptions;
use std::path::Path;

use haft_tool::{ErrorKind, ToolError, now_ms, path_to_text};
use rusqlite::params;
use rustix::fs::FlockOperation;
use rustix::io::Errno;

use crate::database::{Durability, execute};
use crate::directory::{LedgerLock, private_file};
use crate::sql::{self, int};
use crate::{Ledger, NewSession};

/// How long a finished message is remembered, so that a second delivery is not handled again.
const REMEMBERED_MS: u64 = 7 * 24 * 60 * 60 * 1_000;

/// A message that was accepted and is not finished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxMessage {
    /// Its number; later messages have larger ones.
    pub id: i64,
    /// The channel it came from.
    pub channel: String,
    /// The chat it belongs to.
    pub chat: String,
    /// Its id in the channel.
    pub message: String,
    /// Who sent it.
    pub sender: Option<String>,
    /// What was said.
    pub text: String,
    /// The sequence number of the last turn of its run before it was begun; `None` if it was not begun.
    pub begun_after: Option<u64>,
}

/// The inbox of a workspace. One process has it at a time.
#[derive(Debug)]
pub struct Inbox {
    ledger: Ledger,
    workspace: String,
    _lock: LedgerLock,
}

impl Ledger {
    /// Opens the inbox of a workspace. Fails with [`ErrorKind::Conflict`] if another process has it.
    pub fn inbox(&self, workspace: &Path) -> Result<Inbox, ToolError> {
        let workspace = path_to_text(workspace).into_owned();
        let mark = blake3::hash(workspace.as_bytes()).to_hex();
        let path = self.db.dir().inbox_lock(&mark.as_str()[..16]);
        let failed = |error| ToolError::io(format_args!("lock {}", path.display()), &error);
        let mut options = OpenOptions::new();
        let file = private_file(&path, options.write(true).create(true).truncate(false)).map_err(failed)?;
        let lock = loop {
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break LedgerLock::of(file),
                Err(Errno::INTR) => {}
                Err(Errno::WOULDBLOCK) => {
                    let why = format!("another process receives the messages for {workspace}; stop it first");
                    return Err(ToolError::new(ErrorKind::Conflict, why));
                }
                Err(error) => return Err(failed(error.into())),
            }
        };
        Ok(Inbox { ledger: self.clone(), workspace, _lock: lock })
    }

    /// The id of the session of a conversation in a channel, which is named by its key, for example `telegram:4711`. The first message
    /// starts it.
    pub fn conversation(&self, key: &str, new: &NewSession) -> Result<String, ToolError> {
        self.named_session(key, new)
    }

    /// Whether a message of the conversation with this key was begun and is not finished, so that the inbox's process drives its run.
    pub fn has_begun_message(&self, workspace: &Path, key: &str) -> Result<bool, ToolError> {
        let workspace = path_to_text(workspace);
        self.db.read(|conn| Ok(conn.prepare_cached(sql::BEGUN_MESSAGE)?.exists([&*workspace, key])?))
    }
}

impl Inbox {
    /// Whether a message was accepted before.
    pub fn has(&self, channel: &str, chat: &str, message: &str) -> Result<bool, ToolError> {
        self.ledger.db.read(|conn| {
            let mut statement = conn.prepare_cached(sql::HAS_MESSAGE)?;
            Ok(statement.exists([&self.workspace, channel, chat, message])?)
        })
    }

    /// Stores a message, so that it survives a power failure, and returns its number; `None` if it was accepted before.
    pub fn accept(
        &self,
        channel: &str,
        chat: &str,
        message: &str,
        sender: Option<&str>,
        text: &str,
    ) -> Result<Option<i64>, ToolError> {
        let row = params![self.workspace, channel, message, chat, sender, text, int(now_ms())];
        self.ledger.db.write(Durability::PowerLoss, |conn| {
            let inserted = execute(conn, sql::INSERT_MESSAGE, row)?;
            Ok((inserted == 1).then(|| conn.last_insert_rowid()))
        })
    }

    /// The messages that are not finished, oldest first.
    pub fn open_messages(&self) -> Result<Vec<InboxMessage>, ToolError> {
        self.ledger.db.read(|conn| {
            let mut statement = conn.prepare_cached(sql::OPEN_MESSAGES)?;
            let rows = statement.query_map([&self.workspace], |row| {
                Ok(InboxMessage {
                    id: row.get(0)?,
                    channel: row.get(1)?,
                    chat: row.get(2)?,
                    message: row.get(3)?,
                    sender: row.get(4)?,
                    text: row.get(5)?,
                    begun_after: row.get(6)?,
                })
            })?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Notes that the run of a message goes on behind the turn with this sequence number.
    pub fn begin(&self, id: i64, after: u64) -> Result<(), ToolError> {
        self.ledger.db.write(Durability::ProcessCrash, |conn| {
            execute(conn, sql::BEGIN_MESSAGE, params![id, int(after)])?;
            Ok(())
        })
    }

    /// Notes that a message is finished. Its text is deleted, because the run has it.
    pub fn finish(&self, id: i64) -> Result<(), ToolError> {
        let now = now_ms();
        self.ledger.db.write(Durability::ProcessCrash, |conn| {
            execute(conn, sql::FINISH_MESSAGE, params![id, int(now)])?;
            execute(conn, sql::FORGET_MESSAGES, [int(now.saturating_sub(REMEMBERED_MS))])?;
            Ok(())
        })
    }
}
