//! Contained file access: the `Files` part of the World on this machine, and Haft's own private files.
//!
//! All operations share one resolver: paths are resolved from open directory handles, so what was checked is what is used. On
//! Linux the kernel resolves (openat2 with `RESOLVE_BENEATH`); elsewhere, and where a link is absolute, the module `resolve`
//! does it component by component with `O_NOFOLLOW`, which needs nothing but POSIX.
//!
//! Never here: processes, the network, decisions (haft-policy), the ledger's format.
#![expect(clippy::disallowed_methods, reason = "this crate implements file access for the World")]

mod bare_repository;
mod error;
mod hard_links;
mod ignore_rules;
mod list;
mod lock;
mod mounts;
mod node;
mod open;
mod opened;
mod os;
mod private_file;
mod regular_file;
mod replace;
mod resolve;
mod restore;
mod restore_entry;
mod restore_stage;
mod root;
mod rule_links;
mod small_file;
mod stat;
mod update;
mod upwards;
mod user_file;
mod walk;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use haft_tool::{
    Cancel, DirEntry, EditFn, FileId, FileKind, FileVisitor, Files, Node, OpenContent, OpenFile, Record,
    RestorePlan, Scope, ToolError, WalkRequest, Written, lies_in,
};

#[cfg(target_os = "linux")]
pub use hard_links::birth_id_of;
pub use hard_links::{birth_id, birth_id_at, changed_at, find_names, id_of};
pub use lock::lock_moves;
pub use mounts::mounted_elsewhere;
pub use node::{Captured, CapturedContent, capture, capture_unread, hash};
pub use opened::{LIST_ACCESS, OpenedDirectories, is_allowed};
pub use os::containment;
pub use private_file::{FileLockGuard, PrivateFile};
pub use regular_file::{open_regular, read_regular};
pub use replace::{copy_beside, remove_leftovers, temp_name};
pub use resolve::open_directory;
pub use restore_stage::remove_stages;
pub use root::Root;
pub use rule_links::follow_rule_links;
pub use small_file::read_small_file;
pub use stat::mode;
pub use upwards::{FoundAbove, find_upwards};
pub use user_file::{
    append_private, is_directory, is_writable, link_targets, names_in, overwrite_private, read_bounded,
    read_named, real_named, write_private,
};

const PROC: &str = "/proc";

/// Where the file is that a session's commands see at `path`, if that is not the one that Haft sees.
pub type SessionPathFn = dyn Fn(&Path) -> Option<PathBuf> + Send + Sync;

/// What makes programs outside the sandbox run the file at a path: a link or a git configuration.
pub type LeadingHereFn = dyn Fn(&Path) -> Option<PathBuf> + Send + Sync;

/// Called before a restore, to note what is in effect. The function that it returns judges what the restore has brought into
/// effect.
pub type JudgeRestoreFn = dyn Fn() -> Box<dyn FnOnce() -> Result<(), ToolError>> + Send + Sync;

/// The files inside a scope, on this machine.
pub struct LocalFiles {
    scope: Arc<Scope>,
    roots: Arc<[Arc<Root>]>,
    record: Arc<dyn Record>,
    cancel: Cancel,
    filesystem: OnceLock<Arc<Root>>,
    session_path: Option<Arc<SessionPathFn>>,
    leading_here: Option<Arc<LeadingHereFn>>,
    judge_restore: Option<Arc<JudgeRestoreFn>>,
    /// Device and inode of every protected file.
    protected_files: OnceLock<HashSet<FileId>>,
    /// Whether a protected path or /proc lies in or around a root: then paths in the roots need the same checks as others.
    protected_near_roots: bool,
}

impl LocalFiles {
    /// The files that `scope` allows a call to touch; `roots` are its open roots.
    pub fn new(scope: Arc<Scope>, roots: Arc<[Arc<Root>]>, record: Arc<dyn Record>, cancel: Cancel) -> Self {
        let near = |root: &Path, other: &Path| lies_in(root, other) || lies_in(other, root);
        let protected_near_roots = roots.iter().any(|root| {
            near(&root.path, Path::new(PROC)) || scope.protected.iter().any(|path| near(&root.path, path))
        });
        let (filesystem, protected_files) = (OnceLock::new(), OnceLock::new());
        Self {
            scope,
            roots,
            record,
            cancel,
            filesystem,
            session_path: None,
            leading_here: None,
            judge_restore: None,
            protected_files,
            protected_near_roots,
        }
    }

    /// The same files, but without writes to those that a link or a configuration makes programs run.
    #[must_use]
    pub fn guarding_what_is_named(self, leading_here: Arc<LeadingHereFn>) -> Self {
        Self { leading_here: Some(leading_here), ..self }
    }

    /// The same files, but a restore is undone if `judge_restore` refuses what it has brought into effect.
    #[must_use]
    pub fn judging_restores(self, judge_restore: Arc<JudgeRestoreFn>) -> Self {
        Self { judge_restore: Some(judge_restore), ..self }
    }

    /// The same files, but reads outside the roots return what the session's commands see at a path, not what Haft sees.
    #[must_use]
    pub fn as_seen_by_commands(self, session_path: Arc<SessionPathFn>) -> Self {
        Self { session_path: Some(session_path), ..self }
    }

    /// One name in the roots for each of the files that has any; `excluded` paths do not count.
    pub fn find(&self, files: HashSet<FileId>, excluded: &HashSet<&Path>) -> HashMap<FileId, PathBuf> {
        find_names(self.roots.iter().map(|root| &*root.path), files, excluded)
    }

    fn root_of(&self, path: &Path) -> Option<Arc<Root>> {
        self.roots.iter().find(|root| lies_in(path, &root.path)).map(Arc::clone)
    }

    /// The whole file system as a root, for paths outside the roots.
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

    fn real_path(&self, path: &Path) -> Result<PathBuf, ToolError> {
        self.real_path_of(path)
    }

    fn open(&self, path: &Path) -> Result<OpenFile, ToolError> {
        self.open_regular(path)
    }

    fn list_first(&self, path: &Path, limit: usize) -> Result<(Vec<DirEntry>, u64), ToolError> {
        self.list_directory(path, limit)
    }

    fn update(&self, path: &Path, edit: &mut EditFn<'_>) -> Result<Written, ToolError> {
        self.update_file(path, edit)
    }

    fn walk<'a>(
        &self,
        request: &WalkRequest,
        visitors: &mut dyn FnMut() -> FileVisitor<'a>,
    ) -> Result<(), ToolError> {
        self.walk_files(request, visitors)
    }

    fn observe(&self, path: &Path) -> Result<Node, ToolError> {
        self.observe_entry(path)
    }

    fn restore(&self, plan: &RestorePlan, content: &OpenContent<'_>) -> Result<(), ToolError> {
        self.restore_plan(plan, content)
    }
}
