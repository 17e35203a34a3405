//! The connections: one that writes, one that reads, and the shape of a transaction.

use std::path::Path;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use haft_tool::{ToolError, lock};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Params};

use crate::fault::{Attempt, Fault};
use crate::home::Home;
use crate::packs::Packs;
use crate::schema;

/// How long a write waits for another process. Writers hold the lock for microseconds, a collection for less than
/// a second, so whoever waits longer has met a process that hangs.
const PATIENCE: Duration = Duration::from_secs(30);
/// Bytes the log may hold when a process starts. The first process on the scene reads the whole log before its
/// first query, so short-lived ones must not find much; the first commit after this empties it.
const LOG_BYTES_AT_START: u64 = 512 * 1_024;
/// Pages the log may hold in a process that goes on, so that it waits for the disk seldom.
const LOG_PAGES: u32 = 1_000;

/// KiB of pages that one transaction may hold: what does not fit goes to the log again with every change.
const MOST_CACHED_KIB: u32 = 64 * 1_024;

/// What a commit has survived when it returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Survives {
    /// The death of this process.
    Crash,
    /// The loss of power.
    PowerLoss,
}

#[derive(Debug)]
struct Writer {
    conn: Connection,
    survives: Survives,
    /// Whether the log was long when this process came.
    log_is_long: bool,
}

/// The database behind a ledger.
#[derive(Debug)]
pub(crate) struct Db {
    home: Home,
    packs: Packs,
    writer: Mutex<Writer>,
    reader: Mutex<Option<Connection>>,
}

impl Db {
    /// Opens the database of a home.
    pub(crate) fn open(home: Home) -> Result<Self, ToolError> {
        let tell = |fault: Fault| fault.tell(home.database());
        let log_is_long = home.log_bytes() > LOG_BYTES_AT_START;
        let conn = connect(home.database()).map_err(|error| tell(error.into()))?;
        schema::ensure(&conn, &home).map_err(tell)?;
        // A plain fsync does not reach the disk on macOS; elsewhere `fullfsync` changes nothing.
        conn.execute_batch(&format!(
            "PRAGMA synchronous = NORMAL; PRAGMA fullfsync = 1; PRAGMA wal_autocheckpoint = {LOG_PAGES};
             PRAGMA cache_size = -{MOST_CACHED_KIB}"
        ))
        .map_err(|error| tell(error.into()))?;
        let writer = Writer { conn, survives: Survives::Crash, log_is_long };
        Ok(Self { home, packs: Packs::default(), writer: Mutex::new(writer), reader: Mutex::new(None) })
    }

    pub(crate) fn home(&self) -> &Home {
        &self.home
    }

    pub(crate) fn packs(&self) -> &Packs {
        &self.packs
    }

    fn tell(&self, fault: Fault) -> ToolError {
        fault.tell(self.home.database())
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        // A panic elsewhere left no open transaction behind: its guard rolled back.
        lock(&self.writer)
    }

    /// Runs `work` in one write transaction: all of it is committed, or nothing.
    pub(crate) fn write<T>(
        &self,
        survives: Survives,
        work: impl FnOnce(&Connection) -> Attempt<T>,
    ) -> Result<T, ToolError> {
        self.writer().write(survives, work).map_err(|fault| self.tell(fault))
    }

    /// Runs `work` in a write transaction and takes everything back.
    pub(crate) fn rehearse<T>(&self, work: impl FnOnce(&Connection) -> Attempt<T>) -> Result<T, ToolError> {
        let writer = self.writer();
        let rehearsed =
            Transaction::begin(&writer.conn, "BEGIN IMMEDIATE").and_then(|_open| work(&writer.conn));
        rehearsed.map_err(|fault| self.tell(fault))
    }

    /// Runs `work` on the writing connection, outside of any transaction.
    pub(crate) fn direct<T>(&self, work: impl FnOnce(&Connection) -> Attempt<T>) -> Result<T, ToolError> {
        work(&self.writer().conn).map_err(|fault| self.tell(fault))
    }

    /// Runs `work` on one unmoving view of the database.
    pub(crate) fn read<T>(&self, work: impl FnOnce(&Connection) -> Attempt<T>) -> Result<T, ToolError> {
        let mut reader = lock(&self.reader);
        let open = || {
            let conn = connect(self.home.database())?;
            conn.execute_batch("PRAGMA query_only = 1")?;
            Ok(conn)
        };
        let conn =
            reader.take().map_or_else(open, Ok).map_err(|error: rusqlite::Error| self.tell(error.into()))?;
        let conn = reader.insert(conn);
        let read = Transaction::begin(conn, "BEGIN").and_then(|_open| work(conn));
        read.map_err(|fault| self.tell(fault))
    }
}

impl Writer {
    fn write<T>(&mut self, survives: Survives, work: impl FnOnce(&Connection) -> Attempt<T>) -> Attempt<T> {
        if self.survives != survives {
            self.conn.execute_batch(match survives {
                Survives::Crash => "PRAGMA synchronous = NORMAL",
                Survives::PowerLoss => "PRAGMA synchronous = FULL",
            })?;
            self.survives = survives;
        }
        let open = Transaction::begin(&self.conn, "BEGIN IMMEDIATE")?;
        let value = work(&self.conn)?;
        open.commit()?;
        if self.log_is_long {
            self.log_is_long = false;
            empty_log(&self.conn, Duration::ZERO)?;
        }
        Ok(value)
    }
}

fn connect(database: &Path) -> rusqlite::Result<Connection> {
    // Each connection stands behind a mutex of ours, so SQLite needs none of its own.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(database, flags)?;
    conn.busy_timeout(PATIENCE)?;
    // Otherwise every short-lived process would copy the log into the database on its way out.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    // Otherwise a statement may be prepared anew for every value bound to it, to look for a better plan.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    conn.set_prepared_statement_cache_capacity(64);
    Ok(conn)
}

/// Copies the log into the database and empties it, unless others read it for longer than `patience`: then
/// somebody else will do it.
pub(crate) fn empty_log(conn: &Connection, patience: Duration) -> Attempt<()> {
    conn.busy_timeout(patience)?;
    let emptied = conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    conn.busy_timeout(PATIENCE)?;
    Ok(emptied?)
}

/// Runs a statement that is prepared only once per connection.
pub(crate) fn run(conn: &Connection, sql: &str, params: impl Params) -> Attempt<usize> {
    Ok(conn.prepare_cached(sql)?.execute(params)?)
}

/// An open transaction; dropped without a commit, it never was.
struct Transaction<'a> {
    conn: &'a Connection,
    open: bool,
}

impl<'a> Transaction<'a> {
    fn begin(conn: &'a Connection, how: &str) -> Attempt<Self> {
        run(conn, how, [])?;
        Ok(Self { conn, open: true })
    }

    fn commit(mut self) -> Attempt<()> {
        run(self.conn, "COMMIT", [])?;
        self.open = false;
        Ok(())
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if self.open && !self.conn.is_autocommit() {
            // There is nobody to tell: SQLite rolls back by itself at the latest when the connection closes.
            drop(run(self.conn, "ROLLBACK", []));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_tool::ErrorKind;

    fn db() -> (tempfile::TempDir, Db) {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(Home::prepare(&dir.path().join("home")).unwrap()).unwrap();
        (dir, db)
    }

    fn synchronous(conn: &Connection) -> Attempt<i64> {
        Ok(conn.query_row("PRAGMA synchronous", [], |row| row.get(0))?)
    }

    #[test]
    fn only_a_commit_that_must_survive_power_loss_waits_for_the_disk() {
        let (_dir, db) = db();
        assert_eq!(db.write(Survives::PowerLoss, synchronous).unwrap(), 2, "FULL");
        assert_eq!(db.write(Survives::Crash, synchronous).unwrap(), 1, "NORMAL");
        assert_eq!(db.write(Survives::PowerLoss, synchronous).unwrap(), 2, "FULL");
    }

    #[test]
    fn a_failed_or_panicking_transaction_leaves_nothing_behind() {
        let (_dir, db) = db();
        let insert = |conn: &Connection| run(conn, "INSERT INTO running VALUES (1, '', 0)", []);
        let count = |conn: &Connection| -> Attempt<i64> {
            Ok(conn.query_row("SELECT count(*) FROM running", [], |row| row.get(0))?)
        };
        let failed = db.write(Survives::Crash, |conn| {
            insert(conn)?;
            Err::<(), _>(ToolError::failed("no").into())
        });
        assert_eq!(failed.unwrap_err().message, "no");
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            drop(db.write(Survives::Crash, |conn| -> Attempt<()> {
                insert(conn)?;
                panic!("in the middle")
            }));
        }));
        assert!(panicked.is_err());
        assert_eq!(db.rehearse(|conn| insert(conn).and_then(|_| count(conn))).unwrap(), 1);
        assert_eq!(db.read(count).unwrap(), 0);
        db.write(Survives::Crash, insert).unwrap();
        assert_eq!(db.read(count).unwrap(), 1);
    }

    #[test]
    fn a_full_disk_and_a_read_only_ledger_are_told_plainly() {
        let (_dir, db) = db();
        let fill =
            |conn: &Connection| run(conn, "INSERT INTO running VALUES (1, hex(zeroblob(100000)), 0)", []);
        db.direct(|conn| Ok(conn.query_row("PRAGMA max_page_count = 1", [], |_| Ok(()))?)).unwrap();
        let error = db.write(Survives::Crash, fill).unwrap_err();
        assert!(error.message.starts_with("the disk is full"), "{error}");
        db.direct(|conn| Ok(conn.execute_batch("PRAGMA query_only = 1")?)).unwrap();
        let error = db.write(Survives::Crash, fill).unwrap_err();
        assert_eq!(error.kind, ErrorKind::PermissionDenied);
        assert!(error.message.contains("HAFT_HOME"), "{error}");
    }
}
