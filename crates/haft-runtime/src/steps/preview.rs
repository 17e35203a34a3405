//! What a call would change, worked out before the user is asked, by running the tool in a World that only reads.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use haft_files::hash;
use haft_tool::{
    Cancel, DirEntry, EditFn, ErrorKind, FileKind, FileNode, FileVisitor, Files, Host, NoHost, Node,
    OpenContent, OpenFile, Perform, Planning, Processes, Progress, RestorePlan, Tasks, ToolError, Value,
    WalkRequest, World, Written, lock,
};

use crate::world::LocalWorld;

/// A larger file is not read for a preview.
const MAX_PREVIEW_BYTES: u64 = 4 << 20;

/// A change that a call would make.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ProposedChange {
    /// A file gets another content.
    File {
        /// Its path.
        path: PathBuf,
        /// Its bytes now; `None` if it does not exist.
        before: Option<Vec<u8>>,
        /// Its new bytes.
        after: Vec<u8>,
    },
    /// A setting gets another value.
    Setting {
        /// Its name.
        name: String,
        /// Its value now.
        before: Value,
        /// Its new value.
        after: Value,
    },
}

/// The changes that the call would make to files. `world` must not be able to change anything.
pub(crate) fn proposed_changes(
    perform: Perform,
    world: &LocalWorld,
) -> Result<Vec<ProposedChange>, ToolError> {
    let preview =
        PreviewWorld { world, files: PreviewFiles { files: world.files(), changes: Mutex::default() } };
    perform(&preview)?;
    Ok(preview.files.changes.into_inner().unwrap_or_else(PoisonError::into_inner))
}

struct PreviewWorld<'w> {
    world: &'w LocalWorld,
    files: PreviewFiles<'w>,
}

impl World for PreviewWorld<'_> {
    fn planning(&self) -> &Planning {
        self.world.planning()
    }

    fn files(&self) -> &dyn Files {
        &self.files
    }

    fn processes(&self) -> &dyn Processes {
        self.world.processes()
    }

    fn tasks(&self) -> &dyn Tasks {
        self.world.tasks()
    }

    fn host(&self) -> &dyn Host {
        &NoHost
    }

    fn progress(&self, _progress: Progress) {}

    fn cancelled(&self) -> &Cancel {
        self.world.cancelled()
    }
}

/// Files that can be read; updates are only noted.
struct PreviewFiles<'w> {
    files: &'w dyn Files,
    changes: Mutex<Vec<ProposedChange>>,
}

impl PreviewFiles<'_> {
    fn current(&self, path: &Path) -> Result<Option<Vec<u8>>, ToolError> {
        let file = match self.files.open(path) {
            Ok(file) => file,
            Err(error) if error.kind == ErrorKind::FileNotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut bytes = Vec::new();
        let read = file.reader.take(MAX_PREVIEW_BYTES + 1).read_to_end(&mut bytes);
        read.map_err(|error| ToolError::io(path.display(), &error))?;
        if bytes.len() as u64 > MAX_PREVIEW_BYTES {
            return Err(ToolError::failed(format!("{} is too large to be compared", path.display())));
        }
        Ok(Some(bytes))
    }
}

impl Files for PreviewFiles<'_> {
    fn kind(&self, path: &Path) -> Result<FileKind, ToolError> {
        self.files.kind(path)
    }

    fn real_path(&self, path: &Path) -> Result<PathBuf, ToolError> {
        self.files.real_path(path)
    }

    fn open(&self, path: &Path) -> Result<OpenFile, ToolError> {
        self.files.open(path)
    }

    fn list_first(&self, path: &Path, limit: usize) -> Result<(Vec<DirEntry>, u64), ToolError> {
        self.files.list_first(path, limit)
    }

    fn update(&self, path: &Path, edit: &mut EditFn<'_>) -> Result<Written, ToolError> {
        let before = self.current(path)?;
        let after = edit(before.as_deref())?;
        let node = |bytes: &[u8]| FileNode {
            hash: hash(bytes),
            size: bytes.len() as u64,
            mode: 0,
            owner: None,
            xattrs: Vec::new(),
            linked: None,
            modified: None,
        };
        let written = Written {
            path: path.to_owned(),
            before: before.as_deref().map_or(Node::Absent, |bytes| Node::File(node(bytes))),
            after: node(&after),
            other_names: 0,
        };
        lock(&self.changes).push(ProposedChange::File { path: path.to_owned(), before, after });
        Ok(written)
    }

    fn walk<'a>(
        &self,
        request: &WalkRequest,
        visitors: &mut dyn FnMut() -> FileVisitor<'a>,
    ) -> Result<(), ToolError> {
        self.files.walk(request, visitors)
    }

    fn observe(&self, path: &Path) -> Result<Node, ToolError> {
        self.files.observe(path)
    }

    fn restore(&self, _restores: &RestorePlan, _content: &OpenContent<'_>) -> Result<(), ToolError> {
        Err(unknown())
    }
}

fn unknown() -> ToolError {
    ToolError::failed("what it restores is not known before it runs")
}
