//! Removing the caches of commands: those of workspaces that were not used for long, and the oldest if all take too much.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::home::cache_name;
use super::scratch::remove_tree;

/// A deeper tree is not measured to its end.
const MAX_DEPTH: u32 = 64;

/// Which caches are removed.
#[derive(Debug, Clone, Copy)]
pub struct CachePolicy {
    /// All caches together may take so many bytes.
    pub max_bytes: u64,
    /// Caches that were not used for this long are removed.
    pub max_age: Duration,
    /// Caches that were used within this time stay, whatever the limits say.
    pub keep: Duration,
}

/// What was removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheReport {
    /// The number of workspaces whose caches are gone.
    pub workspaces: u64,
    /// The bytes that they took.
    pub bytes: u64,
}

/// Removes caches below `cache` that the policy does not allow, those that were not used for longest first. Those of the
/// workspaces `in_use` stay.
pub fn remove_old_caches(cache: &Path, policy: &CachePolicy, in_use: &[PathBuf]) -> CacheReport {
    let kept: Vec<String> = in_use.iter().map(|workspace| cache_name(workspace)).collect();
    let mut caches: Vec<(Duration, u64, PathBuf)> = Vec::new();
    for entry in fs::read_dir(cache).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_cache = name.len() == cache_name(Path::new("")).len()
            && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        let Ok(meta) = entry.path().symlink_metadata() else { continue };
        if is_cache && meta.is_dir() && !kept.contains(&name) {
            let unused = meta.modified().ok().and_then(|used| SystemTime::now().duration_since(used).ok());
            caches.push((unused.unwrap_or_default(), size_of(&entry.path(), 0), entry.path()));
        }
    }
    caches.sort_by_key(|(unused, _, _)| std::cmp::Reverse(*unused));
    let mut total: u64 = caches.iter().map(|(_, size, _)| size).sum();
    let mut report = CacheReport::default();
    for (unused, size, path) in caches {
        if unused > policy.keep && (unused > policy.max_age || total > policy.max_bytes) {
            remove_tree(&path);
            total -= size;
            report.workspaces += 1;
            report.bytes += size;
        }
    }
    report
}

/// The bytes on the disk that a tree takes.
fn size_of(path: &Path, depth: u32) -> u64 {
    let Ok(meta) = path.symlink_metadata() else { return 0 };
    let own = meta.blocks() * 512;
    if !meta.is_dir() || depth > MAX_DEPTH {
        return own;
    }
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    own + entries.map(|entry| size_of(&entry.path(), depth + 1)).sum::<u64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_and_large_caches_go_and_used_ones_stay() {
        let dir = tempfile::tempdir().unwrap();
        let day = Duration::from_hours(24);
        let add = |workspace: &str, days: u32| {
            let path = dir.path().join(cache_name(Path::new(workspace)));
            fs::create_dir_all(path.join("caches/deep")).unwrap();
            fs::write(path.join("caches/deep/file"), vec![1; 100_000]).unwrap();
            // As Go leaves them.
            fs::set_permissions(
                path.join("caches/deep"),
                std::os::unix::fs::PermissionsExt::from_mode(0o500),
            )
            .unwrap();
            fs::File::open(&path).unwrap().set_modified(SystemTime::now() - day * days).unwrap();
            path
        };
        fs::create_dir(dir.path().join("not a cache")).unwrap();
        let (new, middle, old, running) =
            (add("/new", 0), add("/middle", 10), add("/old", 100), add("/running", 100));
        let mut policy = CachePolicy { max_bytes: u64::MAX, max_age: day * 90, keep: day };
        let in_use = [PathBuf::from("/running")];
        let report = remove_old_caches(dir.path(), &policy, &in_use);
        assert_eq!((report.workspaces, report.bytes >= 100_000), (1, true));
        assert_eq!([&new, &middle, &old, &running].map(|path| path.exists()), [true, true, false, true]);
        policy.max_bytes = 0;
        assert_eq!(remove_old_caches(dir.path(), &policy, &in_use).workspaces, 1);
        assert_eq!([&new, &middle, &running].map(|path| path.exists()), [true, false, true]);
        assert!(dir.path().join("not a cache").exists());
    }
}
