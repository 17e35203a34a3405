//! Where a command may write.

use std::collections::HashSet;
use std::hash::Hash;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use haft_policy::{PathGlobs, glob_prefix};
use haft_tool::{FileId, Scope, lock};
use rustix::io::Errno;

use crate::guards::SHARED_TEMP_DIRS;
use crate::linux::ruleset::LandlockRuleset;
use crate::secrets::SecretNames;

/// Writing there changes the machine or other processes.
const KERNEL_DIRS: &[&str] = &["/proc", "/sys"];

/// Sockets of a session that are remembered; further ones cannot be bound.
const MAX_SESSION_SOCKETS: usize = 100_000;

/// Why a path that a rule names is not touched.
pub(super) const DENIED_BY_RULE: &str = "a rule denies it";

/// What a command may do in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriteArea {
    /// Part of the scope: writable, and every change is recorded.
    Workspace,
    /// A directory of the session: not recorded, and Landlock lets commands write it themselves.
    Private,
    /// A directory of the session that contains a part of the scope: not recorded, but written by the witness, because a
    /// Landlock grant would include that part.
    Unrecorded,
    /// Everything else: not writable.
    Outside,
}

/// What the commands of a session created and may use together.
#[derive(Debug, Default)]
pub(crate) struct SessionResources {
    /// The number of commands that run.
    running: AtomicUsize,
    /// The inodes of the TCP sockets and abstract sockets that commands have bound.
    bound: Mutex<HashSet<u64>>,
    /// The socket files that commands have bound, by numbers that no other file gets.
    sockets: Mutex<HashSet<FileId>>,
}

impl SessionResources {
    /// Counts a command that starts.
    pub(super) fn enter(&self) {
        self.running.fetch_add(1, Ordering::SeqCst);
    }

    /// Counts a command that has ended; returns how many others run.
    pub(super) fn leave(&self) -> usize {
        self.running.fetch_sub(1, Ordering::SeqCst).saturating_sub(1)
    }

    /// Whether `find` returns sockets and commands have bound all of them. It takes milliseconds, so it is called only if
    /// commands have bound any.
    pub(super) fn have_bound(&self, find: impl FnOnce() -> Vec<u64>) -> bool {
        if lock(&self.bound).is_empty() {
            return false;
        }
        let inodes = find();
        let bound = lock(&self.bound);
        !inodes.is_empty() && inodes.iter().all(|inode| bound.contains(inode))
    }

    pub(super) fn add_bound(&self, inode: u64) -> Result<(), Errno> {
        insert_bounded(&self.bound, inode)
    }

    pub(super) fn has_socket(&self, birth_id: FileId) -> bool {
        lock(&self.sockets).contains(&birth_id)
    }

    pub(super) fn add_socket(&self, birth_id: FileId) -> Result<(), Errno> {
        insert_bounded(&self.sockets, birth_id)
    }
}

fn insert_bounded<T: Eq + Hash>(set: &Mutex<HashSet<T>>, value: T) -> Result<(), Errno> {
    let mut set = lock(set);
    if set.len() >= MAX_SESSION_SOCKETS {
        return Err(Errno::NOBUFS);
    }
    set.insert(value);
    Ok(())
}

/// The paths that rules keep commands from touching.
#[derive(Debug, Clone)]
pub(crate) struct DeniedPaths {
    reads: PathGlobs,
    writes: PathGlobs,
    /// The fixed beginnings of the patterns. Directories above them must keep their names, or the patterns would no longer
    /// match.
    prefixes: Vec<PathBuf>,
}

impl DeniedPaths {
    pub(crate) fn of(scope: &Scope) -> Self {
        let globs = scope.unreadable.iter().chain(&scope.unwritable);
        Self {
            reads: PathGlobs::unreadable(scope),
            writes: PathGlobs::unwritable(scope),
            prefixes: globs.map(|glob| glob_prefix(glob).0).collect(),
        }
    }
}

/// The scope of a command, as the witness applies it.
#[derive(Debug, Clone)]
pub(crate) struct WritePolicy {
    pub(crate) scope: Arc<Scope>,
    /// Directories of the session.
    pub(crate) private: Vec<PathBuf>,
    /// The paths of the session's directories outside the command's view.
    pub(crate) private_sources: Vec<PathBuf>,
    /// What is visible, read-only, inside directories of the session.
    pub(crate) read_only: Vec<PathBuf>,
    /// The mount points of commands with namespaces.
    pub(crate) mount_points: Vec<PathBuf>,
    /// Whether commands have namespaces of their own.
    pub(crate) has_namespaces: bool,
    /// Whether the kernel keeps a command from truncating files that it may only read.
    pub(crate) restricts_truncation: bool,
    /// Whether the kernel keeps signals among the session's processes.
    pub(crate) scopes_signals: bool,
    pub(crate) devices: Vec<PathBuf>,
    /// The session's directory that commands without namespaces get in place of `/dev/shm`.
    pub(crate) shared_memory: Option<PathBuf>,
    /// Names of files that may not be read in any directory.
    pub(crate) secret_names: SecretNames,
    /// Paths that may not be read.
    pub(crate) secret_paths: Vec<PathBuf>,
    /// What rules deny.
    pub(crate) denied: DeniedPaths,
    /// Whether the witness is asked before a file is read, because there are secrets where commands may create files.
    pub(crate) judges_reads: bool,
    /// The Landlock rules that keep the command from reading these secrets. Without them the witness opens every file.
    pub(crate) read_rules: Option<Arc<LandlockRuleset>>,
    pub(crate) resources: Arc<SessionResources>,
}

impl WritePolicy {
    pub(super) fn area(&self, path: &Path) -> WriteArea {
        let is_in = |list: &[PathBuf]| list.iter().any(|root| path.starts_with(root));
        if self.scope.is_protected(path) {
            return WriteArea::Outside;
        }
        if self.shared_memory.as_ref().is_some_and(|directory| path.starts_with(directory)) {
            // If the kernel performed the call, the program would get the machine's own `/dev/shm`.
            return WriteArea::Unrecorded;
        }
        if self.is_innermost_private(path) {
            return self.private_area(path);
        }
        let is_writable = is_in(&self.scope.roots) || is_in(&self.scope.grants);
        if is_writable && !is_in(&self.scope.blocked) && !self.denied.writes.contain(path) {
            WriteArea::Workspace
        } else {
            WriteArea::Outside
        }
    }

    /// Whether a directory of the session is nearer to `path` than any part of the scope.
    fn is_innermost_private(&self, path: &Path) -> bool {
        let depth = |list: &[PathBuf]| {
            let around = list.iter().filter(|root| path.starts_with(root));
            around.map(|root| root.as_os_str().len()).max()
        };
        let scope = [&self.scope.roots, &self.scope.grants, &self.scope.blocked, &self.read_only];
        let scope = scope.map(|list| depth(list));
        depth(&self.private) > scope.into_iter().max().flatten()
    }

    fn private_area(&self, path: &Path) -> WriteArea {
        let mut around = self.private.iter().filter(|private| path.starts_with(private));
        let is_granted = around.any(|private| !self.grants_would_include_scope(private));
        if is_granted { WriteArea::Private } else { WriteArea::Unrecorded }
    }

    /// Whether a Landlock grant for a directory of the session would include a part of the scope.
    pub(crate) fn grants_would_include_scope(&self, private: &Path) -> bool {
        let Scope { roots, grants, blocked, protected, .. } = &*self.scope;
        [roots, grants, blocked, protected].into_iter().flatten().any(|inner| inner.starts_with(private))
    }

    /// Whether commands write `path` without a record. The path may be as they see it or as other programs do.
    pub(super) fn is_session_directory(&self, path: &Path) -> bool {
        matches!(self.area(path), WriteArea::Private | WriteArea::Unrecorded)
            || self.private_sources.iter().any(|source| path.starts_with(source))
    }

    /// Whether every entry of the directory at `path` is in the same area as the directory itself.
    pub(super) fn is_uniform(&self, path: &Path) -> bool {
        let Self { scope, private, .. } = self;
        let lists = [&scope.protected, private, &scope.blocked, &scope.roots, &scope.grants];
        self.denied.writes.is_none()
            && !lists.into_iter().flatten().any(|listed| listed.parent() == Some(path))
    }

    /// Why `path` may not be written, and how to allow it.
    pub(super) fn explain_outside(&self, path: &Path) -> (String, Option<String>) {
        if self.scope.is_protected(path) {
            return ("it belongs to Haft".to_owned(), None);
        }
        if self.scope.blocked.iter().any(|blocked| path.starts_with(blocked)) {
            return ("the scope does not let it be written".to_owned(), None);
        }
        if self.denied.writes.contain(path) {
            return (DENIED_BY_RULE.to_owned(), None);
        }
        if SHARED_TEMP_DIRS.iter().any(|temp| path.starts_with(temp)) {
            let allow = "use $TMPDIR";
            return ("other programs use this directory, too".to_owned(), Some(allow.to_owned()));
        }
        if KERNEL_DIRS.iter().any(|kernel| path.starts_with(kernel)) {
            return ("it belongs to the kernel".to_owned(), None);
        }
        // Git writes in several directories of a repository, which may lie outside a linked worktree.
        let repository = path.ancestors().find(|above| above.file_name().is_some_and(|name| name == ".git"));
        let directory = repository.or_else(|| path.parent()).unwrap_or(path);
        ("outside the scope".to_owned(), Some(format!("--add-dir {}", directory.display())))
    }

    /// Whether the file at this path may not be read.
    pub(super) fn is_secret(&self, path: &Path) -> bool {
        let has_secret_name = path.file_name().is_some_and(|name| self.secret_names.matches(name));
        has_secret_name
            || self.scope.is_protected(path)
            || self.is_denied_reading(path)
            || self.secret_paths.iter().any(|secret| path.starts_with(secret))
    }

    /// Whether a rule denies reading what is at this path.
    pub(super) fn is_denied_reading(&self, path: &Path) -> bool {
        self.denied.reads.contain(path)
    }

    /// Whether rules deny anything.
    pub(super) fn has_denied_paths(&self) -> bool {
        !self.denied.reads.is_none() || !self.denied.writes.is_none()
    }

    /// Whether a move would take `from` out of the reach of a rule that denies it, or put it where a rule denies writing.
    pub(super) fn is_denied_moving(&self, from: &Path, to: &Path) -> bool {
        let (reads, writes) = (&self.denied.reads, &self.denied.writes);
        reads.contain(from) && !reads.contain(to) || writes.contain(from) || writes.contain(to)
    }

    /// The root of the readable tree around `path`. [`Self::is_readable`] tells whether it is still the same one.
    pub(super) fn readable_tree<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        self.read_rules.as_ref()?.granted().tree_of(path)
    }

    /// Whether the kernel lets the command read everything in this tree.
    pub(super) fn is_readable(&self, tree: FileId) -> bool {
        self.read_rules.as_ref().is_some_and(|rules| rules.granted().has_tree(tree))
    }

    /// Whether moving the directory at `path` could bring a secret into a readable tree.
    pub(super) fn may_hold_secrets(&self, path: &Path) -> bool {
        self.read_rules.as_ref().is_none_or(|rules| rules.granted().is_divided(path))
    }

    /// The entry of the list of secrets that makes `path` one.
    pub(super) fn secret_entry(&self, path: &Path) -> Option<&str> {
        let name = path.file_name()?;
        let is_above = |entry: &&String| {
            let place = entry.trim_start_matches('~').trim_matches('/');
            place.contains('/') && path.ancestors().any(|above| above.ends_with(place))
        };
        let named = self.secret_names.matching(name);
        named.or_else(|| self.scope.secrets.iter().find(is_above).map(String::as_str))
    }

    /// Whether `path` is a mount point of the command, a directory of the session or a root of its scope, or is above one.
    /// These keep their names: for a rename by the witness the kernel checks only Haft's own mounts, and later commands use the
    /// directories.
    pub(super) fn is_fixed(&self, path: &Path) -> bool {
        let fixed =
            self.mount_points.iter().chain(&self.private).chain(&self.scope.roots).chain(&self.scope.grants);
        fixed
            .into_iter()
            .any(|fixed| fixed.starts_with(path) && (fixed != path || !self.is_granted_file(path)))
    }

    /// Whether `path` is a single granted file, which may be replaced.
    fn is_granted_file(&self, path: &Path) -> bool {
        self.scope.grants.iter().any(|grant| grant == path)
            && !self.mount_points.iter().any(|point| point == path)
    }

    /// Whether something in the directory at `path` may not be read or written.
    pub(super) fn contains_restricted(&self, path: &Path) -> bool {
        let restricted = self.scope.protected.iter().chain(&self.scope.blocked).chain(&self.secret_paths);
        restricted.chain(&self.denied.prefixes).any(|inner| inner.starts_with(path))
    }

    pub(super) fn is_device(&self, path: &Path) -> bool {
        self.devices.iter().any(|device| device == path)
    }
}
