//! Contained file access: the `Files` part of the World on this machine, and Haft's own private files.
//!
//! One resolver for every operation: paths are walked from held directory handles, so what was checked is what is
//! used. On Linux the kernel does the walk (openat2 with `RESOLVE_BENEATH`); elsewhere, and where a link is absolute,
//! [`resolve`] does it one component at a time with `O_NOFOLLOW`, which needs nothing but POSIX.
//!
//! What must never live here: processes, the network, decisions (haft-policy), the ledger's format.
#![expect(clippy::disallowed_methods, reason = "this crate implements file access for the World")]

mod groups;
mod hash;
mod ignores;
mod list;
mod move_back;
mod named;
mod names;
mod node;
mod open;
mod place;
mod private_file;
mod read_small_file;
mod resolve;
mod restore;
mod root;
mod swap;
mod update;
mod walk;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use haft_tool::{
    Cancel, DirEntry, EditFn, FileId, FileKind, FileVisitor, Files, Node, OpenContent, OpenFile, Record,
    Restore, Scope, ToolError, WalkRequest, Written, lies_in,
};
use rustix::fs::FileType;

pub use hash::hash;
pub use named::{names_in, read_bounded, read_named, real_named};
pub use names::{find_names, id_of};
pub use node::{foreign_owner, xattrs};
pub use open::containment;
pub use place::remove_leftovers;
pub use private_file::{Turn, Vault};
pub use read_small_file::read_small_file;
pub use root::Root;

/// Where Linux tells about processes.
const PROC: &str = "/proc";

/// The files inside a scope, on this machine.
pub struct LocalFiles {
    scope: Arc<Scope>,
    roots: Arc<[Arc<Root>]>,
    journal: Arc<dyn Record>,
    cancel: Cancel,
    filesystem: OnceLock<Arc<Root>>,
    /// Device and inode of everything protected.
    protected_inodes: OnceLock<HashSet<FileId>>,
    /// Whether something that no call may read lies in or around a root, so that its paths need a second look too.
    overlap: bool,
}

impl LocalFiles {
    /// The files that `scope` lets a call touch; `roots` are its roots, held open.
    pub fn new(scope: Arc<Scope>, roots: Arc<[Arc<Root>]>, journal: Arc<dyn Record>, cancel: Cancel) -> Self {
        let near = |root: &Path, other: &Path| lies_in(root, other) || lies_in(other, root);
        let overlap = roots.iter().any(|root| {
            near(&root.path, Path::new(PROC)) || scope.protected.iter().any(|path| near(&root.path, path))
        });
        let (filesystem, protected_inodes) = (OnceLock::new(), OnceLock::new());
        Self { scope, roots, journal, cancel, filesystem, protected_inodes, overlap }
    }

    /// One name in the roots for each of the files, other than `not`, as far as they have any.
    pub fn find(&self, files: HashSet<FileId>, not: &HashSet<&Path>) -> HashMap<FileId, PathBuf> {
        find_names(self.roots.iter().map(|root| &*root.path), files, not)
    }

    fn root_of(&self, path: &Path) -> Option<Arc<Root>> {
        self.roots.iter().find(|root| lies_in(path, &root.path)).map(Arc::clone)
    }

    /// The whole file system as a root, for reads that the scope allows everywhere.
    fn filesystem(&self) -> Result<Arc<Root>, ToolError> {
        if let Some(root) = self.filesystem.get() {
            return Ok(Arc::clone(root));
        }
        let root = Arc::new(Root::open(Path::new("/"))?);
        Ok(Arc::clone(self.filesystem.get_or_init(|| root)))
    }
}

impl Files for LocalFiles {
    fn kind(&self, path: &Path) -> Result<FileKind, ToolError> {
        self.kind_of(path)
    }

    fn open(&self, path: &Path) -> Result<OpenFile, ToolError> {
        self.open_regular(path)
    }

    fn list_first(&self, path: &Path, most: usize) -> Result<(Vec<DirEntry>, u64), ToolError> {
        self.list_dir(path, most)
    }

    fn update(&self, path: &Path, edit: &mut EditFn<'_>) -> Result<Written, ToolError> {
        self.update_file(path, edit)
    }

    fn walk<'a>(
        &self,
        walk: &WalkRequest,
        visitors: &mut dyn FnMut() -> FileVisitor<'a>,
    ) -> Result<(), ToolError> {
        self.walk_files(walk, visitors)
    }

    fn observe(&self, path: &Path) -> Result<Node, ToolError> {
        self.observe_path(path)
    }

    fn restore(&self, restores: &[Restore<'_>], content: &OpenContent<'_>) -> Result<(), ToolError> {
        self.restore_paths(restores, content)
    }

    fn restore_move(&self, from: &Path, to: &Path) -> Result<(), ToolError> {
        self.move_directory_back(from, to)
    }
}

fn kind(file_type: FileType) -> FileKind {
    match file_type {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Dir,
        FileType::Symlink => FileKind::Link,
        _ => FileKind::Special,
    }
}

fn special(path: &Path, file_type: FileType) -> ToolError {
    let what = match file_type {
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Symlink => "a symbolic link",
        FileType::Directory => "a directory",
        _ => "a special file",
    };
    ToolError::invalid_path(format!("{} is {what}, not a file", path.display()))
}
