//! The sandbox on Linux: namespaces hide the machine from a command, Landlock and seccomp restrict it, the witness
//! records it.

mod child_stack;
mod confine;
mod descriptors;
mod dir_stamps;
mod namespaces;
mod port_relay;
mod preview;
mod privileges;
mod probe;
mod probe_child;
mod read_grants;
mod ruleset;
mod ruleset_cache;
mod seccomp;
mod secret_search;
mod session_view;
#[cfg(test)]
mod tests;
mod witness;
mod workspace_owner;

use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use haft_policy::glob_prefix;
use haft_tool::{ErrorKind, Network, ToolError, lock};

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::process::{StartStep, last_error};
use crate::session::{CommandRequest, create_own_directory, writable_roots};
pub(crate) use child_stack::start_child;
pub(crate) use confine::Confinement;
use confine::EnteredNamespaces;
pub(crate) use namespaces::{NamespaceError, SessionView};
use port_relay::PortRelay;
pub(crate) use preview::DiscardingRecord;
pub use probe::probe;
use ruleset::FileGrants;
use ruleset_cache::RulesetCache;
use seccomp::FilterOptions;
use secret_search::{FoundSecrets, SecretQuery, SecretSearchCache};
use session_view::NamespaceCache;
pub(crate) use session_view::{SessionNamespaces, ViewRequest};
use witness::{DeniedPaths, SessionResources, WritePolicy};
pub(crate) use witness::{Witness, WitnessConfig};
use workspace_owner::WorkspaceOwner;

/// Whether this platform can record a command with a witness.
pub(crate) const HAS_WITNESS: bool = true;
/// Devices that every command may use.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];
/// The Landlock ABI that restricts truncation.
const MIN_ABI_WITH_TRUNCATION: u32 = 3;
/// The Landlock ABI that restricts signals.
const MIN_ABI_WITH_SIGNALS: u32 = 6;

/// What the commands of a session share on Linux.
#[derive(Default)]
pub(crate) struct SessionState {
    namespaces: Arc<NamespaceCache>,
    served: Mutex<Option<PortRelay>>,
    rulesets: RulesetCache,
    searches: SecretSearchCache,
    resources: Arc<SessionResources>,
}

/// The sandbox of one command.
pub(crate) struct PreparedSandbox {
    pub(crate) confinement: Confinement,
    pub(crate) witness: Option<WitnessConfig>,
    pub(crate) enforcement: String,
    /// What is weaker than with all layers.
    pub(crate) weaker: Vec<String>,
}

impl SessionState {
    /// The namespaces of the session's commands, or why there are none.
    pub(crate) fn namespaces(&self, request: &ViewRequest<'_>) -> Result<SessionNamespaces, NamespaceError> {
        self.namespaces.get(session_view::build(request)?)
    }

    /// Makes ports of commands reachable on the machine's loopback interface, from the first call until the session ends.
    pub(crate) fn serve(&self, ports: &[u16]) -> Result<(), ToolError> {
        let mut served = lock(&self.served);
        if served.is_none() && !ports.is_empty() {
            let started = PortRelay::serve(ports, &self.namespaces);
            let started = started.map_err(|error| {
                let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
                ToolError::io(format!("serve port {} of commands", ports.join(", ")), &error)
            });
            *served = Some(started?);
        }
        Ok(())
    }

    /// Ends the namespaces when the last command in them has ended.
    pub(crate) fn clear(&self) {
        drop(lock(&self.served).take());
        self.namespaces.clear();
    }

    /// Makes the Landlock ruleset and the seccomp filter of a command, and the policy of its witness.
    pub(crate) fn prepare(&self, request: &CommandRequest<'_>) -> Result<PreparedSandbox, ToolError> {
        let CommandRequest { scope, setup, witness, .. } = *request;
        let abi = ruleset::abi().map_err(unavailable)?;
        let session = setup.namespaces.as_ref().ok();
        let mut private = vec![setup.scratch.path().to_owned(), setup.home.clone()];
        if let Some(session) = session {
            private = session.view.private.iter().map(|private| private.target.clone()).collect();
            private.extend(["/dev/shm", "/dev/pts"].map(PathBuf::from));
        }
        // Where secrets are among files that commands create, the witness is asked before a file is read.
        let in_scope = |path: &PathBuf| scope.roots.iter().any(|root| path.starts_with(root));
        let mut found = FoundSecrets::default();
        let query = SecretQuery::new(&setup.secret_names, scope);
        for root in &scope.roots {
            let FoundSecrets { paths, is_incomplete } = self.searches.find(root, &query);
            found.paths.extend(paths);
            found.is_incomplete |= is_incomplete;
        }
        found.paths.extend(setup.secret_paths.iter().filter(|path| in_scope(path)).cloned());
        let denied = scope.unreadable.iter().map(|glob| glob_prefix(glob)).filter(|(_, is_whole)| *is_whole);
        let (denied_inside, denied_outside): (Vec<_>, Vec<_>) =
            denied.map(|(path, _)| path).partition(|path| in_scope(path));
        found.paths.extend(denied_inside);
        // Without namespaces only the witness can read the private files of another user.
        let opens_for_owner = session.is_none() && WorkspaceOwner::find(&scope.workspace).is_some();
        let judges_reads = !found.paths.is_empty() || found.is_incomplete || opens_for_owner;
        let reads_by_kernel = judges_reads && !found.is_incomplete && !opens_for_owner;
        let mut unreadable = if session.is_none() { setup.secret_paths.clone() } else { Vec::new() };
        unreadable.extend(denied_outside);
        if reads_by_kernel {
            unreadable.extend(found.paths);
        }
        let shared_memory =
            if session.is_some() { None } else { Some(make_shared_memory(setup.scratch.path())?) };
        let scopes_signals = session.is_some() || abi >= MIN_ABI_WITH_SIGNALS;
        let mut devices: Vec<PathBuf> = DEVICES.iter().map(PathBuf::from).collect();
        if let Some(terminal) = request.terminal {
            devices.extend([terminal.to_owned(), PathBuf::from("/dev/tty")]);
            // Where commands with namespaces find the terminal.
            devices.extend(session.map(|_| PathBuf::from("/dev/console")));
        }
        let mut policy = WritePolicy {
            scope: Arc::clone(scope),
            private: private.clone(),
            private_sources: session
                .map(|session| session.view.private.iter().map(|private| private.source.clone()).collect())
                .unwrap_or_default(),
            read_only: session.map(|session| session.view.read_only()).unwrap_or_default(),
            mount_points: session.map(|session| session.view.mount_points()).unwrap_or_default(),
            has_namespaces: session.is_some(),
            restricts_truncation: session.is_some() || abi >= MIN_ABI_WITH_TRUNCATION,
            scopes_signals,
            shared_memory,
            devices: devices.clone(),
            secret_names: setup.secret_names.clone(),
            secret_paths: setup.secret_paths.clone(),
            denied: DeniedPaths::of(scope),
            judges_reads,
            read_rules: None,
            resources: Arc::clone(&self.resources),
        };
        private.retain(|private| !policy.grants_would_include_scope(private));
        // With a witness the command writes nothing itself.
        let writable = if witness { Vec::new() } else { writable_roots(scope) };
        let open_network = scope.network == Network::All;
        // A command can have a terminal of its own. The witness must not open this one, because Haft has another terminal.
        devices.extend(session.map(|_| PathBuf::from("/dev/tty")));
        let ruleset = self.rulesets.get(&FileGrants {
            namespaces: session.map(|session| &session.namespaces),
            unreadable: &unreadable,
            writable: &writable,
            devices: &devices,
            private: &private,
            tcp: open_network || session.is_some(),
        });
        let ruleset = ruleset.map_err(|error| ToolError::io("The Landlock rules cannot be made", &error))?;
        policy.read_rules = reads_by_kernel.then(|| Arc::clone(&ruleset));
        let filter = seccomp::build_filter(FilterOptions {
            witness,
            report_reads: judges_reads,
            scopes_signals,
            open_network,
            namespaces: session.is_some(),
        });
        let entered = session.map(|session| EnteredNamespaces {
            namespaces: Arc::clone(&session.namespaces),
            open_network,
            overrides_modes: session.view.owner.is_some(),
        });
        let pipes = |error: Errno| ToolError::io(StartStep::Pipes.description(), &error.into());
        let root = match session {
            Some(session) => session.namespaces.root().try_clone_to_owned().map_err(|_| Errno::MFILE),
            None => open_path(None, Path::new("/")),
        };
        let (confinement, listener) =
            Confinement::new(ruleset, filter, request.limits, entered, witness).map_err(pipes)?;
        let witness = match listener {
            Some(socket) => Some(WitnessConfig {
                policy,
                network: request.network,
                limits: request.limits,
                root: root.map_err(pipes)?,
                socket,
            }),
            None => None,
        };
        let recorded =
            if witness.is_some() { "witness" } else { "no witness: guarded names are not protected" };
        let isolated = match &setup.namespaces {
            Ok(_) => "namespaces".to_owned(),
            Err(reason) => format!("no namespaces ({reason})"),
        };
        let enforcement = format!("{isolated}, Landlock {abi}, seccomp, {recorded}");
        let weaker = match session {
            Some(_) if abi >= MIN_ABI_WITH_SIGNALS => Vec::new(),
            Some(_) => vec!["commands of the session can send each other signals".to_owned()],
            None => weaker_without_namespaces(abi, open_network),
        };
        Ok(PreparedSandbox { confinement, witness, enforcement, weaker })
    }
}

/// What namespaces would hold, too.
fn weaker_without_namespaces(abi: u32, open_network: bool) -> Vec<String> {
    let udp = if open_network { "" } else { "UDP, " };
    let mut weaker = vec![
        "commands see the machine's processes, /tmp, /run and all of the home but secrets".to_owned(),
        format!(
            "writing /tmp, {udp}System V IPC and sockets of other programs are refused instead of private"
        ),
    ];
    let missing = ruleset::missing_parts(abi).join(", ");
    if !missing.is_empty() {
        weaker.push(format!("no Landlock for {missing}"));
    }
    weaker
}

/// A directory of the session for shared memory and semaphores.
fn make_shared_memory(scratch: &Path) -> Result<PathBuf, ToolError> {
    let path = scratch.join("shm");
    let created = create_own_directory(&path, Mode::RWXU.as_raw_mode());
    created.map_err(|error| ToolError::io("Commands need a directory for shared memory", &error))?;
    Ok(path)
}

fn unavailable(error: Errno) -> ToolError {
    let (reason, remedy) = ruleset::explain(error);
    ToolError::new(
        ErrorKind::PermissionDenied,
        format!(
            "No command can be sandboxed: {reason}. {remedy}, or turn the sandbox off with --sandbox off"
        ),
    )
}

/// Opens an absolute path without following a link at its end and without access to its content. `root` is the root
/// directory of other namespaces.
fn open_path(root: Option<BorrowedFd<'_>>, path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match root {
        Some(root) => rustix::fs::openat2(root, path, flags, Mode::empty(), ResolveFlags::IN_ROOT),
        None => rustix::fs::open(path, flags, Mode::empty()),
    }
}
