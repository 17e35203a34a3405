//! The files of large blobs: written under a temporary name, then renamed to their hash.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use haft_tool::ToolError;

use crate::blobs::BlobKey;
use crate::chunks::{ChunkedContent, split};
use crate::directory::{LedgerDir, make_private_dirs, private_file};

/// From this number of files on, one `syncfs` is faster than one `fsync` each.
const MIN_FILES_FOR_SYNCFS: usize = 5;

/// When a file reaches the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SyncPolicy {
    /// Before it is named by a row.
    Now,
    /// With [`sync_all`], or whenever the system writes it.
    Later,
}

impl SyncPolicy {
    /// The fastest way to make this number of files durable; `Later` must be followed by [`sync_all`].
    pub(crate) fn for_files(count: usize) -> Self {
        if cfg!(target_os = "linux") && count >= MIN_FILES_FOR_SYNCFS { Self::Later } else { Self::Now }
    }
}

/// The file of a large blob.
pub(crate) fn blob_path(dir: &LedgerDir, key: BlobKey) -> PathBuf {
    let hex = blake3::Hash::from(key).to_hex();
    let (folder, name) = hex.split_at(2);
    dir.blobs().join(folder).join(name)
}

/// Writes bytes to a blob file; returns their hash and size.
pub(crate) fn write_bytes(
    dir: &LedgerDir,
    bytes: &[u8],
    sync: SyncPolicy,
) -> io::Result<(blake3::Hash, u64)> {
    let (temp, ()) = write_temp(dir, sync, |mut file| file.write_all(bytes))?;
    let hash = blake3::hash(bytes);
    install(dir, &temp, &blob_path(dir, hash.into()), sync)?;
    Ok((hash, bytes.len() as u64))
}

/// Writes all bytes of a reader to blob files, one for each chunk that has none yet.
pub(crate) fn write_chunks(
    dir: &LedgerDir,
    reader: &mut dyn Read,
    sync: SyncPolicy,
) -> io::Result<ChunkedContent> {
    let mut is_new = false;
    let content = split(reader, &mut |key, chunk| {
        if is_stored(dir, key, chunk.len() as u64) {
            return Ok(());
        }
        is_new = true;
        let policy = if cfg!(target_os = "linux") { SyncPolicy::Later } else { sync };
        let (temp, ()) = write_temp(dir, policy, |mut file| file.write_all(chunk))?;
        install(dir, &temp, &blob_path(dir, key), policy)
    })?;
    if is_new && sync == SyncPolicy::Now {
        sync_all(dir).map_err(io::Error::other)?;
    }
    Ok(content)
}

/// Whether a blob is a file of this size already.
pub(crate) fn is_stored(dir: &LedgerDir, key: BlobKey, size: u64) -> bool {
    fs::symlink_metadata(blob_path(dir, key)).is_ok_and(|meta| meta.len() == size)
}

/// Gives a finished file elsewhere in the ledger's directory its name in the store too.
pub(crate) fn adopt(dir: &LedgerDir, from: &Path, blob: &Path) -> io::Result<()> {
    make_folder(dir, blob.parent().unwrap_or(dir.path()), SyncPolicy::Later)?;
    // The old name stays until the row is committed, so that a crash leaves it to the next recovery. The blob may exist and
    // be in use.
    let second = from.with_extension("second");
    if fs::hard_link(from, &second).is_err() {
        return fs::rename(from, blob);
    }
    fs::rename(&second, blob)?;
    // Renaming one name of a file to another one of it does nothing.
    drop(fs::remove_file(second));
    Ok(())
}

/// All files below the blobs' directory.
pub(crate) fn all_files(dir: &LedgerDir) -> io::Result<Vec<PathBuf>> {
    let folders = match fs::read_dir(dir.blobs()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        folders => folders?,
    };
    let mut files = Vec::new();
    for folder in folders {
        let folder = folder?;
        if folder.file_type()?.is_dir() {
            for file in fs::read_dir(folder.path())? {
                files.push(file?.path());
            }
        }
    }
    Ok(files)
}

/// Makes all files durable that were written with [`SyncPolicy::Later`].
pub(crate) fn sync_all(dir: &LedgerDir) -> Result<(), ToolError> {
    #[cfg(target_os = "linux")]
    File::open(dir.path())
        .and_then(|dir| Ok(rustix::fs::syncfs(&dir)?))
        .map_err(|error| ToolError::io("sync the ledger", &error))?;
    #[cfg(not(target_os = "linux"))]
    let _ = dir;
    Ok(())
}

/// A new file below the blobs' directory, filled by `write`.
fn write_temp<T>(
    dir: &LedgerDir,
    sync: SyncPolicy,
    write: impl FnOnce(&File) -> io::Result<T>,
) -> io::Result<(PathBuf, T)> {
    let folder = dir.blobs().join("new");
    make_folder(dir, &folder, sync)?;
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let temp = folder.join(format!("{:016x}", u64::from_ne_bytes(random)));
    let file = private_file(&temp, OpenOptions::new().read(true).write(true).create_new(true))?;
    let written = write(&file).and_then(|value| {
        if sync == SyncPolicy::Now {
            file.sync_all()?;
        }
        Ok(value)
    });
    match written {
        Ok(value) => Ok((temp, value)),
        Err(error) => {
            // Garbage collection removes what cannot be removed now.
            drop(fs::remove_file(&temp));
            Err(error)
        }
    }
}

/// Renames a finished file to its name in the store.
fn install(dir: &LedgerDir, temp: &Path, blob: &Path, sync: SyncPolicy) -> io::Result<()> {
    let folder = blob.parent().unwrap_or(dir.path());
    make_folder(dir, folder, sync)?;
    fs::rename(temp, blob)?;
    if sync == SyncPolicy::Now { sync_dir(folder) } else { Ok(()) }
}

fn make_folder(dir: &LedgerDir, folder: &Path, sync: SyncPolicy) -> io::Result<()> {
    if folder.try_exists()? {
        return Ok(());
    }
    make_private_dirs(folder)?;
    if sync == SyncPolicy::Now {
        sync_dir(&dir.blobs())?;
        sync_dir(dir.path())?;
    }
    Ok(())
}

fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}
