//! Confines the command's process between fork and exec, and passes the seccomp listener to Haft.
//!
//! [`Confinement::apply`] does not allocate, lock or panic; everything it needs is prepared before.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::process::Pid;
use rustix::thread::CapabilitySet;

use super::descriptors::send_descriptor;
use super::namespaces::Namespaces;
use super::ruleset::{LandlockRuleset, restrict_self};
use super::{last_error, privileges};
use crate::limits::CommandLimits;
use crate::process::{StartError, StartStep};

/// Only fatal signals interrupt a call that waits for the witness, so that no call is performed twice (Linux 5.19).
const WAIT_KILLABLE: libc::c_ulong = libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;

/// What the command's process puts on.
pub(crate) struct Confinement {
    ruleset: Arc<LandlockRuleset>,
    filter: Vec<libc::sock_filter>,
    limits: CommandLimits,
    /// Where the process starts; `None` in Haft's own namespaces.
    namespaces: Option<EnteredNamespaces>,
    /// The socket that the listener is sent over; `None` without a witness.
    socket: Option<OwnedFd>,
}

/// The namespaces that a command enters.
#[derive(Debug, Clone)]
pub(crate) struct EnteredNamespaces {
    pub(super) namespaces: Arc<Namespaces>,
    /// Whether the command stays in Haft's network namespace.
    pub(super) open_network: bool,
    /// Whether root may use the files of the other user in the user namespace.
    pub(super) overrides_modes: bool,
}

impl Confinement {
    /// The confinement, and the socket from which [`receive_descriptor`](super::descriptors::receive_descriptor) gets the listener.
    pub(super) fn new(
        ruleset: Arc<LandlockRuleset>,
        filter: Vec<libc::sock_filter>,
        limits: CommandLimits,
        namespaces: Option<EnteredNamespaces>,
        witness: bool,
    ) -> Result<(Self, Option<OwnedFd>), Errno> {
        let (receiver, socket) = if witness {
            let flags = SocketFlags::CLOEXEC;
            Some(rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?).unzip()
        } else {
            (None, None)
        };
        Ok((Self { ruleset, filter, limits, namespaces, socket }, receiver))
    }

    /// Starts a process in the command's namespaces that calls `run`.
    ///
    /// # Safety
    /// `run` may only make system calls and must not return. Signals must be blocked.
    #[expect(unsafe_code, reason = "the caller's promise is passed on")]
    pub(crate) unsafe fn start_process<F: FnMut()>(&self, run: F) -> Option<Result<Pid, Errno>> {
        let EnteredNamespaces { namespaces, open_network, .. } = self.namespaces.as_ref()?;
        // SAFETY: as promised by the caller.
        Some(unsafe { namespaces.start_process(*open_network, run) })
    }

    /// The descriptors that [`Confinement::apply`] needs.
    pub(crate) fn descriptors(&self) -> [Option<RawFd>; 2] {
        [Some(self.ruleset.as_raw_fd()), self.socket.as_ref().map(AsRawFd::as_raw_fd)]
    }

    /// Confines this process for good. `fds` are the descriptors under their new numbers.
    pub(crate) fn apply(&self, [ruleset, socket]: [RawFd; 2]) -> Result<(), StartError> {
        self.limits.apply().map_err(StartStep::Limits.failed())?;
        let overrides_modes = self.namespaces.as_ref().is_some_and(|entered| entered.overrides_modes);
        let kept = if overrides_modes { CapabilitySet::DAC_OVERRIDE } else { CapabilitySet::empty() };
        privileges::drop_all_but(kept).map_err(StartStep::Privileges.failed())?;
        restrict_self(ruleset).map_err(StartStep::Landlock.failed())?;
        let listener = install_filter(&self.filter, self.socket.is_some());
        if let Some(listener) = listener.map_err(StartStep::Filter.failed())? {
            let sent = send_descriptor(socket, listener);
            close(listener);
            sent.map_err(StartStep::Filter.failed())?;
        }
        Ok(())
    }
}

/// Installs the filter; returns the listener if it has one.
#[expect(unsafe_code, reason = "seccomp has no safe wrapper")]
fn install_filter(filter: &[libc::sock_filter], has_listener: bool) -> Result<Option<RawFd>, Errno> {
    let program = libc::sock_fprog {
        len: u16::try_from(filter.len()).map_err(|_| Errno::INVAL)?,
        filter: filter.as_ptr().cast_mut(),
    };
    let install = |flags: libc::c_ulong| {
        // SAFETY: the program is alive and has the given length.
        let result = unsafe {
            libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program)
        };
        RawFd::try_from(result).ok().filter(|result| *result >= 0)
    };
    if !has_listener {
        return install(0).map(|_| None).ok_or_else(last_error);
    }
    let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    install(flags | WAIT_KILLABLE).or_else(|| install(flags)).map(Some).ok_or_else(last_error)
}

/// Closes the listener: the command must not keep it.
#[expect(unsafe_code, reason = "the descriptor is known by its number")]
fn close(listener: RawFd) {
    // SAFETY: nothing else uses it.
    unsafe { libc::close(listener) };
}
