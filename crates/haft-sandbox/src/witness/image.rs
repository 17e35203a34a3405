//! What stands under a name, with the hash of its bytes and a handle to read them by.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use haft_tool::{FileId, FileNode, Node};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use haft_files::{foreign_owner, xattrs};

/// Files up to this size are held in memory while they are looked at.
pub(super) const SMALL: u64 = 32 * 1024;
/// The bytes of larger files are not kept.
pub(super) const LARGEST: u64 = 1 << 30;

/// The bytes behind a node.
pub(super) enum Bytes {
    None,
    Small(Vec<u8>),
    Large(File),
    /// There are more of them than are kept.
    TooMany,
}

/// What stands under a name.
pub(super) struct Image {
    pub(super) node: Node,
    pub(super) bytes: Bytes,
    /// Which file it is, if it is one.
    pub(super) file: Option<FileId>,
}

impl From<Node> for Image {
    fn from(node: Node) -> Self {
        Self { node, bytes: Bytes::None, file: None }
    }
}

/// What stands under `name`, and its bytes.
pub(super) fn look(dir: impl AsFd, name: &OsStr) -> Result<Image, Errno> {
    let dir = dir.as_fd();
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    // Most names that are touched are new or plain files; both take one call to tell.
    match rustix::fs::openat(dir, name, flags, Mode::empty()) {
        Ok(fd) => opened(fd),
        Err(Errno::NOENT) => Ok(Node::Absent.into()),
        Err(error) => {
            let stat = match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
                Err(Errno::NOENT) => return Ok(Node::Absent.into()),
                stat => stat?,
            };
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Symlink => {
                    let target = rustix::fs::readlinkat(dir, name, Vec::new())?.into_bytes();
                    let target = PathBuf::from(OsString::from_vec(target));
                    Ok(Node::Link { target }.into())
                }
                FileType::Directory => Ok(Node::Dir { mode: stat.st_mode & 0o7777 }.into()),
                FileType::RegularFile => locked(dir, name, &stat, error),
                _ => Ok(Node::Special.into()),
            }
        }
    }
}

/// A file that its owner may not read can still be changed or removed; it is opened for a moment.
fn locked(dir: impl AsFd + Copy, name: &OsStr, stat: &Stat, error: Errno) -> Result<Image, Errno> {
    if error != Errno::ACCESS {
        return Err(error);
    }
    let mode = Mode::from_raw_mode(stat.st_mode);
    rustix::fs::chmodat(dir, name, mode | Mode::RUSR, AtFlags::empty())?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(dir, name, flags, Mode::empty());
    rustix::fs::chmodat(dir, name, mode, AtFlags::empty())?;
    opened(fd?)
}

fn opened(fd: OwnedFd) -> Result<Image, Errno> {
    let stat = rustix::fs::fstat(&fd)?;
    let mode = stat.st_mode & 0o7777;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {}
        FileType::Directory => return Ok(Node::Dir { mode }.into()),
        _ => return Ok(Node::Special.into()),
    }
    let size = u64::try_from(stat.st_size).unwrap_or(0);
    let id = (stat.st_dev, stat.st_ino);
    let attributes = xattrs(&fd);
    let node = |hash: String, size| {
        Node::File(FileNode {
            hash,
            size,
            mode,
            owner: foreign_owner(&stat),
            xattrs: attributes,
            linked: (stat.st_nlink > 1).then_some(id),
        })
    };
    let mut file = File::from(fd);
    if size <= SMALL {
        let bytes = read_all(&mut file, size)?;
        let hash = blake3::hash(&bytes).to_hex().to_string();
        let node = node(hash, bytes.len() as u64);
        return Ok(Image { node, bytes: Bytes::Small(bytes), file: Some(id) });
    }
    let mut hasher = blake3::Hasher::new();
    let error = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    hasher.update_reader(&mut file).map_err(error)?;
    file.seek(SeekFrom::Start(0)).map_err(error)?;
    let bytes = if size > LARGEST { Bytes::TooMany } else { Bytes::Large(file) };
    let node = node(hasher.finalize().to_hex().to_string(), hasher.count());
    Ok(Image { node, bytes, file: Some(id) })
}

/// Reads a file of about `size` bytes; one that has exactly so many takes one call.
fn read_all(file: &mut File, size: u64) -> Result<Vec<u8>, Errno> {
    let error = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    let mut bytes = vec![0; usize::try_from(size).unwrap_or(0) + 1];
    let read = file.read(&mut bytes).map_err(error)?;
    let whole = read as u64 == size;
    bytes.truncate(read);
    if !whole {
        file.take(LARGEST).read_to_end(&mut bytes).map_err(error)?;
    }
    Ok(bytes)
}
