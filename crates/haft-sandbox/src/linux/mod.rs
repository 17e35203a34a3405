//! The sandbox on Linux: Landlock and seccomp restrict a command, the witness records it.

mod child_stack;
mod confine;
mod dir_stamps;
mod privileges;
mod probe;
mod probe_child;
mod read_grants;
mod ruleset;
mod ruleset_cache;
mod seccomp;
mod secret_search;
#[cfg(test)]
mod tests;
mod witness;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_files::read_small_file;
use haft_tool::{ErrorKind, Network, ToolError};

use crate::process::{StartStep, last_error};
use crate::session::{CommandRequest, writable_roots};
pub(crate) use child_stack::start_child;
pub(crate) use confine::Confinement;
pub use probe::probe;
use ruleset::FileGrants;
use ruleset_cache::RulesetCache;
use seccomp::FilterOptions;
use secret_search::SecretSearchCache;
use witness::{SessionResources, WritePolicy};
pub(crate) use witness::{Witness, WitnessConfig};

/// Whether this platform can record a command with a witness.
pub(crate) const HAS_WITNESS: bool = true;
/// Devices that every command may use.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];
/// The Landlock ABI that restricts signals.
const MIN_ABI_WITH_SIGNALS: u32 = 6;

/// What the commands of a session share on Linux.
#[derive(Default)]
pub(crate) struct SessionState {
    rulesets: RulesetCache,
    searches: SecretSearchCache,
    resources: Arc<SessionResources>,
}

/// The sandbox of one command.
pub(crate) struct PreparedSandbox {
    pub(crate) confinement: Confinement,
    pub(crate) witness: Option<WitnessConfig>,
    pub(crate) enforcement: String,
}

impl SessionState {
    /// Makes the Landlock ruleset and the seccomp filter of a command, and the policy of its witness.
    pub(crate) fn prepare(&self, request: &CommandRequest<'_>) -> Result<PreparedSandbox, ToolError> {
        let CommandRequest { scope, setup, witness, .. } = *request;
        let abi = ruleset::abi().map_err(unavailable)?;
        let private = vec![setup.scratch.path().to_owned(), setup.home.clone()];
        // Where secrets are among files that commands create, the witness must open every file.
        let mut shared = scope.roots.iter().chain(&setup.temp_dirs);
        let opens_all = shared.any(|tree| setup.secret_paths.iter().any(|secret| secret.starts_with(tree)))
            || scope.roots.iter().any(|root| self.searches.may_contain(root, &setup.secret_names));
        let mut devices: Vec<PathBuf> = DEVICES.iter().map(PathBuf::from).collect();
        if let Some(terminal) = request.terminal {
            devices.extend([terminal.to_owned(), PathBuf::from("/dev/tty")]);
        }
        // With a witness the command writes nothing itself.
        let writable = if witness { Vec::new() } else { writable_roots(scope) };
        let open_network = scope.network == Network::All;
        let ruleset = self.rulesets.get(&FileGrants {
            unreadable: &setup.secret_paths,
            writable: &writable,
            devices: &devices,
            private: &private,
            tcp: open_network,
        });
        let ruleset = ruleset.map_err(|error| ToolError::io("The Landlock rules cannot be made", &error))?;
        let filter = seccomp::build_filter(FilterOptions {
            witness,
            report_reads: opens_all,
            report_signals: abi < MIN_ABI_WITH_SIGNALS,
            open_network,
        });
        let policy = WritePolicy {
            scope: Arc::clone(scope),
            private,
            temp_dirs: setup.temp_dirs.clone(),
            devices,
            secret_names: setup.secret_names.clone(),
            secret_paths: setup.secret_paths.clone(),
            opens_all,
            resources: Arc::clone(&self.resources),
        };
        let (confinement, listener) = Confinement::new(ruleset, filter, request.limits, witness)
            .map_err(|error| ToolError::io(StartStep::Pipes.description(), &error.into()))?;
        let witness = listener.map(|socket| WitnessConfig { policy, network: request.network, socket });
        let recorded =
            if witness.is_some() { "witness" } else { "no witness: guarded names are not protected" };
        let enforcement = format!("Landlock {abi}, seccomp, {recorded}");
        Ok(PreparedSandbox { confinement, witness, enforcement })
    }
}

fn unavailable(error: rustix::io::Errno) -> ToolError {
    let (reason, remedy) = ruleset::explain(error);
    ToolError::new(
        ErrorKind::PermissionDenied,
        format!(
            "No command can be sandboxed: {reason}. {remedy}, or turn the sandbox off with --sandbox off"
        ),
    )
}

/// When a process was started, in clock ticks since boot.
pub(crate) fn process_start_time(pid: u32) -> Option<u64> {
    /// Index of the start time among the fields after the name, see proc(5).
    const START_TIME_OFFSET: usize = 19;
    let mut stat = [0; 1024];
    let stat = read_small_file(&format!("/proc/{pid}/stat"), &mut stat)?;
    let after_name = stat.iter().rposition(|&byte| byte == b')')? + 2;
    let text = std::str::from_utf8(stat.get(after_name..)?).ok()?;
    text.split(' ').nth(START_TIME_OFFSET)?.parse().ok()
}

/// Opens a path without following a link and without access to its content.
fn open_path(path: &Path) -> Result<std::os::fd::OwnedFd, rustix::io::Errno> {
    use rustix::fs::{Mode, OFlags};
    rustix::fs::open(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
}
