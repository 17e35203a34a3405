//! Root in the workspace of another user, as in a container with a mounted directory.
//!
//! Without capabilities root could not read that user's private files. So commands keep `CAP_DAC_OVERRIDE` there, in a
//! user namespace that has no ids but root's and that user's: it is worth nothing for the files of others.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Another user whose workspace root uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WorkspaceOwner {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl WorkspaceOwner {
    /// The owner of a workspace, if Haft runs as root and the owner is another user.
    pub(crate) fn find(workspace: &Path) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        let meta = fs::metadata(workspace).ok()?;
        let (uid, gid) = (meta.uid(), meta.gid());
        let is_known = has_id("/proc/self/uid_map", uid) && has_id("/proc/self/gid_map", gid);
        (uid != 0 && is_known).then_some(Self { uid, gid })
    }

    /// The directories that are, or could be, the user's home: the one in the list of users, and the outermost of the user's
    /// own directories around the workspace.
    pub(crate) fn homes(self, workspace: &Path) -> Vec<PathBuf> {
        let is_own =
            |path: &Path| fs::metadata(path).is_ok_and(|meta| meta.is_dir() && meta.uid() == self.uid);
        let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let listed = users.lines().filter_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            let uid: u32 = fields.get(2)?.parse().ok()?;
            (uid == self.uid).then(|| PathBuf::from(fields.get(5).copied().unwrap_or_default()))
        });
        let around = workspace.ancestors().skip(1).take_while(|path| is_own(path)).last().map(Path::to_owned);
        let mut homes: Vec<PathBuf> = listed.filter(|home| is_own(home)).chain(around).collect();
        homes = homes.iter().filter_map(|home| home.canonicalize().ok()).collect();
        homes.sort();
        homes.dedup();
        homes
    }

    /// The ids of the user namespace, with root's.
    pub(super) fn maps(self) -> [String; 2] {
        let map = |id: u32| if id == 0 { "0 0 1\n".to_owned() } else { format!("0 0 1\n{id} {id} 1\n") };
        [map(self.uid), map(self.gid)]
    }
}

/// Whether an id exists in this user namespace; others are all shown as the same one.
fn has_id(map: &str, id: u32) -> bool {
    fs::read_to_string(map).unwrap_or_default().lines().any(|line| {
        let mut numbers = line.split_ascii_whitespace().map(|number| number.parse::<u64>().unwrap_or(0));
        let (first, count) = (numbers.next().unwrap_or(0), numbers.nth(1).unwrap_or(0));
        (first..first + count).contains(&u64::from(id))
    })
}
