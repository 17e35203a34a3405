//! Before-images and long outputs, each kept once under the hash of its bytes.
//!
//! Small ones are rows, so that they reach the disk together with the change they belong to. Larger ones are
//! files, written and synced before the row that names them is committed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use haft_tool::{FileContent, Hash, ToolError, now_ms};
use rusqlite::{Connection, OptionalExtension, params};
use rustix::fs::FlockOperation;

use crate::Ledger;
use crate::db::{Survives, run};
use crate::fault::{Attempt, damaged};
use crate::home::{Home, HomeLock, make_private_dirs, private_file};
use crate::sql::{self, int};

/// The most bytes that are kept as a row.
pub(crate) const LARGEST_ROW: usize = 32 * 1024;
/// How many bytes are read at a time where all would be too many.
const PIECE: usize = 256 * 1024;
/// Whole stretches of zeros of this size become holes.
const HOLE: u32 = 64 * 1024;

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

/// Whether the content becomes a file of its own.
pub(crate) fn is_large(content: &FileContent<'_>) -> bool {
    match content {
        FileContent::None => false,
        FileContent::Bytes(bytes) => bytes.len() > LARGEST_ROW,
        FileContent::Reader(_) => true,
    }
}

/// Whether a file is on the disk when it is stored, or when somebody asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sync {
    Now,
    Later,
}

/// Bytes that are ready to be named by a row; as a file already if they are many.
///
/// Until the row is committed the home must be locked against garbage collection: a file without a row looks like one
/// that nobody needs.
pub(crate) struct Image<'a> {
    hash: blake3::Hash,
    size: u64,
    row: Option<&'a [u8]>,
}

impl<'a> Image<'a> {
    /// Hashes the bytes and, if they are many, puts them into a file. Must not run inside a transaction.
    pub(crate) fn store(
        home: &Home,
        content: &mut FileContent<'a>,
        sync: Sync,
    ) -> Result<Option<Self>, ToolError> {
        let stored = match content {
            FileContent::None => return Ok(None),
            FileContent::Bytes(bytes) if bytes.len() <= LARGEST_ROW => {
                return Ok(Some(Self::row(blake3::hash(bytes), bytes)));
            }
            FileContent::Bytes(bytes) => store_held(home, bytes, sync),
            FileContent::Reader(reader) => store_read(home, *reader, sync),
        };
        let told = |error| ToolError::io("keeping a before-image", &error);
        let (hash, size) = stored.map_err(told)?;
        Ok(Some(Self { hash, size, row: None }))
    }

    /// Bytes that become a row, however many they are.
    pub(crate) fn row(hash: blake3::Hash, bytes: &'a [u8]) -> Self {
        Self { hash, size: bytes.len() as u64, row: Some(bytes) }
    }

    /// Bytes that are a file of the store already.
    pub(crate) fn file(key: Key, size: u64) -> Self {
        Self { hash: key.into(), size, row: None }
    }

    pub(crate) fn hash(&self) -> Hash {
        self.hash.to_hex().to_string()
    }

    /// Writes the row; a pinned one stays although no receipt names it yet.
    pub(crate) fn insert(&self, conn: &Connection, pin: bool) -> Attempt<()> {
        let pinned_at = if pin { int(now_ms()) } else { 0 };
        let key: &[u8] = self.hash.as_bytes();
        run(conn, sql::INSERT_BLOB, params![key, int(self.size), i64::from(pin), pinned_at, self.row])?;
        Ok(())
    }
}

/// The row of a blob.
pub(crate) enum Row {
    Bytes(Vec<u8>),
    /// The bytes are a file.
    File,
}

/// The row of a blob, if there is one.
pub(crate) fn row_of(conn: &Connection, key: Key) -> Attempt<Option<Row>> {
    let mut read = conn.prepare_cached(sql::READ_BLOB)?;
    let row = read.query_row([&key[..]], |row| row.get::<_, Option<Vec<u8>>>(0)).optional()?;
    Ok(row.map(|bytes| bytes.map_or(Row::File, Row::Bytes)))
}

/// Where the bytes behind a hash are.
enum Found {
    Row(Vec<u8>),
    File(File, PathBuf),
}

impl Ledger {
    /// Keeps bytes and gives their hash. Equal bytes are kept once.
    ///
    /// They stay until a receipt that names the hash is forgotten; if no receipt ever does, for a day.
    pub fn keep(&self, bytes: &[u8]) -> Result<Hash, ToolError> {
        let mut content = FileContent::Bytes(bytes);
        let _lock = self.lock_if(is_large(&content))?;
        let image = Image::store(self.db.home(), &mut content, Sync::Now)?;
        let image = image.ok_or_else(|| ToolError::internal("there are no bytes to keep"))?;
        self.db.write(Survives::Crash, |conn| image.insert(conn, true))?;
        Ok(image.hash())
    }

    /// Keeps garbage collection away if anything becomes a file.
    pub(crate) fn lock_if(&self, large: bool) -> Result<Option<HomeLock>, ToolError> {
        large.then(|| self.db.home().lock(FlockOperation::LockShared)).transpose()
    }

    /// Whether the ledger has the bytes behind a hash.
    pub fn has(&self, hash: &str) -> Result<bool, ToolError> {
        let Some(key) = key_of(hash) else { return Ok(false) };
        let row = self.db.read(|conn| Ok(conn.prepare_cached(sql::HAS_BLOB)?.exists([&key[..]])?))?;
        Ok(row || self.packed(key)?.is_some())
    }

    /// The bytes behind a hash, exactly as they were kept.
    pub fn blob(&self, hash: &str) -> Result<Vec<u8>, ToolError> {
        let bytes = match self.find(hash)? {
            Found::Row(bytes) => bytes,
            Found::File(mut file, path) => {
                let mut bytes = Vec::new();
                file.read_to_end(&mut bytes).map_err(|error| copy_error(hash, &path, &error))?;
                bytes
            }
        };
        verified(hash, blake3::hash(&bytes)).map(|()| bytes)
    }

    /// Opens the bytes behind a hash for reading. The reader of a large blob is not verified: its user checks the hash.
    pub fn open_blob(&self, hash: &str) -> Result<Box<dyn Read + Send>, ToolError> {
        Ok(match self.find(hash)? {
            Found::Row(bytes) => Box::new(io::Cursor::new(bytes)),
            Found::File(file, _) => Box::new(file),
        })
    }

    fn packed(&self, key: Key) -> Result<Option<Vec<u8>>, ToolError> {
        let found = self.db.packs().find(self.db.home(), &key);
        found.map_err(|error| ToolError::io("looking through the packs", &error))
    }

    fn find(&self, hash: &str) -> Result<Found, ToolError> {
        let key =
            key_of(hash).ok_or_else(|| damaged(format!("{hash:?} is not the hash of anything kept")))?;
        match self.db.read(|conn| row_of(conn, key))? {
            None => self.packed(key)?.map(Found::Row).ok_or_else(|| {
                damaged(format!("the ledger no longer has the bytes {hash}; they have been forgotten"))
            }),
            Some(Row::Bytes(bytes)) => Ok(Found::Row(bytes)),
            Some(Row::File) => {
                let path = file_of(self.db.home(), key);
                let file = File::open(&path).map_err(|error| copy_error(hash, &path, &error))?;
                Ok(Found::File(file, path))
            }
        }
    }
}

fn copy_error(hash: &str, path: &Path, error: &io::Error) -> ToolError {
    ToolError::io(format_args!("the ledger's copy of {hash}: {}", path.display()), error)
}

fn verified(hash: &str, found: blake3::Hash) -> Result<(), ToolError> {
    if found.to_hex().as_str() == hash {
        return Ok(());
    }
    Err(damaged(format!("the ledger's copy of {hash} is damaged: its bytes give another hash")))
}

/// Copies into an empty file, with holes where the bytes are zeros; returns the hash and the size.
pub(crate) fn copy_sparse(from: &mut dyn Read, mut to: &File) -> io::Result<(blake3::Hash, u64)> {
    let mut hasher = blake3::Hasher::new();
    let mut piece = vec![0; PIECE];
    let mut size = 0;
    loop {
        let got = fill(from, &mut piece)?;
        hasher.update(&piece[..got]);
        size += got as u64;
        for part in piece[..got].chunks(HOLE as usize) {
            if part.len() == HOLE as usize && part.iter().all(|byte| *byte == 0) {
                to.seek(SeekFrom::Current(i64::from(HOLE)))?;
            } else {
                to.write_all(part)?;
            }
        }
        if got < piece.len() {
            break;
        }
    }
    to.set_len(size)?;
    Ok((hasher.finalize(), size))
}

/// Reads until the piece is full or the file ends.
fn fill(file: &mut dyn Read, piece: &mut [u8]) -> io::Result<usize> {
    let mut got = 0;
    while got < piece.len() {
        match file.read(&mut piece[got..]) {
            Ok(0) => break,
            Ok(more) => got += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}

fn store_held(home: &Home, bytes: &[u8], sync: Sync) -> io::Result<(blake3::Hash, u64)> {
    let hash = blake3::hash(bytes);
    let size = bytes.len() as u64;
    let file = file_of(home, hash.into());
    if is_whole(&file, size) {
        // Whoever wrote it may have died before its name was durable.
        synced(home, &file, sync)?;
    } else {
        let temp = new_temp(home, |mut temp| temp.write_all(bytes), sync)?;
        install(home, &temp, &file, sync)?;
    }
    Ok((hash, size))
}

fn store_read(home: &Home, from: &mut dyn Read, sync: Sync) -> io::Result<(blake3::Hash, u64)> {
    let mut copied = None;
    let temp = new_temp(
        home,
        |temp| {
            copied = Some(copy_sparse(from, temp)?);
            Ok(())
        },
        sync,
    )?;
    let (hash, size) = copied.ok_or(io::ErrorKind::UnexpectedEof)?;
    install(home, &temp, &file_of(home, hash.into()), sync)?;
    Ok((hash, size))
}

/// Whether a blob's file is there with all its bytes; one that a loss of power cut short is not.
pub(crate) fn is_whole(file: &Path, size: u64) -> bool {
    fs::metadata(file).is_ok_and(|meta| meta.len() == size)
}

/// A new file below the blobs' directory, filled by `write`.
fn new_temp(home: &Home, write: impl FnOnce(&File) -> io::Result<()>, sync: Sync) -> io::Result<PathBuf> {
    let folder = home.blobs().join("new");
    make_folder(home, &folder, sync)?;
    let temp = folder.join(temp_name()?);
    let file = private_file(&temp, OpenOptions::new().read(true).write(true).create_new(true))?;
    let written = write(&file).and_then(|()| if sync == Sync::Now { file.sync_all() } else { Ok(()) });
    if let Err(error) = written {
        // What stays behind is swept up by garbage collection; the first error is the one to tell.
        drop(fs::remove_file(&temp));
        return Err(error);
    }
    Ok(temp)
}

/// Moves a finished file to its name in the store.
fn install(home: &Home, temp: &Path, file: &Path, sync: Sync) -> io::Result<()> {
    let Some(folder) = file.parent() else { return Err(io::ErrorKind::InvalidFilename.into()) };
    make_folder(home, folder, sync)?;
    fs::rename(temp, file)?;
    synced(home, file, sync)
}

/// Gives a finished file that lies elsewhere in the home its name in the store too.
pub(crate) fn adopt(home: &Home, from: &Path, file: &Path) -> io::Result<()> {
    make_folder(home, file.parent().unwrap_or(home.dir()), Sync::Later)?;
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    // Two names, so that whoever dies before the row is committed leaves the first one to the next recovery.
    fs::hard_link(from, file).or_else(|_| fs::rename(from, file))
}

fn make_folder(home: &Home, folder: &Path, sync: Sync) -> io::Result<()> {
    if folder.try_exists()? {
        return Ok(());
    }
    make_private_dirs(folder)?;
    if sync == Sync::Now {
        sync_dir(&home.blobs())?;
        sync_dir(home.dir())?;
    }
    Ok(())
}

fn synced(home: &Home, file: &Path, sync: Sync) -> io::Result<()> {
    match sync {
        Sync::Now => sync_dir(file.parent().unwrap_or(home.dir())),
        Sync::Later => Ok(()),
    }
}

fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// When so many files should reach the disk: many do so in one wait, where the system has such a thing.
pub(crate) fn best_sync(files: usize) -> Sync {
    if cfg!(target_os = "linux") && files > 4 { Sync::Later } else { Sync::Now }
}

/// Makes everything that was stored for later durable.
pub(crate) fn sync_later(home: &Home) -> Result<(), ToolError> {
    #[cfg(target_os = "linux")]
    File::open(home.dir())
        .and_then(|dir| Ok(rustix::fs::syncfs(&dir)?))
        .map_err(|error| ToolError::io("making before-images durable", &error))?;
    #[cfg(not(target_os = "linux"))]
    let _ = home;
    Ok(())
}

fn temp_name() -> io::Result<String> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(format!("{:016x}", u64::from_ne_bytes(bytes)))
}
