//! Every statement that a call costs. Each finds its rows by an index, so that the length of the history does not
//! matter; the test below checks that.

/// A number as SQLite stores it; larger ones do not occur.
pub(crate) fn int(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

/// Defines the statements, and a list of them for the test.
macro_rules! statements {
    ($($name:ident = $sql:expr;)*) => {
        $(pub(crate) const $name: &str = $sql;)*
        #[cfg(test)]
        const ALL: &[(&str, &str)] = &[$((stringify!($name), $name)),*];
    };
}

/// A query of receipts, newest first. Long lists of changes are left out.
macro_rules! receipts {
    ($from:literal) => {
        receipts!($from, limit "1")
    };
    ($from:literal, limit $limit:literal) => {
        concat!(
            "SELECT r.id, r.state, r.body, r.change_count, r.undone_by,
             CASE WHEN r.change_count <= 200 THEN r.changes END, r.change_count > 200 FROM receipts r ",
            $from,
            " ORDER BY r.id DESC LIMIT ",
            $limit
        )
    };
}

/// A query of sessions.
macro_rules! sessions {
    ($which:literal) => {
        concat!(
            "SELECT s.id, s.workspace, s.dialect, s.entry_point, s.started_at, s.name,
             (SELECT count(*) FROM receipts r WHERE r.session = s.id) FROM sessions s ",
            $which
        )
    };
}

statements! {
    LAST_SEQ = "SELECT seq FROM events WHERE session = ?1 ORDER BY seq DESC LIMIT 1";
    LAST_EVENT_AT = "SELECT at FROM events WHERE session = ?1 ORDER BY seq DESC LIMIT 1";
    INSERT_EVENT = "INSERT INTO events (session, seq, at, body) VALUES (?1, ?2, ?3, ?4)";
    READ_EVENTS = "SELECT seq, at, body FROM events WHERE session = ?1 AND seq >= ?2 ORDER BY seq LIMIT ?3";

    INSERT_SESSION = "INSERT OR IGNORE INTO sessions (id, workspace, dialect, entry_point, started_at, process, name)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    HAS_SESSION = "SELECT 1 FROM sessions WHERE id = ?1";
    SESSION_NAMED = "SELECT id FROM sessions WHERE name = ?1 AND workspace = ?2";
    SESSIONS_NAMED = sessions!("WHERE s.name = ?1 LIMIT 100");
    SESSION = sessions!("WHERE s.id = ?1");
    FIND_SESSION = sessions!("WHERE s.id >= ?1 AND s.id < ?2 ORDER BY s.id LIMIT 2");
    SESSIONS_FROM = sessions!("WHERE s.entry_point = ?1 AND s.started_at >= ?2 ORDER BY s.started_at LIMIT ?3");
    SESSIONS_BEFORE = sessions!("WHERE (s.started_at, s.id) < (?1, ?2) AND (?3 IS NULL OR s.workspace = ?3)
        ORDER BY s.started_at DESC, s.id DESC LIMIT ?4");
    NEWEST_SESSIONS = sessions!("WHERE s.started_at >= 0 ORDER BY s.started_at DESC, s.id DESC LIMIT ?1");

    INSERT_RECEIPT = "INSERT INTO receipts
        (session, workspace, started_at, state, kind, change_count, body, result_hash, result, changes)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
    UPDATE_RECEIPT = "UPDATE receipts
        SET state = ?3, kind = ?4, change_count = ?5, body = ?6, result_hash = ?7, result = ?8, changes = ?9
        WHERE id = ?1 AND session = ?2";
    SET_CHANGE_COUNT = "UPDATE receipts SET change_count = ?2 WHERE id = ?1";
    SET_INTERRUPTED = "UPDATE receipts SET state = 'interrupted' WHERE id = ?1";
    KIND_OF = "SELECT kind FROM receipts WHERE id = ?1";
    RESULT_OF = "SELECT result, result_hash FROM receipts WHERE id = ?1";
    CHANGES_OF = "SELECT changes FROM receipts WHERE id = ?1";

    NEWEST_CALL = "SELECT max(id) FROM receipts";
    COUNTED_CALLS = "SELECT r.id, r.state, r.body, s.dialect FROM receipts r LEFT JOIN sessions s ON s.id = r.session
        WHERE r.id > ?1 ORDER BY r.id LIMIT ?2";
    COUNTED_CALL = "SELECT r.id, r.state, r.body, s.dialect FROM receipts r LEFT JOIN sessions s ON s.id = r.session
        WHERE r.id = ?1";

    INSERT_RUNNING = "INSERT OR REPLACE INTO running (receipt, process, since) VALUES (?1, ?2, ?3)";
    IS_RUNNING = "SELECT 1 FROM running WHERE receipt = ?1";
    DELETE_RUNNING = "DELETE FROM running WHERE receipt = ?1";
    ALL_RUNNING = "SELECT receipt, process, since FROM running ORDER BY receipt";

    DRIVER_OF = "SELECT process, since FROM driven WHERE session = ?1";
    ALL_DRIVERS = "SELECT session, process, since FROM driven";
    INSERT_DRIVER = "INSERT OR REPLACE INTO driven (session, process, since) VALUES (?1, ?2, ?3)";
    DELETE_DRIVER = "DELETE FROM driven WHERE session = ?1 AND process = ?2";

    FEED_START = "SELECT min(position) FROM feed";
    FEED_END = "SELECT max(position) FROM feed";
    FEED_AFTER = "SELECT position, kind, session, item FROM feed WHERE position > ?1 ORDER BY position LIMIT ?2";

    INSERT_QUESTION = "INSERT INTO questions (session, process, asked_at, body) VALUES (?1, ?2, ?3, ?4)";
    ANSWER_QUESTION = "UPDATE questions SET answer = ?2, ended_at = ?3 WHERE id = ?1 AND ended_at IS NULL";
    QUESTION = "SELECT id, session, asked_at, process, body, answer, ended_at FROM questions WHERE id = ?1";
    OPEN_QUESTIONS = "SELECT id, session, asked_at, process, body, answer, ended_at
        FROM questions INDEXED BY open_questions WHERE ended_at IS NULL ORDER BY id";
    OPEN_QUESTION_PROCESSES = "SELECT id, process, asked_at FROM questions INDEXED BY open_questions WHERE ended_at IS NULL";
    INSERT_ANSWERING = "INSERT OR REPLACE INTO answering (process, since) VALUES (?1, ?2)";
    DELETE_ANSWERING = "DELETE FROM answering WHERE process = ?1";
    ALL_ANSWERING = "SELECT process, since FROM answering";

    FIND_SEARCH = "SELECT body FROM searches WHERE key = ?1 AND at > ?2";
    INSERT_SEARCH = "INSERT OR REPLACE INTO searches (key, at, body) VALUES (?1, ?2, ?3)";
    FORGET_SEARCHES = "DELETE FROM searches WHERE at <= ?1";

    NEXT_INTENT = "SELECT coalesce(max(n), 0) + 1 FROM intents WHERE receipt = ?1";
    INSERT_INTENT = "INSERT INTO intents (receipt, n, change, temp) VALUES (?1, ?2, ?3, ?4)";
    READ_INTENTS = "SELECT change, temp FROM intents WHERE receipt = ?1 ORDER BY n";
    DELETE_INTENTS = "DELETE FROM intents WHERE receipt = ?1";

    INSERT_BLOB = "INSERT OR IGNORE INTO blobs (hash, size, bytes) VALUES (?1, ?2, ?3)";
    READ_BLOB = "SELECT bytes FROM blobs WHERE hash = ?1";
    BLOB_SIZE = "SELECT size FROM blobs WHERE hash = ?1";
    HAS_BLOB = "SELECT 1 FROM blobs WHERE hash = ?1";
    INSERT_CHUNKS = "INSERT OR IGNORE INTO chunks (hash, list) VALUES (?1, ?2)";
    READ_CHUNKS = "SELECT list FROM chunks WHERE hash = ?1";
    INSERT_REF = "INSERT OR IGNORE INTO refs (receipt, hash) VALUES (?1, ?2)";
    DELETE_REFS = "DELETE FROM refs WHERE receipt = ?1";

    SET_NOTE = "INSERT INTO notes (session, name, receipt) VALUES (?1, ?2, ?3)
        ON CONFLICT (session, name) DO UPDATE SET receipt = max(receipt, ?3)";
    NOTED_IN = "SELECT receipt FROM notes WHERE session = ?1 AND name = ?2";

    HAS_MESSAGE = "SELECT 1 FROM inbox WHERE workspace = ?1 AND channel = ?2 AND chat = ?3 AND message = ?4";
    INSERT_MESSAGE = "INSERT OR IGNORE INTO inbox (workspace, channel, message, chat, sender, text, accepted_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    OPEN_MESSAGES = "SELECT id, channel, chat, message, sender, text, begun_after FROM inbox INDEXED BY inbox_open
        WHERE workspace = ?1 AND finished_at IS NULL ORDER BY id";
    BEGUN_MESSAGE = "SELECT 1 FROM inbox INDEXED BY inbox_open
        WHERE workspace = ?1 AND finished_at IS NULL AND begun_after IS NOT NULL AND channel || ':' || chat = ?2";
    BEGIN_MESSAGE = "UPDATE inbox SET begun_after = ?2 WHERE id = ?1";
    FINISH_MESSAGE = "UPDATE inbox SET finished_at = ?2, text = '', sender = NULL WHERE id = ?1";
    FORGET_MESSAGES = "DELETE FROM inbox WHERE finished_at IS NOT NULL AND finished_at < ?1";

    INSERT_UNDO = "INSERT OR IGNORE INTO undoes (target, undo) VALUES (?1, ?2)";
    EFFECTIVE_UNDO = "SELECT u.undo FROM undoes u JOIN receipts r ON r.id = u.undo
        WHERE u.target = ?1 AND r.undone_by IS NULL ORDER BY u.undo DESC LIMIT 1";
    SET_UNDONE = "UPDATE receipts SET undone_by = ?2 WHERE id = ?1 AND undone_by IS NOT ?2";
    TARGETS_OF = "SELECT target FROM undoes WHERE undo = ?1 AND target < ?1";
    UNDONE_BY = "SELECT undone_by FROM receipts WHERE id = ?1";

    RECEIPT = receipts!("WHERE r.id = ?1");
    RECEIPTS = receipts!("WHERE r.id < ?1", limit "?2");
    RECEIPTS_CHANGED = receipts!(
        "INDEXED BY changed WHERE r.id < ?1 AND r.change_count > 0",
        limit "?2"
    );
    RECEIPTS_IN_WORKSPACE = receipts!(
        "INDEXED BY receipts_in_workspace WHERE r.workspace = ?3 AND r.id < ?1",
        limit "?2"
    );
    RECEIPTS_CHANGED_IN_WORKSPACE = receipts!(
        "INDEXED BY changed_in_workspace WHERE r.workspace = ?3 AND r.id < ?1 AND r.change_count > 0",
        limit "?2"
    );
    RECEIPTS_IN_SESSION = receipts!(
        "INDEXED BY receipts_in_session
         WHERE r.session = ?3 AND r.id < ?1 AND (?4 IS NULL OR r.workspace = ?4) AND r.change_count >= ?5",
        limit "?2"
    );
    NEXT_TO_UNDO = receipts!(
        "INDEXED BY undoable
         WHERE r.workspace = ?1 AND r.kind = 'call' AND r.change_count > 0 AND r.undone_by IS NULL
         AND r.state <> 'running'"
    );
    NEXT_TO_REDO = receipts!(
        "INDEXED BY redoable
         WHERE r.workspace = ?1 AND r.kind = 'undo' AND r.undone_by IS NULL AND r.state = 'completed'"
    );
    CHANGED_SINCE = "SELECT 1 FROM receipts r INDEXED BY changed_in_workspace
        WHERE r.workspace = ?1 AND r.id > ?2 AND r.change_count > 0 AND r.kind = 'call' LIMIT 1";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::{CACHED_STATEMENTS, Database};
    use crate::directory::LedgerDir;

    #[test]
    fn a_connection_keeps_all_statements_prepared() {
        assert!(ALL.len() < CACHED_STATEMENTS, "{} statements", ALL.len());
    }

    #[test]
    fn no_statement_of_a_call_scans_a_growing_table() {
        let dir = tempfile::tempdir().unwrap();
        let database = Database::open(LedgerDir::prepare(&dir.path().join("home")).unwrap()).unwrap();
        for (name, sql) in ALL {
            let plan = database.read(|conn| {
                let mut explain = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
                let count = explain.parameter_count();
                let values = rusqlite::params_from_iter((0..count).map(|_| 1));
                let lines = explain.query_map(values, |row| row.get::<_, String>(3))?;
                Ok(lines.collect::<rusqlite::Result<Vec<_>>>()?)
            });
            for line in plan.unwrap() {
                let small = ["running", "answering", "driven", "questions USING INDEX open_questions"];
                let scans = line
                    .strip_prefix("SCAN ")
                    .is_some_and(|what| !small.iter().any(|small| what.starts_with(small)));
                assert!(!scans && !line.contains("TEMP B-TREE"), "{name}: {line}");
            }
        }
    }
}
