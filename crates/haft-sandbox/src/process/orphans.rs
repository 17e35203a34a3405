//! Ends the processes that are left when the reaper itself was killed.
//!
//! A command can kill its reaper, because it runs as the same user. The kernel then kills the command; other members of
//! the reaper's session are found here. A process that created a session of its own before is not found.

use rustix::process::Pid;

/// Kills every process in the session of `reaper`, which must not have been waited for yet; returns how many.
#[cfg(target_os = "linux")]
pub(super) fn kill_session(reaper: Pid) -> u32 {
    use std::time::Duration;

    use rustix::event::{PollFd, PollFlags, Timespec};
    use rustix::process::{PidfdFlags, Signal};

    /// For a process that is blocked in the kernel.
    const KILL_TIMEOUT: Duration = Duration::from_secs(5);

    let timeout = Timespec::try_from(KILL_TIMEOUT).ok();
    let mut killed = 0_u32;
    let mut survivors = Vec::new();
    loop {
        let members: Vec<_> =
            session_members(reaper).into_iter().filter(|pid| !survivors.contains(pid)).collect();
        if members.is_empty() {
            return killed;
        }
        for pid in members {
            let Ok(pidfd) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else {
                continue;
            };
            // Checked again because the pid may have been reused before the pidfd pinned it.
            if !is_member(pid, reaper) {
                continue;
            }
            let sent = rustix::process::pidfd_send_signal(&pidfd, Signal::KILL);
            let mut fds = [PollFd::new(&pidfd, PollFlags::IN)];
            match sent.and_then(|()| rustix::event::poll(&mut fds, timeout.as_ref())) {
                Ok(1..) => killed = killed.saturating_add(1),
                _ => survivors.push(pid),
            }
        }
    }
}

#[cfg(target_os = "linux")]
fn session_members(session: Pid) -> Vec<Pid> {
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
    // The name may contain parentheses and newlines; state, parent, group and session follow the last parenthesis.
    let Some(name_end) = stat.iter().rposition(|&byte| byte == b')') else { return false };
    let fields: Vec<_> =
        stat[name_end + 1..].split(u8::is_ascii_whitespace).filter(|field| !field.is_empty()).collect();
    let is_alive = !matches!(fields.first(), Some(&(b"Z" | b"X")));
    is_alive && fields.get(3).is_some_and(|field| *field == session.as_raw_nonzero().to_string().as_bytes())
}

/// Kills every process in the session of `reaper`, which must not have been waited for yet; returns how many.
#[cfg(target_os = "macos")]
pub(super) fn kill_session(reaper: Pid) -> u32 {
    /// Processes that fork while they are killed are found in the next round.
    const MAX_ROUNDS: u32 = 100;
    let mut killed = 0_u32;
    for _ in 0..MAX_ROUNDS {
        let members = all_processes().into_iter().filter(|pid| {
            *pid != reaper && rustix::process::getsid(Some(*pid)).is_ok_and(|session| session == reaper)
        });
        let sent =
            members.filter(|pid| rustix::process::kill_process(*pid, rustix::process::Signal::KILL).is_ok());
        match u32::try_from(sent.count()).unwrap_or(u32::MAX) {
            0 => break,
            count => killed = killed.saturating_add(count),
        }
    }
    killed
}

#[cfg(target_os = "macos")]
#[expect(unsafe_code, reason = "the list of processes has no safe wrapper")]
fn all_processes() -> Vec<Pid> {
    const MAX_PROCESSES: usize = 100_000;
    let mut pids = vec![0_i32; MAX_PROCESSES];
    let bytes = i32::try_from(pids.len() * size_of::<i32>()).unwrap_or(i32::MAX);
    // SAFETY: the buffer is as long as is said.
    let count = unsafe { libc::proc_listallpids(pids.as_mut_ptr().cast(), bytes) };
    pids.truncate(usize::try_from(count).unwrap_or(0));
    pids.into_iter().filter_map(Pid::from_raw).collect()
}
