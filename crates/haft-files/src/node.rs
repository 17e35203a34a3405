//! The state of a path, with the hash of its content.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use haft_tool::{DirNode, FileContent, FileNode, Hash, Node, ToolError};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::error::{not_a_file, os_error, protected};
use crate::open::{READ_FLAGS, require_regular};
use crate::resolve::{ResolvedPath, open_exact};
use crate::restore_entry::DIR_FLAGS;
use crate::{LocalFiles, os, stat};

/// Larger files are not changed by tools that hold the content in memory.
const MAX_UPDATE_BYTES: u64 = 1 << 30;
/// The content of larger files is hashed as a stream.
const MAX_BYTES_IN_MEMORY: u64 = 32 << 10;
/// Larger files are neither hashed nor stored.
const MAX_HASHED_BYTES: u64 = 1 << 30;
/// Enough for the attribute names of nearly every file.
const XATTR_NAMES_BYTES: usize = 1 << 10;
/// The kernel's limit for the list of names and for one value.
const MAX_XATTR_BYTES: usize = 64 << 10;

/// The BLAKE3 hash of `bytes`, as changes and receipts write it.
pub fn hash(bytes: &[u8]) -> Hash {
    blake3::hash(bytes).to_hex().to_string()
}

impl LocalFiles {
    /// The state of a recorded path. Recorded paths contain no links, so below a link there is nothing.
    pub fn observe_recorded(&self, path: &Path) -> Result<Node, ToolError> {
        self.observe_recorded_with(path, Unreadable::Leave)
    }

    /// The same, but what its owner may not read is made readable for that moment.
    pub fn observe_unlocked(&self, path: &Path) -> Result<Node, ToolError> {
        self.observe_recorded_with(path, Unreadable::Open)
    }

    fn observe_recorded_with(&self, path: &Path, unreadable: Unreadable) -> Result<Node, ToolError> {
        let Some((root, (parent, name))) = self.root_of(path).zip(path.parent().zip(path.file_name())) else {
            return self.observe_entry(path);
        };
        if self.scope.is_protected(path) {
            return Err(protected(path));
        }
        if *path == *root.path {
            return self.observe_entry(path);
        }
        let parent = match open_exact(&root.fd, root.relative(parent)?) {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::MLINK) => return Ok(Node::Absent),
            parent => parent.map_err(|error| os_error(path, error))?,
        };
        let found = ResolvedPath {
            parent,
            parent_path: path.parent().unwrap_or(path).to_owned(),
            missing: Vec::new(),
            name: name.to_owned(),
        };
        self.check_resolved(path, &found)?;
        self.observe_resolved(path, &found, unreadable)
    }

    pub(crate) fn observe_entry(&self, path: &Path) -> Result<Node, ToolError> {
        let found = match self.resolve_entry(path)? {
            Some(found) if found.missing.is_empty() => found,
            _ => return Ok(Node::Absent),
        };
        self.observe_resolved(path, &found, Unreadable::Leave)
    }

    fn observe_resolved(
        &self,
        path: &Path,
        found: &ResolvedPath,
        unreadable: Unreadable,
    ) -> Result<Node, ToolError> {
        let captured = capture_with(&found.parent, &found.name, unreadable);
        let captured = captured.map_err(|error| ToolError::io(path.display(), &error))?;
        if let Some(stat) = &captured.stat {
            self.check_hard_link(path, stat)?;
        }
        Ok(captured.node)
    }
}

/// A directory entry at one moment.
#[derive(Debug)]
#[non_exhaustive]
pub struct Captured {
    /// Its state.
    pub node: Node,
    /// Its metadata; `None` if it does not exist.
    pub stat: Option<Stat>,
    /// Its content, if it is a regular file.
    pub content: CapturedContent,
}

/// The content of a captured file.
#[derive(Debug)]
#[non_exhaustive]
pub enum CapturedContent {
    /// It is not a regular file.
    None,
    /// The whole content.
    Bytes(Vec<u8>),
    /// The open file, at its beginning, because it is too large to hold in memory.
    File(File),
}

impl CapturedContent {
    /// The content in the form that the ledger takes.
    pub fn as_file_content(&mut self) -> FileContent<'_> {
        match self {
            Self::None => FileContent::None,
            Self::Bytes(bytes) => FileContent::Bytes(bytes),
            Self::File(file) => FileContent::Reader(file),
        }
    }
}

impl Captured {
    pub(crate) const ABSENT: Self = Self { node: Node::Absent, stat: None, content: CapturedContent::None };
}

/// What to do with a file or directory that its owner may not read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unreadable {
    /// Make it readable for a moment.
    Open,
    /// Leave it alone; its node has no hash.
    Leave,
}

/// Captures the entry `name` of a directory. A link is not followed, and nothing but a regular file is opened. A file that its
/// owner may not read is made readable for that moment.
pub fn capture(dir: impl AsFd, name: &OsStr) -> std::io::Result<Captured> {
    capture_with(dir, name, Unreadable::Open)
}

/// The same, but the content of a large file is not read: its node has no hash.
pub fn capture_unread(dir: impl AsFd, name: &OsStr) -> std::io::Result<Captured> {
    capture_hashing(dir, name, Unreadable::Open, false)
}

fn capture_with(dir: impl AsFd, name: &OsStr, unreadable: Unreadable) -> std::io::Result<Captured> {
    capture_hashing(dir, name, unreadable, true)
}

fn capture_hashing(
    dir: impl AsFd,
    name: &OsStr,
    unreadable: Unreadable,
    hashes_large: bool,
) -> std::io::Result<Captured> {
    let stat = match rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(Captured::ABSENT),
        stat => stat?,
    };
    let node = match stat::file_type(&stat) {
        FileType::RegularFile => {
            return match open_file(&dir, name, unreadable) {
                Err(Errno::ACCESS) if unreadable == Unreadable::Leave => Ok(unread(stat)),
                Ok(OpenedEntry { file, stat, unlocked_xattrs }) if stat::is_file(&stat) => {
                    let mut captured = capture_file(file, stat, hashes_large)?;
                    if let (Node::File(node), Some(xattrs)) = (&mut captured.node, unlocked_xattrs) {
                        node.xattrs = xattrs;
                    }
                    Ok(captured)
                }
                Ok(_) => Err(Errno::AGAIN.into()),
                Err(Errno::NOENT) => Ok(Captured::ABSENT),
                Err(error) => Err(error.into()),
            };
        }
        FileType::Directory => Node::Dir(DirNode {
            mode: stat::permissions(&stat),
            owner: foreign_owner(&stat),
            // Empty if the directory cannot be read.
            xattrs: open_entry(&dir, name, DIR_FLAGS, unreadable)
                .map(OpenedEntry::xattrs)
                .unwrap_or_default(),
        }),
        FileType::Symlink => {
            let target = rustix::fs::readlinkat(dir, name, Vec::new())?;
            let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
            Node::Link { target, owner: foreign_owner(&stat) }
        }
        FileType::Fifo if os::HAS_FIFOS => {
            // By its path, because opening it would wake a program that waits for a reader.
            let xattrs = xattrs_at(&os::entry_path(dir, name));
            Node::Fifo { mode: stat::permissions(&stat), owner: foreign_owner(&stat), xattrs }
        }
        _ => Node::Special,
    };
    Ok(Captured { node, stat: Some(stat), content: CapturedContent::None })
}

/// A file whose content and attributes are not known.
fn unread(stat: Stat) -> Captured {
    let node = FileNode {
        hash: Hash::new(),
        size: stat::size(&stat),
        mode: stat::permissions(&stat),
        owner: foreign_owner(&stat),
        xattrs: Vec::new(),
        linked: (stat::link_count(&stat) > 1).then(|| stat::file_id(&stat)),
        modified: Some(stat::modified(&stat)),
    };
    Captured { node: Node::File(node), stat: Some(stat), content: CapturedContent::None }
}

fn capture_file(mut file: File, stat: Stat, hashes_large: bool) -> std::io::Result<Captured> {
    let size = stat::size(&stat);
    if size > MAX_HASHED_BYTES || (size > MAX_BYTES_IN_MEMORY && !hashes_large) {
        let node = Node::File(file_node(Hash::new(), size, &stat, &file));
        let content =
            if size > MAX_HASHED_BYTES { CapturedContent::None } else { CapturedContent::File(file) };
        return Ok(Captured { node, stat: Some(stat), content });
    }
    let mut bytes = Vec::new();
    file.by_ref().take(MAX_BYTES_IN_MEMORY + 1).read_to_end(&mut bytes)?;
    let mut hasher = blake3::Hasher::new();
    hasher.update(&bytes);
    let in_memory = bytes.len() as u64 <= MAX_BYTES_IN_MEMORY;
    if !in_memory {
        hasher.update_reader(&mut file)?;
        file.rewind()?;
    }
    let node = file_node(hasher.finalize().to_hex().to_string(), hasher.count(), &stat, &file);
    let content = if in_memory { CapturedContent::Bytes(bytes) } else { CapturedContent::File(file) };
    Ok(Captured { node: Node::File(node), stat: Some(stat), content })
}

pub(crate) fn file_node(hash: Hash, size: u64, stat: &Stat, file: &File) -> FileNode {
    FileNode {
        hash,
        size,
        mode: stat::permissions(stat),
        owner: foreign_owner(stat),
        xattrs: xattrs(file),
        linked: (stat::link_count(stat) > 1).then(|| stat::file_id(stat)),
        modified: Some(stat::modified(stat)),
    }
}

/// A regular file that was read as a whole.
pub(crate) struct FileInMemory {
    pub(crate) node: FileNode,
    pub(crate) bytes: Vec<u8>,
    pub(crate) stat: Stat,
}

/// Reads the regular file `name`, at `path`, as a whole; `None` if it does not exist.
pub(crate) fn read_file(dir: &OwnedFd, name: &OsStr, path: &Path) -> Result<Option<FileInMemory>, ToolError> {
    let OpenedEntry { mut file, stat, unlocked_xattrs } = match open_file(dir, name, Unreadable::Open) {
        Ok(opened) => opened,
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Err(not_a_file(path, FileType::Symlink)),
        Err(error) => return Err(os_error(path, error)),
    };
    require_regular(path, &stat)?;
    let size = stat::size(&stat);
    if size > MAX_UPDATE_BYTES {
        return Err(ToolError::failed(format!(
            "{} has {size} bytes; file tools change files up to {MAX_UPDATE_BYTES} bytes",
            path.display()
        )));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0) + 1);
    file.by_ref()
        .take(MAX_UPDATE_BYTES)
        .read_to_end(&mut bytes)
        .map_err(|error| ToolError::io(format!("read {}", path.display()), &error))?;
    let mut node = file_node(hash(&bytes), bytes.len() as u64, &stat, &file);
    node.xattrs = unlocked_xattrs.unwrap_or(node.xattrs);
    Ok(Some(FileInMemory { node, bytes, stat }))
}

/// A file or directory that was opened for reading.
struct OpenedEntry {
    file: File,
    stat: Stat,
    /// The attributes, if its owner may not read it: they cannot be read afterwards.
    unlocked_xattrs: Option<Vec<(String, Vec<u8>)>>,
}

impl OpenedEntry {
    fn xattrs(self) -> Vec<(String, Vec<u8>)> {
        self.unlocked_xattrs.unwrap_or_else(|| xattrs(&self.file))
    }
}

fn open_file(dir: impl AsFd, name: &OsStr, unreadable: Unreadable) -> Result<OpenedEntry, Errno> {
    open_entry(dir, name, READ_FLAGS, unreadable)
}

/// Opens the entry `name` for reading. A link is not followed.
fn open_entry(
    dir: impl AsFd,
    name: &OsStr,
    flags: OFlags,
    unreadable: Unreadable,
) -> Result<OpenedEntry, Errno> {
    let open = || rustix::fs::openat(&dir, name, flags | OFlags::NOFOLLOW, Mode::empty());
    let mut unlocked_xattrs = None;
    let fd = match open() {
        Err(Errno::ACCESS) if unreadable == Unreadable::Open => {
            let (entry, stat) = os::find_entry(dir.as_fd(), name)?;
            if !stat::is_file(&stat) && !stat::is_directory(&stat) {
                return Err(Errno::ACCESS);
            }
            let mode = stat::mode(stat::permissions(&stat));
            os::set_entry_mode(&entry, mode | Mode::RUSR).map_err(|_| Errno::ACCESS)?;
            let fd = open();
            unlocked_xattrs = fd.as_ref().ok().map(xattrs);
            os::set_entry_mode(&entry, mode)?;
            fd
        }
        opened => opened,
    }?;
    let stat = rustix::fs::fstat(&fd)?;
    Ok(OpenedEntry { file: File::from(fd), stat, unlocked_xattrs })
}

/// Owner and group, if they are not those of this process.
pub(crate) fn foreign_owner(stat: &Stat) -> Option<(u32, u32)> {
    // Cached because every captured file needs it.
    static OWN: OnceLock<(u32, u32)> = OnceLock::new();
    let (uid, gid) =
        *OWN.get_or_init(|| (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw()));
    (stat.st_uid != uid || stat.st_gid != gid).then_some((stat.st_uid, stat.st_gid))
}

/// The extended attributes that can be read, sorted by name.
pub(crate) fn xattrs(file: impl AsFd) -> Vec<(String, Vec<u8>)> {
    read_xattrs(
        |names| rustix::fs::flistxattr(&file, names),
        |name, value| rustix::fs::fgetxattr(&file, name, value),
    )
}

/// The same for what is at a path, which is not opened.
fn xattrs_at(path: &Path) -> Vec<(String, Vec<u8>)> {
    read_xattrs(
        |names| rustix::fs::llistxattr(path, names),
        |name, value| rustix::fs::lgetxattr(path, name, value),
    )
}

fn read_xattrs(
    list: impl Fn(&mut [u8]) -> Result<usize, Errno>,
    get: impl Fn(&str, &mut [u8]) -> Result<usize, Errno>,
) -> Vec<(String, Vec<u8>)> {
    let list = |capacity: usize| {
        let mut names = vec![0; capacity];
        let used = list(names.as_mut_slice())?;
        names.truncate(used);
        Ok(names)
    };
    let names = match list(XATTR_NAMES_BYTES) {
        Err(Errno::RANGE) => list(MAX_XATTR_BYTES),
        names => names,
    };
    let value = |name: &str| {
        let mut value = vec![0; MAX_XATTR_BYTES];
        let used = get(name, value.as_mut_slice()).ok()?;
        value.truncate(used);
        Some((name.to_owned(), value))
    };
    let names = String::from_utf8_lossy(&names.unwrap_or_default()).into_owned();
    let mut found: Vec<_> = names.split('\0').filter(|name| !name.is_empty()).filter_map(value).collect();
    found.sort();
    found
}
