//! Paths in `/proc` and `/dev` that mean something else for the program than for the witness.

use std::ffi::OsStr;
use std::path::Path;

use super::caller::Caller;

/// The path in the program's own `/proc` that is meant by one that begins with `/proc/self` or another alias; `None` without an
/// alias.
///
/// It is resolved from the program's root directory like every other path: Haft's own `/proc` is never entered, because
/// `..` would lead from there to what Haft sees.
pub(super) fn without_alias(path: &[u8], caller: Caller) -> Option<Vec<u8>> {
    let aliases = [
        (&b"/proc/self"[..], ""),
        (b"/proc/thread-self", ""),
        (b"/dev/fd", "/fd"),
        (b"/dev/stdin", "/fd/0"),
        (b"/dev/stdout", "/fd/1"),
        (b"/dev/stderr", "/fd/2"),
    ];
    let (alias, target, rest) = aliases.iter().find_map(|(alias, target)| {
        let rest = path.strip_prefix(*alias)?;
        (rest.is_empty() || rest[0] == b'/').then_some((*alias, *target, rest))
    })?;
    if target.is_empty() {
        // All processes of a command have the same root.
        if rest.starts_with(b"/root/") {
            return Some(rest[5..].to_vec());
        }
        if rest.starts_with(b"/cwd/") {
            let cwd = rustix::fs::readlink(caller.base_path(libc::AT_FDCWD), Vec::new()).ok()?;
            return Some([cwd.as_bytes(), &rest[4..]].concat());
        }
    }
    let ids = caller.own_ids()?;
    let own = if alias == b"/proc/thread-self" {
        format!("/proc/{}/task/{}", ids.process, ids.thread)
    } else {
        format!("/proc/{}{target}", ids.process)
    };
    Some([own.as_bytes(), rest].concat())
}

/// Whether this is a directory of descriptors.
pub(super) fn is_fd_directory(path: &Path) -> bool {
    path.starts_with("/proc") && path.file_name().is_some_and(|name| name == "fd")
}

/// Whether a directory in the program's `/proc` is its own.
pub(super) fn is_own(path: &Path, caller: Caller) -> bool {
    let process = path.iter().nth(2).and_then(OsStr::to_str).and_then(|number| number.parse().ok());
    process.zip(caller.own_ids()).is_some_and(|(process, own): (i32, _)| own.has(process))
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
