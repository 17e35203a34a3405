//! From the spool into the blob store: the previous contents of what a command changed.

use std::collections::{BTreeMap, HashSet};
use std::io;

use haft_tool::{Change, Receipt, Reversible, ToolError, is_git_index};
use rusqlite::Connection;

use crate::blob_files::{adopt, blob_path, is_stored};
use crate::blobs::{BlobKey, NewBlob, key_of};
use crate::chunks::ChunkedContent;
use crate::database::Database;
use crate::error::TxResult;
use crate::spool;
use crate::spool_reader::SpoolReader;
use crate::{Ledger, sql};

/// The previous contents that a receipt needs, on their way into the blob store.
pub(crate) struct SpoolCommit {
    receipt: i64,
    needed: HashSet<BlobKey>,
    /// The large contents, and those of lists of git objects, which are in the blob store already.
    large: Vec<(BlobKey, u64)>,
    /// The contents that consist of chunks.
    chunked: Vec<ChunkedContent>,
}

impl SpoolCommit {
    /// Moves the large contents into the blob store. Must not run inside a transaction; the directory must be locked
    /// until that is committed.
    pub(crate) fn prepare(ledger: &Ledger, receipt: i64, changes: &[Change]) -> Result<Self, ToolError> {
        let files = changes.iter().filter_map(|change| change.before.as_file());
        let needed: HashSet<BlobKey> = files.filter_map(|file| key_of(&file.hash)).collect();
        let wanted: HashSet<BlobKey> = needed.iter().copied().chain(index_keys(changes)).collect();
        let failed = |error: io::Error| ToolError::io("store previous contents in the ledger", &error);
        let dir = ledger.db.dir();
        let mut chunked = spool::chunked_contents(dir, receipt).map_err(failed)?;
        chunked.retain(|content| wanted.contains(content.hash.as_bytes()));
        let chunks: HashSet<BlobKey> =
            chunked.iter().flat_map(|content| &content.chunks).map(|(key, _)| *key).collect();
        let mut large = Vec::new();
        for content in spool::large_contents(dir, receipt).map_err(failed)? {
            if wanted.contains(&content.key) || chunks.contains(&content.key) {
                adopt(dir, &content.path, &blob_path(dir, content.key)).map_err(failed)?;
            }
            if wanted.contains(&content.key) {
                large.push((content.key, content.size));
            }
        }
        // A content without all its chunks counts as missing.
        chunked.retain(|content| content.chunks.iter().all(|(key, size)| is_stored(dir, *key, *size)));
        Ok(Self { receipt, needed, large, chunked })
    }

    /// Inserts the rows of the blobs. If contents are missing, the receipt says so.
    pub(crate) fn insert(mut self, conn: &Connection, db: &Database, receipt: &mut Receipt) -> TxResult<()> {
        for (key, size) in std::mem::take(&mut self.large) {
            NewBlob::file(key, size).insert(conn)?;
            self.needed.remove(&key);
        }
        for content in std::mem::take(&mut self.chunked) {
            self.needed.remove(content.hash.as_bytes());
            NewBlob::chunked(content).insert(conn)?;
        }
        if !self.needed.is_empty() {
            self.insert_small(conn, db)?;
        }
        let mut has = conn.prepare_cached(sql::HAS_BLOB)?;
        let mut missing = HashSet::new();
        for key in self.needed {
            if !has.exists([&key[..]])? {
                missing.insert(key);
            }
        }
        if !missing.is_empty() && receipt.reversible == Reversible::Yes {
            receipt.reversible = Reversible::Partly { why: missing_contents(receipt, &missing) };
        }
        Ok(())
    }

    fn insert_small(&mut self, conn: &Connection, db: &Database) -> TxResult<()> {
        let failed = |error: io::Error| ToolError::io("read the spool", &error);
        let Some(mut reader) = SpoolReader::open(db.dir(), self.receipt).map_err(failed)? else {
            return Ok(());
        };
        // In the order of their hashes, because neighbouring index entries are cheaper to insert.
        let mut found = BTreeMap::new();
        while let Some(record) = reader.next().map_err(failed)? {
            if self.needed.contains(&record.key) {
                found.entry(record.key).or_insert(record.content);
            }
        }
        let mut bytes = Vec::new();
        for (key, content) in found {
            // Bytes with another hash are damaged, and count as missing.
            if reader.read(content, &mut bytes).map_err(failed)? && blake3::hash(&bytes).as_bytes() == &key {
                NewBlob::row(key.into(), &bytes).insert(conn)?;
                self.needed.remove(&key);
            }
        }
        Ok(())
    }
}

/// The contents of the lists of git objects that a call wrote, which are kept like previous states.
pub(crate) fn index_keys(changes: &[Change]) -> impl Iterator<Item = BlobKey> {
    let indexes = changes.iter().filter(|change| is_git_index(&change.path));
    indexes.filter_map(|change| change.after.as_file()).filter_map(|file| key_of(&file.hash))
}

fn missing_contents(receipt: &Receipt, missing: &HashSet<BlobKey>) -> String {
    let is_missing = |hash: &str| key_of(hash).is_some_and(|key| missing.contains(&key));
    let files = receipt
        .changes
        .iter()
        .filter(|change| change.before.as_file().is_some_and(|file| is_missing(&file.hash)));
    let mut paths = files.map(|change| change.path.display().to_string());
    let first = paths.next().unwrap_or_default();
    match paths.count() {
        0 => format!("the old bytes of {first} were not kept"),
        1 => format!("the old bytes of {first} and 1 more file were not kept"),
        more => format!("the old bytes of {first} and {more} more files were not kept"),
    }
}
