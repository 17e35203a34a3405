//! The user and group ids in a user namespace: the same numbers as outside.

use std::fmt::Write as _;
use std::fs;

use rustix::io::Errno;
use rustix::process::Pid;

use crate::linux::workspace_owner::WorkspaceOwner;

/// Maps ids for the first process of a user namespace: all of Haft's own ids for root, one user and one group for others.
/// For root in the workspace of another user only these two.
pub(super) fn write(process: Pid, owner: Option<WorkspaceOwner>) -> Result<(), Errno> {
    let process = process.as_raw_nonzero();
    let (uid_map, gid_map) = (format!("/proc/{process}/uid_map"), format!("/proc/{process}/gid_map"));
    if let Some(owner) = owner {
        let [uids, gids] = owner.maps();
        return write_file(&uid_map, &uids).and_then(|()| write_file(&gid_map, &gids));
    }
    if write_file(&uid_map, &all_ids("/proc/self/uid_map")).is_ok() {
        return write_file(&gid_map, &all_ids("/proc/self/gid_map"));
    }
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    write_file(&uid_map, &format!("{uid} {uid} 1\n"))?;
    // Without privileges a group can only be mapped when groups cannot be dropped.
    write_file(&format!("/proc/{process}/setgroups"), "deny")?;
    write_file(&gid_map, &format!("{gid} {gid} 1\n"))
}

/// A map of every id that exists in this namespace to itself.
fn all_ids(own_map: &str) -> String {
    let own_map = fs::read_to_string(own_map).unwrap_or_default();
    let mut map = String::new();
    for line in own_map.lines() {
        let mut words = line.split_ascii_whitespace();
        if let (Some(first), Some(count)) = (words.next(), words.nth(1)) {
            let _ = writeln!(map, "{first} {first} {count}");
        }
    }
    map
}

fn write_file(path: &str, content: &str) -> Result<(), Errno> {
    fs::write(path, content).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}
