//! Paths in `/proc` and `/dev` that mean something else for the program than for the witness.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::Path;

use super::caller::Caller;

/// What a path through `/proc/self` and its aliases means.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum OwnProcPath {
    /// A path below the program's own directory in `/proc`.
    Below(Vec<u8>),
    /// Another path, because the root or the working directory was named.
    Elsewhere(Vec<u8>),
}

impl OwnProcPath {
    /// `None` if the path does not begin with one of the aliases.
    pub(super) fn new(path: &[u8], caller: Caller) -> Option<Self> {
        let aliases = [
            (&b"/proc/self"[..], &b""[..]),
            (b"/proc/thread-self", b""),
            (b"/dev/fd", b"fd"),
            (b"/dev/stdin", b"fd/0"),
            (b"/dev/stdout", b"fd/1"),
            (b"/dev/stderr", b"fd/2"),
        ];
        let (target, rest) = aliases.iter().find_map(|(alias, target)| {
            let rest = path.strip_prefix(*alias)?;
            (rest.is_empty() || rest[0] == b'/').then_some((*target, rest))
        })?;
        if target.is_empty() {
            // All processes of a command have the same root.
            if rest.starts_with(b"/root/") {
                return Some(Self::Elsewhere(rest[5..].to_vec()));
            }
            if rest.starts_with(b"/cwd/") {
                let cwd = rustix::fs::readlink(caller.base_path(libc::AT_FDCWD), Vec::new()).ok()?;
                return Some(Self::Elsewhere([cwd.as_bytes(), &rest[4..]].concat()));
            }
        }
        Some(Self::Below([target, rest].concat()))
    }
}

/// Whether this is a directory of descriptors.
pub(super) fn is_fd_directory(path: &Path) -> bool {
    path.starts_with("/proc") && path.file_name().is_some_and(|name| name == "fd")
}

/// Whether a directory in the program's `/proc` is its own.
pub(super) fn is_own(path: &Path, caller: Caller) -> bool {
    let process = path.iter().nth(2).and_then(OsStr::to_str).and_then(|number| number.parse().ok());
    process.is_some_and(|process: i32| caller.own_ids().contains(&process))
}

/// Whether a directory is in Haft's own `/proc`, whose numbers differ from those in a command's.
pub(super) fn is_in_haft_proc(directory: &OwnedFd) -> bool {
    let device = |stat: rustix::fs::Stat| stat.st_dev;
    rustix::fs::fstat(directory).map(device) == rustix::fs::stat("/proc").map(device)
}

/// The process that a path in `/proc` belongs to.
pub(super) fn process_of(path: &Path) -> Option<i32> {
    path.strip_prefix("/proc").ok()?.iter().next()?.to_str()?.parse().ok()
}

/// Whether a file below `/proc/PID` is private; `ps` needs the others.
pub(super) fn is_private_proc_file(path: &Path) -> bool {
    const PUBLIC: &[&str] = &["stat", "statm", "status", "cmdline", "comm", "cgroup", "loginuid", "limits"];
    path.file_name().and_then(|name| name.to_str()).is_none_or(|name| !PUBLIC.contains(&name))
}
