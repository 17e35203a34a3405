//! From the spool into the store: what a command really changed is kept, the rest is dropped.

use std::collections::{BTreeMap, HashSet};
use std::io;

use haft_tool::{Change, Receipt, Reversible, ToolError};
use rusqlite::Connection;

use crate::blobs::{Image, Key, adopt, file_of, is_whole, key_of};
use crate::db::{Db, Survives, run};
use crate::event::Expected;
use crate::fault::Attempt;
use crate::home::HomeLock;
use crate::receipts::unnumber;
use crate::spool::{self, Place, Reader, Spool};
use crate::{Ledger, packs, record, sql};

/// Fewer images than this are rows like any other.
const FEWEST_PACKED: usize = 64;

impl Ledger {
    /// Records how a witnessed call ended, and with it exactly the changes that the receipt names. The before-images
    /// they need come from the spool, which is gone when this returns.
    pub fn finish_witnessed(&self, receipt: &mut Receipt, spool: &Spool) -> Result<(), ToolError> {
        let number = receipt.id;
        if number != spool.receipt() {
            return Err(ToolError::internal(format!("call {number} has brought the spool of another")));
        }
        let harvest = Harvest::prepare(self, number, &receipt.changes)?;
        let finished = self.db.write(Survives::Crash, |conn| {
            let packed = harvest.store(conn, &self.db, receipt)?;
            record::finished(conn, receipt, Expected::Any, &packed)
        });
        unnumber(finished, receipt, number)?;
        spool::remove(&self.db, number);
        Ok(())
    }

    /// Gives up a witnessed call that did not stop: it stays as it is until the next recovery, by whatever process,
    /// finds out what it changed.
    pub fn abandon(&self, receipt: &mut Receipt) -> Result<(), ToolError> {
        let state = receipt.state;
        let left = self.db.write(Survives::Crash, |conn| {
            record::started(conn, receipt, Expected::Any)?;
            run(conn, sql::DISOWN, [receipt.id])
        });
        receipt.state = state;
        left.map(drop)
    }
}

/// The before-images that a receipt needs, on their way into the store.
pub(crate) struct Harvest {
    needed: HashSet<Key>,
    large: Vec<(Key, u64)>,
    /// Those that are in the pack of the call.
    packed: HashSet<Key>,
    /// Keeps garbage collection away from files whose rows are not committed yet.
    _lock: Option<HomeLock>,
}

impl Harvest {
    /// Puts the large images in their place. Must not run inside a transaction.
    pub(crate) fn prepare(ledger: &Ledger, receipt: i64, changes: &[Change]) -> Result<Self, ToolError> {
        let files = changes.iter().filter_map(|change| change.before.as_file());
        let needed: HashSet<Key> = files.filter_map(|file| key_of(&file.hash)).collect();
        let home = ledger.db.home();
        let told = |error: io::Error| ToolError::io("keeping before-images", &error);
        let mut images = spool::large_images(&ledger.db, receipt).map_err(told)?;
        images.retain(|(key, ..)| needed.contains(key));
        let packed = Self::worth_packing(ledger, receipt, &needed).map_err(told)?;
        let lock = ledger.lock_if(!images.is_empty() || !packed.is_empty())?;
        if !packed.is_empty() {
            packs::adopt(home, receipt, &spool::file_of(&ledger.db, receipt)).map_err(told)?;
        }
        let mut large = Vec::new();
        for (key, from, size) in images {
            let file = file_of(home, key);
            if !is_whole(&file, size) {
                adopt(home, &from, &file).map_err(told)?;
            }
            large.push((key, size));
        }
        Ok(Self { needed, large, packed, _lock: lock })
    }

    /// The images that stay together in a pack, if they are many and most of what the spool has.
    fn worth_packing(ledger: &Ledger, receipt: i64, needed: &HashSet<Key>) -> io::Result<HashSet<Key>> {
        if needed.len() < FEWEST_PACKED {
            return Ok(HashSet::new());
        }
        let Some(mut lines) = Reader::open(&ledger.db, receipt)? else { return Ok(HashSet::new()) };
        let places = lines.places()?;
        let size = |(_, size): &Place| u64::from(*size);
        let all: u64 = places.values().map(size).sum();
        let wanted = places.iter().filter(|(key, _)| needed.contains(*key));
        let (packed, sizes): (HashSet<Key>, Vec<u64>) =
            wanted.map(|(key, place)| (*key, size(place))).unzip();
        let many = packed.len() >= FEWEST_PACKED && sizes.iter().sum::<u64>() * 2 >= all;
        Ok(if many { packed } else { HashSet::new() })
    }

    /// Writes the rows, and says in the receipt what is missing. Gives those that need no row.
    pub(crate) fn store(
        mut self,
        conn: &Connection,
        db: &Db,
        receipt: &mut Receipt,
    ) -> Attempt<HashSet<Key>> {
        self.needed.retain(|key| !self.packed.contains(key));
        for (key, size) in &self.large {
            Image::file(*key, *size).insert(conn, false)?;
            self.needed.remove(key);
        }
        if !self.needed.is_empty() {
            self.store_small(conn, db, receipt.id)?;
        }
        let mut has = conn.prepare_cached(sql::HAS_BLOB)?;
        let mut missing = HashSet::new();
        for key in self.needed {
            if !has.exists([&key[..]])? {
                missing.insert(key);
            }
        }
        if !missing.is_empty() && receipt.reversible == Reversible::Yes {
            receipt.reversible = Reversible::Partly { why: lost(receipt, &missing) };
        }
        Ok(self.packed)
    }

    /// In the order of their hashes, because rows of an index that go beside each other cost less.
    fn store_small(&mut self, conn: &Connection, db: &Db, receipt: i64) -> Attempt<()> {
        let told = |error: io::Error| ToolError::io("reading the spool", &error);
        let Some(mut lines) = Reader::open(db, receipt).map_err(told)? else { return Ok(()) };
        let mut found = BTreeMap::new();
        while let Some(line) = lines.next().map_err(told)? {
            if self.needed.contains(&line.key) {
                found.entry(line.key).or_insert(line.bytes);
            }
        }
        let mut bytes = Vec::new();
        for (key, place) in found {
            // Bytes that are not what the hash says were torn, and are as good as missing.
            if lines.read(place, &mut bytes).map_err(told)? && blake3::hash(&bytes).as_bytes() == &key {
                Image::row(key.into(), &bytes).insert(conn, false)?;
                self.needed.remove(&key);
            }
        }
        Ok(())
    }
}

/// Which bytes will not come back.
fn lost(receipt: &Receipt, missing: &HashSet<Key>) -> String {
    let is_missing = |hash: &str| key_of(hash).is_some_and(|key| missing.contains(&key));
    let files = receipt
        .changes
        .iter()
        .filter(|change| change.before.as_file().is_some_and(|file| is_missing(&file.hash)));
    let mut paths = files.map(|change| change.path.display().to_string());
    let first = paths.next().unwrap_or_default();
    match paths.count() {
        0 => format!("the old bytes of {first} were not kept"),
        more => format!("the old bytes of {first} and {more} more were not kept"),
    }
}
