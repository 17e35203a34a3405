//! Starts commands under a Seatbelt profile with `sandbox-exec`.

use std::ffi::CString;
use std::os::fd::RawFd;

use haft_tool::ToolError;
use rustix::io::Errno;
use rustix::process::Pid;

use super::seatbelt::SeatbeltProfile;
use crate::limits::CommandLimits;
use crate::process::{StartError, StartStep, last_error};
use crate::session::{CommandRequest, NetworkReach};

/// Applies a profile to itself and executes a program. The alternative, `sandbox_init`, cannot be called between fork and
/// exec, because it allocates.
pub(super) const SANDBOX_EXEC: &str = "/usr/bin/sandbox-exec";
const ENFORCEMENT: &str = "Seatbelt, no witness";
/// What the witness of Linux would do.
const WEAKER: &[&str] = &[
    "changes are found by comparing before and after, in the workspace and granted paths only",
    "refusals are not listed",
    "git configuration is read-only as a whole",
    "processes that leave the command's group survive it, and have no limits as a whole",
];

/// Namespaces, which macOS does not have.
pub(crate) enum SessionView {}

impl SessionView {
    #[expect(clippy::unused_self, reason = "there is no value of this type")]
    pub(crate) fn is_private(&self, _path: &std::path::Path) -> bool {
        match *self {}
    }
}

/// What the commands of a session share on macOS.
#[derive(Default)]
pub(crate) struct SessionState;

/// The sandbox of one command.
pub(crate) struct PreparedSandbox {
    pub(crate) confinement: Confinement,
    pub(crate) enforcement: String,
    pub(crate) weaker: Vec<String>,
}

impl SessionState {
    /// Makes the Seatbelt profile of a command.
    pub(crate) fn prepare(&self, request: &CommandRequest<'_>) -> Result<PreparedSandbox, ToolError> {
        let CommandRequest { scope, setup, network, limits, .. } = *request;
        let proxy = match network {
            NetworkReach::Proxy(address) | NetworkReach::None(Some(address)) => Some(address.port()),
            NetworkReach::None(None) | NetworkReach::All => None,
        };
        let profile = SeatbeltProfile {
            scope,
            secret_paths: &setup.secret_paths,
            secret_names: setup.secret_names.globs(),
            private: &[setup.scratch.path().to_owned(), setup.home.clone()],
            proxy,
        }
        .build()?;
        let wrapper = [SANDBOX_EXEC.to_owned(), "-p".to_owned(), profile].map(CString::new);
        let wrapper = wrapper.into_iter().collect::<Result<_, _>>();
        let wrapper = wrapper.map_err(|_| ToolError::internal("a Seatbelt profile has a NUL byte"))?;
        let confinement = Confinement { wrapper, limits };
        let weaker = WEAKER.iter().map(|&part| part.to_owned()).collect();
        Ok(PreparedSandbox { confinement, enforcement: ENFORCEMENT.to_owned(), weaker })
    }
}

/// What restricts a command.
pub(crate) struct Confinement {
    wrapper: Vec<CString>,
    limits: CommandLimits,
}

impl Confinement {
    /// The program that starts the command, and its arguments.
    pub(crate) fn wrapper(&self) -> &[CString] {
        &self.wrapper
    }

    /// `None`: macOS has no namespaces that a process could start in.
    ///
    /// # Safety
    /// Always safe here.
    #[expect(unsafe_code, clippy::unused_self, reason = "the same function as on Linux")]
    pub(crate) unsafe fn start_process<F: FnMut()>(&self, _run: F) -> Option<Result<Pid, Errno>> {
        None
    }

    /// The descriptors that [`Confinement::apply`] needs: none.
    pub(crate) fn descriptors(&self) -> [Option<RawFd>; 2] {
        [None; 2]
    }

    /// Applies the resource limits to this process; the profile is applied by the wrapper.
    pub(crate) fn apply(&self, _fds: [RawFd; 2]) -> Result<(), StartError> {
        self.limits.apply().map_err(StartStep::Limits.failed())
    }
}

/// Starts a process that calls `run`.
///
/// # Safety
/// This process must have a single thread; `run` may only make system calls and must not return.
#[expect(unsafe_code, reason = "fork has no safe wrapper")]
pub(crate) unsafe fn start_child<F: FnMut()>(mut run: F) -> Result<Pid, Errno> {
    // SAFETY: the caller guarantees what a forked child may do.
    match unsafe { libc::fork() } {
        -1 => Err(last_error()),
        0 => {
            run();
            // SAFETY: ends the process without exit handlers of Haft.
            unsafe { libc::_exit(127) }
        }
        child => Pid::from_raw(child).ok_or(Errno::CHILD),
    }
}
