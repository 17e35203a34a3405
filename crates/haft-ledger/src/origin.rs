//! Whether files were there before recorded calls. Asked seldom: when a command leaves something that programs
//! would run.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use haft_tool::{FileNode, Receipt, ReceiptState, ToolError, path_to_text};

use crate::Ledger;
use crate::blobs::key_of;
use crate::spool;
use crate::spool_reader::SpoolReader;
use crate::sql::int;

/// The clock of file systems may be behind by one tick.
pub(crate) const CLOCK_TICK_MS: u64 = 10;

const RECEIPTS_WITH: &str = "SELECT receipt FROM refs WHERE hash = ?1";
const ALL_TIMES: &str =
    "SELECT id, state, started_at, coalesce(json_extract(body, '$.duration_us'), 0) FROM receipts";
const HAS_LATER_CALL: &str = "SELECT EXISTS (SELECT 1 FROM receipts WHERE id > ?1)";
const CALLS_WITH: &str = "SELECT id FROM receipts WHERE change_count > 0 AND instr(changes, ?1) > 0";

const CHANGED_MEANWHILE: &str =
    "SELECT id FROM receipts WHERE workspace = ?1 AND change_count > 0 AND id > ?2
    AND started_at <= ?3 AND undone_by IS NULL AND state <> 'running'";

impl Ledger {
    /// The paths that other calls, which were not undone, changed while this one ran, except for the calls in `but`.
    pub fn changed_meanwhile(&self, receipt: &Receipt, but: &[i64]) -> Result<HashSet<PathBuf>, ToolError> {
        let end = int(receipt.started_at + receipt.duration_us / 1000);
        let workspace = path_to_text(&receipt.workspace);
        let ids: Vec<i64> = self.db.read(|conn| {
            let mut statement = conn.prepare(CHANGED_MEANWHILE)?;
            let rows = statement.query_map((&*workspace, receipt.id, end), |row| row.get(0))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })?;
        let mut paths = HashSet::new();
        for id in ids.into_iter().filter(|id| !but.contains(id)) {
            let changes = self.receipt(id)?.changes;
            paths.extend(
                changes.into_iter().flat_map(|change| change.moved_to.into_iter().chain([change.path])),
            );
        }
        Ok(paths)
    }

    /// The files that calls found with this hash before they changed them, by path. Calls that ran while another one did are
    /// left out: they may have found what the other one was about to lose again.
    pub(crate) fn files_before_calls(&self, hash: &str) -> Result<Vec<(PathBuf, FileNode)>, ToolError> {
        let Some(key) = key_of(hash) else { return Ok(Vec::new()) };
        let ids: Vec<i64> = self.db.read(|conn| {
            let mut statement = conn.prepare(RECEIPTS_WITH)?;
            let rows = statement.query_map([&key[..]], |row| row.get(0))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })?;
        let mut files = Vec::new();
        for id in ids {
            let receipt = self.receipt(id)?;
            let before = receipt.changes.iter().filter_map(|change| {
                let file = change.before.as_file().filter(|file| file.hash == hash)?;
                Some((change.path.clone(), file.clone()))
            });
            let mut before = before.peekable();
            if before.peek().is_some() && !self.ran_beside_another(&receipt)? {
                files.extend(before);
            }
        }
        Ok(files)
    }

    /// Whether another call ran at the same time as this one.
    pub(crate) fn ran_beside_another(&self, receipt: &Receipt) -> Result<bool, ToolError> {
        let end = |started: u64, duration_us: u64| started + duration_us / 1000 + 1;
        let (start, own_end) = match receipt.state {
            ReceiptState::Running => (receipt.started_at, u64::MAX),
            _ => (receipt.started_at, end(receipt.started_at, receipt.duration_us)),
        };
        self.db.read(|conn| {
            let mut statement = conn.prepare(ALL_TIMES)?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let (id, state, started, duration): (i64, String, u64, u64) =
                    (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
                let is_running = state == ReceiptState::Running.word();
                if id != receipt.id && started < own_end && (is_running || end(started, duration) > start) {
                    return Ok(true);
                }
            }
            Ok(false)
        })
    }

    /// Whether a call has left a file with this hash, and no completed call where it `was_judged`.
    pub fn is_from_call(
        &self,
        hash: &str,
        was_judged: &dyn Fn(&Path, &FileNode) -> bool,
    ) -> Result<bool, ToolError> {
        let ids: Vec<i64> = self.db.read(|conn| {
            let mut statement = conn.prepare(CALLS_WITH)?;
            let rows = statement.query_map([hash], |row| row.get(0))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })?;
        let mut is_from_call = false;
        for id in ids {
            let receipt = self.receipt(id)?;
            let left = receipt.changes.iter().filter_map(|change| {
                let file = change.after.as_file().filter(|file| file.hash == hash)?;
                Some((&change.path, file))
            });
            for (path, file) in left {
                if receipt.state != ReceiptState::Interrupted && was_judged(path, file) {
                    return Ok(false);
                }
                is_from_call = true;
            }
        }
        Ok(is_from_call)
    }

    /// Whether a call other than `id` was running at `changed_at` (milliseconds since 1970) and has not ended.
    pub(crate) fn runs_beside_another(&self, id: i64, changed_at: u64) -> bool {
        spool::receipts(self.db.dir())
            .into_iter()
            .any(|other| other != id && self.was_running(other, changed_at))
    }

    /// Whether another call has started since `id`.
    pub(crate) fn was_followed(&self, id: i64) -> Result<bool, ToolError> {
        self.db.read(|conn| Ok(conn.prepare_cached(HAS_LATER_CALL)?.query_row([id], |row| row.get(0))?))
    }

    /// Whether a call that has a spool had started at `changed_at`.
    fn was_running(&self, id: i64, changed_at: u64) -> bool {
        let started_at = self.receipt(id).map_or(0, |receipt| receipt.started_at);
        changed_at + CLOCK_TICK_MS >= started_at
    }

    /// The bytes with this hash in the spool of a running call.
    pub(crate) fn spooled_content(&self, id: i64, hash: &str) -> Result<Option<Vec<u8>>, ToolError> {
        let failed = |error: io::Error| ToolError::io("read the spool", &error);
        let Some(key) = key_of(hash) else { return Ok(None) };
        let large = spool::large_contents(self.db.dir(), id).map_err(failed)?;
        let chunked = spool::chunked_contents(self.db.dir(), id).map_err(failed)?;
        let chunks = chunked.into_iter().find(|content| content.hash == key).map(|content| content.chunks);
        let keys =
            chunks.map_or_else(|| vec![key], |chunks| chunks.into_iter().map(|(key, _)| key).collect());
        let files: Option<Vec<_>> =
            keys.iter().map(|key| large.iter().find(|content| content.key == *key)).collect();
        if let Some(files) = files {
            let mut bytes = Vec::new();
            for file in files {
                bytes.extend(std::fs::read(&file.path).map_err(failed)?);
            }
            return Ok((blake3::hash(&bytes) == key).then_some(bytes));
        }
        let Some(mut reader) = SpoolReader::open(self.db.dir(), id).map_err(failed)? else {
            return Ok(None);
        };
        let mut bytes = Vec::new();
        while let Some(record) = reader.next().map_err(failed)? {
            let content = record.content;
            if record.key == key
                && reader.read(content, &mut bytes).map_err(failed)?
                && blake3::hash(&bytes).as_bytes() == &key
            {
                return Ok(Some(bytes));
            }
        }
        Ok(None)
    }
}
