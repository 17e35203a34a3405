//! Which process performs a call, told so that a later one with the same number is not mistaken for it.

use std::io::Read;
use std::process;
use std::sync::Mutex;

use haft_tool::lock;

/// How long a call of a process that cannot be seen from here counts as running.
const UNSEEN_MS: u64 = 24 * 60 * 60 * 1_000;

/// A process: its number, and where they can be had its start, the machine's boot and its PID namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    pid: u32,
    started: Option<u64>,
    boot: Option<String>,
    space: Option<String>,
}

impl Owner {
    /// This process.
    pub(crate) fn this() -> Self {
        static KNOWN: Mutex<Option<Owner>> = Mutex::new(None);
        let pid = process::id();
        let mut known = lock(&KNOWN);
        match known.as_ref() {
            // A fork keeps the memory but not the number.
            Some(owner) if owner.pid == pid => owner.clone(),
            _ => known.insert(Self { pid, started: seen(pid).start(), boot: boot(), space: space() }).clone(),
        }
    }

    /// The form in the database.
    pub(crate) fn to_text(&self) -> String {
        let started = self.started.map_or_else(|| "-".to_owned(), |started| started.to_string());
        let [boot, space] = [&self.boot, &self.space].map(|part| part.as_deref().unwrap_or("-"));
        format!("{} {started} {boot} {space}", self.pid)
    }

    /// The process that `text` names; nothing if that is no text of ours.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(' ');
        let mut next = || parts.next().map(|part| (part != "-").then(|| part.to_owned()));
        let (pid, started, boot, space) = (next()??.parse().ok()?, next()?, next()?, next()?);
        let started = started.map(|started| started.parse()).transpose().ok()?;
        Some(Self { pid, started, boot, space })
    }

    /// Whether the process is gone, seen from this one at `now`; it was last heard of at `since`.
    pub(crate) fn is_gone(&self, since: u64, now: u64) -> bool {
        let here = Self::this();
        if differ(self.boot.as_deref(), here.boot.as_deref()) {
            return true;
        }
        if differ(self.space.as_deref(), here.space.as_deref()) {
            return now.saturating_sub(since) > UNSEEN_MS;
        }
        match (seen(self.pid), self.started) {
            (Seen::Gone, _) => true,
            (Seen::Here { started: Some(seen) }, Some(known)) => seen != known,
            _ => false,
        }
    }
}

fn differ(a: Option<&str>, b: Option<&str>) -> bool {
    matches!((a, b), (Some(a), Some(b)) if a != b)
}

/// What the system says of a process number.
enum Seen {
    /// No such process, or one that has ended and only waits to be noticed.
    Gone,
    /// There is one; when it started, if the system tells.
    Here { started: Option<u64> },
}

impl Seen {
    fn start(self) -> Option<u64> {
        match self {
            Self::Gone => None,
            Self::Here { started } => started,
        }
    }
}

fn seen(pid: u32) -> Seen {
    // Elsewhere than on Linux there is no such file, and only the number counts.
    if let Some(stat) = told(&format!("/proc/{pid}/stat")) {
        // The name in brackets may hold anything, so what counts begins after the last bracket.
        let mut fields = stat.rsplit(')').next().unwrap_or_default().split_ascii_whitespace();
        return match fields.next() {
            Some("Z" | "X") => Seen::Gone,
            _ => Seen::Here { started: fields.nth(18).and_then(|started| started.parse().ok()) },
        };
    }
    if answers(pid) { Seen::Here { started: None } } else { Seen::Gone }
}

/// Whether the system knows the process, even if it is not ours to signal.
fn answers(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

fn boot() -> Option<String> {
    let id = told("/proc/sys/kernel/random/boot_id")?;
    Some(id.trim().to_owned()).filter(|id| !id.is_empty() && !id.contains(' '))
}

/// A small file of the kernel's, which gives all of it in one read.
fn told(path: &str) -> Option<String> {
    let mut bytes = vec![0; 1024];
    let length = std::fs::File::open(path).ok()?.read(&mut bytes).ok()?;
    bytes.truncate(length);
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn space() -> Option<String> {
    let link = std::fs::read_link("/proc/self/ns/pid").ok()?;
    Some(link.to_str()?.to_owned()).filter(|link| !link.contains(' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_not_gone_and_survives_the_database() {
        let this = Owner::this();
        assert!(!this.is_gone(0, u64::MAX));
        assert_eq!(Owner::parse(&this.to_text()), Some(this));
    }

    #[test]
    fn another_start_or_another_boot_is_another_process() {
        let this = Owner::this();
        let reused = Owner { started: this.started.map(|started| started + 1), ..this.clone() };
        assert_eq!(reused.is_gone(0, 0), this.started.is_some());
        let rebooted = Owner { boot: this.boot.as_ref().map(|_| "other".to_owned()), ..this.clone() };
        assert_eq!(rebooted.is_gone(0, 0), this.boot.is_some());
    }

    #[test]
    fn a_process_of_another_pid_namespace_is_given_a_day() {
        let this = Owner::this();
        if this.space.is_some() {
            let unseen = Owner { pid: 1, space: Some("pid:[1]".to_owned()), ..this };
            assert!(!unseen.is_gone(1_000, 2_000));
            assert!(unseen.is_gone(1_000, 2_000 + UNSEEN_MS));
        }
    }

    #[test]
    fn an_ended_child_is_gone_before_it_is_waited_for() {
        let mut child = process::Command::new("true").stdout(process::Stdio::piped()).spawn().unwrap();
        let owner = Owner { pid: child.id(), started: None, ..Owner::this() };
        // The pipe closes when the child ends; only then may it count as gone.
        Read::read_to_end(&mut child.stdout.take().unwrap(), &mut Vec::new()).unwrap();
        rustix::process::waitid(
            rustix::process::WaitId::Pid(rustix::process::Pid::from_child(&child)),
            rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT,
        )
        .unwrap();
        assert_eq!(owner.is_gone(0, 0), cfg!(target_os = "linux"));
        child.wait().unwrap();
        assert!(owner.is_gone(0, 0));
    }

    #[test]
    fn nonsense_in_the_database_is_no_process() {
        for text in ["", "x", "1", "1 2", "1 x - -", "- - - -"] {
            assert_eq!(Owner::parse(text), None, "{text:?}");
        }
    }
}
