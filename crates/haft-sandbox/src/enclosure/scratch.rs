//! A private directory for one session, gone when the session ends.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use haft_tool::ToolError;

use haft_files::read_small_file;

/// The directory.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Makes one; those of sessions that died without a word are removed.
    pub(crate) fn new() -> Result<Self, ToolError> {
        let parent = shared_parent()?;
        sweep(&parent);
        let path = parent.join(format!("{}-{:016x}", owner(), random()?));
        let made = fs::DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|error| {
            ToolError::io(format!("commands need a private directory {}", path.display()), &error)
        })?;
        Ok(Self { path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

/// The directory that holds those of all this user's sessions; nobody else may look into it.
pub(super) fn shared_parent() -> Result<PathBuf, ToolError> {
    let temp = std::env::temp_dir();
    let temp = temp.canonicalize().unwrap_or(temp);
    let us = rustix::process::geteuid().as_raw();
    let ours = |path: &Path| {
        let private = |meta: fs::Metadata| meta.is_dir() && meta.uid() == us && meta.mode() & 0o777 == 0o700;
        path.symlink_metadata().is_ok_and(private)
    };
    let path = temp.join(format!("haft-{us}"));
    let _ = fs::DirBuilder::new().mode(0o700).create(&path);
    if ours(&path) {
        return Ok(path);
    }
    // Somebody else took the name.
    let path = temp.join(format!("haft-{us}-{:016x}", random()?));
    let made = fs::DirBuilder::new().mode(0o700).create(&path);
    made.map_err(|error| {
        ToolError::io(format!("commands need a private directory, and {} is none", path.display()), &error)
    })?;
    Ok(path)
}

fn random() -> Result<u64, ToolError> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| ToolError::internal(format!("no randomness: {error}")))?;
    Ok(u64::from_ne_bytes(bytes))
}

/// This process, by its number and the moment it started: numbers come round again.
fn owner() -> String {
    let id = std::process::id();
    format!("{id}-{}", started(id).unwrap_or_default())
}

fn started(id: u32) -> Option<u64> {
    let mut stat = [0; 1024];
    let stat = read_small_file(&format!("/proc/{id}/stat"), &mut stat)?;
    let after_name = stat.iter().rposition(|&byte| byte == b')')? + 2;
    let text = std::str::from_utf8(stat.get(after_name..)?).ok()?;
    text.split(' ').nth(19)?.parse().ok()
}

/// Removes what processes left that are gone.
fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    let us = rustix::process::geteuid().as_raw();
    for entry in entries.flatten() {
        let name = entry.file_name();
        let mut parts = name.to_str().unwrap_or_default().split('-');
        let (Some(id), Some(since)) = (
            parts.next().and_then(|id| id.parse::<u32>().ok()),
            parts.next().and_then(|since| since.parse::<u64>().ok()),
        ) else {
            continue;
        };
        let ours = entry.path().symlink_metadata().is_ok_and(|meta| meta.is_dir() && meta.uid() == us);
        if ours && started(id) != Some(since) {
            remove(&entry.path());
        }
    }
}

/// Removes a tree, also where its directories were closed to their owner.
fn remove(path: &Path) {
    // Mostly there is nothing in it.
    if fs::remove_dir(path).is_ok() {
        return;
    }
    if fs::remove_dir_all(path).is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied) {
        open_up(path, 0);
        // What is left then belongs to somebody else.
        let _ = fs::remove_dir_all(path);
    }
}

fn open_up(path: &Path, depth: u32) {
    use std::os::unix::fs::PermissionsExt;
    if depth > 200 || !path.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
        return;
    }
    let _ = fs::set_permissions(path, fs::Permissions::from_mode(0o700));
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        open_up(&entry.path(), depth + 1);
    }
}
