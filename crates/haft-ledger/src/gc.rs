//! Garbage collection: removes the oldest receipts, then what nothing needs any more, and returns the space to the disk.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, SystemTime};

use haft_tool::{ToolError, now_ms};
use rusqlite::{Connection, OptionalExtension};
use rustix::fs::FlockOperation;

use crate::Ledger;
use crate::blob_files::{all_files, blob_path};
use crate::blobs::{BlobKey, key_of};
use crate::chunks::list_from_bytes;
use crate::database::{Durability, checkpoint, execute};
use crate::error::TxResult;
use crate::process::ProcessIdentity;
use crate::sql::int;
use crate::stats::bytes_on_disk;

/// Receipts removed in one transaction, so that other processes can write in between.
const RECEIPTS_PER_STEP: i64 = 500;
/// Pages returned to the disk in one transaction.
const PAGES_PER_STEP: u32 = 2_000;
/// The size of SQLite's shared memory, however small the ledger is.
const SHARED_MEMORY_BYTES: u64 = 32 * 1_024;
/// How long to wait for readers before the write-ahead log is emptied.
const CHECKPOINT_TIMEOUT: Duration = Duration::from_secs(1);

/// What may be removed. By default only what nothing needs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GcPolicy {
    /// Remove the oldest receipts until the ledger takes at most this many bytes. (The newest receipt stays.)
    pub max_bytes: Option<u64>,
    /// Remove receipts that started longer ago than this many milliseconds.
    pub older_than_ms: Option<u64>,
    /// Keep receipts that started less than this many milliseconds ago, whatever the limits say.
    pub keep_ms: u64,
    /// Only report what would be removed.
    pub dry_run: bool,
}

/// What was removed, or would be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GcReport {
    /// The number of receipts, with their results and changes.
    pub receipts_removed: u64,
    /// The number of sessions, with their events.
    pub sessions_removed: u64,
    /// The number of blobs.
    pub blobs_removed: u64,
    /// The ledger's size on the disk before.
    pub bytes_before: u64,
    /// Its size after; an estimate for a dry run.
    pub bytes_after: u64,
}

impl Ledger {
    /// Removes what the policy allows, oldest first, and returns the space to the disk. Running calls of any process
    /// stay.
    pub fn gc(&self, policy: &GcPolicy) -> Result<GcReport, ToolError> {
        let mut collector = BlobCollector::new(*policy, now_ms());
        collector.report.bytes_before = bytes_on_disk(self.db.dir())?;
        if policy.dry_run {
            collector.report.bytes_after = self.db.dry_run(|conn| {
                while collector.step(conn)?.1 {}
                collector.bytes_needed(conn)
            })?;
            return Ok(collector.report);
        }
        // Before the live texts of what they did.
        self.forget_dead_processes()?;
        let mut has_made_room = false;
        loop {
            let _lock = self.db.dir().lock(FlockOperation::LockExclusive)?;
            // Files are removed once their rows are durably gone: otherwise a power failure could restore receipts
            // without their contents.
            let before = collector.clone();
            let (files, more) = match self.db.write(Durability::PowerLoss, |conn| collector.step(conn)) {
                Err(error) if !has_made_room => {
                    collector = before;
                    self.make_room(collector.clone()).map_err(|_| error)?;
                    has_made_room = true;
                    continue;
                }
                stepped => stepped?,
            };
            for key in files {
                self.remove_blob_file(key)?;
            }
            if !more {
                self.remove_files_without_row()?;
                self.remove_stale_live_texts()?;
                break;
            }
        }
        self.shrink()?;
        collector.report.bytes_after = bytes_on_disk(self.db.dir())?;
        Ok(collector.report)
    }

    /// Removes the files of a collection before their rows, because on a full disk not even rows can be removed. Fails if the
    /// collection would fail for another reason.
    fn make_room(&self, mut collector: BlobCollector) -> Result<(), ToolError> {
        let mut files = self.db.dry_run(|conn| {
            let mut files = Vec::new();
            loop {
                let (unneeded, more) = collector.step(conn)?;
                files.extend(unneeded);
                if !more {
                    return Ok(files);
                }
            }
        })?;
        files.extend(collector.chunk_uses.iter().filter(|(_, uses)| **uses == 0).map(|(chunk, _)| *chunk));
        files.into_iter().try_for_each(|key| self.remove_blob_file(key))
    }

    /// Whether automatic housekeeping was last begun longer ago than `interval`. Then it counts as begun now, so that of
    /// several processes one does it. Costs one look at a file.
    pub fn begin_housekeeping(&self, interval: Duration) -> bool {
        let path = self.db.dir().housekeeping();
        let last = fs::metadata(&path).and_then(|meta| meta.modified());
        let is_due = last.as_ref().is_ok_and(|last| last.elapsed().is_ok_and(|age| age > interval));
        // A time in the future says nothing.
        let is_unset = last.is_err() || last.is_ok_and(|last| last.elapsed().is_err());
        if !is_due && !is_unset {
            return false;
        }
        let mark = fs::OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path);
        let marked = mark.and_then(|file| file.set_modified(SystemTime::now()));
        is_due && marked.is_ok()
    }

    fn remove_blob_file(&self, key: BlobKey) -> Result<(), ToolError> {
        let file = blob_path(self.db.dir(), key);
        match fs::remove_file(&file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(ToolError::io(format_args!("remove {}", file.display()), &error))
            }
            _ => Ok(()),
        }
    }

    /// Removes blob files that a crash left without a row. Needs the exclusive lock.
    fn remove_files_without_row(&self) -> Result<(), ToolError> {
        let mut chunks = HashSet::new();
        self.db.read(|conn| visit_chunks(conn, |key, _| _ = chunks.insert(key)))?;
        let dir = self.db.dir();
        let failed = |error| ToolError::io(format_args!("clean up {}", dir.blobs().display()), &error);
        let mut files = all_files(dir).map_err(failed)?;
        self.db.read(|conn| {
            let mut is_named =
                conn.prepare_cached("SELECT 1 FROM blobs WHERE hash = ?1 AND bytes IS NULL")?;
            files.retain(|file| {
                // The hash is the name of the folder and the name of the file.
                let mut names = file.iter().rev().map(|name| name.to_string_lossy());
                let name = names.next().unwrap_or_default();
                let folder = names.next().unwrap_or_default();
                let key = key_of(&format!("{folder}{name}"));
                !key.is_some_and(|key| chunks.contains(&key) || is_named.exists([&key[..]]).unwrap_or(true))
            });
            Ok(())
        })?;
        files.iter().try_for_each(fs::remove_file).map_err(failed)
    }

    /// Returns free pages to the disk, some at a time, and empties the write-ahead log.
    fn shrink(&self) -> Result<(), ToolError> {
        let mut free = u64::MAX;
        loop {
            let left = self.db.without_transaction(|conn| {
                let mut vacuum = conn.prepare(&format!("PRAGMA incremental_vacuum({PAGES_PER_STEP})"))?;
                let mut pages = vacuum.query([])?;
                while pages.next()?.is_some() {}
                pragma(conn, "freelist_count")
            })?;
            if left == 0 || left >= free {
                break;
            }
            free = left;
        }
        self.db.without_transaction(|conn| checkpoint(conn, CHECKPOINT_TIMEOUT))
    }
}

fn pragma(conn: &Connection, name: &str) -> TxResult<u64> {
    Ok(conn.query_row(&format!("PRAGMA {name}"), [], |row| row.get(0))?)
}

#[derive(Debug, Clone, Copy)]
enum CollectorPhase {
    /// Blobs that no receipt needs.
    Blobs,
    /// Receipts that are too old.
    Age,
    /// Receipts that take too much space.
    Size,
    /// Sessions without receipts.
    Sessions,
}

/// A collection in progress, between two transactions.
#[derive(Clone)]
struct BlobCollector {
    policy: GcPolicy,
    now: u64,
    phase: CollectorPhase,
    /// The last receipt that was visited.
    cursor: i64,
    /// The bytes of the blobs that are files.
    file_bytes: u64,
    /// How many contents a chunk is part of.
    chunk_uses: HashMap<BlobKey, u64>,
    report: GcReport,
}

/// The blob files to remove after the commit, and whether there are more steps.
type StepResult = (Vec<BlobKey>, bool);

impl BlobCollector {
    fn new(policy: GcPolicy, now: u64) -> Self {
        let phase = CollectorPhase::Blobs;
        let (chunk_uses, report) = (HashMap::new(), GcReport::default());
        Self { policy, now, phase, cursor: 0, file_bytes: 0, chunk_uses, report }
    }

    /// One transaction's work.
    fn step(&mut self, conn: &Connection) -> TxResult<StepResult> {
        let mut files = Vec::new();
        match self.phase {
            CollectorPhase::Blobs => {
                let size = "SELECT coalesce(sum(size), 0) FROM blobs b WHERE bytes IS NULL
                    AND NOT EXISTS (SELECT 1 FROM chunks c WHERE c.hash = b.hash)";
                self.file_bytes = conn.query_row(size, [], |row| row.get(0))?;
                visit_chunks(conn, |chunk, size| {
                    let uses = self.chunk_uses.entry(chunk).or_default();
                    self.file_bytes += if *uses == 0 { size } else { 0 };
                    *uses += 1;
                })?;
                let unneeded =
                    "SELECT hash FROM blobs b WHERE NOT EXISTS (SELECT 1 FROM refs r WHERE r.hash = b.hash)";
                for key in keys(conn, unneeded, [])? {
                    files.extend(self.remove_blob(conn, key)?);
                }
                self.phase = CollectorPhase::Age;
            }
            CollectorPhase::Age => {
                let mut old = match self.oldest_allowed() {
                    0 => Vec::new(),
                    _ => self.oldest(conn, RECEIPTS_PER_STEP)?,
                };
                old.retain(|(_, started_at)| *started_at < self.oldest_allowed());
                if old.is_empty() {
                    (self.phase, self.cursor) = (CollectorPhase::Size, 0);
                }
                for (id, _) in old {
                    files.extend(self.remove_receipt(conn, id)?);
                }
            }
            CollectorPhase::Size => {
                let batch = match self.excess_bytes(conn)? {
                    0 => Vec::new(),
                    excess => self.oldest(conn, self.estimated_receipts(conn, excess)?)?,
                };
                if batch.is_empty() {
                    self.phase = CollectorPhase::Sessions;
                }
                for (id, _) in batch {
                    files.extend(self.remove_receipt(conn, id)?);
                }
            }
            CollectorPhase::Sessions => {
                self.remove_sessions(conn)?;
                return Ok((files, false));
            }
        }
        Ok((files, true))
    }

    /// The oldest start time that the policy allows; 0 if it allows all.
    fn oldest_allowed(&self) -> u64 {
        self.policy.older_than_ms.map_or(0, |age| self.now.saturating_sub(age))
    }

    /// Receipts that started at this time or later stay.
    fn kept_since(&self) -> u64 {
        match self.policy.keep_ms {
            0 => u64::MAX,
            keep => self.now.saturating_sub(keep),
        }
    }

    /// The ledger's size if all free pages were returned to the disk.
    fn bytes_needed(&self, conn: &Connection) -> TxResult<u64> {
        let pages = pragma(conn, "page_count")?.saturating_sub(pragma(conn, "freelist_count")?);
        Ok(pages * pragma(conn, "page_size")? + self.file_bytes + SHARED_MEMORY_BYTES)
    }

    fn excess_bytes(&self, conn: &Connection) -> TxResult<u64> {
        Ok(self.bytes_needed(conn)?.saturating_sub(self.policy.max_bytes.unwrap_or(u64::MAX)))
    }

    /// How many receipts to remove at once: half of what the average size suggests, so that not too many go.
    fn estimated_receipts(&self, conn: &Connection, excess: u64) -> TxResult<i64> {
        let receipts: u64 = conn.query_row("SELECT count(*) FROM receipts", [], |row| row.get(0))?;
        let average = self.bytes_needed(conn)? / receipts.max(1);
        Ok(int(excess / average.max(1) / 2).clamp(1, RECEIPTS_PER_STEP))
    }

    /// The ids and start times of the oldest receipts that may go. The newest stays: the next number follows it, and no
    /// number may be used twice.
    fn oldest(&mut self, conn: &Connection, limit: i64) -> TxResult<Vec<(i64, u64)>> {
        let mut statement = conn.prepare_cached(
            "SELECT id, started_at FROM receipts r
             WHERE id > ?1 AND id < (SELECT max(id) FROM receipts)
             AND started_at < ?3 AND state <> 'running' AND NOT EXISTS (SELECT 1 FROM running WHERE receipt = r.id)
             ORDER BY id LIMIT ?2",
        )?;
        let rows = statement
            .query_map([self.cursor, limit, int(self.kept_since())], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let batch = rows.collect::<rusqlite::Result<Vec<_>>>()?;
        self.cursor = batch.last().map_or(self.cursor, |(id, _)| *id);
        Ok(batch)
    }

    /// Removes a receipt and the blobs that only it needed; returns those that are files.
    fn remove_receipt(&mut self, conn: &Connection, id: i64) -> TxResult<Vec<BlobKey>> {
        let needed = keys(conn, "SELECT hash FROM refs WHERE receipt = ?1", [id])?;
        for delete in [
            "DELETE FROM refs WHERE receipt = ?1",
            "DELETE FROM intents WHERE receipt = ?1",
            "DELETE FROM notes WHERE receipt = ?1",
            "DELETE FROM undoes WHERE target = ?1",
            "DELETE FROM undoes WHERE undo = ?1",
            "DELETE FROM receipts WHERE id = ?1",
        ] {
            execute(conn, delete, [id])?;
        }
        self.report.receipts_removed += 1;
        let mut files = Vec::new();
        for key in needed {
            files.extend(self.remove_blob(conn, key)?);
        }
        Ok(files)
    }

    /// Removes a blob unless a receipt needs it; returns its key if it is a file.
    fn remove_blob(&mut self, conn: &Connection, key: BlobKey) -> TxResult<Option<BlobKey>> {
        let mut delete = conn.prepare_cached(
            "DELETE FROM blobs WHERE hash = ?1 AND NOT EXISTS (SELECT 1 FROM refs WHERE hash = ?1)
             RETURNING size, bytes IS NULL",
        )?;
        let deleted: Option<(u64, bool)> =
            delete.query_row([&key[..]], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let Some((size, is_file)) = deleted else { return Ok(None) };
        self.report.blobs_removed += 1;
        let mut delete = conn.prepare_cached("DELETE FROM chunks WHERE hash = ?1 RETURNING list")?;
        let list: Option<Vec<u8>> = delete.query_row([&key[..]], |row| row.get(0)).optional()?;
        let Some(list) = list else {
            self.file_bytes = self.file_bytes.saturating_sub(if is_file { size } else { 0 });
            return Ok(is_file.then_some(key));
        };
        // Their files are removed at the end, because other contents may consist of them, too.
        for (chunk, size) in list_from_bytes(&list) {
            let uses = self.chunk_uses.entry(chunk).or_insert(1);
            *uses = uses.saturating_sub(1);
            if *uses == 0 {
                self.file_bytes = self.file_bytes.saturating_sub(size);
            }
        }
        Ok(None)
    }

    /// Removes sessions without receipts whose process has ended. Those with events stay, unless their last event is too
    /// old or the ledger is still too large.
    fn remove_sessions(&mut self, conn: &Connection) -> TxResult<()> {
        type SessionRow = (String, String, u64, Option<u64>);
        let mut statement = conn.prepare_cached(
            "SELECT id, process, started_at, (SELECT max(at) FROM events e WHERE e.session = s.id) FROM sessions s
             WHERE NOT EXISTS (SELECT 1 FROM receipts r WHERE r.session = s.id) ORDER BY started_at",
        )?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
        for (id, process, started_at, last_event) in rows.collect::<rusqlite::Result<Vec<SessionRow>>>()? {
            let is_gone =
                ProcessIdentity::parse(&process).is_none_or(|process| process.is_gone(started_at, self.now));
            let is_needed = match last_event {
                Some(at) if at >= self.kept_since() => true,
                Some(at) => at >= self.oldest_allowed() && self.excess_bytes(conn)? == 0,
                None => false,
            };
            if is_gone && !is_needed {
                execute(conn, "DELETE FROM events WHERE session = ?1", [&id])?;
                execute(conn, "DELETE FROM sessions WHERE id = ?1", [&id])?;
                self.report.sessions_removed += 1;
            }
        }
        Ok(())
    }
}

/// Passes the hash and size of each chunk to `visit`, once for each content that it is part of.
fn visit_chunks(conn: &Connection, mut visit: impl FnMut(BlobKey, u64)) -> TxResult<()> {
    let mut statement = conn.prepare_cached("SELECT list FROM chunks")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        for (key, size) in list_from_bytes(row.get_ref(0)?.as_blob().unwrap_or_default()) {
            visit(key, size);
        }
    }
    Ok(())
}

fn keys(conn: &Connection, sql: &str, params: impl rusqlite::Params) -> TxResult<Vec<BlobKey>> {
    let mut statement = conn.prepare_cached(sql)?;
    Ok(statement.query_map(params, |row| row.get(0))?.collect::<rusqlite::Result<_>>()?)
}
