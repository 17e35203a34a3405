//! Files in a map.

use std::collections::BTreeMap;
use std::io::{Cursor, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use ignore::Match;
use ignore::overrides::OverrideBuilder;
use ignore::types::TypesBuilder;

use crate::{
    Change, DirEntry, EditFn, ErrorKind, FileKind, FileNode, FileVisitor, Files, Node, OpenContent, OpenFile,
    RestorePlan, RestoreStep, ToolError, WalkRequest, WalkedFile, Written, lies_in, lock,
};

const FILE_MODE: u32 = 0o644;
const NANOS_PER_MS: u64 = 1_000_000;

/// Files in a map. Every file can be read; only files in the workspace can be written. Links are stored, not followed, and
/// ignore files have no effect on walks.
#[derive(Debug)]
pub struct MemoryFiles {
    workspace: PathBuf,
    entries: Mutex<BTreeMap<PathBuf, MemoryEntry>>,
    changes: Mutex<Vec<Change>>,
    now_ms: Arc<AtomicU64>,
}

#[derive(Debug, Clone)]
struct MemoryEntry {
    node: Node,
    content: Vec<u8>,
    modified_ns: i64,
}

impl MemoryFiles {
    pub(super) fn new(workspace: PathBuf, now_ms: Arc<AtomicU64>) -> Self {
        let files = Self { workspace, entries: Mutex::default(), changes: Mutex::default(), now_ms };
        files.insert(files.workspace.clone(), Node::directory(0o755), Vec::new());
        files
    }

    /// The content of a file.
    pub fn content(&self, path: &Path) -> Option<Vec<u8>> {
        self.entry(path).filter(|entry| entry.node.as_file().is_some()).map(|entry| entry.content)
    }

    /// Sets the content of a file, without recording a change.
    pub fn set(&self, path: &Path, content: Vec<u8>) {
        self.insert(path.to_owned(), Node::File(file_node(&content, FILE_MODE)), content);
    }

    /// All changes so far.
    pub fn changes(&self) -> Vec<Change> {
        lock(&self.changes).clone()
    }

    fn entry(&self, path: &Path) -> Option<MemoryEntry> {
        lock(&self.entries).get(path).cloned()
    }

    fn insert(&self, path: PathBuf, node: Node, content: Vec<u8>) {
        lock(&self.entries).insert(path, self.new_entry(node, content));
    }

    fn new_entry(&self, node: Node, content: Vec<u8>) -> MemoryEntry {
        let now_ns = self.now_ms.load(Ordering::SeqCst).saturating_mul(NANOS_PER_MS);
        MemoryEntry { node, content, modified_ns: i64::try_from(now_ns).unwrap_or(i64::MAX) }
    }

    /// Everything below a directory, by path.
    fn below(&self, directory: &Path) -> Vec<(PathBuf, MemoryEntry)> {
        let entries = lock(&self.entries);
        let below = entries.range(directory.to_owned()..).take_while(|(path, _)| path.starts_with(directory));
        below
            .skip_while(|(path, _)| *path == directory)
            .map(|(path, entry)| (path.clone(), entry.clone()))
            .collect()
    }

    fn node(&self, path: &Path) -> Node {
        match self.entry(path) {
            Some(entry) => entry.node,
            None if self.below(path).is_empty() => Node::Absent,
            None => Node::directory(0o755),
        }
    }

    fn check_writable(&self, path: &Path) -> Result<(), ToolError> {
        if lies_in(path, &self.workspace) {
            return Ok(());
        }
        Err(ToolError::invalid_path(format!("{} leads outside the workspace", path.display())))
    }

    /// Performs one step of a restore.
    fn restore_step(
        &self,
        entries: &mut BTreeMap<PathBuf, MemoryEntry>,
        (path, expect, to): (&Path, &Node, &Node),
        content: &OpenContent<'_>,
    ) -> Result<(), ToolError> {
        let now = entries.get(path).map_or(Node::Absent, |entry| entry.node.clone());
        if !now.same_as(expect) {
            return Err(conflict(path, &format!("it is no longer what the call left ({})", now.noun())));
        }
        let mut bytes = Vec::new();
        if let Node::File(file) = to {
            content(file)?
                .read_to_end(&mut bytes)
                .map_err(|error| ToolError::io(format!("restore {}", path.display()), &error))?;
            if file_node(&bytes, file.mode).hash != file.hash {
                return Err(ToolError::failed(format!("{}: the stored content is damaged", path.display())));
            }
        }
        if *to == Node::Absent {
            entries.remove(path);
        } else {
            entries.insert(path.to_owned(), self.new_entry(to.clone(), bytes));
        }
        Ok(())
    }

    fn change(&self, path: &Path, before: Node, after: Node, content: Vec<u8>) {
        lock(&self.changes).push(Change::new(path, before, after.clone()));
        if after == Node::Absent {
            lock(&self.entries).remove(path);
        } else {
            self.insert(path.to_owned(), after, content);
        }
    }
}

impl Files for MemoryFiles {
    fn kind(&self, path: &Path) -> Result<FileKind, ToolError> {
        match self.node(path) {
            Node::Absent => Err(not_found(path)),
            node => Ok(kind_of(&node)),
        }
    }

    fn real_path(&self, path: &Path) -> Result<PathBuf, ToolError> {
        self.kind(path).map(|_| path.to_owned())
    }

    fn open(&self, path: &Path) -> Result<OpenFile, ToolError> {
        match self.node(path) {
            Node::Absent => Err(not_found(path)),
            Node::File(node) => {
                let content = self.content(path).unwrap_or_default();
                Ok(OpenFile {
                    reader: Box::new(Cursor::new(content)),
                    size: node.size,
                    path: path.to_owned(),
                })
            }
            other => {
                Err(ToolError::invalid_path(format!("{} is {}, not a file", path.display(), other.noun())))
            }
        }
    }

    fn list_first(&self, path: &Path, limit: usize) -> Result<(Vec<DirEntry>, u64), ToolError> {
        if self.kind(path)? != FileKind::Dir {
            return Err(ToolError::invalid_path(format!("{} is not a directory", path.display())));
        }
        let mut children = BTreeMap::new();
        for (below, _) in self.below(path) {
            let name = below.strip_prefix(path).ok().and_then(|rest| rest.components().next());
            let Some(name) = name.map(|name| name.as_os_str().to_owned()) else { continue };
            let node = self.node(&path.join(&name));
            let size = node.as_file().map_or(0, |file| file.size);
            children.insert(name.clone(), DirEntry { name, kind: kind_of(&node), size });
        }
        let total = children.len() as u64;
        Ok((children.into_values().take(limit).collect(), total))
    }

    fn update(&self, path: &Path, edit: &mut EditFn<'_>) -> Result<Written, ToolError> {
        self.check_writable(path)?;
        let before = self.node(path);
        let (old, mode) = match &before {
            Node::Absent => (None, FILE_MODE),
            Node::File(file) => (self.content(path), file.mode),
            other => {
                let why = format!("{} is {}, not a file", path.display(), other.noun());
                return Err(ToolError::invalid_path(why));
            }
        };
        let content = edit(old.as_deref())?;
        let after = file_node(&content, mode);
        if old.as_ref() != Some(&content) {
            self.change(path, before.clone(), Node::File(after.clone()), content);
        }
        Ok(Written { path: path.to_owned(), before, after, other_names: 0 })
    }

    fn walk<'a>(
        &self,
        request: &WalkRequest,
        visitors: &mut dyn FnMut() -> FileVisitor<'a>,
    ) -> Result<(), ToolError> {
        let filter = MemoryWalkFilter::new(request, &self.workspace)?;
        let mut visitor = visitors();
        if self.kind(&request.root)? != FileKind::Dir {
            if let Some(entry) = self.entry(&request.root) {
                let _ = visitor(&VisitedFile { path: &request.root, entry: &entry });
            }
            return Ok(());
        }
        for (path, entry) in self.below(&request.root) {
            if entry.node.as_file().is_some()
                && filter.takes(&path)
                && visitor(&VisitedFile { path: &path, entry: &entry }) == ControlFlow::Break(())
            {
                break;
            }
        }
        Ok(())
    }

    fn observe(&self, path: &Path) -> Result<Node, ToolError> {
        Ok(self.node(path))
    }

    fn restore(&self, plan: &RestorePlan, content: &OpenContent<'_>) -> Result<(), ToolError> {
        let mut entries = lock(&self.entries).clone();
        let mut away = BTreeMap::new();
        for step in &plan.steps {
            self.check_writable(step.path())?;
            match step {
                RestoreStep::Set { path, expect, to } => {
                    self.restore_step(&mut entries, (path, expect, to), content)?;
                }
                RestoreStep::MoveOut { from } => {
                    let moved: Vec<_> = entries.extract_if(.., |path, _| path.starts_with(from)).collect();
                    away.insert(from, moved);
                }
                RestoreStep::MoveIn { from, to } => {
                    if entries.contains_key(to) {
                        return Err(conflict(to, "a directory was to be moved here, but the path is taken"));
                    }
                    let moved = away.remove(from).unwrap_or_default();
                    let place = |path: &Path| path.strip_prefix(from).map(|rest| to.join(rest));
                    entries.extend(
                        moved.into_iter().filter_map(|(path, entry)| Some((place(&path).ok()?, entry))),
                    );
                }
            }
        }
        *lock(&self.entries) = entries;
        lock(&self.changes).extend(plan.changes.iter().cloned());
        Ok(())
    }
}

fn conflict(path: &Path, why: &str) -> ToolError {
    ToolError::new(ErrorKind::Conflict, format!("{}: {why}", path.display()))
}

struct VisitedFile<'a> {
    path: &'a Path,
    entry: &'a MemoryEntry,
}

impl WalkedFile for VisitedFile<'_> {
    fn path(&self) -> &Path {
        self.path
    }

    fn open(&self) -> Result<Box<dyn Read + Send>, ToolError> {
        Ok(Box::new(Cursor::new(self.entry.content.clone())))
    }

    fn modified_ns(&self) -> i64 {
        self.entry.modified_ns
    }
}

/// The globs, file types and hidden names of a [`WalkRequest`].
struct MemoryWalkFilter<'a> {
    root: &'a Path,
    globs: ignore::overrides::Override,
    types: ignore::types::Types,
    hidden: bool,
}

impl<'a> MemoryWalkFilter<'a> {
    fn new(request: &'a WalkRequest, base: &Path) -> Result<Self, ToolError> {
        let invalid = |error: ignore::Error| ToolError::invalid_arguments(error.to_string());
        let mut globs = OverrideBuilder::new(base);
        for glob in &request.globs {
            globs.add(glob).map_err(invalid)?;
        }
        let mut types = TypesBuilder::new();
        if let Some(name) = &request.file_type {
            types.add_defaults().select(name);
        }
        Ok(Self {
            root: &request.root,
            globs: globs.build().map_err(invalid)?,
            types: types.build().map_err(invalid)?,
            hidden: request.hidden,
        })
    }

    fn takes(&self, path: &Path) -> bool {
        let above = path.ancestors().take_while(|above| *above != self.root);
        above.enumerate().all(|(level, entry)| {
            let is_dir = level > 0;
            let globs = self.globs.matched(entry, is_dir);
            let types = self.types.matched(entry, is_dir);
            match (globs, types) {
                (Match::Whitelist(_), _) => true,
                (Match::Ignore(_), _) | (_, Match::Ignore(_)) => false,
                (_, Match::Whitelist(_)) => true,
                _ => self.hidden || !is_hidden(entry),
            }
        })
    }
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

fn kind_of(node: &Node) -> FileKind {
    match node {
        Node::File(_) => FileKind::File,
        Node::Dir { .. } => FileKind::Dir,
        Node::Link { .. } => FileKind::Link,
        Node::Absent | Node::Fifo { .. } | Node::Special => FileKind::Special,
    }
}

fn file_node(content: &[u8], mode: u32) -> FileNode {
    FileNode {
        hash: blake3::hash(content).to_hex().to_string(),
        size: content.len() as u64,
        mode,
        owner: None,
        xattrs: Vec::new(),
        linked: None,
        modified: None,
    }
}

fn not_found(path: &Path) -> ToolError {
    ToolError::new(ErrorKind::FileNotFound, format!("{} does not exist", path.display()))
}
