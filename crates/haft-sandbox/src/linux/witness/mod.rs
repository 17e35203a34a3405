//! The witness performs the mutating system calls of a sandboxed process tree and records what they change.
//!
//! A sandboxed program has no right to write (Landlock). Its calls are reported to the witness, which reads the arguments once,
//! resolves and checks the path, stores the previous state, performs the call and replies with the result. It uses the same
//! descriptor that it checked, so no other thread of the program can interfere.

mod blocking;
mod caller;
mod capabilities;
mod final_view;
mod guarded_entries;
mod hard_links;
mod judgement;
mod listeners;
mod new_tree;
mod notifications;
mod outside_names;
mod own_mounts;
mod own_secrets;
mod paths;
mod private_changes;
mod proc_paths;
mod recorder;
mod resource_limits;
mod root_dir;
mod shown_path;
mod supervisor;
mod syscalls;
mod terminals;
mod write_policy;

use std::cell::OnceCell;
use std::collections::HashSet;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use haft_tool::{Change, Denial, Record, ToolError};
use rustix::fs::{Mode, OFlags, ResolveFlags, Stat};

use super::descriptors::receive_descriptor;
use crate::denials::{DenialList, RefusalSink};
use crate::limits::CommandLimits;
use crate::process::block_signals;
use crate::session::NetworkReach;
use blocking::BlockedCalls;
use caller::UmaskCache;
use capabilities::WitnessCapabilities;
use notifications::NotifyListener;
use outside_names::OutsideNames;
use own_mounts::OwnMounts;
use own_secrets::OwnSecrets;
use paths::PathLookup;
use private_changes::PrivateChanges;
use recorder::ChangeRecorder;
use resource_limits::ResourceMonitor;
use root_dir::RootDir;
use supervisor::Supervisor;
pub(super) use write_policy::{DeniedPaths, SessionResources, WritePolicy};

const STACK_BYTES: usize = 512 * 1024;

/// What a witness enforces.
pub(crate) struct WitnessConfig {
    pub(super) policy: WritePolicy,
    pub(super) network: NetworkReach,
    pub(super) limits: CommandLimits,
    /// The command's root directory.
    pub(super) root: OwnedFd,
    /// The socket through which the command's process sends its listener.
    pub(super) socket: OwnedFd,
}

/// What a witness found.
#[derive(Default)]
pub(crate) struct Witnessed {
    pub(crate) changes: Vec<Change>,
    /// What undo will not restore.
    pub(crate) losses: Vec<String>,
    pub(crate) denials: Vec<Denial>,
    /// Why the command was ended, if it used too many resources.
    pub(crate) limit_exceeded: Option<String>,
}

/// The running witness of one command.
pub(crate) struct Witness {
    thread: JoinHandle<Witnessed>,
    stop: Arc<AtomicBool>,
}

impl Witness {
    /// Starts the witness. `reaper` is the ancestor of all processes of the command, `end` ends the command.
    pub(crate) fn start(
        config: WitnessConfig,
        record: Arc<dyn Record>,
        reaper: i32,
        end: Box<dyn Fn() + Send>,
        inherits_streams: bool,
        on_refused: Option<RefusalSink>,
    ) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let its_stop = Arc::clone(&stop);
        let work = move || {
            let Some(listener) = receive_descriptor(&config.socket) else { return Witnessed::default() };
            let WitnessConfig { policy, network, root, limits, .. } = config;
            let shared_memory = shared_memory_dir(&root).filter(|_| policy.has_namespaces);
            // A signal that interrupts the adding of a descriptor makes the kernel return 0 to the program, as if it had opened
            // its standard input.
            block_signals();
            // The thread sets its umask for each call; this makes it independent of the process's umask.
            unshare_fs();
            policy.resources.enter();
            let mut recorder = ChangeRecorder::new(record, &policy.scope.roots);
            recorder.refused = DenialList::new(on_refused.clone());
            let supervisor = Supervisor {
                listener: Arc::new(NotifyListener::new(listener)),
                recorder,
                private_changes: PrivateChanges::default(),
                outside_names: OutsideNames::default(),
                own_secrets: OwnSecrets::default(),
                denials: DenialList::new(on_refused),
                paths: PathLookup::new(
                    RootDir::new(root),
                    policy.shared_memory.clone(),
                    policy.has_namespaces.then(OwnMounts::default),
                ),
                policy,
                umasks: UmaskCache::default(),
                umask: None,
                last_thread: None,
                capabilities: WitnessCapabilities::current(),
                monitor: ResourceMonitor::new(reaper, limits, shared_memory, end),
                network,
                terminals: Vec::new(),
                inherits_streams,
                blocked: BlockedCalls::default(),
                turn: None,
                handled: 0,
                moves: 0,
                moved_secrets: Supervisor::moved_secrets(),
                refused: HashSet::new(),
                last_judged: Instant::now(),
                last_compared: Instant::now(),
                search_time: Duration::ZERO,
                file_index: OnceCell::new(),
                stop: its_stop,
            };
            supervise(supervisor)
        };
        let thread = std::thread::Builder::new().name("haft-witness".to_owned()).stack_size(STACK_BYTES);
        Ok(Self { thread: thread.spawn(work)?, stop })
    }

    /// What the witness found. All processes of the command must have ended.
    pub(crate) fn finish(self) -> Result<Witnessed, ToolError> {
        self.stop.store(true, Ordering::SeqCst);
        self.thread.join().map_err(|_| ToolError::internal("the witness panicked"))
    }
}

fn supervise(mut supervisor: Supervisor) -> Witnessed {
    supervisor.run();
    supervisor.judge_at_end();
    let Supervisor { mut recorder, private_changes, paths, denials, policy, monitor, blocked, .. } =
        supervisor;
    blocked.finish();
    let has_others = policy.resources.leave() > 0;
    let refused = std::mem::take(&mut recorder.refused).into_list();
    let (changes, mut losses) = recorder.finish(&policy.scope.roots, has_others);
    losses.extend(private_changes.into_loss(paths.root()));
    let mut denials = denials.into_list();
    denials.extend(refused);
    Witnessed { changes, losses, denials, limit_exceeded: monitor.exceeded }
}

fn shared_memory_dir(root: &OwnedFd) -> Option<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat2(root, "dev/shm", flags, Mode::empty(), ResolveFlags::IN_ROOT).ok()
}

/// Gives this thread a umask and a working directory of its own.
#[expect(unsafe_code, reason = "unshare has no safe wrapper")]
fn unshare_fs() {
    // SAFETY: only affects this thread; Haft does not rely on the working directory.
    unsafe { libc::unshare(libc::CLONE_FS) };
}

/// The number of hard links; the type of the field depends on the architecture.
#[allow(clippy::allow_attributes, clippy::useless_conversion, reason = "st_nlink is u32 on aarch64")]
fn link_count(stat: &Stat) -> u64 {
    u64::from(stat.st_nlink)
}
