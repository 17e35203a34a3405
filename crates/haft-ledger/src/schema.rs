//! The tables, and how a database becomes one that this version can use.

use haft_tool::{ErrorKind, ToolError};
use rusqlite::Connection;
use rustix::fs::FlockOperation;

use crate::fault::{Attempt, damaged};
use crate::home::Home;

/// The version of the tables below, kept in `user_version`.
const VERSION: i64 = 4;
/// "HAFT", so that a foreign database is never taken for a ledger.
const APPLICATION: i64 = 0x4841_4654;

/// The tables.
///
/// `receipts` is the index of the event log: the receipt itself stands in the event `(session, last_seq)`.
/// Its numbers only grow, because gc never forgets the newest; AUTOINCREMENT would cost every call a page more.
/// `running` and `pending` hold only what calls have not finished yet. An index ends in the row id, so one over
/// `(workspace)` also gives the newest first.
const TABLES: &str = "
CREATE TABLE sessions (
  id TEXT NOT NULL PRIMARY KEY,
  workspace TEXT NOT NULL,
  dialect TEXT NOT NULL,
  door TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  owner TEXT NOT NULL,
  forgotten INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_by_time ON sessions (started_at);

CREATE TABLE events (
  session TEXT NOT NULL,
  seq INTEGER NOT NULL,
  at INTEGER NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (session, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE receipts (
  id INTEGER PRIMARY KEY,
  session TEXT NOT NULL,
  workspace TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  first_seq INTEGER NOT NULL,
  last_seq INTEGER NOT NULL,
  state TEXT NOT NULL,
  kind TEXT NOT NULL,
  changes INTEGER NOT NULL,
  undone_by INTEGER
) STRICT;
CREATE INDEX receipts_in_workspace ON receipts (workspace);
CREATE INDEX receipts_in_session ON receipts (session);
CREATE INDEX changed ON receipts (id) WHERE changes > 0;
CREATE INDEX changed_in_workspace ON receipts (workspace) WHERE changes > 0;
CREATE INDEX undoable ON receipts (workspace)
  WHERE kind = 'call' AND changes > 0 AND undone_by IS NULL AND state <> 'running';
CREATE INDEX redoable ON receipts (workspace)
  WHERE kind = 'undo' AND undone_by IS NULL AND state = 'completed';

CREATE TABLE undoes (
  target INTEGER NOT NULL,
  undo INTEGER NOT NULL,
  PRIMARY KEY (target, undo)
) STRICT, WITHOUT ROWID;
CREATE INDEX undoes_by_undo ON undoes (undo);

CREATE TABLE running (
  receipt INTEGER PRIMARY KEY,
  owner TEXT NOT NULL,
  since INTEGER NOT NULL
) STRICT;
CREATE TABLE pending (
  receipt INTEGER NOT NULL,
  n INTEGER NOT NULL,
  body TEXT NOT NULL,
  temp TEXT,
  PRIMARY KEY (receipt, n)
) STRICT, WITHOUT ROWID;

CREATE TABLE blobs (
  hash BLOB NOT NULL UNIQUE,
  size INTEGER NOT NULL,
  pins INTEGER NOT NULL,
  pinned_at INTEGER NOT NULL,
  bytes BLOB
) STRICT;
CREATE TABLE refs (
  receipt INTEGER NOT NULL,
  hash BLOB NOT NULL,
  PRIMARY KEY (receipt, hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX refs_by_hash ON refs (hash);

CREATE TABLE notes (
  session TEXT NOT NULL,
  name TEXT NOT NULL,
  receipt INTEGER NOT NULL,
  PRIMARY KEY (session, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX notes_by_receipt ON notes (receipt);
";

/// Makes sure that the database has the tables of this version; costs one small read when it has.
pub(crate) fn ensure(conn: &Connection, home: &Home) -> Attempt<()> {
    if version(conn)? == VERSION {
        return Ok(());
    }
    // Switching to WAL cannot wait for another process inside SQLite, so the ones that start together queue up here.
    let _lock = home.lock(FlockOperation::LockExclusive)?;
    match version(conn)? {
        VERSION => Ok(()),
        0 => create(conn, home),
        older @ 1..VERSION => Err(ToolError::failed(format!(
            "The ledger {} has format {older}, which this Haft no longer reads (it writes {VERSION}). Move the directory \
             away or set HAFT_HOME to another one.",
            home.database().display()
        ))
        .into()),
        newer if newer > VERSION => Err(ToolError::new(
            ErrorKind::ExecutionFailed,
            format!(
                "the ledger {} was written by a newer Haft (format {newer}, this one knows {VERSION}); \
                 update Haft or set HAFT_HOME to another directory",
                home.database().display()
            ),
        )
        .into()),
        strange => Err(damaged(format!(
            "the ledger {} has format {strange}, which never was one",
            home.database().display()
        ))
        .into()),
    }
}

fn version(conn: &Connection) -> Attempt<i64> {
    Ok(conn.query_row("PRAGMA user_version", [], |row| row.get(0))?)
}

fn create(conn: &Connection, home: &Home) -> Attempt<()> {
    let foreign: i64 = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if foreign > 0 {
        return Err(damaged(format!(
            "{} is a database, but not a ledger; set HAFT_HOME to another directory",
            home.database().display()
        ))
        .into());
    }
    // Must come before the first table; lets gc give pages back without copying everything into a temporary file.
    conn.execute_batch("PRAGMA auto_vacuum = INCREMENTAL")?;
    let mode: String = conn.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    if mode != "wal" {
        return Err(ToolError::failed(format!(
            "the file system of {} cannot share memory between processes, which the ledger needs; \
             set HAFT_HOME to a local directory",
            home.dir().display()
        ))
        .into());
    }
    conn.execute_batch(&format!(
        "BEGIN IMMEDIATE; {TABLES} PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION}; COMMIT;"
    ))?;
    home.sync_names()?;
    Ok(())
}
