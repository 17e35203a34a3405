//! What stands at a path, with the hash of its bytes.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use haft_tool::{FileContent, FileNode, Hash, Node, Reads, ToolError};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::open::protected;
use crate::hash;

use super::resolve::{Leaf, Place, below, resolve};
use super::{LocalFiles, special};

/// A regular file as it was read: its state, its bytes, and what tells whether it has changed since.
pub(super) struct Current {
    pub(super) node: FileNode,
    pub(super) bytes: Vec<u8>,
    pub(super) stat: Stat,
}

/// Files beyond this are for the shell, not for a tool that holds them in memory twice.
const MOST_BYTES: u64 = 1 << 30;
/// Bytes beyond this are not held when a file is only looked at.
const MOST_HELD: u64 = 32 * 1024;

impl LocalFiles {
    /// What stands where something was recorded. That was where it really was, so a link on the way leads elsewhere, and
    /// there is nothing.
    pub fn observe_recorded(&self, path: &Path) -> Result<Node, ToolError> {
        if self.root_of(path).is_some_and(|root| is_below_another(path, &root.path)) {
            return Ok(Node::Absent);
        }
        self.observe_path(path)
    }

    pub(super) fn observe_path(&self, path: &Path) -> Result<Node, ToolError> {
        let place = match self.place_to_look_at(path) {
            // Where a file stands above it, there is nothing.
            Err(error) if error.message.ends_with("is not a directory") && self.root_of(path).is_some() => {
                return Ok(Node::Absent);
            }
            place => place?,
        };
        if !place.missing.is_empty() {
            return Ok(Node::Absent);
        }
        let seen = look(&place.parent, &place.name, path)?;
        if let Some(stat) = &seen.stat {
            self.refuse_alias(path, stat)?;
        }
        Ok(seen.node)
    }

    fn place_to_look_at(&self, path: &Path) -> Result<Place, ToolError> {
        if self.scope.is_protected(path) {
            return Err(protected(path));
        }
        let contained = self.root_of(path);
        let place = match &contained {
            Some(root) => resolve(root, &self.roots, below(root, path)?, Leaf::Keep)?,
            None if self.scope.reads == Reads::Everywhere => {
                let root = self.filesystem()?;
                resolve(&root, std::slice::from_ref(&root), below(&root, path)?, Leaf::Keep)?
            }
            None => self.granted_place(path)?,
        };
        self.refuse_secret_place(path, &place, contained.is_some())?;
        Ok(place)
    }
}

/// Whether something that is no directory stands above `path`, below `root`.
fn is_below_another(path: &Path, root: &Path) -> bool {
    let above = path.ancestors().skip(1).take_while(|above| *above != root);
    above.into_iter().any(|above| above.symlink_metadata().is_ok_and(|meta| !meta.is_dir()))
}

/// What stands under a name, as it was seen.
pub(super) struct Seen {
    pub(super) node: Node,
    /// What tells whether it has changed since; nothing stands there if there is none.
    pub(super) stat: Option<Stat>,
    pub(super) bytes: Kept,
}

/// A file's bytes, or the way to them.
pub(super) enum Kept {
    None,
    Held(Vec<u8>),
    In(File),
}

impl Kept {
    pub(super) fn content(&mut self) -> FileContent<'_> {
        match self {
            Self::None => FileContent::None,
            Self::Held(bytes) => FileContent::Bytes(bytes),
            Self::In(file) => FileContent::Reader(file),
        }
    }
}

/// What stands under `name`, with the hash of its bytes if they are a file's; many are not held.
pub(super) fn look(parent: &OwnedFd, name: &OsStr, path: &Path) -> Result<Seen, ToolError> {
    let failed = |error: Errno| ToolError::io(path.display(), &error.into());
    let stat = match rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok(Seen { node: Node::Absent, stat: None, bytes: Kept::None }),
        Err(error) => return Err(failed(error)),
    };
    let node = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => return look_into(parent, name, path),
        FileType::Directory => Node::Dir { mode: stat.st_mode & 0o7777 },
        FileType::Symlink => {
            let target = rustix::fs::readlinkat(parent, name, Vec::new()).map_err(failed)?;
            Node::Link { target: PathBuf::from(OsString::from_vec(target.into_bytes())) }
        }
        _ => Node::Special,
    };
    Ok(Seen { node, stat: Some(stat), bytes: Kept::None })
}

fn look_into(parent: &OwnedFd, name: &OsStr, path: &Path) -> Result<Seen, ToolError> {
    let Some((mut file, stat)) = open_current(parent, name, path)? else {
        return Ok(Seen { node: Node::Absent, stat: None, bytes: Kept::None });
    };
    let told = |error: std::io::Error| ToolError::io(format!("read {}", path.display()), &error);
    let mut held = Vec::new();
    file.by_ref().take(MOST_HELD + 1).read_to_end(&mut held).map_err(told)?;
    let mut hasher = blake3::Hasher::new();
    hasher.update(&held);
    let mut size = held.len() as u64;
    let mut bytes = Kept::None;
    if size <= MOST_HELD {
        bytes = Kept::Held(held);
    } else {
        size += std::io::copy(&mut file, &mut hasher).map_err(told)?;
        file.rewind().map_err(told)?;
    }
    let hash = hasher.finalize().to_hex().to_string();
    let node = Node::File(file_node(hash, size, &stat, &file));
    if matches!(bytes, Kept::None) {
        bytes = Kept::In(file);
    }
    Ok(Seen { node, stat: Some(stat), bytes })
}

fn file_node(hash: Hash, size: u64, stat: &Stat, file: &File) -> FileNode {
    FileNode {
        hash,
        size,
        mode: stat.st_mode & 0o7777,
        owner: foreign_owner(stat),
        xattrs: xattrs(file),
        linked: (stat.st_nlink > 1).then_some((stat.st_dev, stat.st_ino)),
    }
}

/// Reads the regular file `name`; `None` if there is none.
pub(super) fn read_current(
    parent: &OwnedFd,
    name: &OsStr,
    path: &Path,
) -> Result<Option<Current>, ToolError> {
    let Some((mut file, stat)) = open_current(parent, name, path)? else { return Ok(None) };
    let size = u64::try_from(stat.st_size).unwrap_or(0);
    if size > MOST_BYTES {
        return Err(ToolError::failed(format!(
            "{} has {size} bytes; file tools change files up to {MOST_BYTES} bytes",
            path.display()
        )));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0) + 1);
    file.by_ref()
        .take(MOST_BYTES)
        .read_to_end(&mut bytes)
        .map_err(|error| ToolError::io(format!("read {}", path.display()), &error))?;
    let node = file_node(hash(&bytes), bytes.len() as u64, &stat, &file);
    Ok(Some(Current { node, bytes, stat }))
}

/// Opens the regular file `name` for reading; `None` if there is none.
fn open_current(parent: &OwnedFd, name: &OsStr, path: &Path) -> Result<Option<(File, Stat)>, ToolError> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let fd = match rustix::fs::openat(parent, name, flags, Mode::empty()) {
        Ok(fd) => fd,
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Err(special(path, FileType::Symlink)),
        Err(Errno::NXIO) => return Err(special(path, FileType::Socket)),
        // A file that its owner has locked for himself is unlocked for a moment.
        Err(error @ Errno::ACCESS) => {
            unlocked(parent, name, flags).map_err(|_| ToolError::io(path.display(), &error.into()))?
        }
        Err(error) => return Err(ToolError::io(path.display(), &error.into())),
    };
    let stat = rustix::fs::fstat(&fd).map_err(|error| ToolError::io(path.display(), &error.into()))?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(Some((File::from(fd), stat))),
        other => Err(special(path, other)),
    }
}

fn unlocked(parent: &OwnedFd, name: &OsStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    let stat = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Errno::ACCESS);
    }
    let mode = Mode::from_raw_mode(stat.st_mode & 0o7777);
    rustix::fs::chmodat(parent, name, mode | Mode::RUSR, AtFlags::empty())?;
    let fd = rustix::fs::openat(parent, name, flags, Mode::empty());
    rustix::fs::chmodat(parent, name, mode, AtFlags::empty())?;
    fd
}

/// Owner and group, where a file that this process creates would get others.
pub fn foreign_owner(stat: &Stat) -> Option<(u32, u32)> {
    // Haft stays who it is, and this is asked for every file.
    static OWN: OnceLock<(u32, u32)> = OnceLock::new();
    let (uid, gid) =
        *OWN.get_or_init(|| (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw()));
    (stat.st_uid != uid || stat.st_gid != gid).then_some((stat.st_uid, stat.st_gid))
}

/// The extended attributes, as far as they can be read.
pub fn xattrs(file: impl AsFd) -> Vec<(String, Vec<u8>)> {
    // Most files have none or few.
    let mut few = [0; 1024];
    let names = match rustix::fs::flistxattr(&file, few.as_mut_slice()) {
        Ok(used) => few[..used].to_vec(),
        Err(Errno::RANGE) => {
            let mut names = vec![0; 64 * 1024];
            let Ok(used) = rustix::fs::flistxattr(&file, names.as_mut_slice()) else { return Vec::new() };
            names.truncate(used);
            names
        }
        Err(_) => return Vec::new(),
    };
    let names = String::from_utf8_lossy(&names).into_owned();
    let mut found: Vec<(String, Vec<u8>)> = names
        .split('\0')
        .filter(|name| !name.is_empty())
        .filter_map(|name| {
            let mut value = vec![0; 64 * 1024];
            let used = rustix::fs::fgetxattr(&file, name, value.as_mut_slice()).ok()?;
            value.truncate(used);
            Some((name.to_owned(), value))
        })
        .collect();
    found.sort();
    found
}
