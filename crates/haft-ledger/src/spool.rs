//! What a command that runs may need to be taken back: one file per call, written from first to last.
//!
//! A record is one write into the page cache, so it survives the death of this process and costs next to nothing. The
//! store gets only what the command changed in the end. Large images lie beside the file under their hash, where
//! garbage collection does not look for strays.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_tool::{FileContent, Node, ToolError, path_to_text};
use serde::{Deserialize, Serialize};

use crate::Ledger;
use crate::blobs::{Key, LARGEST_ROW, copy_sparse, key_of};
use crate::db::Db;
use crate::home::{make_private_dirs, private_file};

/// Two lengths and the hash of the bytes.
const HEAD: usize = 4 + 4 + 32;
/// No record is longer than this, so a length that says so is damage.
const LONGEST: u32 = 64 << 20;

/// The hash of no bytes at all.
const EMPTY: Key = [
    0xaf, 0x13, 0x49, 0xb9, 0xf5, 0xf9, 0xa1, 0xa6, 0xa0, 0x40, 0x4d, 0xea, 0x36, 0xdc, 0xc9, 0x49, 0x9b,
    0xcb, 0x25, 0xc9, 0xad, 0xc1, 0x12, 0xb7, 0xcc, 0x9a, 0x93, 0xca, 0xe4, 0x1f, 0x32, 0x62,
];

/// One thing that the witness saw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Record<'a> {
    /// What stood at a path before the command touched it.
    Before { path: Cow<'a, str>, node: Cow<'a, Node> },
    /// A directory is about to be moved.
    Moving { from: Cow<'a, str>, to: Cow<'a, str> },
    /// The last move was refused.
    Stayed,
}

/// Where one call keeps what stood at the paths it is about to touch.
#[derive(Debug)]
pub struct Spool {
    db: Arc<Db>,
    receipt: i64,
    file: File,
    /// The length of all whole records.
    length: u64,
    has_large: bool,
    /// Kept to be filled again.
    line: Vec<u8>,
}

impl Ledger {
    /// Opens the spool of a call that has begun.
    pub fn spool(&self, receipt: i64) -> Result<Spool, ToolError> {
        let path = file_of(&self.db, receipt);
        let open = || {
            make_private_dirs(&self.db.home().spool())?;
            let file = private_file(&path, OpenOptions::new().read(true).create(true).append(true))?;
            let length = file.metadata()?.len();
            Ok((file, length))
        };
        let (file, length) = open().map_err(|error: io::Error| ToolError::io(path.display(), &error))?;
        let db = Arc::clone(&self.db);
        Ok(Spool { db, receipt, file, length, has_large: false, line: Vec::new() })
    }
}

impl Spool {
    /// Keeps what stands at a path. A file's node must have the hash of its bytes.
    pub fn keep(&mut self, path: &Path, node: &Node, content: FileContent<'_>) -> Result<(), ToolError> {
        let key = node.as_file().and_then(|file| key_of(&file.hash));
        let key = key.filter(|_| !matches!(content, FileContent::None));
        let held = match (key, content) {
            (_, FileContent::None) | (None, _) => &[],
            (Some(_), FileContent::Bytes(bytes)) if bytes.len() <= LARGEST_ROW => bytes,
            (Some(key), content) => {
                self.keep_large(key, content).map_err(|error| self.told(&error))?;
                &[]
            }
        };
        let key = key.unwrap_or_default();
        self.write(&Record::Before { path: path_to_text(path), node: Cow::Borrowed(node) }, key, held)
    }

    /// Keeps that a directory is about to be moved with everything in it.
    pub fn moving(&mut self, from: &Path, to: &Path) -> Result<(), ToolError> {
        self.write(&Record::Moving { from: path_to_text(from), to: path_to_text(to) }, Key::default(), &[])
    }

    /// Keeps that the last move was refused.
    pub fn stayed(&mut self) -> Result<(), ToolError> {
        self.write(&Record::Stayed, Key::default(), &[])
    }

    fn told(&self, error: &io::Error) -> ToolError {
        ToolError::io(format_args!("keeping a before-image in {}", self.db.home().spool().display()), error)
    }

    fn write(&mut self, record: &Record<'_>, key: Key, bytes: &[u8]) -> Result<(), ToolError> {
        self.line.clear();
        self.line.resize(HEAD, 0);
        serde_json::to_writer(&mut self.line, record)?;
        let lengths =
            [self.line.len() - HEAD, bytes.len()].map(|length| u32::try_from(length).unwrap_or(u32::MAX));
        for (at, length) in [0, 4].into_iter().zip(lengths) {
            self.line[at..at + 4].copy_from_slice(&length.to_le_bytes());
        }
        self.line[8..HEAD].copy_from_slice(&key);
        self.line.extend_from_slice(bytes);
        if let Err(error) = self.file.write_all(&self.line) {
            // Half a record would hide the ones behind it.
            drop(self.file.set_len(self.length));
            return Err(self.told(&error));
        }
        self.length += self.line.len() as u64;
        Ok(())
    }

    fn keep_large(&mut self, key: Key, content: FileContent<'_>) -> io::Result<()> {
        let folder = folder_of(&self.db, self.receipt);
        if !self.has_large {
            make_private_dirs(&folder)?;
            self.has_large = true;
        }
        let path = folder.join(blake3::Hash::from(key).to_hex().as_str());
        let mut file = match private_file(&path, OpenOptions::new().write(true).create_new(true)) {
            // The same bytes under another name.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
            other => other?,
        };
        let written = match content {
            FileContent::None => Ok(()),
            FileContent::Bytes(bytes) => file.write_all(bytes),
            FileContent::Reader(reader) => copy_sparse(reader, &file).map(|(hash, _)| {
                if Key::from(hash) != key {
                    // The file has changed since it was hashed; the receipt will say that its bytes were not kept.
                    drop(fs::remove_file(&path));
                }
            }),
        };
        written.inspect_err(|_| drop(fs::remove_file(&path)))
    }

    pub(crate) fn receipt(&self) -> i64 {
        self.receipt
    }
}

pub(crate) fn file_of(db: &Db, receipt: i64) -> PathBuf {
    db.home().spool().join(receipt.to_string())
}

fn folder_of(db: &Db, receipt: i64) -> PathBuf {
    db.home().spool().join(format!("{receipt}.large"))
}

/// Removes all that a call kept; what cannot be removed now is removed by the next recovery.
pub(crate) fn remove(db: &Db, receipt: i64) {
    drop(fs::remove_file(file_of(db, receipt)));
    drop(fs::remove_dir_all(folder_of(db, receipt)));
}

/// The calls that have something in the spool.
pub(crate) fn calls(db: &Db) -> Vec<i64> {
    let entries = fs::read_dir(db.home().spool()).into_iter().flatten().flatten();
    let mut calls: Vec<i64> = entries
        .filter_map(|entry| entry.file_name().to_str()?.trim_end_matches(".large").parse().ok())
        .collect();
    calls.sort_unstable();
    calls.dedup();
    calls
}

/// The large images of a call: each with its file and its size.
pub(crate) fn large_images(db: &Db, receipt: i64) -> io::Result<Vec<(Key, PathBuf, u64)>> {
    let entries = match fs::read_dir(folder_of(db, receipt)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let mut images = Vec::new();
    for entry in entries {
        let entry = entry?;
        if let Some(key) = entry.file_name().to_str().and_then(key_of) {
            images.push((key, entry.path(), entry.metadata()?.len()));
        }
    }
    Ok(images)
}

/// Reads a call's records from first to last; a torn end is left out.
#[derive(Debug)]
pub(crate) struct Reader {
    file: BufReader<File>,
    at: u64,
    text: Vec<u8>,
}

/// Where bytes lie in the file: where they begin, and how many they are.
pub(crate) type Place = (u64, u32);

/// A record as it lies in the file.
pub(crate) struct Line<'a> {
    /// The hash of the bytes; zeros if there are none.
    pub(crate) key: Key,
    text: &'a [u8],
    pub(crate) bytes: Place,
}

impl Line<'_> {
    pub(crate) fn record(&self) -> Option<Record<'static>> {
        serde_json::from_slice(self.text).ok()
    }

    /// Whether the bytes lie beside the file, because they are many.
    fn is_elsewhere(&self) -> bool {
        self.bytes.1 == 0 && self.key != EMPTY
    }
}

impl Reader {
    /// The records of a call; nothing if it kept none.
    pub(crate) fn open(db: &Db, receipt: i64) -> io::Result<Option<Self>> {
        Self::of(&file_of(db, receipt))
    }

    /// The records in a file; nothing if there is none.
    pub(crate) fn of(path: &Path) -> io::Result<Option<Self>> {
        match File::open(path) {
            Ok(file) => {
                let file = BufReader::with_capacity(128 * 1024, file);
                Ok(Some(Self { file, at: 0, text: Vec::new() }))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The next record.
    pub(crate) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        let mut head = [0; HEAD];
        let Some(()) = whole(self.file.read_exact(&mut head))? else { return Ok(None) };
        let (lengths, key) = head.split_at(8);
        let mut sizes = lengths.chunks(4).map(|size| size.try_into().map_or(u32::MAX, u32::from_le_bytes));
        let (text, bytes) = (sizes.next().unwrap_or(u32::MAX), sizes.next().unwrap_or(u32::MAX));
        if text == 0 || text > LONGEST || bytes > LONGEST {
            return Ok(None);
        }
        self.text.resize(text as usize, 0);
        let Some(()) = whole(self.file.read_exact(&mut self.text))? else { return Ok(None) };
        self.file.seek_relative(i64::from(bytes))?;
        let place = (self.at + HEAD as u64 + u64::from(text), bytes);
        self.at = place.0 + u64::from(bytes);
        Ok(Some(Line { key: key.try_into().unwrap_or_default(), text: &self.text, bytes: place }))
    }

    /// Where the bytes of all records from here on lie.
    pub(crate) fn places(&mut self) -> io::Result<HashMap<Key, Place>> {
        let mut places = HashMap::new();
        while let Some(line) = self.next()? {
            if line.key != Key::default() && !line.is_elsewhere() {
                places.entry(line.key).or_insert(line.bytes);
            }
        }
        Ok(places)
    }

    /// Reads bytes that a record has; says whether all are there.
    pub(crate) fn read(&self, (at, size): Place, bytes: &mut Vec<u8>) -> io::Result<bool> {
        bytes.resize(size as usize, 0);
        Ok(whole(self.file.get_ref().read_exact_at(bytes, at))?.is_some())
    }
}

/// What was read; nothing if the file ended before.
fn whole(read: io::Result<()>) -> io::Result<Option<()>> {
    match read {
        Ok(()) => Ok(Some(())),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}
