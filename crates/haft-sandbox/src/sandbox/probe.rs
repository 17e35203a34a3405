//! Finding out what holds commands here: each layer is tried, none is guessed from a version or a file.

use std::ffi::CString;
use std::fs::{self, OpenOptions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;

use super::landlock::{self, Grants, Ruleset};
use super::resolver::Resolver;
use super::status::{Layer, Level, Status};
use super::trial::{self, Answer};

/// Tries every layer of the sandbox and tells what there is. Nothing outlives it but the answer.
pub fn probe() -> Status {
    let (landlock, landlock_abi) = landlock();
    let (memory, pidfd) = into_children();
    Status {
        landlock,
        landlock_abi,
        notification: notification(),
        no_new_privs: no_new_privs(),
        pidfd,
        memory,
        kernel: read("/proc/sys/kernel/osrelease"),
        root: rustix::process::getuid().is_root(),
        container: container(),
        namespaces: namespaces(),
    }
}

fn landlock() -> (Layer, u32) {
    let layer = |level, remedy: Option<&str>| Layer {
        name: "Landlock",
        holds: "files, TCP ports, signals and abstract sockets",
        level,
        remedy: remedy.map(str::to_owned),
    };
    let none = |error| {
        let (why, remedy) = landlock::remedy(error);
        (layer(Level::None { why: why.to_owned() }, Some(remedy)), 0)
    };
    let abi = match landlock::abi() {
        Ok(abi) => abi,
        Err(error) => return none(error),
    };
    let why = match keeps_from_writing() {
        Ok(Answer { error: None, parts }) if parts == trial::WORKS => None,
        Ok(Answer { error: Some(Errno::TOOBIG), .. }) => Some((
            "too many Landlock sandboxes are nested".to_owned(),
            "start Haft outside of the other sandboxes",
        )),
        Ok(Answer { error: Some(error), .. }) => return none(error),
        Ok(_) => Some((
            "it was turned on, and a file could be written all the same".to_owned(),
            "tell the authors of Haft which kernel this is",
        )),
        Err(why) => Some((format!("it could not be tried: {why}"), "make room for a file and a process")),
    };
    if let Some((why, remedy)) = why {
        return (layer(Level::None { why }, Some(remedy)), abi);
    }
    let parts = [
        (3, "keeping files from being cut short"),
        (4, "TCP ports"),
        (5, "commands to devices"),
        (6, "signals and abstract sockets"),
    ];
    let missing: Vec<String> =
        parts.iter().filter(|(since, _)| abi < *since).map(|(_, part)| (*part).to_owned()).collect();
    let remedy = (!missing.is_empty())
        .then_some("Linux 6.12 or later has them; until then the witness alone holds them");
    (layer(Level::without(missing), remedy), abi)
}

/// Whether a child under Landlock is kept from writing a file that it could write otherwise.
fn keeps_from_writing() -> Result<Answer, String> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let file = std::env::temp_dir().join(format!(".haft-probe-{}-{number}", std::process::id()));
    let name = CString::new(file.as_os_str().as_bytes()).map_err(|error| error.to_string())?;
    let ruleset =
        Ruleset::build(&Grants::default(), &mut Resolver::default()).map_err(|error| error.message)?;
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&file)
        .map_err(|error| format!("{}: {error}", file.display()))?;
    let answer = trial::is_kept_from_writing(ruleset.as_raw_fd(), &name);
    // If it is gone already, all the better.
    let _ = fs::remove_file(&file);
    answer.map_err(|error| error.to_string())
}

fn notification() -> Layer {
    let layer = |level, remedy: Option<&str>| Layer {
        name: "seccomp notification",
        holds: "Haft sees each change before it happens and makes it on the command's behalf",
        level,
        remedy: remedy.map(str::to_owned),
    };
    let none = |why: &str, remedy| layer(Level::None { why: why.to_owned() }, Some(remedy));
    let unconfined = "in a container, run it with --security-opt seccomp=unconfined";
    let Ok(answer) = trial::reports_calls() else {
        return none("it was tried and gave no answer", unconfined);
    };
    match answer.error {
        Some(Errno::BUSY) => {
            let remedy = "start this Haft outside of the other, or with --sandbox off inside it";
            return none("another program already has these reports, maybe a Haft around this one", remedy);
        }
        Some(Errno::NOSYS | Errno::PERM | Errno::ACCESS) => {
            return none("a filter that reports calls is refused", unconfined);
        }
        Some(_) if !answer.has(trial::HANDS_OVER) => {
            return none("opened files cannot be handed over", "use Linux 5.9 or later");
        }
        _ if !answer.has(trial::WORKS) => return none("a reported call got a wrong answer", unconfined),
        _ => {}
    }
    let parts = [
        (trial::HANDS_OVER_AT_ONCE, "handing over files in one step (Linux 5.14)"),
        (trial::WAITS_KILLABLE, "ending programs that wait for an answer (Linux 5.19)"),
        (trial::TAKES_TURNS, "quick turns between program and witness (Linux 6.6)"),
    ];
    let missing: Vec<String> =
        parts.iter().filter(|(part, _)| !answer.has(*part)).map(|(_, what)| (*what).to_owned()).collect();
    let remedy = (!missing.is_empty())
        .then_some("a newer kernel has them; commands are held and recorded all the same");
    layer(Level::without(missing), remedy)
}

fn no_new_privs() -> Layer {
    let works = trial::no_new_privs().is_ok_and(|answer| answer.has(trial::WORKS));
    Layer {
        name: "no_new_privs",
        holds: "no program gets more rights than the one that started it",
        level: if works { Level::Full } else { Level::None { why: "the kernel refuses it".to_owned() } },
        remedy: (!works).then(|| "use Linux 5.13 or later".to_owned()),
    }
}

/// Memory and handles of child processes.
fn into_children() -> (Layer, Layer) {
    let (memory, pidfd) = trial::looks_into_a_child().unwrap_or_else(|error| (Some(error), Some(error)));
    let level =
        |error: Option<Errno>| error.map_or(Level::Full, |error| Level::None { why: error.to_string() });
    let remedy = match read("/proc/sys/kernel/yama/ptrace_scope").as_str() {
        "2" | "3" => "set kernel.yama.ptrace_scope to 1",
        _ => "in a container, run it with --security-opt seccomp=unconfined",
    };
    let memory = Layer {
        name: "process_vm_readv",
        holds: "Haft can read which file a reported call means",
        level: level(memory),
        remedy: memory.map(|_| remedy.to_owned()),
    };
    let pidfd = Layer {
        name: "pidfd",
        holds: "a process that has ended is never taken for another",
        level: level(pidfd),
        remedy: pidfd.map(|_| "use Linux 5.3 or later".to_owned()),
    };
    (memory, pidfd)
}

/// A hint only: containers do not have to tell.
fn container() -> Option<String> {
    let marks = [("/.dockerenv", "Docker"), ("/run/.containerenv", "Podman")];
    let marked = marks.iter().find(|(mark, _)| Path::new(mark).exists()).map(|(_, name)| (*name).to_owned());
    marked
        .or_else(|| std::env::var("container").ok().filter(|name| !name.is_empty()))
        .or_else(|| std::env::var_os("KUBERNETES_SERVICE_HOST").map(|_| "Kubernetes".to_owned()))
        .or_else(|| {
            let groups = read("/proc/1/cgroup");
            ["docker", "kubepods", "lxc", "containerd"]
                .iter()
                .find(|name| groups.contains(**name))
                .map(|name| (*name).to_owned())
        })
}

fn namespaces() -> Vec<&'static str> {
    let user = libc::CLONE_NEWUSER;
    let all = [
        ("user", user),
        ("pid", libc::CLONE_NEWPID),
        ("net", libc::CLONE_NEWNET),
        ("mount", libc::CLONE_NEWNS),
    ];
    // An ordinary user has the others only inside a user namespace.
    all.iter()
        .filter(|(_, flag)| trial::unshares(*flag) || trial::unshares(user | flag))
        .map(|(name, _)| *name)
        .collect()
}

/// A small file of the kernel's as text; empty if there is none.
fn read(path: &str) -> String {
    fs::read_to_string(PathBuf::from(path)).unwrap_or_default().trim().to_owned()
}
