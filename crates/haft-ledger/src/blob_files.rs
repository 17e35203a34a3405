//! The files of large blobs: written under a temporary name, then renamed to their hash.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use haft_tool::ToolError;

use crate::blobs::BlobKey;
use crate::directory::{LedgerDir, make_private_dirs, private_file};

/// Bytes copied at a time.
const COPY_BUFFER_BYTES: usize = 256 * 1024;
/// Aligned runs of zeros of this length become holes.
const HOLE_BYTES: usize = 64 * 1024;
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

/// Copies all bytes of a reader to a blob file; returns their hash and size.
pub(crate) fn write_reader(
    dir: &LedgerDir,
    reader: &mut dyn Read,
    sync: SyncPolicy,
) -> io::Result<(blake3::Hash, u64)> {
    let (temp, (hash, size)) = write_temp(dir, sync, |file| copy_sparse(reader, file))?;
    install(dir, &temp, &blob_path(dir, hash.into()), sync)?;
    Ok((hash, size))
}

/// Copies into an empty file, with holes for runs of zeros; returns the hash and the size.
pub(crate) fn copy_sparse(from: &mut dyn Read, mut to: &File) -> io::Result<(blake3::Hash, u64)> {
    let mut hasher = blake3::Hasher::new();
    let mut buffer = Vec::with_capacity(COPY_BUFFER_BYTES);
    let mut size = 0;
    loop {
        buffer.clear();
        from.take(COPY_BUFFER_BYTES as u64).read_to_end(&mut buffer)?;
        if buffer.is_empty() {
            break;
        }
        hasher.update(&buffer);
        size += buffer.len() as u64;
        for part in buffer.chunks(HOLE_BYTES) {
            if part.len() == HOLE_BYTES && part.iter().all(|byte| *byte == 0) {
                to.seek(SeekFrom::Current(i64::try_from(HOLE_BYTES).unwrap_or(i64::MAX)))?;
            } else {
                to.write_all(part)?;
            }
        }
    }
    to.set_len(size)?;
    Ok((hasher.finalize(), size))
}

/// Gives a finished file elsewhere in the ledger's directory its name in the store too.
pub(crate) fn adopt(dir: &LedgerDir, from: &Path, blob: &Path) -> io::Result<()> {
    make_folder(dir, blob.parent().unwrap_or(dir.path()), SyncPolicy::Later)?;
    match fs::remove_file(blob) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    // The old name stays until the row is committed, so that a crash leaves it to the next recovery.
    fs::hard_link(from, blob).or_else(|_| fs::rename(from, blob))
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{FileExt, MetadataExt};

    #[test]
    fn sparse_copy_has_the_same_bytes_and_no_fewer_holes() {
        for folder in [std::env::temp_dir(), "/dev/shm".into()] {
            let Ok(mut from) = tempfile::tempfile_in(&folder) else { continue };
            from.set_len(8 << 20).unwrap();
            from.write_all_at(b"in the middle", 3 << 20).unwrap();
            from.write_all_at(b"at the end", (8 << 20) - 10).unwrap();
            let mut to = tempfile::tempfile_in(&folder).unwrap();
            let (hash, size) = copy_sparse(&mut from, &to).unwrap();
            let read = |file: &mut File| {
                let mut bytes = Vec::new();
                file.rewind().unwrap();
                file.read_to_end(&mut bytes).unwrap();
                bytes
            };
            let bytes = read(&mut from);
            assert!(bytes == read(&mut to));
            assert_eq!((hash, size), (blake3::hash(&bytes), 8 << 20));
            assert!(to.metadata().unwrap().blocks() <= from.metadata().unwrap().blocks() + 256);
        }
    }

    #[test]
    fn copy_of_an_empty_file_is_empty() {
        let to = tempfile::tempfile().unwrap();
        copy_sparse(&mut io::empty(), &to).unwrap();
        assert_eq!(to.metadata().unwrap().len(), 0);
    }
}
