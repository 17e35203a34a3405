//! Visiting files in parallel, from held directory to held directory, never through links.
//!
//! Every entry is opened by its name in the directory that is held open, so the walk cannot be led out of where it
//! started, and the kernel never resolves a long path twice.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, LazyLock, Mutex, PoisonError};

use haft_tool::{ErrorKind, FileKind, FileVisitor, Scope, ToolError, WalkRequest, WalkedFile, lock};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};

use super::LocalFiles;
use super::ignores::{Filter, Level};
use super::list::Listing;
use super::open::{READ, only_regular};
use super::root::{is_number, on_procfs};

/// More threads than this only wait for each other.
const MOST_THREADS: usize = 12;
/// To ask the system costs more than a small walk.
static THREADS: LazyLock<usize> = LazyLock::new(|| {
    std::thread::available_parallelism().map_or(2, std::num::NonZero::get).min(MOST_THREADS)
});
const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl LocalFiles {
    pub(super) fn walk_files<'a>(
        &self,
        walk: &WalkRequest,
        visitors: &mut dyn FnMut() -> FileVisitor<'a>,
    ) -> Result<(), ToolError> {
        let filter = Filter::new(walk, &self.scope.workspace)?;
        if self.kind_of(&walk.root)? != FileKind::Dir {
            let _ = visitors()(&Named { files: self, path: &walk.root });
            return Ok(());
        }
        let (root, _) = self.open_any(&walk.root, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC)?;
        let first = Task { held: Held::Open(root), path: walk.root.clone(), level: Level::above(&walk.root) };
        let queue = Queue::new(first);
        let closed = Closed::new(&self.scope, &walk.root, self.overlap || self.root_of(&walk.root).is_none());
        let mut workers: Vec<Worker<'_, 'a>> = (0..*THREADS)
            .map(|_| Worker {
                files: self,
                filter: &filter,
                queue: &queue,
                visitor: visitors(),
                closed: &closed,
            })
            .collect();
        let mine = workers.pop();
        std::thread::scope(|scope| {
            for worker in workers {
                scope.spawn(move || worker.work());
            }
            if let Some(worker) = mine {
                worker.work();
            }
        });
        if self.cancel.is_cancelled() {
            return Err(ToolError::new(ErrorKind::Interrupted, "the search was cancelled"));
        }
        Ok(())
    }
}

/// A directory that is still to be visited.
struct Task {
    held: Held,
    path: PathBuf,
    level: Option<Arc<Level>>,
}

/// A directory, open or to be opened in its parent.
enum Held {
    Open(OwnedFd),
    In(Arc<OwnedFd>, OsString),
}

/// The directories to be visited. The last found is visited first, which keeps the number of held ones small.
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    tasks: Vec<Task>,
    busy: usize,
    stopped: bool,
}

impl Queue {
    fn new(first: Task) -> Self {
        let state = State { tasks: vec![first], busy: 0, stopped: false };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// The next directory; `None` when all have been visited.
    fn next(&self, was_busy: bool) -> Option<Task> {
        let mut state = lock(&self.state);
        state.busy -= usize::from(was_busy);
        loop {
            if state.stopped || (state.tasks.is_empty() && state.busy == 0) {
                self.changed.notify_all();
                return None;
            }
            if let Some(task) = state.tasks.pop() {
                state.busy += 1;
                return Some(task);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn add(&self, tasks: &mut Vec<Task>) {
        if tasks.is_empty() {
            return;
        }
        lock(&self.state).tasks.append(tasks);
        self.changed.notify_all();
    }

    fn stop(&self) {
        lock(&self.state).stopped = true;
        self.changed.notify_all();
    }
}

/// One thread of the walk.
struct Worker<'w, 'a> {
    files: &'w LocalFiles,
    filter: &'w Filter,
    queue: &'w Queue,
    visitor: FileVisitor<'a>,
    closed: &'w Closed<'w>,
}

/// What the walk must not see.
struct Closed<'s> {
    scope: &'s Scope,
    /// Whether something protected lies below the walk's root by its path.
    below: bool,
    /// Device and inode of what is protected: a walk that started at a link comes to it under another path.
    nodes: Vec<(u64, u64)>,
    /// Whether the walk can come to what Linux tells about processes.
    processes: bool,
}

impl<'s> Closed<'s> {
    fn new(scope: &'s Scope, root: &Path, processes: bool) -> Self {
        let stats = scope.protected.iter().filter_map(|path| rustix::fs::stat(path).ok());
        let nodes = stats.map(|stat| (stat.st_dev, stat.st_ino)).collect();
        let below = scope.protected.iter().any(|path| path.starts_with(root));
        Self { scope, below, nodes, processes }
    }

    fn holds(&self, path: &Path, directory: &OwnedFd, name: &OsStr, inode: u64) -> bool {
        let known = |stat: Stat| self.nodes.contains(&(stat.st_dev, stat.st_ino));
        (self.below && self.scope.is_protected(path))
            || (self.nodes.iter().any(|node| node.1 == inode)
                && rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(known))
            || (self.processes && is_number(name) && on_procfs(directory))
    }
}

impl Worker<'_, '_> {
    fn work(mut self) {
        let mut listing = Listing::default();
        let mut was_busy = false;
        while let Some(task) = self.queue.next(was_busy) {
            was_busy = true;
            if self.files.cancel.is_cancelled() || self.visit(task, &mut listing) == ControlFlow::Break(()) {
                self.queue.stop();
            }
        }
    }

    /// Visits the files of one directory and queues its subdirectories. What cannot be listed is passed over.
    fn visit(&mut self, task: Task, listing: &mut Listing) -> ControlFlow<()> {
        let Task { held, mut path, level } = task;
        let fd = match held {
            Held::Open(fd) => fd,
            Held::In(parent, name) => match rustix::fs::openat(&*parent, &name, DIRECTORY, Mode::empty()) {
                Ok(fd) => fd,
                Err(_) => return ControlFlow::Continue(()),
            },
        };
        if listing.read(&fd).is_err() {
            return ControlFlow::Continue(());
        }
        let own = Level::new(level.as_ref(), &path, |name| listing.has(name), |name| read_rules(&fd, name));
        let level = own.map(Arc::new).or(level);
        let fd = Arc::new(fd);
        let mut below = Vec::new();
        for (name, inode, file_type) in listing.entries() {
            let file_type = match file_type {
                FileType::Unknown => match rustix::fs::statat(&*fd, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => FileType::from_raw_mode(stat.st_mode),
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
            let takes = self.filter.takes(level.as_deref(), &path, name, is_dir);
            if takes && !self.closed.holds(&path, &fd, name, inode) {
                if is_dir {
                    let held = Held::In(Arc::clone(&fd), name.to_owned());
                    below.push(Task { held, path: path.clone(), level: level.clone() });
                } else {
                    let met = Met { files: self.files, directory: &fd, path: &path, name };
                    if (self.visitor)(&met) == ControlFlow::Break(()) || self.files.cancel.is_cancelled() {
                        return ControlFlow::Break(());
                    }
                }
            }
            path.pop();
        }
        self.queue.add(&mut below);
        ControlFlow::Continue(())
    }
}

fn read_rules(directory: &OwnedFd, name: &str) -> Option<Vec<u8>> {
    /// No honest ignore file is larger.
    const MOST_BYTES: u64 = 4 << 20;
    let fd = rustix::fs::openat(directory, name, READ, Mode::empty()).ok()?;
    let regular = |fd: &OwnedFd| {
        rustix::fs::fstat(fd).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile)
    };
    if !regular(&fd) {
        return None;
    }
    crate::read_bounded(File::from(fd), MOST_BYTES).ok().flatten()
}

/// A file the walk came across.
struct Met<'f> {
    files: &'f LocalFiles,
    directory: &'f OwnedFd,
    path: &'f Path,
    name: &'f OsStr,
}

impl WalkedFile for Met<'_> {
    fn path(&self) -> &Path {
        self.path
    }

    fn open(&self) -> Result<Box<dyn Read + Send>, ToolError> {
        let fd =
            rustix::fs::openat(self.directory.as_fd(), self.name, READ | OFlags::NOFOLLOW, Mode::empty())
                .map_err(|error| ToolError::io(self.path.display(), &error.into()))?;
        let stat =
            rustix::fs::fstat(&fd).map_err(|error| ToolError::io(self.path.display(), &error.into()))?;
        only_regular(self.path, &stat)?;
        self.files.refuse_alias(self.path, &stat)?;
        Ok(Box::new(File::from(fd)))
    }

    fn modified_ns(&self) -> i64 {
        rustix::fs::statat(self.directory, self.name, AtFlags::SYMLINK_NOFOLLOW)
            .map_or(0, |stat| modified(&stat))
    }
}

/// A file the walk was sent to by name.
struct Named<'f> {
    files: &'f LocalFiles,
    path: &'f Path,
}

impl WalkedFile for Named<'_> {
    fn path(&self) -> &Path {
        self.path
    }

    fn open(&self) -> Result<Box<dyn Read + Send>, ToolError> {
        self.files.open_regular(self.path).map(|open| open.reader)
    }

    fn modified_ns(&self) -> i64 {
        self.files.stat_of(self.path).map_or(0, |stat| modified(&stat))
    }
}

fn modified(stat: &Stat) -> i64 {
    let nanoseconds = i64::try_from(stat.st_mtime_nsec).unwrap_or(0);
    stat.st_mtime.saturating_mul(1_000_000_000).saturating_add(nanoseconds)
}
