//! Namespaces: commands get a view of the machine without other programs' files, sockets, devices and processes.
//!
//! A session creates one set and every command enters it. Landlock and the witness restrict commands in addition; where
//! the kernel grants no namespaces, they do it alone.

mod id_maps;
mod init;
mod mounts;
mod view;

use std::ffi::c_long;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Mutex;

use haft_tool::lock;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions};

use super::child_stack::start_child;
use super::descriptors::receive_descriptor;
use super::port_relay::PortRelay;
use super::workspace_owner::WorkspaceOwner;
use crate::process::{block_signals, exit, last_error, restore_signals};
use init::InitReport;
use mounts::MountPlan;
pub(super) use view::MountedDir;
pub(crate) use view::SessionView;

const ALL: libc::c_int = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWNET;

/// The namespaces of a session. Dropping them ends every process in them.
#[derive(Debug)]
pub(crate) struct Namespaces {
    init: Pid,
    /// In the order in which they are entered.
    entered: [OwnedFd; 5],
    /// Not entered by a command with an open network.
    network: OwnedFd,
    /// The root directory as commands see it.
    root: OwnedFd,
    /// Closed to end the first process.
    control: Mutex<Option<OwnedFd>>,
    /// Ports of the machine that commands may reach.
    forwarded: Option<PortRelay>,
}

/// Why there are no namespaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NamespaceError {
    /// The user turned them off.
    TurnedOff,
    /// The kernel, or a container around Haft, refuses a step.
    Failed { step: String, error: Errno },
}

impl std::fmt::Display for NamespaceError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TurnedOff => f.write_str("turned off"),
            Self::Failed { step, error } => write!(f, "{step}: {}", io::Error::from(*error)),
        }
    }
}

fn failed(step: &str) -> impl Fn(Errno) -> NamespaceError {
    move |error| NamespaceError::Failed { step: step.to_owned(), error }
}

impl Namespaces {
    /// Creates namespaces with this view of the file system.
    #[expect(unsafe_code, reason = "clone has no safe wrapper")]
    pub(super) fn new(view: &SessionView) -> Result<Self, NamespaceError> {
        let plan = view.plan();
        let mut copies = plan.places();
        let max_pid = view.max_pid.to_string();
        let (control, end) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .map_err(failed("creating a socket pair"))?;
        let mask = block_signals();
        // SAFETY: the child only makes system calls.
        let child = unsafe { clone_process(ALL | libc::SIGCHLD) };
        if child == Ok(None) {
            init::run(end.as_raw_fd(), &plan, &mut copies, max_pid.as_bytes());
        }
        restore_signals(&mask);
        drop(end);
        let child = child.and_then(|child| child.ok_or(Errno::CHILD));
        let init = child.map_err(failed("creating namespaces"))?;
        let mut namespaces = Self::receive_handles(init, control, &plan, view.owner);
        if let Ok(namespaces) = &mut namespaces {
            // A port that cannot be forwarded is refused to commands, as all others are.
            namespaces.forwarded = PortRelay::forward(&view.network, namespaces).ok().flatten();
        }
        if namespaces.is_err() {
            let _ = rustix::process::kill_process(init, Signal::KILL);
            let _ = rustix::process::waitpid(Some(init), WaitOptions::empty());
        }
        namespaces
    }

    /// Maps the ids, waits until the first process is ready or has failed, and receives its handles.
    fn receive_handles(
        init: Pid,
        control: OwnedFd,
        plan: &MountPlan,
        owner: Option<WorkspaceOwner>,
    ) -> Result<Self, NamespaceError> {
        id_maps::write(init, owner).map_err(failed("mapping the user and group ids"))?;
        let waiting = failed("waiting for the first process");
        rustix::io::write(&control, &[1]).map_err(&waiting)?;
        let mut report = [0; InitReport::BYTES];
        let length = loop {
            match rustix::io::read(&control, &mut report) {
                Err(Errno::INTR) => {}
                read => break read.map_err(&waiting)?,
            }
        };
        if length != report.len() {
            return Err(waiting(Errno::PIPE));
        }
        if let Some((step, error)) = InitReport::from_bytes(report).failed {
            let step = step.and_then(|step| plan.step(step)).map(|step| format!("{step:?}"));
            let step = step.unwrap_or_else(|| "setting up the first process".to_owned());
            return Err(NamespaceError::Failed { step, error });
        }
        let handles: Vec<OwnedFd> =
            init::HANDLES.iter().map_while(|_| receive_descriptor(&control)).collect();
        let Ok([user, mount, pid, ipc, uts, network, root]) = <[OwnedFd; 7]>::try_from(handles) else {
            return Err(waiting(Errno::PIPE));
        };
        let entered = [user, mount, pid, ipc, uts];
        Ok(Self { init, entered, network, root, control: Mutex::new(Some(control)), forwarded: None })
    }

    /// The root directory as commands see it.
    pub(super) fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// Whether they still exist: the first process may have been killed.
    pub(super) fn are_alive(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        rustix::process::waitid(WaitId::Pid(self.init), options).is_ok_and(|status| status.is_none())
    }

    /// Starts a process in the namespaces that calls `run`; it is a child of this process.
    ///
    /// # Safety
    /// `run` may only make system calls and must not return. Signals must be blocked.
    #[expect(unsafe_code, reason = "clone has no safe wrapper")]
    pub(crate) unsafe fn start_process<F: FnMut()>(
        &self,
        open_network: bool,
        mut run: F,
    ) -> Result<Pid, Errno> {
        let mut started = Err(Errno::CHILD);
        // Entering a pid namespace only affects children, and a user namespace needs a process with one thread. So a
        // short-lived process enters, and starts the real one as a sibling of itself.
        let enter = || {
            // SAFETY: the process has a single thread.
            let start = || unsafe { clone_process(libc::CLONE_PARENT | libc::SIGCHLD) };
            started = self.enter(open_network).and_then(|()| start());
            if started == Ok(None) {
                run();
            }
            exit(0);
        };
        // SAFETY: the process only makes system calls.
        let entering = unsafe { start_child(enter) }?;
        while let Err(Errno::INTR) = rustix::process::waitpid(Some(entering), WaitOptions::empty()) {}
        started.and_then(|child| child.ok_or(Errno::CHILD))
    }

    /// Enters the namespaces. Does not allocate, lock or panic.
    #[expect(unsafe_code, reason = "setns has no safe wrapper for all kinds of namespaces")]
    fn enter(&self, open_network: bool) -> Result<(), Errno> {
        let network = (!open_network).then_some(&self.network);
        for namespace in self.entered.iter().chain(network) {
            // SAFETY: no memory is touched.
            if unsafe { libc::setns(namespace.as_raw_fd(), 0) } < 0 {
                return Err(last_error());
            }
        }
        Ok(())
    }

    /// Listens on a port of the session's own loopback interface; 0 is any free one.
    pub(crate) fn listen(&self, port: u16) -> io::Result<TcpListener> {
        let socket = self.socket(4)?;
        rustix::net::bind(&socket, &SocketAddr::from(([127, 0, 0, 1], port)))?;
        rustix::net::listen(&socket, libc::SOMAXCONN)?;
        Ok(TcpListener::from(socket))
    }

    /// Connects to a port on the session's own loopback interface.
    pub(super) fn connect(&self, port: u16) -> io::Result<TcpStream> {
        let connect = |family, ip: IpAddr| {
            let socket = self.socket(family)?;
            rustix::net::connect(&socket, &SocketAddr::new(ip, port))?;
            Ok(TcpStream::from(socket))
        };
        connect(4, Ipv4Addr::LOCALHOST.into()).or_else(|_: io::Error| connect(6, Ipv6Addr::LOCALHOST.into()))
    }

    /// A new TCP socket in the session's network namespace.
    fn socket(&self, family: u8) -> io::Result<OwnedFd> {
        let control = lock(&self.control);
        let control = control.as_ref().ok_or(Errno::PIPE)?;
        rustix::io::write(control, &[family])?;
        receive_descriptor(control).ok_or_else(|| io::Error::other("the session's namespaces have ended"))
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        drop(lock(&self.control).take());
        while let Err(Errno::INTR) = rustix::process::waitpid(Some(self.init), WaitOptions::empty()) {}
    }
}

/// Forks with `flags`; `None` in the child.
///
/// # Safety
/// The child of a process with several threads may only make system calls.
#[expect(unsafe_code, reason = "clone has no safe wrapper")]
unsafe fn clone_process(flags: libc::c_int) -> Result<Option<Pid>, Errno> {
    // SAFETY: without CLONE_VM the child has its own copy of the memory and the stack.
    let child = unsafe { libc::syscall(libc::SYS_clone, c_long::from(flags), 0, 0, 0, 0) };
    match i32::try_from(child) {
        Ok(0) => Ok(None),
        Ok(child) if child > 0 => Ok(Pid::from_raw(child)),
        _ => Err(last_error()),
    }
}
