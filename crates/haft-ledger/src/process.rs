//! The identity of the process that performs a call, safe against reused pids.

use std::fs;
use std::process;
use std::sync::Mutex;

use haft_tool::lock;

/// How long a call of a process in another pid namespace counts as running, in milliseconds.
const INVISIBLE_PROCESS_TIMEOUT_MS: u64 = 24 * 60 * 60 * 1_000;

/// A process: its pid and, where the system has them, its start time, the boot id and its pid namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProcessIdentity {
    pid: u32,
    start_time: Option<u64>,
    boot_id: Option<String>,
    namespace: Option<String>,
}

impl ProcessIdentity {
    /// This process.
    pub(crate) fn current() -> Self {
        static CURRENT: Mutex<Option<ProcessIdentity>> = Mutex::new(None);
        let pid = process::id();
        let mut current = lock(&CURRENT);
        match current.as_ref() {
            // A forked child has the memory of its parent, but another pid.
            Some(identity) if identity.pid == pid => identity.clone(),
            _ => {
                let start_time = match status(pid) {
                    ProcessStatus::Running { start_time } => start_time,
                    ProcessStatus::Gone => None,
                };
                current.insert(Self { pid, start_time, boot_id: boot_id(), namespace: namespace() }).clone()
            }
        }
    }

    /// The number in the process's own pid namespace, for people to read.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// The number by which this process may signal it; `None` if it is in another pid namespace.
    pub(crate) fn visible_pid(&self) -> Option<u32> {
        let is_elsewhere = differ(self.namespace.as_deref(), Self::current().namespace.as_deref());
        (!is_elsewhere).then_some(self.pid)
    }

    /// The form in the database.
    pub(crate) fn to_text(&self) -> String {
        let start_time = self.start_time.map_or_else(|| "-".to_owned(), |time| time.to_string());
        let [boot_id, namespace] =
            [&self.boot_id, &self.namespace].map(|part| part.as_deref().unwrap_or("-"));
        format!("{} {start_time} {boot_id} {namespace}", self.pid)
    }

    /// Parses the form in the database; `None` if it is invalid.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(' ');
        let mut next = || parts.next().map(|part| (part != "-").then(|| part.to_owned()));
        let (pid, start_time, boot_id, namespace) = (next()??.parse().ok()?, next()?, next()?, next()?);
        let start_time = start_time.map(|time| time.parse()).transpose().ok()?;
        Some(Self { pid, start_time, boot_id, namespace })
    }

    /// Whether the process has ended, as far as this process can see; it was recorded at `since`.
    pub(crate) fn is_gone(&self, since: u64, now: u64) -> bool {
        let current = Self::current();
        if differ(self.boot_id.as_deref(), current.boot_id.as_deref()) {
            return true;
        }
        if differ(self.namespace.as_deref(), current.namespace.as_deref()) {
            return now.saturating_sub(since) > INVISIBLE_PROCESS_TIMEOUT_MS;
        }
        match (status(self.pid), self.start_time) {
            (ProcessStatus::Gone, _) => true,
            (ProcessStatus::Running { start_time: Some(now) }, Some(recorded)) => now != recorded,
            _ => false,
        }
    }
}

fn differ(a: Option<&str>, b: Option<&str>) -> bool {
    matches!((a, b), (Some(a), Some(b)) if a != b)
}

/// What the system reports for a pid.
enum ProcessStatus {
    /// No such process, or a zombie.
    Gone,
    /// A process, with its start time where the system has one.
    Running { start_time: Option<u64> },
}

fn status(pid: u32) -> ProcessStatus {
    // Only Linux has this file; elsewhere the pid has to do.
    if let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) {
        // The command name in parentheses may contain anything, so the fields are counted after the last one.
        let mut fields = stat.rsplit(')').next().unwrap_or_default().split_ascii_whitespace();
        return match fields.next() {
            Some("Z" | "X") => ProcessStatus::Gone,
            _ => ProcessStatus::Running { start_time: fields.nth(18).and_then(|time| time.parse().ok()) },
        };
    }
    let raw_pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    // A process of another user cannot be signalled, but it exists.
    let exists =
        raw_pid.is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH));
    if exists { ProcessStatus::Running { start_time: None } } else { ProcessStatus::Gone }
}

fn boot_id() -> Option<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned()).filter(|id| !id.is_empty() && !id.contains(' '))
}

fn namespace() -> Option<String> {
    let link = fs::read_link("/proc/self/ns/pid").ok()?;
    Some(link.to_str()?.to_owned()).filter(|link| !link.contains(' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn current_process_is_not_gone_and_survives_the_database() {
        let current = ProcessIdentity::current();
        assert!(!current.is_gone(0, u64::MAX));
        assert_eq!(ProcessIdentity::parse(&current.to_text()), Some(current));
    }

    #[test]
    fn another_start_time_or_boot_is_another_process() {
        let current = ProcessIdentity::current();
        let reused =
            ProcessIdentity { start_time: current.start_time.map(|time| time + 1), ..current.clone() };
        assert_eq!(reused.is_gone(0, 0), current.start_time.is_some());
        let rebooted = ProcessIdentity {
            boot_id: current.boot_id.as_ref().map(|_| "other".to_owned()),
            ..current.clone()
        };
        assert_eq!(rebooted.is_gone(0, 0), current.boot_id.is_some());
    }

    #[test]
    fn process_of_another_pid_namespace_times_out_after_a_day() {
        let current = ProcessIdentity::current();
        if current.namespace.is_some() {
            let invisible = ProcessIdentity { pid: 1, namespace: Some("pid:[1]".to_owned()), ..current };
            assert!(!invisible.is_gone(1_000, 2_000));
            assert!(invisible.is_gone(1_000, 2_000 + INVISIBLE_PROCESS_TIMEOUT_MS));
        }
    }

    #[test]
    fn zombie_is_gone() {
        let mut child = process::Command::new("true").stdout(process::Stdio::piped()).spawn().unwrap();
        let identity = ProcessIdentity { pid: child.id(), start_time: None, ..ProcessIdentity::current() };
        // EOF on the pipe means that the child has exited or is about to.
        std::io::Read::read_to_end(&mut child.stdout.take().unwrap(), &mut Vec::new()).unwrap();
        rustix::process::waitid(
            rustix::process::WaitId::Pid(rustix::process::Pid::from_child(&child)),
            rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT,
        )
        .unwrap();
        assert_eq!(identity.is_gone(0, 0), cfg!(target_os = "linux"));
        child.wait().unwrap();
        assert!(identity.is_gone(0, 0));
    }

    #[test]
    fn invalid_text_is_no_process() {
        for text in ["", "x", "1", "1 2", "1 x - -", "- - - -"] {
            assert_eq!(ProcessIdentity::parse(text), None, "{text:?}");
        }
    }
}
