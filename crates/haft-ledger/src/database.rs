//! The SQLite connection and its transactions.

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use haft_tool::{ToolError, lock};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Params, TransactionBehavior};

use crate::directory::LedgerDir;
use crate::error::TxResult;
use crate::schema;

/// How long a transaction waits for another process. Writers hold the lock for microseconds, garbage collection for
/// less than a second.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);
/// A write-ahead log longer than this is emptied when the ledger is opened: the first process to open it reads it all.
const MAX_WAL_BYTES_AT_OPEN: u64 = 512 * 1_024;
/// Pages in the write-ahead log after which SQLite copies them into the database.
const WAL_CHECKPOINT_PAGES: u32 = 1_000;
/// Pages of the database kept in memory between transactions, in KiB.
const PAGE_CACHE_KIB: u32 = 1_024;
/// More than there are statements in [`crate::sql`].
pub(crate) const CACHED_STATEMENTS: usize = 128;

/// What a commit survives when it returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// The death of this process.
    ProcessCrash,
    /// A power failure: the commit waits for the disk.
    PowerLoss,
}

/// The database of a ledger.
#[derive(Debug)]
pub(crate) struct Database {
    dir: LedgerDir,
    connection: Mutex<LedgerConnection>,
}

#[derive(Debug)]
struct LedgerConnection {
    conn: Connection,
    durability: Durability,
}

impl Database {
    pub(crate) fn open(dir: LedgerDir) -> Result<Self, ToolError> {
        let conn = connect(&dir).map_err(|error| error.into_tool_error(dir.database()))?;
        let connection = LedgerConnection { conn, durability: Durability::ProcessCrash };
        Ok(Self { dir, connection: Mutex::new(connection) })
    }

    pub(crate) fn dir(&self) -> &LedgerDir {
        &self.dir
    }

    /// Runs `work` in a write transaction: all of it is committed, or nothing.
    pub(crate) fn write<T>(
        &self,
        durability: Durability,
        work: impl FnOnce(&Connection) -> TxResult<T>,
    ) -> Result<T, ToolError> {
        self.result(self.connection().write(durability, work))
    }

    /// Runs `work` in a write transaction and rolls it back.
    pub(crate) fn dry_run<T>(&self, work: impl FnOnce(&Connection) -> TxResult<T>) -> Result<T, ToolError> {
        self.result(self.connection().roll_back(TransactionBehavior::Immediate, work))
    }

    /// Runs `work` on one snapshot of the database.
    pub(crate) fn read<T>(&self, work: impl FnOnce(&Connection) -> TxResult<T>) -> Result<T, ToolError> {
        self.result(self.connection().roll_back(TransactionBehavior::Deferred, work))
    }

    /// Runs `work` outside of any transaction.
    pub(crate) fn without_transaction<T>(
        &self,
        work: impl FnOnce(&Connection) -> TxResult<T>,
    ) -> Result<T, ToolError> {
        self.result(work(&self.connection().conn))
    }

    fn connection(&self) -> MutexGuard<'_, LedgerConnection> {
        lock(&self.connection)
    }

    fn result<T>(&self, result: TxResult<T>) -> Result<T, ToolError> {
        result.map_err(|error| error.into_tool_error(self.dir.database()))
    }
}

impl LedgerConnection {
    fn write<T>(
        &mut self,
        durability: Durability,
        work: impl FnOnce(&Connection) -> TxResult<T>,
    ) -> TxResult<T> {
        if self.durability != durability {
            self.conn.execute_batch(match durability {
                Durability::ProcessCrash => "PRAGMA synchronous = NORMAL",
                Durability::PowerLoss => "PRAGMA synchronous = FULL",
            })?;
            self.durability = durability;
        }
        let transaction = self.conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let value = work(&transaction)?;
        transaction.commit()?;
        Ok(value)
    }

    fn roll_back<T>(
        &mut self,
        behavior: TransactionBehavior,
        work: impl FnOnce(&Connection) -> TxResult<T>,
    ) -> TxResult<T> {
        // Dropping the transaction rolls it back.
        let transaction = self.conn.transaction_with_behavior(behavior)?;
        work(&transaction)
    }
}

fn connect(dir: &LedgerDir) -> TxResult<Connection> {
    let wal_bytes = dir.wal_bytes();
    // The connection is behind a mutex, so SQLite needs none.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(dir.database(), flags)?;
    conn.busy_timeout(LOCK_TIMEOUT)?;
    // Otherwise every short-lived process would copy the log into the database at its end.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    conn.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
    schema::ensure(&conn, dir)?;
    // A plain fsync does not reach the disk on macOS; elsewhere `fullfsync` changes nothing. A large transaction takes
    // more memory until it ends, because pages that spill are written more than once.
    conn.execute_batch(&format!(
        "PRAGMA synchronous = NORMAL; PRAGMA fullfsync = 1;
         PRAGMA wal_autocheckpoint = {WAL_CHECKPOINT_PAGES}; PRAGMA cache_size = -{PAGE_CACHE_KIB};
         PRAGMA cache_spill = 0"
    ))?;
    if wal_bytes > MAX_WAL_BYTES_AT_OPEN {
        checkpoint(&conn, Duration::ZERO)?;
    }
    Ok(conn)
}

/// Copies the write-ahead log into the database and empties it. Does nothing if other processes read it for longer than
/// `timeout`.
pub(crate) fn checkpoint(conn: &Connection, timeout: Duration) -> TxResult<()> {
    conn.busy_timeout(timeout)?;
    let emptied = conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    conn.busy_timeout(LOCK_TIMEOUT)?;
    Ok(emptied?)
}

/// Runs a statement that is prepared once per connection.
pub(crate) fn execute(conn: &Connection, sql: &str, params: impl Params) -> TxResult<usize> {
    Ok(conn.prepare_cached(sql)?.execute(params)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_tool::ErrorKind;

    fn database() -> (tempfile::TempDir, Database) {
        let dir = tempfile::tempdir().unwrap();
        let database = Database::open(LedgerDir::prepare(&dir.path().join("home")).unwrap()).unwrap();
        (dir, database)
    }

    fn synchronous(conn: &Connection) -> TxResult<i64> {
        Ok(conn.query_row("PRAGMA synchronous", [], |row| row.get(0))?)
    }

    #[test]
    fn only_commits_that_survive_power_loss_wait_for_the_disk() {
        let (_dir, database) = database();
        assert_eq!(database.write(Durability::PowerLoss, synchronous).unwrap(), 2, "FULL");
        assert_eq!(database.write(Durability::ProcessCrash, synchronous).unwrap(), 1, "NORMAL");
        assert_eq!(database.write(Durability::PowerLoss, synchronous).unwrap(), 2, "FULL");
    }

    #[test]
    fn failed_or_panicking_transaction_writes_nothing() {
        let (_dir, database) = database();
        let insert = |conn: &Connection| execute(conn, "INSERT INTO running VALUES (1, '', 0)", []);
        let count = |conn: &Connection| -> TxResult<i64> {
            Ok(conn.query_row("SELECT count(*) FROM running", [], |row| row.get(0))?)
        };
        let failed = database.write(Durability::ProcessCrash, |conn| {
            insert(conn)?;
            Err::<(), _>(ToolError::failed("no").into())
        });
        assert_eq!(failed.unwrap_err().message, "no");
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            drop(database.write(Durability::ProcessCrash, |conn| -> TxResult<()> {
                insert(conn)?;
                panic!("inside the transaction")
            }));
        }));
        assert!(panicked.is_err());
        assert_eq!(database.dry_run(|conn| insert(conn).and_then(|_| count(conn))).unwrap(), 1);
        assert_eq!(database.read(count).unwrap(), 0);
        database.write(Durability::ProcessCrash, insert).unwrap();
        assert_eq!(database.read(count).unwrap(), 1);
    }

    #[test]
    fn full_disk_and_read_only_ledger_have_clear_messages() {
        let (_dir, database) = database();
        let fill =
            |conn: &Connection| execute(conn, "INSERT INTO running VALUES (1, hex(zeroblob(100000)), 0)", []);
        let set = |sql: &str| database.without_transaction(|conn| Ok(conn.execute_batch(sql)?)).unwrap();
        set("PRAGMA max_page_count = 1");
        let error = database.write(Durability::ProcessCrash, fill).unwrap_err();
        assert!(error.message.starts_with("The disk is full"), "{error}");
        set("PRAGMA query_only = 1");
        let error = database.write(Durability::ProcessCrash, fill).unwrap_err();
        assert_eq!(error.kind, ErrorKind::PermissionDenied);
        assert!(error.message.contains("HAFT_HOME"), "{error}");
    }
}
