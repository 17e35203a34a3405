//! Replaces a file in the scope by a copy before it changes, if it also has names outside the scope.

use haft_files::{copy_beside, temp_name};
use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;

use crate::linux::witness::paths::DirectoryEntry;
use crate::linux::witness::supervisor::Supervisor;
use crate::linux::witness::write_policy::WriteArea;

impl Supervisor {
    /// Stores the state of an existing entry whose file is about to change. If the file has names outside the scope, it is
    /// replaced by a copy; returns whether that happened.
    pub(super) fn before_content_change(&mut self, entry: &DirectoryEntry) -> Result<bool, Errno> {
        self.before_change(entry)?;
        let stat = entry.stat()?;
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        if entry.dir.area != WriteArea::Workspace || !is_file {
            return Ok(false);
        }
        if !self.outside_names.has_some(&stat, &self.policy) {
            self.recorder.add_altered(&stat);
            return Ok(false);
        }
        let to_errno = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
        let temp = entry.sibling(&temp_name().map_err(to_errno)?);
        self.recorder.before_creation(&temp)?;
        copy_beside(&entry.dir.fd, &entry.name, &temp.name).map_err(to_errno)?;
        let renamed = rustix::fs::renameat(&entry.dir.fd, &temp.name, &entry.dir.fd, &entry.name);
        if let Err(error) = renamed {
            let _ = rustix::fs::unlinkat(&entry.dir.fd, &temp.name, AtFlags::empty());
            return Err(error);
        }
        self.recorder.after_creation(entry);
        self.recorder.add_separated(entry.path());
        Ok(true)
    }
}
