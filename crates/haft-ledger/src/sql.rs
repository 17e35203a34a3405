//! Every statement that a call costs. Each finds its rows by an index, so that a long history costs nothing;
//! the test below holds them to it.

/// A number as SQLite keeps it: nothing here comes near the top bit but nonsense.
pub(crate) fn int(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

pub(crate) const LAST_SEQ: &str = "SELECT seq FROM events WHERE session = ?1 ORDER BY seq DESC LIMIT 1";
pub(crate) const FORGOTTEN_SEQ: &str = "SELECT forgotten FROM sessions WHERE id = ?1";
pub(crate) const INSERT_EVENT: &str = "INSERT INTO events (session, seq, at, body) VALUES (?1, ?2, ?3, ?4)";
pub(crate) const READ_EVENTS: &str =
    "SELECT seq, at, body FROM events WHERE session = ?1 AND seq >= ?2 ORDER BY seq LIMIT ?3";

pub(crate) const INSERT_SESSION: &str = "INSERT OR IGNORE INTO sessions (id, workspace, dialect, door, started_at, owner) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
pub(crate) const FIND_SESSION: &str = "SELECT s.id, s.workspace, s.dialect, s.door, s.started_at,
    (SELECT count(*) FROM receipts r WHERE r.session = s.id) FROM sessions s
    WHERE s.id >= ?1 AND s.id < ?2 ORDER BY s.id LIMIT 2";
pub(crate) const NEWEST_SESSIONS: &str = "SELECT s.id, s.workspace, s.dialect, s.door, s.started_at,
    (SELECT count(*) FROM receipts r WHERE r.session = s.id) FROM sessions s
    WHERE s.started_at >= 0 ORDER BY s.started_at DESC, s.id DESC LIMIT ?1";

pub(crate) const INSERT_RECEIPT: &str = "INSERT INTO receipts
    (session, workspace, started_at, first_seq, last_seq, state, kind, changes)
    VALUES (?1, ?2, ?3, ?4, ?4, ?5, ?6, ?7)";
pub(crate) const UPDATE_RECEIPT: &str =
    "UPDATE receipts SET last_seq = ?3, state = ?4, kind = ?5, changes = ?6
    WHERE id = ?1 AND session = ?2";
pub(crate) const COUNT_CHANGES: &str = "UPDATE receipts SET changes = ?2 WHERE id = ?1";
pub(crate) const KIND_OF: &str = "SELECT kind FROM receipts WHERE id = ?1";

pub(crate) const INSERT_RUNNING: &str =
    "INSERT OR REPLACE INTO running (receipt, owner, since) VALUES (?1, ?2, ?3)";
pub(crate) const DISOWN: &str = "UPDATE running SET owner = '' WHERE receipt = ?1";
pub(crate) const IS_RUNNING: &str = "SELECT 1 FROM running WHERE receipt = ?1";
pub(crate) const DELETE_RUNNING: &str = "DELETE FROM running WHERE receipt = ?1";
pub(crate) const ALL_RUNNING: &str = "SELECT receipt, owner, since FROM running ORDER BY receipt";
pub(crate) const GIVE_UP_RECEIPT: &str = "UPDATE receipts SET state = 'interrupted' WHERE id = ?1";

pub(crate) const NEXT_PENDING: &str = "SELECT coalesce(max(n), 0) + 1 FROM pending WHERE receipt = ?1";
pub(crate) const INSERT_PENDING: &str =
    "INSERT INTO pending (receipt, n, body, temp) VALUES (?1, ?2, ?3, ?4)";
pub(crate) const READ_PENDING: &str = "SELECT body, temp FROM pending WHERE receipt = ?1 ORDER BY n";
pub(crate) const DELETE_PENDING: &str = "DELETE FROM pending WHERE receipt = ?1";

pub(crate) const INSERT_BLOB: &str =
    "INSERT INTO blobs (hash, size, pins, pinned_at, bytes) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT (hash) DO UPDATE SET pins = pins + ?3, pinned_at = max(pinned_at, ?4)";
pub(crate) const READ_BLOB: &str = "SELECT bytes FROM blobs WHERE hash = ?1";
pub(crate) const HAS_BLOB: &str = "SELECT 1 FROM blobs WHERE hash = ?1";
pub(crate) const UNPIN_BLOB: &str = "UPDATE blobs SET pins = pins - 1 WHERE hash = ?1 AND pins > 0";
pub(crate) const INSERT_REF: &str = "INSERT OR IGNORE INTO refs (receipt, hash) VALUES (?1, ?2)";
pub(crate) const DELETE_REFS: &str = "DELETE FROM refs WHERE receipt = ?1";

pub(crate) const SET_NOTE: &str = "INSERT INTO notes (session, name, receipt) VALUES (?1, ?2, ?3)
    ON CONFLICT (session, name) DO UPDATE SET receipt = max(receipt, ?3)";
pub(crate) const NOTED_IN: &str = "SELECT receipt FROM notes WHERE session = ?1 AND name = ?2";

pub(crate) const INSERT_UNDO: &str = "INSERT OR IGNORE INTO undoes (target, undo) VALUES (?1, ?2)";
pub(crate) const LIVE_UNDO: &str = "SELECT u.undo FROM undoes u JOIN receipts r ON r.id = u.undo
    WHERE u.target = ?1 AND r.undone_by IS NULL ORDER BY u.undo DESC LIMIT 1";
pub(crate) const SET_UNDONE: &str =
    "UPDATE receipts SET undone_by = ?2 WHERE id = ?1 AND undone_by IS NOT ?2";
pub(crate) const TARGETS_OF: &str = "SELECT target FROM undoes WHERE undo = ?1 AND target < ?1";
pub(crate) const UNDONE_BY: &str = "SELECT undone_by FROM receipts WHERE id = ?1";

/// A receipt and the event it stands in: what every query of receipts selects.
macro_rules! receipts {
    ($from:literal) => {
        receipts!($from, limit "1")
    };
    ($from:literal, limit $limit:literal) => {
        concat!(
            "SELECT r.id, r.state, e.body, r.changes, r.undone_by FROM receipts r ",
            $from,
            " ORDER BY r.id DESC LIMIT ",
            $limit
        )
    };
}

pub(crate) const RECEIPT: &str =
    receipts!("JOIN events e ON e.session = r.session AND e.seq = r.last_seq WHERE r.id = ?1");
pub(crate) const RECEIPTS: &str = receipts!(
    "JOIN events e ON e.session = r.session AND e.seq = r.last_seq WHERE r.id < ?1",
    limit "?2"
);
pub(crate) const RECEIPTS_CHANGED: &str = receipts!(
    "INDEXED BY changed JOIN events e ON e.session = r.session AND e.seq = r.last_seq
     WHERE r.id < ?1 AND r.changes > 0",
    limit "?2"
);
pub(crate) const RECEIPTS_IN_WORKSPACE: &str = receipts!(
    "INDEXED BY receipts_in_workspace JOIN events e ON e.session = r.session AND e.seq = r.last_seq
     WHERE r.workspace = ?3 AND r.id < ?1",
    limit "?2"
);
pub(crate) const RECEIPTS_CHANGED_IN_WORKSPACE: &str = receipts!(
    "INDEXED BY changed_in_workspace JOIN events e ON e.session = r.session AND e.seq = r.last_seq
     WHERE r.workspace = ?3 AND r.id < ?1 AND r.changes > 0",
    limit "?2"
);
pub(crate) const RECEIPTS_IN_SESSION: &str = receipts!(
    "INDEXED BY receipts_in_session JOIN events e ON e.session = r.session AND e.seq = r.last_seq
     WHERE r.session = ?3 AND r.id < ?1 AND (?4 IS NULL OR r.workspace = ?4) AND r.changes >= ?5",
    limit "?2"
);
pub(crate) const NEXT_TO_UNDO: &str = receipts!(
    "INDEXED BY undoable JOIN events e ON e.session = r.session AND e.seq = r.last_seq
     WHERE r.workspace = ?1 AND r.kind = 'call' AND r.changes > 0 AND r.undone_by IS NULL AND r.state <> 'running'"
);
pub(crate) const NEXT_TO_REDO: &str = receipts!(
    "INDEXED BY redoable JOIN events e ON e.session = r.session AND e.seq = r.last_seq
     WHERE r.workspace = ?1 AND r.kind = 'undo' AND r.undone_by IS NULL AND r.state = 'completed'"
);
pub(crate) const CALL_SINCE: &str = "SELECT 1 FROM receipts r INDEXED BY changed_in_workspace
    WHERE r.workspace = ?1 AND r.id > ?2 AND r.changes > 0 AND r.kind = 'call' LIMIT 1";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::Db;
    use crate::home::Home;

    #[test]
    fn no_statement_that_a_call_costs_looks_through_a_growing_table() {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(Home::prepare(&dir.path().join("home")).unwrap()).unwrap();
        // Every constant above, taken from the source, so that a new one cannot be left out.
        let source = include_str!("sql.rs").split("#[cfg(test)]").next().unwrap();
        let names: Vec<_> = source
            .lines()
            .filter_map(|line| line.strip_prefix("pub(crate) const ")?.split(':').next())
            .collect();
        let statements = all();
        assert_eq!(names, statements.iter().map(|(name, _)| *name).collect::<Vec<_>>());
        for (name, sql) in statements {
            let plan = db.read(|conn| {
                let mut explain = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
                let count = explain.parameter_count();
                let values = rusqlite::params_from_iter((0..count).map(|_| 1));
                let lines = explain.query_map(values, |row| row.get::<_, String>(3))?;
                Ok(lines.collect::<rusqlite::Result<Vec<_>>>()?)
            });
            for line in plan.unwrap() {
                let grows = line.starts_with("SCAN") && !line.starts_with("SCAN running");
                assert!(!grows && !line.contains("TEMP B-TREE"), "{name}: {line}");
            }
        }
    }

    fn all() -> Vec<(&'static str, &'static str)> {
        macro_rules! named { ($($name:ident)*) => { vec![$((stringify!($name), $name)),*] }; }
        named! {
            LAST_SEQ FORGOTTEN_SEQ INSERT_EVENT READ_EVENTS INSERT_SESSION FIND_SESSION NEWEST_SESSIONS
            INSERT_RECEIPT UPDATE_RECEIPT COUNT_CHANGES KIND_OF INSERT_RUNNING DISOWN IS_RUNNING DELETE_RUNNING ALL_RUNNING
            GIVE_UP_RECEIPT NEXT_PENDING INSERT_PENDING READ_PENDING DELETE_PENDING INSERT_BLOB READ_BLOB
            HAS_BLOB UNPIN_BLOB INSERT_REF DELETE_REFS SET_NOTE NOTED_IN INSERT_UNDO LIVE_UNDO SET_UNDONE TARGETS_OF UNDONE_BY RECEIPT
            RECEIPTS RECEIPTS_CHANGED RECEIPTS_IN_WORKSPACE RECEIPTS_CHANGED_IN_WORKSPACE RECEIPTS_IN_SESSION
            NEXT_TO_UNDO NEXT_TO_REDO CALL_SINCE
        }
    }
}
