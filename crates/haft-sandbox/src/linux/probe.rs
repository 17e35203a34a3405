//! Finds out what sandboxes commands here: each layer is tried, none is inferred from a version or a file.

use std::ffi::CString;
use std::fs::{self, OpenOptions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;

use super::namespaces::{Namespaces, SessionView};
use super::probe_child::{self, Trial};
use super::ruleset::{self, FileGrants, LandlockRuleset};
use crate::status::{Layer, LayerLevel, SandboxStatus};

const UNCONFINED: &str = "in a container, run it with --security-opt seccomp=unconfined";

/// Tries every layer of the sandbox.
pub fn probe() -> SandboxStatus {
    let (memory, pidfd) = child_access();
    SandboxStatus {
        layers: vec![namespaces(), landlock(), notification(), no_new_privs(), pidfd, memory],
        kernel: read("/proc/sys/kernel/osrelease"),
        is_root: rustix::process::getuid().is_root(),
        container: container(),
    }
}

fn unavailable(reason: impl Into<String>) -> LayerLevel {
    LayerLevel::None { reason: reason.into() }
}

fn landlock() -> Layer {
    let layer = |level, remedy: Option<&str>| Layer {
        name: "Landlock",
        provides: "restricts files, TCP ports, signals and abstract sockets",
        level,
        remedy: remedy.map(str::to_owned),
    };
    let failed = |error| {
        let (reason, remedy) = ruleset::explain(error);
        layer(unavailable(reason), Some(remedy))
    };
    let abi = match ruleset::abi() {
        Ok(abi) => abi,
        Err(error) => return failed(error),
    };
    match try_landlock() {
        Ok(Trial { error: None, works: true, .. }) => {}
        Ok(Trial { error: Some(Errno::TOOBIG), .. }) => {
            let remedy = "start Haft outside of the other sandboxes";
            return layer(unavailable("too many Landlock sandboxes are nested"), Some(remedy));
        }
        Ok(Trial { error: Some(error), .. }) => return failed(error),
        Ok(_) => {
            let reason = "a file could be written in spite of it";
            return layer(unavailable(reason), Some("report this kernel to the authors of Haft"));
        }
        Err(error) => {
            let remedy = "check the temporary directory and the process limit";
            return layer(unavailable(format!("it could not be tried: {error}")), Some(remedy));
        }
    }
    let missing: Vec<String> = ruleset::missing_parts(abi).into_iter().map(str::to_owned).collect();
    let remedy = (!missing.is_empty())
        .then_some("Linux 6.12 or later has them; until then only the witness restricts them");
    layer(LayerLevel::without(missing), remedy)
}

/// Whether Landlock keeps a child from writing a file that it could write otherwise.
fn try_landlock() -> std::io::Result<Trial> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let file = std::env::temp_dir().join(format!(".haft-probe-{}-{number}", std::process::id()));
    let name = CString::new(file.as_os_str().as_bytes())?;
    let ruleset = LandlockRuleset::new(&FileGrants::default())?;
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file)?;
    let trial = probe_child::try_write_restricted(ruleset.as_raw_fd(), &name);
    // If it is gone already, nothing is left to do.
    let _ = fs::remove_file(&file);
    Ok(trial?)
}

fn notification() -> Layer {
    let layer = |level, remedy: Option<&str>| Layer {
        name: "seccomp notification",
        provides: "Haft sees each change before it happens and makes it on the command's behalf",
        level,
        remedy: remedy.map(str::to_owned),
    };
    let Ok(trial) = probe_child::try_notification() else {
        return layer(unavailable("it was tried without a result"), Some(UNCONFINED));
    };
    match trial.error {
        Some(Errno::BUSY) => {
            let reason = "another program already receives the notifications, maybe a Haft around this one";
            let remedy = "start this Haft outside of the other, or with --sandbox off inside of it";
            return layer(unavailable(reason), Some(remedy));
        }
        Some(Errno::NOSYS | Errno::PERM | Errno::ACCESS) => {
            return layer(unavailable("a filter with notifications is refused"), Some(UNCONFINED));
        }
        Some(_) if !trial.adds_fd => {
            return layer(unavailable("files cannot be passed to a program"), Some("use Linux 5.9 or later"));
        }
        _ if !trial.works => {
            return layer(unavailable("a call got a wrong result"), Some(UNCONFINED));
        }
        _ => {}
    }
    let parts = [
        (trial.adds_fd_and_replies, "passing files in one step (Linux 5.14)"),
        (trial.waits_killable, "killing programs that wait for the witness (Linux 5.19)"),
        (trial.wakes_synchronously, "fast switches between program and witness (Linux 6.6)"),
    ];
    let missing: Vec<String> =
        parts.iter().filter(|(works, _)| !works).map(|(_, part)| (*part).to_owned()).collect();
    let remedy = (!missing.is_empty())
        .then_some("a newer kernel has them; commands are restricted and recorded all the same");
    layer(LayerLevel::without(missing), remedy)
}

fn no_new_privs() -> Layer {
    let works = probe_child::try_no_new_privs().is_ok_and(|trial| trial.works);
    Layer {
        name: "no_new_privs",
        provides: "no program gets more privileges than the one that started it",
        level: if works { LayerLevel::Full } else { unavailable("the kernel refuses it") },
        remedy: (!works).then(|| "use Linux 5.13 or later".to_owned()),
    }
}

/// Reading the memory of children, and handles for them.
fn child_access() -> (Layer, Layer) {
    let (memory, pidfd) = probe_child::try_child_access().unwrap_or_else(|error| (Some(error), Some(error)));
    let level = |error: Option<Errno>| error.map_or(LayerLevel::Full, |error| unavailable(error.to_string()));
    let remedy = match read("/proc/sys/kernel/yama/ptrace_scope").as_str() {
        "2" | "3" => "set kernel.yama.ptrace_scope to 1",
        _ => UNCONFINED,
    };
    let memory = Layer {
        name: "process_vm_readv",
        provides: "Haft can read the arguments of a reported call",
        level: level(memory),
        remedy: memory.map(|_| remedy.to_owned()),
    };
    let pidfd = Layer {
        name: "pidfd",
        provides: "a reused pid is never mistaken for the process that had it before",
        level: level(pidfd),
        remedy: pidfd.map(|_| "use Linux 5.3 or later".to_owned()),
    };
    (memory, pidfd)
}

/// A hint only: a container need not be recognisable.
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

/// Creates namespaces and ends them.
fn namespaces() -> Layer {
    let error = Namespaces::new(&SessionView::default()).err();
    let missing = error.map(|error| format!("a view of their own ({error})"));
    Layer {
        name: "namespaces",
        provides: "commands have their own /tmp, /dev, /proc, home, processes and loopback interface",
        remedy: missing.as_ref().map(|_| {
            "allow user namespaces (kernel.apparmor_restrict_unprivileged_userns=0, user.max_user_namespaces); until \
             then commands are held by the other layers, and more is refused"
                .to_owned()
        }),
        level: LayerLevel::without(missing.into_iter().collect()),
    }
}

/// A small text file; empty if there is none.
fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}
