//! The first process of a session's namespaces. It builds the file system, brings up the loopback interface and then
//! only keeps the namespaces alive: when Haft closes its end of the socket, or is killed, it waits until the reapers have
//! ended their commands and exits; the kernel kills every process that is left.
//!
//! Runs in a fork of a process with several threads: no allocation, no lock, no panic, only system calls.

use std::ffi::CStr;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

use rustix::fs::{Mode, OFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::process::DumpableBehavior;

use super::mounts::MountPlan;
use crate::linux::descriptors::send_descriptor;
use crate::process::{exit, keep_only, last_error};

/// The socket's number in this process.
const CONTROL_FD: RawFd = 0;
/// How long the commands of a Haft that has ended may take to end. A reaper gives up before.
const END_TIMEOUT: Duration = Duration::from_secs(8);
const END_INTERVAL: Duration = Duration::from_millis(5);
/// More steps than a plan can have: the failure was outside of the plan.
const STEP_COUNT_MAX: u32 = u32::MAX;

/// What the process reports before it waits: `None` if everything is in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct InitReport {
    /// The step that failed, if it was one of the mount plan, and the reason.
    pub(super) failed: Option<(Option<usize>, Errno)>,
}

impl InitReport {
    pub(super) const BYTES: usize = 8;

    pub(super) fn to_bytes(self) -> [u8; Self::BYTES] {
        let (step, error) = match self.failed {
            None => (STEP_COUNT_MAX, 0),
            Some((step, error)) => {
                let step = step.and_then(|step| u32::try_from(step).ok());
                (step.unwrap_or(STEP_COUNT_MAX), error.raw_os_error())
            }
        };
        let mut bytes = [0; Self::BYTES];
        let (first, second) = bytes.split_at_mut(size_of::<u32>());
        first.copy_from_slice(&step.to_ne_bytes());
        second.copy_from_slice(&error.to_ne_bytes());
        bytes
    }

    pub(super) fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let (step, error) = bytes.split_at(size_of::<u32>());
        let step = u32::from_ne_bytes(step.try_into().unwrap_or_default());
        let error = i32::from_ne_bytes(error.try_into().unwrap_or_default());
        if error == 0 {
            return Self { failed: None };
        }
        let step = (step != STEP_COUNT_MAX).then(|| usize::try_from(step).ok()).flatten();
        Self { failed: Some((step, Errno::from_raw_os_error(error))) }
    }
}

/// The whole life of the process. `control` is connected to Haft.
#[expect(unsafe_code, reason = "descriptors are moved by number")]
pub(super) fn run(control: RawFd, plan: &MountPlan, copies: &mut [RawFd], max_pid: &[u8]) -> ! {
    // SAFETY: this is a fresh fork that uses no other descriptor.
    if unsafe { keep_only([control]) }.is_err() {
        exit(1);
    }
    // SAFETY: placed there by the line above, and never closed.
    let control = unsafe { BorrowedFd::borrow_raw(CONTROL_FD) };
    let mut byte = [0];
    // Until the user and group ids are mapped, nothing can be mounted.
    if rustix::io::read(control, &mut byte) != Ok(1) {
        exit(1);
    }
    let failed = set_up(plan, copies).err();
    limit_processes(max_pid);
    // SAFETY: only the socket is used from here on.
    let kept = unsafe { keep_only([CONTROL_FD]) }.map_err(|error| (None, error));
    let report = InitReport { failed: failed.or(kept.err()) };
    let is_reported = rustix::io::write(control, &report.to_bytes()) == Ok(InitReport::BYTES);
    if report.failed.is_some() || !is_reported || send_handles(control).is_err() {
        exit(1);
    }
    serve(control)
}

fn set_up(plan: &MountPlan, copies: &mut [RawFd]) -> Result<(), (Option<usize>, Errno)> {
    let other = |error| (None, error);
    // The end of a process that lost its parent needs no answer.
    ignore_ended_children();
    // Its memory has Haft's environment, which commands must not read.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(other)?;
    rustix::thread::set_name(c"haft-init").map_err(other)?;
    rustix::process::setsid().map_err(other)?;
    plan.perform(copies).map_err(|(step, error)| (Some(step), error))?;
    start_loopback().map_err(other)
}

/// Limits the processes of the session, so that a fork bomb leaves some to the rest of the machine until it is ended. Kernels
/// before 6.14 have one limit for the whole machine, which stays as it is.
fn limit_processes(max_pid: &[u8]) {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    if let Ok(file) = rustix::fs::open(c"/proc/sys/kernel/pid_max", flags, Mode::empty()) {
        let _ = rustix::io::write(file, max_pid);
    }
}

/// What Haft gets to enter the namespaces and to resolve paths in them. The user namespace comes first, because it
/// grants the right to enter the others.
pub(super) const HANDLES: [&CStr; 7] = [
    c"/proc/self/ns/user",
    c"/proc/self/ns/mnt",
    c"/proc/self/ns/pid",
    c"/proc/self/ns/ipc",
    c"/proc/self/ns/uts",
    c"/proc/self/ns/net",
    c"/",
];

fn send_handles(control: BorrowedFd<'_>) -> Result<(), Errno> {
    for path in HANDLES {
        let access = if path == c"/" { OFlags::PATH } else { OFlags::RDONLY };
        let handle = rustix::fs::open(path, access | OFlags::CLOEXEC, Mode::empty())?;
        send_descriptor(control.as_raw_fd(), handle.as_raw_fd())?;
    }
    Ok(())
}

/// Sends a new TCP socket of this network namespace for each byte received: 4 for IPv4, 6 for IPv6.
fn serve(control: BorrowedFd<'_>) -> ! {
    let mut byte = [0];
    loop {
        match rustix::io::read(control, &mut byte) {
            Ok(0) => {
                wait_until_alone();
                exit(0)
            }
            Ok(_) => {
                let family = if byte[0] == 6 { AddressFamily::INET6 } else { AddressFamily::INET };
                let socket = rustix::net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None);
                let sent = socket.and_then(|socket| send_descriptor(control.as_raw_fd(), socket.as_raw_fd()));
                if sent.is_err() {
                    let _ = rustix::io::write(control, &[0]);
                }
            }
            Err(Errno::INTR) => {}
            Err(_) => exit(1),
        }
    }
}

/// Waits until there is no other process in the namespace, or the time is up. The reapers end their commands by themselves when
/// Haft dies, and then set the time by which recovery knows what the commands wrote.
#[expect(unsafe_code, reason = "rustix cannot address all processes")]
fn wait_until_alone() {
    let mut intervals = END_TIMEOUT.as_millis() / END_INTERVAL.as_millis();
    // SAFETY: signal 0 only asks whether there is a process.
    while intervals > 0 && unsafe { libc::kill(-1, 0) } == 0 {
        intervals -= 1;
        let interval = Timespec { tv_sec: 0, tv_nsec: END_INTERVAL.subsec_nanos().into() };
        let _ = rustix::thread::nanosleep(&interval);
    }
}

#[expect(unsafe_code, reason = "signal dispositions have no safe wrapper")]
fn ignore_ended_children() {
    // SAFETY: the kernel reaps the children itself.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
}

/// Sets the loopback interface up. The kernel assigns its addresses.
#[expect(unsafe_code, reason = "interface flags have no safe wrapper")]
fn start_loopback() -> Result<(), Errno> {
    let socket =
        rustix::net::socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    // SAFETY: a zeroed request is valid; the name fits and ends with a NUL; the kernel reads only the request.
    unsafe {
        let mut request: libc::ifreq = mem::zeroed();
        for (place, byte) in request.ifr_name.iter_mut().zip(*b"lo") {
            *place = byte.cast_signed() as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = libc::c_short::try_from(libc::IFF_UP).unwrap_or_default();
        if libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw const request) < 0 {
            return Err(last_error());
        }
    }
    Ok(())
}
