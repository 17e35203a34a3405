//! Forgetting: the oldest receipts first, then what nobody needs any more, until the disk really has the room back.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::time::Duration;

use haft_tool::{ToolError, now_ms};
use rusqlite::{Connection, OptionalExtension, params};
use rustix::fs::FlockOperation;

use crate::blobs::{Key, file_of, key_of};
use crate::db::{Survives, empty_log, run};
use crate::fault::Attempt;
use crate::health::{blob_files, bytes_on_disk};
use crate::owner::Owner;
use crate::sql::{self, int};
use crate::{Ledger, packs};

/// How many receipts are forgotten in one transaction, so that others can write in between.
const BATCH: i64 = 500;
/// How many pages go back to the disk in one transaction.
const PAGES: u32 = 2_000;
/// How long something that nobody names yet is kept for whoever is about to name it.
const GRACE_MS: u64 = 24 * 60 * 60 * 1_000;
/// What SQLite's shared memory takes on the disk, however small the ledger is.
const SHARED_MEMORY: u64 = 32 * 1_024;
/// How long to wait for readers when the log is emptied; the next collection can do it as well.
const READERS: Duration = Duration::from_secs(1);

/// What may be forgotten. With nothing set, only what nobody needs goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GcPolicy {
    /// Forget the oldest receipts until the ledger takes no more than this many bytes. (The newest one stays.)
    pub max_bytes: Option<u64>,
    /// Forget receipts that started longer ago than this many milliseconds.
    pub older_than_ms: Option<u64>,
    /// Only tell what would happen.
    pub dry_run: bool,
}

/// What was forgotten, or would be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GcReport {
    /// How many receipts, with their events and changes.
    pub receipts_removed: u64,
    /// How many sessions that had nothing left.
    pub sessions_removed: u64,
    /// How many blobs.
    pub blobs_removed: u64,
    /// The ledger's size on the disk before.
    pub bytes_before: u64,
    /// Its size after; for a dry run, what it would be about.
    pub bytes_after: u64,
}

impl Ledger {
    /// Forgets what the policy allows, oldest first, and gives the room back to the disk. Calls that are running,
    /// here or in another process, are never touched.
    pub fn gc(&self, policy: &GcPolicy) -> Result<GcReport, ToolError> {
        let mut collection = Collection::new(*policy, now_ms());
        let told = |error: io::Error| ToolError::io("looking through the packs", &error);
        collection.packs = packs::all(self.db.home()).map_err(told)?.into_iter().collect();
        collection.report.bytes_before = bytes_on_disk(self.db.home())?;
        if policy.dry_run {
            collection.report.bytes_after = self.db.rehearse(|conn| {
                while collection.step(conn)?.1 {}
                collection.bytes_needed(conn)
            })?;
            return Ok(collection.report);
        }
        loop {
            let _lock = self.db.home().lock(FlockOperation::LockExclusive)?;
            // The files go only when their rows have surely gone: the other way round, a loss of power would
            // bring back receipts without their before-images.
            let (files, more) = self.db.write(Survives::PowerLoss, |conn| collection.step(conn))?;
            for key in files {
                self.remove_blob_file(key)?;
            }
            if !more {
                self.sweep_files()?;
                break;
            }
        }
        self.shrink()?;
        collection.report.bytes_after = bytes_on_disk(self.db.home())?;
        Ok(collection.report)
    }

    fn remove_blob_file(&self, key: Key) -> Result<(), ToolError> {
        let file = file_of(self.db.home(), key);
        match fs::remove_file(&file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(ToolError::io(format_args!("removing {}", file.display()), &error))
            }
            _ => Ok(()),
        }
    }

    /// Removes files that no row names: what a crash left between a file and its row. Needs the exclusive lock.
    fn sweep_files(&self) -> Result<(), ToolError> {
        let home = self.db.home();
        let told = |error| ToolError::io(format_args!("sweeping {}", home.blobs().display()), &error);
        let mut files = blob_files(home).map_err(told)?;
        self.db.read(|conn| {
            let mut named = conn.prepare_cached("SELECT 1 FROM blobs WHERE hash = ?1 AND bytes IS NULL")?;
            let mut strays = Vec::new();
            for file in files.drain(..) {
                let parts = file.iter().rev().take(2).map(|part| part.to_string_lossy()).collect::<Vec<_>>();
                let key = key_of(&parts.into_iter().rev().collect::<String>());
                let needed = key.is_some_and(|key| named.exists([&key[..]]).unwrap_or(true));
                if !needed {
                    strays.push(file);
                }
            }
            files = strays;
            Ok(())
        })?;
        files.iter().try_for_each(fs::remove_file).map_err(told)?;
        for (call, _) in packs::all(home).map_err(told)? {
            let known = self.db.read(|conn| Ok(conn.prepare_cached(sql::KIND_OF)?.exists([call])?))?;
            if !known {
                packs::remove(home, call).map_err(told)?;
            }
        }
        Ok(())
    }

    /// Gives free pages back, a few at a time, and empties the log.
    fn shrink(&self) -> Result<(), ToolError> {
        let mut free = u64::MAX;
        loop {
            let left = self.db.direct(|conn| {
                let mut vacuum = conn.prepare(&format!("PRAGMA incremental_vacuum({PAGES})"))?;
                let mut pages = vacuum.query([])?;
                while pages.next()?.is_some() {}
                pragma(conn, "freelist_count")
            })?;
            if left == 0 || left >= free {
                break;
            }
            free = left;
        }
        self.db.direct(|conn| empty_log(conn, READERS))
    }
}

fn pragma(conn: &Connection, name: &str) -> Attempt<u64> {
    Ok(conn.query_row(&format!("PRAGMA {name}"), [], |row| row.get(0))?)
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    /// Blobs that no receipt names.
    Strays,
    /// Receipts that are too old.
    Age,
    /// Receipts that take too much room.
    Size,
    /// Sessions that have nothing left.
    Sessions,
}

/// A collection under way: what is decided between two transactions.
struct Collection {
    policy: GcPolicy,
    now: u64,
    phase: Phase,
    /// The last receipt that was looked at.
    cursor: i64,
    /// The bytes of the large blobs and of the packs.
    file_bytes: u64,
    /// The packs, by the call they belong to.
    packs: HashMap<i64, u64>,
    report: GcReport,
}

struct Forgettable {
    id: i64,
    session: String,
    first_seq: i64,
    last_seq: i64,
    started_at: u64,
}

impl Collection {
    fn new(policy: GcPolicy, now: u64) -> Self {
        Self {
            policy,
            now,
            phase: Phase::Strays,
            cursor: 0,
            file_bytes: 0,
            packs: HashMap::new(),
            report: GcReport::default(),
        }
    }

    /// Does one transaction's worth; gives the files that may go once it is committed, and whether there is more.
    fn step(&mut self, conn: &Connection) -> Attempt<(Vec<Key>, bool)> {
        let mut files = Vec::new();
        match self.phase {
            Phase::Strays => {
                let mut large =
                    conn.prepare_cached("SELECT coalesce(sum(size), 0) FROM blobs WHERE bytes IS NULL")?;
                let large: u64 = large.query_row([], |row| row.get(0))?;
                self.file_bytes = large + self.packs.values().sum::<u64>();
                let mut strays = conn.prepare_cached(
                    "SELECT hash FROM blobs b WHERE NOT EXISTS (SELECT 1 FROM refs r WHERE r.hash = b.hash)",
                )?;
                let strays =
                    strays.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<Key>>>()?;
                for key in strays {
                    files.extend(self.forget_blob(conn, key)?);
                }
                self.phase = Phase::Age;
            }
            Phase::Age => {
                let cutoff = self.policy.older_than_ms.map_or(0, |age| self.now.saturating_sub(age));
                let batch = if cutoff == 0 { Vec::new() } else { self.oldest(conn, BATCH)? };
                let old: Vec<_> = batch.into_iter().filter(|receipt| receipt.started_at < cutoff).collect();
                if old.is_empty() {
                    (self.phase, self.cursor) = (Phase::Size, 0);
                }
                for receipt in old {
                    files.extend(self.forget(conn, &receipt)?);
                }
            }
            Phase::Size => {
                let excess =
                    self.bytes_needed(conn)?.saturating_sub(self.policy.max_bytes.unwrap_or(u64::MAX));
                let batch =
                    if excess == 0 { Vec::new() } else { self.oldest(conn, self.guess(conn, excess)?)? };
                if batch.is_empty() {
                    self.phase = Phase::Sessions;
                }
                for receipt in batch {
                    files.extend(self.forget(conn, &receipt)?);
                }
            }
            Phase::Sessions => {
                self.forget_sessions(conn)?;
                return Ok((files, false));
            }
        }
        Ok((files, true))
    }

    /// The bytes that the ledger would take if all free pages were given back.
    fn bytes_needed(&self, conn: &Connection) -> Attempt<u64> {
        let pages = pragma(conn, "page_count")?.saturating_sub(pragma(conn, "freelist_count")?);
        Ok(pages * pragma(conn, "page_size")? + self.file_bytes + SHARED_MEMORY)
    }

    /// How many receipts to forget at once: half of what the average says, so that not too much goes.
    fn guess(&self, conn: &Connection, excess: u64) -> Attempt<i64> {
        let receipts: u64 = conn.query_row("SELECT count(*) FROM receipts", [], |row| row.get(0))?;
        let average = self.bytes_needed(conn)? / receipts.max(1);
        Ok(int(excess / average.max(1) / 2).clamp(1, BATCH))
    }

    /// The oldest receipts that may go. The newest never does: the next number is made from it, and no number must
    /// ever mean two calls.
    fn oldest(&mut self, conn: &Connection, limit: i64) -> Attempt<Vec<Forgettable>> {
        let mut statement = conn.prepare_cached(
            "SELECT id, session, first_seq, last_seq, started_at FROM receipts r
             WHERE id > ?1 AND id < (SELECT max(id) FROM receipts)
             AND state <> 'running' AND NOT EXISTS (SELECT 1 FROM running WHERE receipt = r.id)
             ORDER BY id LIMIT ?2",
        )?;
        let rows = statement.query_map([self.cursor, limit], |row| {
            Ok(Forgettable {
                id: row.get(0)?,
                session: row.get(1)?,
                first_seq: row.get(2)?,
                last_seq: row.get(3)?,
                started_at: row.get(4)?,
            })
        })?;
        let batch = rows.collect::<rusqlite::Result<Vec<_>>>()?;
        self.cursor = batch.last().map_or(self.cursor, |last| last.id);
        Ok(batch)
    }

    /// Forgets one receipt, and the blobs that only it needed.
    fn forget(&mut self, conn: &Connection, receipt: &Forgettable) -> Attempt<Vec<Key>> {
        let mut needed = conn.prepare_cached("SELECT hash FROM refs WHERE receipt = ?1")?;
        let needed =
            needed.query_map([receipt.id], |row| row.get(0))?.collect::<rusqlite::Result<Vec<Key>>>()?;
        for delete in [
            "DELETE FROM refs WHERE receipt = ?1",
            "DELETE FROM pending WHERE receipt = ?1",
            "DELETE FROM notes WHERE receipt = ?1",
            "DELETE FROM undoes WHERE target = ?1",
            "DELETE FROM undoes WHERE undo = ?1",
            "DELETE FROM receipts WHERE id = ?1",
        ] {
            run(conn, delete, [receipt.id])?;
        }
        run(
            conn,
            "DELETE FROM events WHERE session = ?1 AND seq IN (?2, ?3)",
            params![receipt.session, receipt.first_seq, receipt.last_seq],
        )?;
        run(
            conn,
            "UPDATE sessions SET forgotten = ?2 WHERE id = ?1 AND forgotten < ?2",
            params![receipt.session, receipt.last_seq],
        )?;
        self.report.receipts_removed += 1;
        self.file_bytes = self.file_bytes.saturating_sub(self.packs.remove(&receipt.id).unwrap_or(0));
        let mut files = Vec::new();
        for key in needed {
            files.extend(self.forget_blob(conn, key)?);
        }
        Ok(files)
    }

    /// Forgets a blob unless somebody needs it or is about to; gives its key if it is a file.
    fn forget_blob(&mut self, conn: &Connection, key: Key) -> Attempt<Option<Key>> {
        let stale = int(self.now.saturating_sub(GRACE_MS));
        let mut delete = conn.prepare_cached(
            "DELETE FROM blobs WHERE hash = ?1 AND (pins = 0 OR pinned_at < ?2)
             AND NOT EXISTS (SELECT 1 FROM refs WHERE hash = ?1) RETURNING size, bytes IS NULL",
        )?;
        let deleted: Option<(u64, bool)> =
            delete.query_row(params![&key[..], stale], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let Some((size, is_file)) = deleted else { return Ok(None) };
        self.report.blobs_removed += 1;
        if is_file {
            self.file_bytes = self.file_bytes.saturating_sub(size);
        }
        Ok(is_file.then_some(key))
    }

    /// Forgets sessions that hold nothing, unless the process that started them may still use them.
    fn forget_sessions(&mut self, conn: &Connection) -> Attempt<()> {
        let mut empty = conn.prepare_cached(
            "SELECT id, owner, started_at FROM sessions s
             WHERE (forgotten > 0 OR started_at < ?1) AND NOT EXISTS (SELECT 1 FROM events e WHERE e.session = s.id)",
        )?;
        let fresh = int(self.now.saturating_sub(GRACE_MS));
        let empty = empty.query_map([fresh], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        let empty = empty.collect::<rusqlite::Result<Vec<(String, String, u64)>>>()?;
        for (id, owner, started_at) in empty {
            if Owner::parse(&owner).is_none_or(|owner| owner.is_gone(started_at, self.now)) {
                run(conn, "DELETE FROM sessions WHERE id = ?1", [id])?;
                self.report.sessions_removed += 1;
            }
        }
        Ok(())
    }
}
