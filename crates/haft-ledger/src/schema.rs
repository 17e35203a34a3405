//! The tables, and how a new database gets them.

use haft_tool::ToolError;
use rusqlite::Connection;
use rustix::fs::FlockOperation;

use crate::directory::LedgerDir;
use crate::error::{TxResult, damaged};

/// The version of the tables below, stored in `user_version`.
const VERSION: i64 = 10;
/// "HAFT", stored in `application_id`.
const APPLICATION_ID: i64 = 0x4841_4654;

/// The tables.
///
/// `receipts` has one row per call; long texts are its last columns, so that listing calls does not read them. Its ids
/// only grow, because gc keeps the newest; AUTOINCREMENT would write one more page per call. `running` and `intents`
/// hold only calls that have not finished. `chunks` lists the files that a large blob consists of. An index ends in the
/// row id, so one over `(workspace)` also sorts by age.
const TABLES: &str = "
CREATE TABLE sessions (
  id TEXT NOT NULL PRIMARY KEY,
  workspace TEXT NOT NULL,
  dialect TEXT NOT NULL,
  entry_point TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  process TEXT NOT NULL,
  name TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_by_time ON sessions (started_at);
CREATE UNIQUE INDEX sessions_by_name ON sessions (name, workspace) WHERE name IS NOT NULL;

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
  state TEXT NOT NULL,
  kind TEXT NOT NULL,
  change_count INTEGER NOT NULL,
  undone_by INTEGER,
  body TEXT NOT NULL,
  changes TEXT,
  result_hash BLOB,
  result TEXT
) STRICT;
CREATE INDEX receipts_in_workspace ON receipts (workspace);
CREATE INDEX receipts_in_session ON receipts (session);
CREATE INDEX changed ON receipts (id) WHERE change_count > 0;
CREATE INDEX changed_in_workspace ON receipts (workspace) WHERE change_count > 0;
CREATE INDEX undoable ON receipts (workspace)
  WHERE kind = 'call' AND change_count > 0 AND undone_by IS NULL AND state <> 'running';
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
  process TEXT NOT NULL,
  since INTEGER NOT NULL
) STRICT;
CREATE TABLE intents (
  receipt INTEGER NOT NULL,
  n INTEGER NOT NULL,
  change TEXT NOT NULL,
  temp TEXT,
  PRIMARY KEY (receipt, n)
) STRICT, WITHOUT ROWID;

CREATE TABLE blobs (
  hash BLOB NOT NULL UNIQUE,
  size INTEGER NOT NULL,
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

/// The table that version 5 did not have.
const CHUNK_TABLE: &str = "
CREATE TABLE chunks (
  hash BLOB NOT NULL UNIQUE,
  list BLOB NOT NULL
) STRICT;
";
const VERSION_WITHOUT_CHUNKS: i64 = 5;

/// The column that version 6 did not have.
const SESSION_NAMES: &str = "
ALTER TABLE sessions ADD COLUMN name TEXT;
CREATE UNIQUE INDEX sessions_by_name ON sessions (name, workspace) WHERE name IS NOT NULL;
";
const VERSION_WITHOUT_SESSION_NAMES: i64 = 6;

/// The table that version 7 did not have: messages that a gateway accepted. `id` is their order. A finished one keeps its row for a
/// while, so that a second delivery is known.
const INBOX_TABLE: &str = "
CREATE TABLE inbox (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  workspace TEXT NOT NULL,
  channel TEXT NOT NULL,
  message TEXT NOT NULL,
  chat TEXT NOT NULL,
  sender TEXT,
  text TEXT NOT NULL,
  accepted_at INTEGER NOT NULL,
  begun_after INTEGER,
  finished_at INTEGER
) STRICT;
CREATE UNIQUE INDEX inbox_by_message_of_chat ON inbox (workspace, channel, chat, message);
CREATE INDEX inbox_open ON inbox (workspace, id) WHERE finished_at IS NULL;
CREATE INDEX inbox_finished ON inbox (finished_at) WHERE finished_at IS NOT NULL;
";
const VERSION_WITHOUT_INBOX: i64 = 7;

/// The table that version 8 did not have: runs that are being driven, and by which process.
const DRIVEN_TABLE: &str = "
CREATE TABLE driven (
  session TEXT NOT NULL PRIMARY KEY,
  process TEXT NOT NULL,
  since INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
";
/// Version 8 took two chats' messages with one id for one message.
const INBOX_CHATS: &str = "
DROP INDEX inbox_by_message;
CREATE UNIQUE INDEX inbox_by_message_of_chat ON inbox (workspace, channel, chat, message);
";
const VERSION_WITHOUT_DRIVEN: i64 = 8;

const VERSION_WITHOUT_FEED: i64 = 9;

/// The tables that version 9 did not have: questions to people with the processes that show them, the answers of search engines that
/// a server gives out again, and the feed.
///
/// The feed is written by triggers, so that it has everything, whatever process writes it. Of the feed and of the questions that have
/// ended only the newest are kept; a trigger removes old ones for each new one.
const FEED_TABLES: &str = "
CREATE TABLE questions (
  id INTEGER PRIMARY KEY,
  session TEXT NOT NULL,
  process TEXT NOT NULL,
  asked_at INTEGER NOT NULL,
  body TEXT NOT NULL,
  answer TEXT,
  ended_at INTEGER
) STRICT;
CREATE INDEX open_questions ON questions (id) WHERE ended_at IS NULL;
CREATE TABLE answering (
  process TEXT NOT NULL PRIMARY KEY,
  since INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE searches (
  key TEXT NOT NULL PRIMARY KEY,
  at INTEGER NOT NULL,
  body TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX searches_by_time ON searches (at);
CREATE TABLE feed (
  position INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,
  session TEXT NOT NULL,
  item INTEGER NOT NULL
) STRICT;

CREATE TRIGGER feed_session AFTER INSERT ON sessions BEGIN
  INSERT INTO feed (kind, session, item) VALUES ('session', NEW.id, 0);
END;
CREATE TRIGGER feed_call AFTER INSERT ON receipts BEGIN
  INSERT INTO feed (kind, session, item) VALUES ('call', NEW.session, NEW.id);
END;
CREATE TRIGGER feed_call_change AFTER UPDATE OF state, undone_by ON receipts
WHEN OLD.state IS NOT NEW.state OR OLD.undone_by IS NOT NEW.undone_by BEGIN
  INSERT INTO feed (kind, session, item) VALUES ('call', NEW.session, NEW.id);
END;
CREATE TRIGGER feed_event AFTER INSERT ON events BEGIN
  INSERT INTO feed (kind, session, item) VALUES ('event', NEW.session, NEW.seq);
END;
CREATE TRIGGER feed_driver AFTER INSERT ON driven BEGIN
  INSERT INTO feed (kind, session, item) VALUES ('driver', NEW.session, 1);
END;
CREATE TRIGGER feed_driver_end AFTER DELETE ON driven BEGIN
  INSERT INTO feed (kind, session, item) VALUES ('driver', OLD.session, 0);
END;
CREATE TRIGGER feed_question AFTER INSERT ON questions BEGIN
  INSERT INTO feed (kind, session, item) VALUES ('question', NEW.session, NEW.id);
  DELETE FROM questions WHERE id <= NEW.id - 100 AND ended_at IS NOT NULL;
END;
CREATE TRIGGER feed_question_end AFTER UPDATE OF ended_at ON questions BEGIN
  INSERT INTO feed (kind, session, item) VALUES ('question', NEW.session, NEW.id);
END;
CREATE TRIGGER feed_limit AFTER INSERT ON feed BEGIN
  DELETE FROM feed WHERE position <= NEW.position - 10000;
END;
";

/// Makes sure that the database has the tables of this version; costs one small read if it has.
pub(crate) fn ensure(conn: &Connection, dir: &LedgerDir) -> TxResult<()> {
    if version(conn)? == VERSION {
        return Ok(());
    }
    // SQLite does not wait for other processes when it switches to WAL, so those that start together wait here.
    let _lock = dir.lock(FlockOperation::LockExclusive)?;
    let at = dir.database().display();
    match version(conn)? {
        VERSION => Ok(()),
        0 => create(conn, dir),
        older @ VERSION_WITHOUT_CHUNKS..=VERSION_WITHOUT_FEED => {
            let chunk_table = if older == VERSION_WITHOUT_CHUNKS { CHUNK_TABLE } else { "" };
            let session_names = if older <= VERSION_WITHOUT_SESSION_NAMES { SESSION_NAMES } else { "" };
            let inbox = match older {
                ..=VERSION_WITHOUT_INBOX => INBOX_TABLE,
                VERSION_WITHOUT_DRIVEN => INBOX_CHATS,
                _ => "",
            };
            let driven_table = if older <= VERSION_WITHOUT_DRIVEN { DRIVEN_TABLE } else { "" };
            Ok(conn.execute_batch(&format!(
                "BEGIN IMMEDIATE; {chunk_table} {session_names} {inbox} {driven_table} {FEED_TABLES} PRAGMA user_version = {VERSION}; COMMIT;"
            ))?)
        }
        older @ 1..VERSION => Err(ToolError::failed(format!(
            "The ledger {at} has format {older}, which this version of Haft cannot read (it uses format {VERSION}). \
             Move the directory away or set HAFT_HOME to another one."
        ))
        .into()),
        newer if newer > VERSION => Err(ToolError::failed(format!(
            "The ledger {at} was written by a newer version of Haft (format {newer}, this one uses {VERSION}). \
             Update Haft or set HAFT_HOME to another directory."
        ))
        .into()),
        invalid => Err(damaged(format!("The ledger {at} has the invalid format {invalid}.")).into()),
    }
}

fn version(conn: &Connection) -> TxResult<i64> {
    Ok(conn.query_row("PRAGMA user_version", [], |row| row.get(0))?)
}

fn create(conn: &Connection, dir: &LedgerDir) -> TxResult<()> {
    let tables: i64 = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if tables > 0 {
        return Err(damaged(format!(
            "{} is a database, but not a ledger. Set HAFT_HOME to another directory.",
            dir.database().display()
        ))
        .into());
    }
    // Must precede the first table; lets gc return pages without copying the database.
    conn.execute_batch("PRAGMA auto_vacuum = INCREMENTAL")?;
    let mode: String = conn.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    if mode != "wal" {
        return Err(ToolError::failed(format!(
            "The file system of {} has no shared memory, which the ledger needs. Set HAFT_HOME to a local directory.",
            dir.path().display()
        ))
        .into());
    }
    conn.execute_batch(&format!(
        "BEGIN IMMEDIATE; {TABLES} {CHUNK_TABLE} {INBOX_TABLE} {DRIVEN_TABLE} {FEED_TABLES} PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION}; COMMIT;"
    ))?;
    dir.sync_names()?;
    Ok(())
}
