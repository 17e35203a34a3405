//! What is left when somebody killed the keeper: the processes of its session.
//!
//! A command can kill its keeper, for it runs as the same user. The kernel then kills the command; what else is in
//! the keeper's session is found here. A process that made a session of its own and killed the keeper is not.

use rustix::process::Pid;

/// Kills every process in the session of `keeper`, which must not have been waited for yet; returns how many.
#[cfg(target_os = "linux")]
pub(super) fn sweep(keeper: Pid) -> u32 {
    use std::time::Duration;

    use rustix::event::{PollFd, PollFlags, Timespec};
    use rustix::process::{PidfdFlags, Signal};

    /// For a process that hangs in the kernel.
    const PATIENCE: Duration = Duration::from_secs(5);

    let patience = Timespec::try_from(PATIENCE).ok();
    let mut swept = 0_u32;
    let mut hopeless = Vec::new();
    loop {
        let strays: Vec<_> = members(keeper).into_iter().filter(|stray| !hopeless.contains(stray)).collect();
        if strays.is_empty() {
            return swept;
        }
        for stray in strays {
            let Ok(handle) = rustix::process::pidfd_open(stray, PidfdFlags::empty()) else {
                continue;
            };
            // Asked again now that the handle pins the process: the number alone may have passed to another.
            if !is_member(stray, keeper) {
                continue;
            }
            let sent = rustix::process::pidfd_send_signal(&handle, Signal::KILL);
            let mut waiting = [PollFd::new(&handle, PollFlags::IN)];
            match sent.and_then(|()| rustix::event::poll(&mut waiting, patience.as_ref())) {
                Ok(1..) => swept = swept.saturating_add(1),
                _ => hopeless.push(stray),
            }
        }
    }
}

#[cfg(target_os = "linux")]
fn members(session: Pid) -> Vec<Pid> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok().and_then(Pid::from_raw))
        .filter(|pid| *pid != session && is_member(*pid, session))
        .collect()
}

/// Whether `pid` is alive and in `session`.
#[cfg(target_os = "linux")]
fn is_member(pid: Pid, session: Pid) -> bool {
    let Ok(stat) = std::fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero())) else { return false };
    // The name may hold anything, parentheses and newlines included; state, parent, group and session follow it.
    let Some(name_end) = stat.iter().rposition(|&byte| byte == b')') else { return false };
    let fields: Vec<_> =
        stat[name_end + 1..].split(u8::is_ascii_whitespace).filter(|field| !field.is_empty()).collect();
    let alive = !matches!(fields.first(), Some(&(b"Z" | b"X")));
    alive && fields.get(3).is_some_and(|field| *field == session.as_raw_nonzero().to_string().as_bytes())
}

/// There is no list of a session's processes to be had without a library of the system's own.
#[cfg(not(target_os = "linux"))]
pub(super) fn sweep(_keeper: Pid) -> u32 {
    0
}
