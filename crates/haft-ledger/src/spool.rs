//! The spool of a running command: the state of each path before its first change, one file per call.
//!
//! A record is one write into the page cache, so it survives the death of this process and costs microseconds. When the
//! command has ended, [`crate::commit_spool`] moves what undo needs into the blob store. Contents too large for a
//! record are files beside it.

use std::borrow::Cow;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_tool::{
    DirectoryEvent, FileContent, FileId, FileNode, Hash, Node, StagedStep, ToolError, path_to_text,
};
use serde::{Deserialize, Serialize};

use crate::Ledger;
use crate::blob_files::{blob_path, is_stored};
use crate::blobs::{BlobKey, MAX_ROW_BYTES, key_of};
use crate::chunks::{ChunkedContent, list_from_bytes, list_to_bytes, split};
use crate::database::Database;
use crate::directory::{LedgerDir, make_private_dirs, private_file};

/// The header of a record: the lengths of its JSON and its content, and the hash of the content.
pub(crate) const HEADER_BYTES: usize = 4 + 4 + 32;

/// A record has no more steps of a restore, because its length is bounded.
const MAX_RECORD_STEPS: usize = 1000;

/// One record of the witness, as JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SpoolRecord<'a> {
    /// The state of a path before the command's first change to it.
    Before {
        path: Cow<'a, str>,
        node: Cow<'a, Node>,
        /// Whether the path is the current one, in a directory that the command created.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        in_new: bool,
    },
    /// A directory is about to be created.
    Created { path: Cow<'a, str> },
    /// A directory is about to be removed.
    Removed { path: Cow<'a, str> },
    /// A directory is about to be moved.
    Moved { from: Cow<'a, str>, to: Cow<'a, str>, node: Cow<'a, Node> },
    /// A file or directory inside a new directory is the command's, or is not any more.
    Own { file: FileId, is_own: bool },
    /// What the last record says of a directory was refused.
    Cancelled,
    /// A command is about to start whose changes are not in the spool.
    Unwitnessed,
    /// Steps of a restore that is about to be made.
    Restore { steps: Cow<'a, [StagedStep]> },
    /// So many steps of the restore have been made, or are about to be.
    RestoreStep { made: usize },
    /// All steps of the restore have been made.
    Restored,
}

/// The spool of one call.
#[derive(Debug)]
pub(crate) struct Spool {
    db: Arc<Database>,
    receipt: i64,
    file: File,
    /// The length of all complete records.
    length: u64,
    /// Whether the directory of large contents exists.
    has_large: bool,
    /// Reused for every record.
    buffer: Vec<u8>,
}

impl Ledger {
    /// Opens the spool of a running call.
    pub(crate) fn spool(&self, receipt: i64) -> Result<Spool, ToolError> {
        let path = spool_path(self.db.dir(), receipt);
        let open = || {
            make_private_dirs(&self.db.dir().spool())?;
            let file = private_file(&path, OpenOptions::new().read(true).create(true).append(true))?;
            let length = file.metadata()?.len();
            Ok((file, length))
        };
        let (file, length) = open().map_err(|error: io::Error| ToolError::io(path.display(), &error))?;
        let db = Arc::clone(&self.db);
        Ok(Spool { db, receipt, file, length, has_large: false, buffer: Vec::new() })
    }
}

impl Spool {
    /// Writes the state of a path. If the node of a file has no hash, returns hash and size of its content.
    pub(crate) fn before(
        &mut self,
        path: &Path,
        in_new: bool,
        node: &Node,
        content: FileContent<'_>,
    ) -> Result<Option<(Hash, u64)>, ToolError> {
        let mut node = Cow::Borrowed(node);
        let mut hashed = None;
        let content = match (content, node.as_file()) {
            (FileContent::Reader(reader), Some(file)) => {
                let stored = self.write_chunks(reader).map_err(|error| self.io_error(&error))?;
                if file.hash.is_empty() {
                    let hash = stored.hash.to_hex().to_string();
                    hashed = Some((hash.clone(), stored.size));
                    node = Cow::Owned(Node::File(FileNode { hash, size: stored.size, ..file.clone() }));
                }
                FileContent::None
            }
            (content, _) => content,
        };
        let key = node.as_file().and_then(|file| key_of(&file.hash));
        let inline = match (key, content) {
            (_, FileContent::None | FileContent::Reader(_)) | (None, _) => &[],
            (Some(_), FileContent::Bytes(bytes)) if bytes.len() <= MAX_ROW_BYTES => bytes,
            (Some(key), FileContent::Bytes(bytes)) => {
                self.write_large(key, bytes).map_err(|error| self.io_error(&error))?;
                &[]
            }
        };
        let key = key.filter(|_| !inline.is_empty() || node.as_file().is_some_and(|file| file.size == 0));
        let record = SpoolRecord::Before { path: path_to_text(path), node, in_new };
        self.write(&record, key.unwrap_or_default(), inline)?;
        Ok(hashed)
    }

    /// Keeps a content that is no previous state.
    pub(crate) fn keep(&mut self, content: &mut dyn io::Read) -> Result<(), ToolError> {
        self.write_chunks(content).map(drop).map_err(|error| self.io_error(&error))
    }

    /// Writes what is about to happen to a directory.
    pub(crate) fn directory(&mut self, event: DirectoryEvent<'_>) -> Result<(), ToolError> {
        let record = match event {
            DirectoryEvent::Created(path) => SpoolRecord::Created { path: path_to_text(path) },
            DirectoryEvent::Removed(path) => SpoolRecord::Removed { path: path_to_text(path) },
            DirectoryEvent::Moved { from, to, node } => SpoolRecord::Moved {
                from: path_to_text(from),
                to: path_to_text(to),
                node: Cow::Borrowed(node),
            },
        };
        self.write(&record, BlobKey::default(), &[])
    }

    /// Writes whether a file or directory is the command's.
    pub(crate) fn own(&mut self, file: FileId, is_own: bool) -> Result<(), ToolError> {
        self.write(&SpoolRecord::Own { file, is_own }, BlobKey::default(), &[])
    }

    /// Writes that the last event of a directory was refused.
    pub(crate) fn cancel_directory(&mut self) -> Result<(), ToolError> {
        self.write(&SpoolRecord::Cancelled, BlobKey::default(), &[])
    }

    /// Writes that the changes of the command are not recorded here.
    pub(crate) fn unwitnessed(&mut self) -> Result<(), ToolError> {
        self.write(&SpoolRecord::Unwitnessed, BlobKey::default(), &[])
    }

    /// Writes the steps of a restore.
    pub(crate) fn begin_restore(&mut self, steps: &[StagedStep]) -> Result<(), ToolError> {
        for steps in steps.chunks(MAX_RECORD_STEPS) {
            self.write(&SpoolRecord::Restore { steps: Cow::Borrowed(steps) }, BlobKey::default(), &[])?;
        }
        Ok(())
    }

    /// Writes how far a restore is.
    pub(crate) fn restore_step(&mut self, made: usize) -> Result<(), ToolError> {
        self.write(&SpoolRecord::RestoreStep { made }, BlobKey::default(), &[])
    }

    /// Writes that all steps of the restore have been made.
    pub(crate) fn end_restore(&mut self) -> Result<(), ToolError> {
        self.write(&SpoolRecord::Restored, BlobKey::default(), &[])
    }

    pub(crate) fn receipt(&self) -> i64 {
        self.receipt
    }

    /// Removes the spool's files.
    pub(crate) fn remove(&self) {
        remove(self.db.dir(), self.receipt);
    }

    fn io_error(&self, error: &io::Error) -> ToolError {
        ToolError::io(format_args!("write to {}", self.db.dir().spool().display()), error)
    }

    fn write(&mut self, record: &SpoolRecord<'_>, key: BlobKey, content: &[u8]) -> Result<(), ToolError> {
        self.buffer.clear();
        self.buffer.resize(HEADER_BYTES, 0);
        serde_json::to_writer(&mut self.buffer, record)?;
        let lengths = [self.buffer.len() - HEADER_BYTES, content.len()];
        for (at, length) in [0, 4].into_iter().zip(lengths) {
            let length = u32::try_from(length).unwrap_or(u32::MAX);
            self.buffer[at..at + 4].copy_from_slice(&length.to_le_bytes());
        }
        self.buffer[8..HEADER_BYTES].copy_from_slice(&key);
        self.buffer.extend_from_slice(content);
        if let Err(error) = self.file.write_all(&self.buffer) {
            // An incomplete record would hide those after it.
            drop(self.file.set_len(self.length));
            return Err(self.io_error(&error));
        }
        self.length += self.buffer.len() as u64;
        Ok(())
    }

    fn write_large(&mut self, key: BlobKey, bytes: &[u8]) -> io::Result<()> {
        let path = self.large_dir()?.join(blake3::Hash::from(key).to_hex().as_str());
        let mut file = match private_file(&path, OpenOptions::new().write(true).create_new(true)) {
            // Another path had the same content.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
            other => other?,
        };
        file.write_all(bytes).inspect_err(|_| drop(fs::remove_file(&path)))
    }

    /// The directory of large contents, which is created at first use.
    fn large_dir(&mut self) -> io::Result<PathBuf> {
        let folder = large_dir(self.db.dir(), self.receipt);
        if !self.has_large {
            make_private_dirs(&folder)?;
            self.has_large = true;
        }
        Ok(folder)
    }
}

/// The name of a list of chunks beside the spool ends so.
const CHUNK_LIST_SUFFIX: &str = ".chunks";

impl Spool {
    /// Writes the chunks, or second names of those that the ledger has, and the list of all. If that fails, the disk may be
    /// full, so nothing of them is kept.
    fn write_chunks(&mut self, reader: &mut dyn io::Read) -> io::Result<ChunkedContent> {
        let mut made = Vec::new();
        let written = self.write_new_chunks(reader, &mut made);
        if written.is_err() {
            for path in made {
                drop(fs::remove_file(path));
            }
        }
        written
    }

    /// Adds each file to `made` before it is created.
    fn write_new_chunks(
        &mut self,
        reader: &mut dyn io::Read,
        made: &mut Vec<PathBuf>,
    ) -> io::Result<ChunkedContent> {
        let folder = self.large_dir()?;
        let hex = |key: BlobKey| blake3::Hash::from(key).to_hex();
        let mut write = |path: &Path, bytes: &[u8]| {
            // Under another name first: what has its name is complete.
            let temp = path.with_extension("new");
            made.extend([path.to_owned(), temp.clone()]);
            private_file(&temp, OpenOptions::new().write(true).create(true).truncate(true))?
                .write_all(bytes)?;
            fs::rename(temp, path)
        };
        let content = split(reader, &mut |chunk_key, chunk| {
            let path = folder.join(hex(chunk_key).as_str());
            // A second name, because garbage collection may remove the first one.
            let stored = is_stored(self.db.dir(), chunk_key, chunk.len() as u64);
            if path.exists() || stored && fs::hard_link(blob_path(self.db.dir(), chunk_key), &path).is_ok() {
                return Ok(());
            }
            write(&path, chunk)
        })?;
        if !content.is_one_file() {
            let list = folder.join(format!("{}{CHUNK_LIST_SUFFIX}", content.hash.to_hex()));
            write(&list, &list_to_bytes(&content.chunks))?;
        }
        Ok(content)
    }
}

/// The lists of chunks of a call's large contents.
pub(crate) fn chunked_contents(dir: &LedgerDir, receipt: i64) -> io::Result<Vec<ChunkedContent>> {
    let entries = match fs::read_dir(large_dir(dir, receipt)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let mut contents = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let hash = name.to_str().and_then(|name| name.strip_suffix(CHUNK_LIST_SUFFIX)).and_then(key_of);
        let Some(hash) = hash else { continue };
        let chunks = list_from_bytes(&fs::read(entry.path())?);
        let size = chunks.iter().map(|(_, size)| size).sum();
        contents.push(ChunkedContent { hash: hash.into(), size, chunks });
    }
    Ok(contents)
}

pub(crate) fn spool_path(dir: &LedgerDir, receipt: i64) -> PathBuf {
    dir.spool().join(receipt.to_string())
}

fn large_dir(dir: &LedgerDir, receipt: i64) -> PathBuf {
    dir.spool().join(format!("{receipt}.large"))
}

/// Removes the spool of a call; the next recovery removes what cannot be removed now.
pub(crate) fn remove(dir: &LedgerDir, receipt: i64) {
    drop(fs::remove_file(spool_path(dir, receipt)));
    drop(fs::remove_dir_all(large_dir(dir, receipt)));
}

/// The calls that have a spool.
pub(crate) fn receipts(dir: &LedgerDir) -> Vec<i64> {
    let entries = fs::read_dir(dir.spool()).into_iter().flatten().flatten();
    let mut receipts: Vec<i64> = entries
        .filter_map(|entry| entry.file_name().to_str()?.trim_end_matches(".large").parse().ok())
        .collect();
    receipts.sort_unstable();
    receipts.dedup();
    receipts
}

/// A content that is a file beside the spool.
#[derive(Debug)]
pub(crate) struct LargeContent {
    pub(crate) key: BlobKey,
    pub(crate) path: PathBuf,
    pub(crate) size: u64,
}

/// The large contents of a call.
pub(crate) fn large_contents(dir: &LedgerDir, receipt: i64) -> io::Result<Vec<LargeContent>> {
    let entries = match fs::read_dir(large_dir(dir, receipt)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let mut contents = Vec::new();
    for entry in entries {
        let entry = entry?;
        if let Some(key) = entry.file_name().to_str().and_then(key_of) {
            contents.push(LargeContent { key, path: entry.path(), size: entry.metadata()?.len() });
        }
    }
    Ok(contents)
}
