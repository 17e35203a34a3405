//! File contents and long texts, each stored once under the hash of its bytes.
//!
//! Small ones are rows, so that they reach the disk together with the change they belong to. Larger ones are files,
//! written before the row that names them is committed.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use haft_tool::{FileContent, Hash, ToolError};
use rusqlite::{Connection, OptionalExtension, params};
use rustix::fs::FlockOperation;

use crate::Ledger;
use crate::blob_files::{SyncPolicy, blob_path, write_bytes, write_chunks};
use crate::chunks::{ChunkList, ChunkReader, ChunkedContent, list_from_bytes, list_to_bytes};
use crate::database::execute;
use crate::directory::{LedgerDir, LedgerLock};
use crate::error::{TxResult, damaged};
use crate::sql::{self, int};

/// Larger blobs are files.
pub(crate) const MAX_ROW_BYTES: usize = 32 * 1024;

/// A hash as the database stores it.
pub(crate) type BlobKey = [u8; 32];

/// The key of a hash; `None` if it is not a hash as this crate writes them.
pub(crate) fn key_of(hash: &str) -> Option<BlobKey> {
    let lower_hex = hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    blake3::Hash::from_hex(hash).ok().filter(|_| lower_hex).map(Into::into)
}

/// Whether the content becomes a file.
pub(crate) fn is_large(content: &FileContent<'_>) -> bool {
    match content {
        FileContent::None => false,
        FileContent::Bytes(bytes) => bytes.len() > MAX_ROW_BYTES,
        FileContent::Reader(_) => true,
    }
}

/// A blob that is ready for its row; a large one is a file already.
///
/// Until the row is committed the directory must be locked: garbage collection removes files without a row.
#[derive(Debug)]
pub(crate) struct NewBlob<'a> {
    hash: blake3::Hash,
    size: u64,
    bytes: Option<&'a [u8]>,
    /// The chunks, if it consists of several.
    chunks: ChunkList,
}

impl<'a> NewBlob<'a> {
    /// Hashes the content and writes the file of a large one. Must not run inside a transaction.
    pub(crate) fn store(
        dir: &LedgerDir,
        content: &mut FileContent<'a>,
        sync: SyncPolicy,
    ) -> Result<Option<Self>, ToolError> {
        let stored = match content {
            FileContent::None => return Ok(None),
            FileContent::Bytes(bytes) if bytes.len() <= MAX_ROW_BYTES => {
                return Ok(Some(Self::row(blake3::hash(bytes), bytes)));
            }
            FileContent::Bytes(bytes) => write_bytes(dir, bytes, sync),
            FileContent::Reader(reader) => {
                let stored = write_chunks(dir, *reader, sync);
                let stored = stored.map_err(|error| ToolError::io("store a blob in the ledger", &error))?;
                return Ok(Some(Self::chunked(stored)));
            }
        };
        let (hash, size) = stored.map_err(|error| ToolError::io("store a blob in the ledger", &error))?;
        Ok(Some(Self { hash, size, bytes: None, chunks: Vec::new() }))
    }

    /// A blob that becomes a row.
    pub(crate) fn row(hash: blake3::Hash, bytes: &'a [u8]) -> Self {
        Self { hash, size: bytes.len() as u64, bytes: Some(bytes), chunks: Vec::new() }
    }

    /// A blob whose file is already in the store.
    pub(crate) fn file(key: BlobKey, size: u64) -> Self {
        Self { hash: key.into(), size, bytes: None, chunks: Vec::new() }
    }

    /// A blob whose chunks are already in the store.
    pub(crate) fn chunked(content: ChunkedContent) -> Self {
        let is_one_file = content.is_one_file();
        let ChunkedContent { hash, size, chunks } = content;
        Self { hash, size, bytes: None, chunks: if is_one_file { Vec::new() } else { chunks } }
    }

    pub(crate) fn hash(&self) -> Hash {
        self.hash.to_hex().to_string()
    }

    pub(crate) fn key(&self) -> BlobKey {
        self.hash.into()
    }

    /// Writes the row.
    pub(crate) fn insert(&self, conn: &Connection) -> TxResult<()> {
        let key: &[u8] = self.hash.as_bytes();
        if !self.chunks.is_empty() {
            execute(conn, sql::INSERT_CHUNKS, params![key, list_to_bytes(&self.chunks)])?;
        }
        execute(conn, sql::INSERT_BLOB, params![key, int(self.size), self.bytes]).map(drop)
    }
}

/// Writes that a receipt needs a blob.
pub(crate) fn insert_ref(conn: &Connection, receipt: i64, key: BlobKey) -> TxResult<()> {
    execute(conn, sql::INSERT_REF, params![receipt, &key[..]]).map(drop)
}

/// Where the bytes of a blob are.
enum StoredBlob {
    Row(Vec<u8>),
    File(File, PathBuf),
    Chunks(ChunkReader),
}

impl Ledger {
    /// Locks out garbage collection if any blob becomes a file.
    pub(crate) fn lock_if(&self, large: bool) -> Result<Option<LedgerLock>, ToolError> {
        large.then(|| self.db.dir().lock(FlockOperation::LockShared)).transpose()
    }

    /// Whether the ledger has the bytes with this hash.
    pub fn has(&self, hash: &str) -> Result<bool, ToolError> {
        let Some(key) = key_of(hash) else { return Ok(false) };
        self.db.read(|conn| Ok(conn.prepare_cached(sql::HAS_BLOB)?.exists([&key[..]])?))
    }

    /// How many bytes with this hash there are; `None` if the ledger does not have them.
    pub fn blob_size(&self, hash: &str) -> Result<Option<u64>, ToolError> {
        let Some(key) = key_of(hash) else { return Ok(None) };
        self.db.read(|conn| {
            let mut statement = conn.prepare_cached(sql::BLOB_SIZE)?;
            Ok(statement.query_row([&key[..]], |row| row.get(0)).optional()?)
        })
    }

    /// The bytes with this hash.
    pub fn blob(&self, hash: &str) -> Result<Vec<u8>, ToolError> {
        let stored = self.find(hash)?;
        read_stored(stored, hash)
    }

    /// The same, in a transaction that is open.
    pub(crate) fn blob_in(&self, conn: &Connection, hash: &str) -> TxResult<Vec<u8>> {
        Ok(read_stored(find(conn, self.db.dir(), hash)?, hash)?)
    }

    /// A reader of the bytes with this hash. It does not verify the hash.
    pub fn open_blob(&self, hash: &str) -> Result<Box<dyn Read + Send>, ToolError> {
        Ok(match self.find(hash)? {
            StoredBlob::Row(bytes) => Box::new(io::Cursor::new(bytes)),
            StoredBlob::File(file, _) => Box::new(file),
            StoredBlob::Chunks(reader) => Box::new(reader),
        })
    }

    fn find(&self, hash: &str) -> Result<StoredBlob, ToolError> {
        self.db.read(|conn| find(conn, self.db.dir(), hash))
    }
}

fn find(conn: &Connection, dir: &LedgerDir, hash: &str) -> TxResult<StoredBlob> {
    let key = key_of(hash).ok_or_else(|| damaged(format!("{hash:?} is not the hash of a blob.")))?;
    let row: Option<Option<Vec<u8>>> =
        conn.prepare_cached(sql::READ_BLOB)?.query_row([&key[..]], |row| row.get(0)).optional()?;
    match row {
        None => {
            Err(damaged(format!("The ledger does not have the bytes {hash} any more: gc removed them."))
                .into())
        }
        Some(Some(bytes)) => Ok(StoredBlob::Row(bytes)),
        Some(None) => {
            let mut statement = conn.prepare_cached(sql::READ_CHUNKS)?;
            let list: Option<Vec<u8>> = statement.query_row([&key[..]], |row| row.get(0)).optional()?;
            if let Some(list) = list {
                return Ok(StoredBlob::Chunks(ChunkReader::new(dir, &list_from_bytes(&list))));
            }
            let path = blob_path(dir, key);
            let file = File::open(&path).map_err(|error| read_error(&path, &error))?;
            Ok(StoredBlob::File(file, path))
        }
    }
}

fn read_stored(stored: StoredBlob, hash: &str) -> Result<Vec<u8>, ToolError> {
    let mut bytes = Vec::new();
    match stored {
        StoredBlob::Row(row) => bytes = row,
        StoredBlob::Chunks(mut reader) => {
            reader.read_to_end(&mut bytes).map_err(|error| read_error(Path::new(hash), &error))?;
        }
        StoredBlob::File(mut file, path) => {
            file.read_to_end(&mut bytes).map_err(|error| read_error(&path, &error))?;
        }
    }
    if blake3::hash(&bytes).to_hex().as_str() != hash {
        return Err(damaged(format!("The ledger's copy of {hash} is damaged: its bytes have another hash.")));
    }
    Ok(bytes)
}

fn read_error(path: &Path, error: &io::Error) -> ToolError {
    ToolError::io(format_args!("read the ledger's blob {}", path.display()), error)
}
