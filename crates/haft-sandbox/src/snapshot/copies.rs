//! Copies of files, so that their previous content can be restored.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::scan::EntryVersion;
use crate::session::ScratchDir;

/// Bytes of all copies that take space. Clones, which share their blocks with the original, do not count.
const MAX_COPIED_BYTES: u64 = 256 << 20;
/// Larger files are only cloned.
const MAX_COPIED_FILE_BYTES: u64 = 32 << 20;

/// A copy of a file. Dropping it removes it.
#[derive(Debug)]
pub(super) struct FileCopy {
    version: EntryVersion,
    path: PathBuf,
    /// Bytes that the copy takes; 0 for a clone.
    bytes: u64,
    _directory: Arc<ScratchDir>,
}

impl FileCopy {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for FileCopy {
    fn drop(&mut self) {
        // If it is gone already, nothing is left to do.
        let _ = fs::remove_file(&self.path);
    }
}

/// Copies of the current versions of files, in a private directory.
#[derive(Debug, Default)]
pub(super) struct CopySet {
    directory: Option<Arc<ScratchDir>>,
    copies: HashMap<PathBuf, Arc<FileCopy>>,
    /// Bytes that all copies take.
    used_bytes: u64,
    next_number: u64,
}

impl CopySet {
    /// Removes copies of files that no longer have the version of the copy. Snapshots that use them keep them.
    pub(super) fn retain_current(&mut self, is_current: impl Fn(&Path, &EntryVersion) -> bool) {
        self.copies.retain(|path, copy| is_current(path, &copy.version));
        self.used_bytes = self.copies.values().map(|copy| copy.bytes).sum();
    }

    /// A copy of the file at `path`, made now unless there is one; `None` if it cannot be copied within the bounds.
    pub(super) fn copy(
        &mut self,
        path: &Path,
        version: &EntryVersion,
        parent: &Path,
    ) -> io::Result<Option<Arc<FileCopy>>> {
        if let Some(copy) = self.copies.get(path) {
            return Ok(Some(Arc::clone(copy)));
        }
        let directory = self.directory(parent)?;
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        // A file that cannot be read is reported as lost if the command changes it.
        let Ok(source) = OpenOptions::new().read(true).custom_flags(flags).open(path) else {
            return Ok(None);
        };
        self.next_number += 1;
        let target = directory.path().join(self.next_number.to_string());
        let bytes = if clone_file(&source, &target) {
            0
        } else {
            if version.size > MAX_COPIED_FILE_BYTES || self.used_bytes + version.size > MAX_COPIED_BYTES {
                return Ok(None);
            }
            let mut copy = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&target)?;
            io::copy(&mut &source, &mut copy)?
        };
        self.used_bytes += bytes;
        let copy =
            Arc::new(FileCopy { version: version.clone(), path: target, bytes, _directory: directory });
        self.copies.insert(path.to_owned(), Arc::clone(&copy));
        Ok(Some(copy))
    }

    /// The directory of this process's copies, created if necessary.
    fn directory(&mut self, parent: &Path) -> io::Result<Arc<ScratchDir>> {
        if let Some(directory) = &self.directory {
            return Ok(Arc::clone(directory));
        }
        fs::DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
        let directory = Arc::new(ScratchDir::new_in(parent)?);
        self.directory = Some(Arc::clone(&directory));
        Ok(directory)
    }
}

/// Makes `target` a clone of the file, where the file system supports it.
#[cfg(target_os = "linux")]
fn clone_file(source: &File, target: &Path) -> bool {
    let Ok(copy) = OpenOptions::new().write(true).create_new(true).mode(0o600).open(target) else {
        return false;
    };
    let cloned = rustix::fs::ioctl_ficlone(&copy, source).is_ok();
    if !cloned {
        let _ = fs::remove_file(target);
    }
    cloned
}

#[cfg(target_os = "macos")]
fn clone_file(source: &File, target: &Path) -> bool {
    use rustix::fs::{CWD, CloneFlags, fclonefileat};
    fclonefileat(source, CWD, target, CloneFlags::empty()).is_ok()
}
