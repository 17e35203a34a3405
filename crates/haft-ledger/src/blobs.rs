//! Before-images and long outputs, each kept once under the hash of its bytes.
//!
//! Small ones are rows, so that they reach the disk together with the change they belong to. Larger ones are
//! files, written and synced before the row that names them is committed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use haft_tool::{Hash, ToolError, now_ms};
use rusqlite::{Connection, OptionalExtension, params};
use rustix::fs::FlockOperation;

use crate::Ledger;
use crate::db::{Survives, run};
use crate::fault::{Attempt, damaged};
use crate::home::{Home, HomeLock, make_private_dirs, private_file};
use crate::sql::{self, int};

/// The most bytes that are kept as a row.
const LARGEST_ROW: usize = 32 * 1024;

/// A hash as the database keeps it.
pub(crate) type Key = [u8; 32];

/// The key of a hash; nothing if it is no hash as this crate writes them.
pub(crate) fn key_of(hash: &str) -> Option<Key> {
    let plain = hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    blake3::Hash::from_hex(hash).ok().filter(|_| plain).map(Into::into)
}

/// The file of a large blob.
pub(crate) fn file_of(home: &Home, key: Key) -> PathBuf {
    let hex = blake3::Hash::from(key).to_hex();
    let (folder, name) = hex.split_at(2);
    home.blobs().join(folder).join(name)
}

/// Bytes on their way into the ledger.
///
/// While it lives, garbage collection waits: a file whose row is not committed yet looks like one that nobody needs.
pub(crate) struct Image<'a> {
    hash: blake3::Hash,
    bytes: &'a [u8],
    lock: Option<HomeLock>,
}

impl<'a> Image<'a> {
    /// Hashes the bytes and, if they are many, puts them on the disk. Must not run inside a transaction.
    pub(crate) fn store(home: &Home, bytes: &'a [u8]) -> Result<Self, ToolError> {
        let hash = blake3::hash(bytes);
        if bytes.len() <= LARGEST_ROW {
            return Ok(Self { hash, bytes, lock: None });
        }
        let lock = home.lock(FlockOperation::LockShared)?;
        let file = file_of(home, hash.into());
        let written = write_file(home, &file, bytes);
        written.map_err(|error| {
            ToolError::io(format_args!("keeping a before-image as {}", file.display()), &error)
        })?;
        Ok(Self { hash, bytes, lock: Some(lock) })
    }

    pub(crate) fn hash(&self) -> Hash {
        self.hash.to_hex().to_string()
    }

    /// Writes the row; a pinned one stays although no receipt names it yet.
    pub(crate) fn insert(&self, conn: &Connection, pin: bool) -> Attempt<()> {
        let row = self.lock.is_none().then_some(self.bytes);
        let pinned_at = if pin { int(now_ms()) } else { 0 };
        let key: &[u8] = self.hash.as_bytes();
        run(conn, sql::INSERT_BLOB, params![key, int(self.bytes.len()), i64::from(pin), pinned_at, row])?;
        Ok(())
    }
}

impl Ledger {
    /// Keeps bytes and gives their hash. Equal bytes are kept once.
    ///
    /// They stay until a receipt that names the hash is forgotten; if no receipt ever does, for a day.
    pub fn keep(&self, bytes: &[u8]) -> Result<Hash, ToolError> {
        let image = Image::store(self.db.home(), bytes)?;
        self.db.write(Survives::Crash, |conn| image.insert(conn, true))?;
        Ok(image.hash())
    }

    /// The bytes behind a hash, exactly as they were kept.
    pub fn blob(&self, hash: &str) -> Result<Vec<u8>, ToolError> {
        let key =
            key_of(hash).ok_or_else(|| damaged(format!("{hash:?} is not the hash of anything kept")))?;
        let row: Option<Option<Vec<u8>>> = self.db.read(|conn| {
            Ok(conn.prepare_cached(sql::READ_BLOB)?.query_row([&key[..]], |row| row.get(0)).optional()?)
        })?;
        let bytes = match row {
            None => {
                return Err(damaged(format!(
                    "the ledger no longer has the bytes {hash}; they have been forgotten"
                )));
            }
            Some(Some(bytes)) => bytes,
            Some(None) => {
                let file = file_of(self.db.home(), key);
                fs::read(&file).map_err(|error| {
                    ToolError::io(format_args!("the ledger's copy of {hash}: {}", file.display()), &error)
                })?
            }
        };
        if blake3::hash(&bytes) != blake3::Hash::from(key) {
            return Err(damaged(format!(
                "the ledger's copy of {hash} is damaged: its bytes give another hash"
            )));
        }
        Ok(bytes)
    }
}

/// Writes a blob's file so that it is whole and durable, or not there at all.
fn write_file(home: &Home, file: &Path, bytes: &[u8]) -> io::Result<()> {
    let Some(folder) = file.parent() else { return Err(io::ErrorKind::InvalidFilename.into()) };
    if !folder.try_exists()? {
        make_private_dirs(folder)?;
        sync_dir(&home.blobs())?;
        sync_dir(home.dir())?;
    }
    let complete = fs::metadata(file).is_ok_and(|meta| usize::try_from(meta.len()) == Ok(bytes.len()));
    if !complete {
        let temp = folder.join(temp_name()?);
        let written = private_file(&temp, OpenOptions::new().write(true).create_new(true))
            .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
            .and_then(|()| fs::rename(&temp, file));
        if let Err(error) = written {
            // What stays behind is swept up by garbage collection; the first error is the one to tell.
            drop(fs::remove_file(&temp));
            return Err(error);
        }
    }
    // Also when the file was there: whoever wrote it may have died before this line.
    sync_dir(folder)
}

fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

fn temp_name() -> io::Result<String> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(format!("new-{:016x}", u64::from_ne_bytes(bytes)))
}
