//! Visits files in parallel, from open directory to open directory, never through links.
//!
//! Every entry is opened by its name in its open parent directory, so that the walk cannot be led out of its root and the
//! kernel never resolves a long path twice.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, LazyLock, Mutex, PoisonError};

use haft_policy::{PathGlobs, Secrets};
use haft_tool::{
    ErrorKind, FileId, FileKind, FileVisitor, Scope, ToolError, WalkRequest, WalkedFile, lies_in, lock,
};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};

use crate::error::{denied, os_error};
use crate::ignore_rules::{DirRules, MAX_IGNORE_FILE_BYTES, WalkFilter};
use crate::list::DirListing;
use crate::open::{READ_FLAGS, require_regular};
use crate::root::is_number;
use crate::stat::{self, file_id};
use crate::{LocalFiles, os, read_bounded};

/// More threads do not make a walk faster.
const MAX_THREADS: usize = 12;
/// Cached, because finding it out costs more than a small walk.
static THREADS: LazyLock<usize> =
    LazyLock::new(|| std::thread::available_parallelism().map_or(2, std::num::NonZero::get).min(MAX_THREADS));
const DIR_FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl LocalFiles {
    pub(crate) fn walk_files<'a>(
        &self,
        request: &WalkRequest,
        visitors: &mut dyn FnMut() -> FileVisitor<'a>,
    ) -> Result<(), ToolError> {
        let root = &request.root;
        let filter = WalkFilter::new(request, &self.scope.workspace)?;
        if self.kind_of(root)? != FileKind::Dir {
            let _ = visitors()(&RootFile { files: self, path: root });
            return Ok(());
        }
        let (fd, _) = self.open_any(root, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC)?;
        let real_root = os::path_of(&fd).unwrap_or_else(|| root.clone());
        let queue = WalkQueue::new(WalkTask {
            directory: TaskDirectory::Open(fd),
            path: root.clone(),
            rules: DirRules::above(root),
        });
        let reaches_procfs = self.protected_near_roots || self.root_of(root).is_none();
        let exclusions = WalkExclusions::new(&self.scope, root, real_root, reaches_procfs);
        let new_worker = |_| WalkWorker {
            files: self,
            filter: &filter,
            queue: &queue,
            visitor: visitors(),
            exclusions: &exclusions,
        };
        let mut workers: Vec<WalkWorker<'_, 'a>> = (0..*THREADS).map(new_worker).collect();
        let own = workers.pop();
        std::thread::scope(|scope| {
            for worker in workers {
                scope.spawn(move || worker.run());
            }
            if let Some(worker) = own {
                worker.run();
            }
        });
        if self.cancel.is_cancelled() {
            return Err(ToolError::new(ErrorKind::Interrupted, "the search was cancelled"));
        }
        Ok(())
    }
}

/// A directory to be visited.
struct WalkTask {
    directory: TaskDirectory,
    path: PathBuf,
    rules: Option<Arc<DirRules>>,
}

/// A directory, open or to be opened in its parent.
enum TaskDirectory {
    Open(OwnedFd),
    In(Arc<OwnedFd>, OsString),
}

/// The directories to be visited. The last one found is visited first, which keeps few directories open.
struct WalkQueue {
    state: Mutex<WalkQueueState>,
    changed: Condvar,
}

struct WalkQueueState {
    tasks: Vec<WalkTask>,
    busy_workers: usize,
    stopped: bool,
}

impl WalkQueue {
    fn new(first: WalkTask) -> Self {
        let state = WalkQueueState { tasks: vec![first], busy_workers: 0, stopped: false };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// The next directory; `None` when all have been visited.
    fn next(&self, was_busy: bool) -> Option<WalkTask> {
        let mut state = lock(&self.state);
        state.busy_workers -= usize::from(was_busy);
        loop {
            if state.stopped || (state.tasks.is_empty() && state.busy_workers == 0) {
                self.changed.notify_all();
                return None;
            }
            if let Some(task) = state.tasks.pop() {
                state.busy_workers += 1;
                return Some(task);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn add(&self, mut tasks: Vec<WalkTask>) {
        if !tasks.is_empty() {
            lock(&self.state).tasks.append(&mut tasks);
            self.changed.notify_all();
        }
    }

    fn stop(&self) {
        lock(&self.state).stopped = true;
        self.changed.notify_all();
    }
}

/// Entries that the walk must not see.
struct WalkExclusions<'s> {
    scope: &'s Scope,
    /// Whether a protected path lies below the root.
    protected_below: bool,
    /// The protected files and directories, because a walk that starts at a link reaches them under another path.
    protected_ids: Vec<FileId>,
    /// Whether the walk can reach the directories of processes in /proc.
    reaches_procfs: bool,
    /// Directories that are not visited and files that are not opened, unless the scope opens them.
    secrets: Secrets<'s>,
    /// Paths that a rule denies.
    unreadable: PathGlobs,
    /// The root of the walk as the caller names it, and its path without links if that differs.
    root: &'s Path,
    real_root: Option<PathBuf>,
}

impl<'s> WalkExclusions<'s> {
    fn new(scope: &'s Scope, root: &'s Path, real_root: PathBuf, reaches_procfs: bool) -> Self {
        let stats = scope.protected.iter().filter_map(|path| rustix::fs::stat(path).ok());
        let protected_ids = stats.map(|stat| file_id(&stat)).collect();
        let protected_below = scope.protected.iter().any(|path| path.starts_with(root));
        let (secrets, unreadable) = (Secrets::below(scope, &real_root), PathGlobs::unreadable(scope));
        let real_root = Some(real_root).filter(|real| real != root);
        Self { scope, protected_below, protected_ids, reaches_procfs, secrets, unreadable, root, real_root }
    }

    /// The path without links.
    fn real<'p>(&self, path: &'p Path) -> Cow<'p, Path> {
        match (&self.real_root, path.strip_prefix(self.root)) {
            (Some(real), Ok(below)) => Cow::Owned(real.join(below)),
            _ => Cow::Borrowed(path),
        }
    }

    fn contains(&self, path: &Path, directory: &OwnedFd, name: &OsStr, inode: u64) -> bool {
        (self.protected_below && self.scope.is_protected(path))
            || (self.protected_ids.iter().any(|id| id.1 == inode)
                && rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
                    .is_ok_and(|stat| self.protected_ids.contains(&file_id(&stat))))
            || (self.reaches_procfs && is_number(name) && os::is_on_procfs(directory))
            || self.unreadable.contain(&self.real(path))
    }

    fn is_secret(&self, path: &Path, is_dir: bool) -> bool {
        let path = self.real(path);
        let listed = if is_dir { self.secrets.contain_directory(&path) } else { self.secrets.contain(&path) };
        listed && !self.scope.readable.iter().any(|readable| lies_in(&path, readable))
    }
}

/// One thread of the walk.
struct WalkWorker<'w, 'a> {
    files: &'w LocalFiles,
    filter: &'w WalkFilter,
    queue: &'w WalkQueue,
    visitor: FileVisitor<'a>,
    exclusions: &'w WalkExclusions<'w>,
}

impl WalkWorker<'_, '_> {
    fn run(mut self) {
        let mut listing = DirListing::default();
        let mut was_busy = false;
        while let Some(task) = self.queue.next(was_busy) {
            was_busy = true;
            if self.files.cancel.is_cancelled() || self.visit(task, &mut listing).is_break() {
                self.queue.stop();
            }
        }
    }

    /// Visits the files of a directory and queues its subdirectories. A directory that cannot be listed is skipped.
    fn visit(&mut self, task: WalkTask, listing: &mut DirListing) -> ControlFlow<()> {
        let WalkTask { directory, mut path, rules } = task;
        let opened = match directory {
            TaskDirectory::Open(fd) => Ok(fd),
            TaskDirectory::In(parent, name) => rustix::fs::openat(&*parent, &name, DIR_FLAGS, Mode::empty()),
        };
        let Ok(fd) = opened else { return ControlFlow::Continue(()) };
        if listing.read(&fd).is_err() {
            return ControlFlow::Continue(());
        }
        let own = DirRules::new(
            rules.as_ref(),
            &path,
            |name| listing.contains(name),
            |name| read_ignore_file(&fd, name),
        );
        let rules = own.map(Arc::new).or(rules);
        let fd = Arc::new(fd);
        let mut subdirectories = Vec::new();
        for (name, inode, file_type) in listing.entries() {
            let file_type = match file_type {
                FileType::Unknown => match rustix::fs::statat(&*fd, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => stat::file_type(&stat),
                    Err(_) => continue,
                },
                known => known,
            };
            let is_dir = file_type == FileType::Directory;
            if !is_dir && file_type != FileType::RegularFile {
                continue;
            }
            let name = OsStr::from_bytes(name.to_bytes());
            path.push(name);
            if self.filter.takes(rules.as_deref(), &path, name, is_dir)
                && !self.exclusions.contains(&path, &fd, name, inode)
                && !(is_dir && self.exclusions.is_secret(&path, true))
            {
                if is_dir {
                    let directory = TaskDirectory::In(Arc::clone(&fd), name.to_owned());
                    subdirectories.push(WalkTask { directory, path: path.clone(), rules: rules.clone() });
                } else {
                    let exclusions = self.exclusions;
                    let file = EntryFile { files: self.files, exclusions, directory: &fd, path: &path, name };
                    (self.visitor)(&file)?;
                    if self.files.cancel.is_cancelled() {
                        return ControlFlow::Break(());
                    }
                }
            }
            path.pop();
        }
        self.queue.add(subdirectories);
        ControlFlow::Continue(())
    }
}

fn read_ignore_file(directory: &OwnedFd, name: &str) -> Option<Vec<u8>> {
    let fd = rustix::fs::openat(directory, name, READ_FLAGS, Mode::empty()).ok()?;
    if !rustix::fs::fstat(&fd).is_ok_and(|stat| stat::is_file(&stat)) {
        return None;
    }
    read_bounded(File::from(fd), MAX_IGNORE_FILE_BYTES).ok().flatten()
}

/// A file found in a directory.
struct EntryFile<'f> {
    files: &'f LocalFiles,
    exclusions: &'f WalkExclusions<'f>,
    directory: &'f OwnedFd,
    path: &'f Path,
    name: &'f OsStr,
}

impl WalkedFile for EntryFile<'_> {
    fn path(&self) -> &Path {
        self.path
    }

    fn open(&self) -> Result<Box<dyn Read + Send>, ToolError> {
        if self.exclusions.is_secret(self.path, false) {
            return Err(denied(&format!("{} may hold secrets; name the file itself", self.path.display())));
        }
        let flags = READ_FLAGS | OFlags::NOFOLLOW;
        let fd = rustix::fs::openat(self.directory.as_fd(), self.name, flags, Mode::empty())
            .map_err(|error| os_error(self.path, error))?;
        let stat = rustix::fs::fstat(&fd).map_err(|error| os_error(self.path, error))?;
        require_regular(self.path, &stat)?;
        self.files.check_hard_link(self.path, &stat)?;
        Ok(Box::new(File::from(fd)))
    }

    fn is_secret(&self) -> bool {
        self.exclusions.is_secret(self.path, false)
    }

    fn modified_ns(&self) -> i64 {
        rustix::fs::statat(self.directory, self.name, AtFlags::SYMLINK_NOFOLLOW)
            .map_or(0, |stat| stat::modified_ns(&stat))
    }
}

/// A file that is the root of the walk.
struct RootFile<'f> {
    files: &'f LocalFiles,
    path: &'f Path,
}

impl WalkedFile for RootFile<'_> {
    fn path(&self) -> &Path {
        self.path
    }

    fn open(&self) -> Result<Box<dyn Read + Send>, ToolError> {
        self.files.open_regular(self.path).map(|open| open.reader)
    }

    fn modified_ns(&self) -> i64 {
        self.files.stat_of(self.path).map_or(0, |stat| stat::modified_ns(&stat))
    }
}
