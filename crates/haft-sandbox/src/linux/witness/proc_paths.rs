//! Paths in `/proc` and `/dev` that mean something else for the program than for the witness.

use std::ffi::OsStr;
use std::path::Path;

use super::caller::Caller;

/// The path with `/proc/self` and its aliases replaced by the program's own directory; `None` if it has none of them.
pub(super) fn resolve_own_proc(path: &[u8], caller: Caller) -> Option<Vec<u8>> {
    if !path.starts_with(b"/proc/") && !path.starts_with(b"/dev/") {
        return None;
    }
    for own in [&b"/proc/self"[..], b"/proc/thread-self"] {
        match path.strip_prefix(own) {
            // All processes of a command have the same root.
            Some(rest) if rest.starts_with(b"/root/") => return Some(rest[5..].to_vec()),
            Some(rest) if rest.starts_with(b"/cwd/") => {
                let cwd = rustix::fs::readlink(caller.base_path(libc::AT_FDCWD), Vec::new()).ok()?;
                return Some([cwd.as_bytes(), &rest[4..]].concat());
            }
            _ => {}
        }
    }
    let thread = caller.thread();
    let aliases = [
        (&b"/proc/self"[..], format!("/proc/{thread}")),
        (b"/proc/thread-self", format!("/proc/{thread}")),
        (b"/dev/fd", format!("/proc/{thread}/fd")),
        (b"/dev/stdin", format!("/proc/{thread}/fd/0")),
        (b"/dev/stdout", format!("/proc/{thread}/fd/1")),
        (b"/dev/stderr", format!("/proc/{thread}/fd/2")),
    ];
    aliases.iter().find_map(|(alias, target)| {
        let rest = path.strip_prefix(*alias)?;
        (rest.is_empty() || rest[0] == b'/').then(|| [target.as_bytes(), rest].concat())
    })
}

/// Whether this is a directory of descriptors.
pub(super) fn is_fd_directory(path: &Path) -> bool {
    path.starts_with("/proc") && path.file_name().is_some_and(|name| name == "fd")
}

/// Whether a directory in `/proc` is the program's own.
pub(super) fn is_own(path: &Path, caller: Caller) -> bool {
    let process = path.iter().nth(2).and_then(OsStr::to_str).and_then(|number| number.parse().ok());
    process.is_some_and(|process: i32| process == caller.thread() || process == caller.process())
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
