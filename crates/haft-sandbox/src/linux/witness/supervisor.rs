//! The thread that performs the reported calls of one command.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use haft_policy::Guard;
use haft_tool::FileId;
use parking_lot::{Mutex, MutexGuard};
use rustix::fs::Mode;
use rustix::io::Errno;

use super::blocking::BlockedCalls;
use super::caller::{Caller, UmaskCache, copy_fd};
use super::capabilities::WitnessCapabilities;
use super::notifications::{NotifyListener, ReceivedCall, Syscall};
use super::outside_names::OutsideNames;
use super::own_secrets::OwnSecrets;
use super::paths::{DirClassifier, DirectoryEntry, OpenDir, PathLookup, ResolvedTarget};
use super::private_changes::PrivateChanges;
use super::recorder::ChangeRecorder;
use super::resource_limits::ResourceMonitor;
use super::terminals::OwnTerminal;
use super::write_policy::{DENIED_BY_RULE, WriteArea, WritePolicy};
use crate::denials::DenialList;
use crate::guards::{FileIndex, Violation, is_relevant};
use crate::session::NetworkReach;

/// How long to wait for a call before the resource limits are checked again.
const POLL_INTERVAL: Duration = Duration::from_millis(40);

/// How long guarded files wait to be judged while the command runs.
const JUDGE_INTERVAL: Duration = Duration::from_millis(5);
/// The time between two searches for what links, git directories or configurations have come to name. Git changes such files
/// all the time.
const COMPARE_INTERVAL: Duration = Duration::from_secs(1);
/// In a large workspace, the command waits for its searches for no more than about a tenth of its time.
const MIN_INTERVAL_RATIO: u32 = 10;

/// After this many calls a command counts as busy, and other commands' calls take precedence.
const BUSY_CALLS: u64 = 1_000;
const BUSY_NICE_LEVEL: i32 = 10;

/// The commands of one process take turns, because one may move a directory that another is about to write to. The lock is
/// fair, unlike the standard library's: with that, two busy commands would make a third one wait for seconds.
pub(super) static TURN: Mutex<()> = Mutex::new(());

/// How often a command of this process moved a directory.
static MOVED_DIRECTORIES: AtomicU64 = AtomicU64::new(0);

/// How often a command of this process moved something with a secret: it may now be in a tree that commands can read.
static MOVED_SECRETS: AtomicU64 = AtomicU64::new(0);

/// The call must be performed again from the beginning. No program sees this error: it is internal to the kernel.
const RESTART: Errno = Errno::from_raw_os_error(513);

/// How often a call is performed again because directories keep moving.
const MAX_ATTEMPTS: u32 = 100;

/// The reply to a call.
pub(super) enum Reply {
    /// The kernel performs the call, restricted by Landlock.
    Continue,
    /// The witness has performed the call, with this result.
    Value(i64),
    /// The call fails.
    Error(Errno),
    /// The program gets this descriptor.
    Fd { fd: OwnedFd, close_on_exec: bool },
    /// Another thread replies, because the call may block.
    Deferred,
}

impl From<Errno> for Reply {
    fn from(error: Errno) -> Self {
        Self::Error(error)
    }
}

impl From<Result<(), Errno>> for Reply {
    fn from(result: Result<(), Errno>) -> Self {
        match result {
            Ok(()) => Self::Value(0),
            Err(error) => Self::Error(error),
        }
    }
}

/// The state of one command's witness.
pub(super) struct Supervisor {
    pub(super) listener: Arc<NotifyListener>,
    pub(super) policy: WritePolicy,
    pub(super) recorder: ChangeRecorder,
    pub(super) private_changes: PrivateChanges,
    pub(super) outside_names: OutsideNames,
    pub(super) own_secrets: OwnSecrets,
    pub(super) denials: DenialList,
    pub(super) paths: PathLookup,
    pub(super) umasks: UmaskCache,
    /// The last thread whose descriptor was copied, with a handle of it.
    pub(super) last_thread: Option<(i32, OwnedFd)>,
    /// The current umask of this thread.
    pub(super) umask: Option<Mode>,
    pub(super) monitor: ResourceMonitor,
    pub(super) capabilities: WitnessCapabilities,
    pub(super) network: NetworkReach,
    /// The pseudo-terminals that this command created.
    pub(super) terminals: Vec<OwnTerminal>,
    /// Whether the command has Haft's own streams.
    pub(super) inherits_streams: bool,
    /// Calls that other threads perform.
    pub(super) blocked: BlockedCalls,
    /// How many calls it has handled.
    pub(super) handled: u64,
    /// This command's turn, from the first path that a call resolves to its end.
    pub(super) turn: Option<MutexGuard<'static, ()>>,
    /// The number of moves when the turn was taken.
    pub(super) moves: u64,
    /// The number of moves of secrets when the command started.
    pub(super) moved_secrets: u64,
    /// Paths that were refused by a judgement; they are not written again.
    pub(super) refused: HashSet<PathBuf>,
    pub(super) last_judged: Instant,
    pub(super) last_compared: Instant,
    /// How long the last search for what is named took.
    pub(super) search_time: Duration,
    /// The files of the roots whose names matter to a judgement.
    pub(super) file_index: OnceCell<FileIndex>,
    /// Set when the command has ended and remaining calls need no reply.
    pub(super) stop: Arc<AtomicBool>,
}

pub(super) struct Classifier<'a>(pub(super) &'a WritePolicy, pub(super) &'a ChangeRecorder);

impl DirClassifier for Classifier<'_> {
    fn area(&self, path: &Path) -> WriteArea {
        self.0.area(path)
    }

    fn is_uniform(&self, path: &Path) -> bool {
        self.0.is_uniform(path)
    }

    fn is_new(&self, path: &Path) -> bool {
        self.1.is_new(path)
    }

    fn readable_tree<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        self.0.readable_tree(path)
    }

    fn is_readable(&self, tree: FileId) -> bool {
        self.0.is_readable(tree)
    }
}

impl Supervisor {
    /// Performs calls until no process of the command is left.
    pub(super) fn run(&mut self) {
        loop {
            match catch_unwind(AssertUnwindSafe(|| self.next_call())) {
                Ok(true) => {}
                Ok(false) => return,
                Err(_) => {
                    let reason = "Haft failed while it recorded the command";
                    self.turn = None;
                    self.monitor.end(reason.to_owned());
                    self.recorder.add_loss(reason.to_owned());
                }
            }
        }
    }

    /// Waits for a call and performs it. Returns whether there may be more.
    fn next_call(&mut self) -> bool {
        let interval = if self.recorder.has_notes() { JUDGE_INTERVAL } else { POLL_INTERVAL };
        match self.listener.next(interval) {
            ReceivedCall::Syscall(call) => self.handle(&call),
            ReceivedCall::Timeout if self.stop.load(Ordering::SeqCst) => return false,
            ReceivedCall::Timeout => {}
            ReceivedCall::Closed => return false,
        }
        let is_due = || self.has_many_notes() || self.last_judged.elapsed() >= JUDGE_INTERVAL;
        if self.recorder.has_notes() && is_due() {
            self.judge_while_running();
        }
        let interval = COMPARE_INTERVAL.max(self.search_time * MIN_INTERVAL_RATIO);
        if self.recorder.guarded.needs_comparison && self.last_compared.elapsed() >= interval {
            self.compare_while_running();
        }
        self.blocked.check(&self.listener);
        self.monitor.check(&self.policy.scope.workspace);
        true
    }

    fn handle(&mut self, call: &Syscall) {
        self.handled += 1;
        if self.handled == BUSY_CALLS {
            // On Linux this is the priority of the thread, and lowering it is always allowed.
            let _ = rustix::process::setpriority_process(None, BUSY_NICE_LEVEL);
        }
        self.umasks.forget_change(Caller::of(call));
        let mut attempts = 0;
        let reply = loop {
            attempts += 1;
            let performed = self.perform(call);
            self.recorder.note_moved(|dir| self.paths.real_path(&dir.fd).ok());
            self.turn = None;
            match performed {
                // A directory was moved meanwhile.
                Err(RESTART) if attempts < MAX_ATTEMPTS => {}
                Err(RESTART) => break Reply::Error(Errno::AGAIN),
                reply => break reply.unwrap_or_else(Reply::Error),
            }
        };
        self.listener.send_reply(call.id, reply);
    }

    /// Waits for this command's turn, unless it has it. The caller's memory must be read first, because the caller can make
    /// that take long.
    pub(super) fn take_turn(&mut self) {
        if self.turn.is_some() {
            return;
        }
        self.turn = Some(TURN.lock());
        let moves = MOVED_DIRECTORIES.load(Ordering::SeqCst);
        if moves != self.moves {
            self.moves = moves;
            self.paths.clear();
        }
    }

    /// A copy of the caller's descriptor, which the caller cannot replace.
    pub(super) fn copy_fd(&mut self, call: &Syscall, fd: i32) -> Result<OwnedFd, Errno> {
        if let Some((thread, handle)) = &self.last_thread
            && *thread == call.thread
        {
            match copy_fd(handle, fd) {
                // That thread has ended, and another one has its number.
                Err(Errno::SRCH) => {}
                copied => return copied,
            }
        }
        let (handle, is_exact) = Caller::of(call).pidfd()?;
        let copied = copy_fd(&handle, fd);
        self.last_thread = Some((call.thread, handle)).filter(|_| is_exact);
        copied
    }

    /// Resolves a path of the program, without following a link at its end.
    pub(super) fn resolve(
        &mut self,
        call: &Syscall,
        base: i32,
        path: &[u8],
    ) -> Result<ResolvedTarget, Errno> {
        self.take_turn();
        let classifier = Classifier(&self.policy, &self.recorder);
        let target = self.paths.resolve(Caller::of(call), base, path, &classifier)?;
        // If the caller is gone, the memory that was read may have been another process's.
        if self.listener.is_valid(call.id) { Ok(target) } else { Err(Errno::SRCH) }
    }

    /// Resolves a path of the program and follows links at its end.
    pub(super) fn resolve_followed(
        &mut self,
        call: &Syscall,
        base: i32,
        path: &[u8],
    ) -> Result<ResolvedTarget, Errno> {
        let target = self.resolve(call, base, path)?;
        self.follow(call, target)
    }

    pub(super) fn follow(&mut self, call: &Syscall, target: ResolvedTarget) -> Result<ResolvedTarget, Errno> {
        self.paths.follow(target, Caller::of(call), &Classifier(&self.policy, &self.recorder))
    }

    /// The entry of an open file.
    pub(super) fn entry_of_fd(&mut self, fd: &OwnedFd) -> Result<DirectoryEntry, Errno> {
        self.take_turn();
        self.paths.entry_of_fd(fd, &Classifier(&self.policy, &self.recorder))
    }

    /// Whether the scope allows a change of the entry, guards aside. A refusal is added to the denials.
    pub(super) fn may_change(&mut self, what: &str, entry: &DirectoryEntry) -> bool {
        let path = entry.path();
        if self.refused.contains(path) {
            return false;
        }
        let area = if entry.dir.is_uniform { entry.dir.area } else { self.policy.area(path) };
        let allowed = match area {
            WriteArea::Workspace | WriteArea::Private | WriteArea::Unrecorded => true,
            WriteArea::Outside => false,
        };
        if !allowed {
            let (rule, allow) = self.policy.explain_outside(path);
            self.denials.add(what, path.display().to_string(), rule, allow);
        }
        allowed
    }

    /// Refuses a guarded entry.
    pub(super) fn refuse_guarded(
        &mut self,
        what: &'static str,
        path: &Path,
        guard: Guard,
        detail: &str,
    ) -> Errno {
        self.deny(&Violation { path: path.to_owned(), guard, what, detail: detail.to_owned() });
        Errno::ACCESS
    }

    pub(super) fn deny(&mut self, violation: &Violation) {
        let place = violation.path.display().to_string();
        self.denials.add(violation.what, place, violation.rule(), Some(violation.allow()));
    }

    /// Whether the entry may hold a secret. What is in the session's own directories was put there by commands.
    pub(super) fn is_secret(&self, entry: &DirectoryEntry) -> bool {
        let may_be = matches!(entry.dir.area, WriteArea::Workspace | WriteArea::Outside);
        may_be && self.policy.is_secret(entry.path()) && !self.own_secrets.contains(entry)
    }

    /// Refuses a link to a directory of the session.
    pub(super) fn refuse_private_link(&mut self, path: &Path) {
        let rule = "it leads to a directory of the session, where commands may write anything";
        self.denials.add("link", path.display().to_string(), rule, None);
    }

    /// Refuses to read a secret.
    pub(super) fn refuse_read(&mut self, path: &Path) -> Errno {
        let (why, allow) = if self.policy.is_denied_reading(path) {
            (DENIED_BY_RULE, None)
        } else {
            let entry = self.policy.secret_entry(path);
            ("it may hold secrets", entry.map(|entry| format!("--allow-read '{entry}'")))
        };
        self.denials.add("read", path.display().to_string(), why, allow);
        Errno::ACCESS
    }

    /// Sets the umask of this thread to the caller's.
    pub(super) fn use_umask_of(&mut self, call: &Syscall) {
        let umask = self.umasks.get(Caller::of(call));
        if self.umask != Some(umask) {
            rustix::process::umask(umask);
            self.umask = Some(umask);
        }
    }

    /// Stores the state of an entry before it changes, where changes are recorded.
    pub(super) fn before_change(&mut self, entry: &DirectoryEntry) -> Result<(), Errno> {
        check_can_be_judged(entry)?;
        self.before_removal(entry)
    }

    /// The same for an entry that is removed.
    pub(super) fn before_removal(&mut self, entry: &DirectoryEntry) -> Result<(), Errno> {
        if entry.dir.area != WriteArea::Workspace {
            self.private_changes.before_change(entry, self.paths.root());
            return Ok(());
        }
        self.search_before_first_change()?;
        self.recorder.note(entry);
        if self.recorder.is_known(entry) {
            return Ok(());
        }
        // Storing a large file takes long, so other commands go on meanwhile.
        self.turn = None;
        let stored = self.recorder.before_change(entry);
        self.turn = Some(TURN.lock());
        stored?;
        // A command of another Haft process does not count its moves here.
        let is_there = self.paths.real_path(&entry.dir.fd).is_ok_and(|path| path == entry.dir.path);
        if is_there && self.moves == MOVED_DIRECTORIES.load(Ordering::SeqCst) {
            return Ok(());
        }
        self.paths.clear();
        Err(RESTART)
    }

    /// Finds what links and git configurations lead to, unless it is known. Other commands go on meanwhile, so the call is then
    /// performed again.
    fn search_before_first_change(&mut self) -> Result<(), Errno> {
        if self.recorder.guarded.has_changes() {
            return Ok(());
        }
        self.turn = None;
        let named = self.search_names();
        let _ = self.recorder.guarded.named.set(named);
        self.paths.clear();
        Err(RESTART)
    }

    /// The number of moves of secrets so far.
    pub(super) fn moved_secrets() -> u64 {
        MOVED_SECRETS.load(Ordering::SeqCst)
    }

    /// Must be called before a secret, or a directory that may contain one, is moved.
    pub(super) fn before_secret_move() {
        MOVED_SECRETS.fetch_add(1, Ordering::SeqCst);
    }

    /// Whether the kernel may open files of the directory for reading: Landlock lets it open no secret there, even if the
    /// program replaces the path.
    pub(super) fn is_read_by_kernel(&self, dir: &OpenDir) -> bool {
        dir.is_readable && self.moved_secrets == Self::moved_secrets()
    }

    /// Must be called after a directory was moved.
    pub(super) fn after_move(&mut self) {
        self.moves = MOVED_DIRECTORIES.fetch_add(1, Ordering::SeqCst) + 1;
        self.paths.clear();
    }

    /// The same for an entry that does not exist.
    pub(super) fn before_creation(&mut self, entry: &DirectoryEntry) -> Result<(), Errno> {
        check_can_be_judged(entry)?;
        if entry.dir.area == WriteArea::Workspace {
            self.search_before_first_change()?;
            return self.recorder.before_creation(entry);
        }
        self.private_changes.before_change(entry, self.paths.root());
        Ok(())
    }
}

/// Refuses guarded names at paths that are too long for one system call: the judge could not look at them, and they would take
/// effect once a directory above them was moved.
fn check_can_be_judged(entry: &DirectoryEntry) -> Result<(), Errno> {
    let is_too_long = entry.path().as_os_str().len() >= libc::PATH_MAX as usize;
    let is_judged = entry.dir.area == WriteArea::Workspace && is_relevant(entry.path());
    if is_too_long && is_judged { Err(Errno::NAMETOOLONG) } else { Ok(()) }
}
