//! The entries of a directory.

use std::ffi::{CStr, OsStr};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use haft_tool::{DirEntry, FileKind, ToolError};
use rustix::fs::{AtFlags, FileType, OFlags};
use rustix::io::Errno;

use crate::error::os_error;
use crate::open::file_kind;
use crate::{LocalFiles, os, stat};

impl LocalFiles {
    /// The first `limit` entries of a directory by name, and how many it has in all. Only the listed ones are looked at
    /// individually.
    pub(crate) fn list_directory(
        &self,
        path: &Path,
        limit: usize,
    ) -> Result<(Vec<DirEntry>, u64), ToolError> {
        if self.kind_of(path)? != FileKind::Dir {
            return Err(ToolError::invalid_path(format!("{} is not a directory", path.display())));
        }
        let (fd, _) = self.open_any(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC)?;
        let mut listing = DirListing::default();
        listing.read(&fd).map_err(|error| os_error(path, error))?;
        let mut names: Vec<&CStr> = listing.entries().map(|(name, _, _)| name).collect();
        let total = names.len() as u64;
        if limit < names.len() {
            names.select_nth_unstable(limit);
            names.truncate(limit);
        }
        names.sort_unstable();
        let entry = |name: &CStr| {
            // Skips an entry that was removed meanwhile.
            let stat = rustix::fs::statat(&fd, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
            Some(DirEntry {
                name: OsStr::from_bytes(name.to_bytes()).to_owned(),
                kind: file_kind(stat::file_type(&stat)),
                size: stat::size(&stat),
            })
        };
        Ok((names.into_iter().filter_map(entry).collect(), total))
    }
}

/// The entries of one directory. Its buffers are reused for the next directory.
#[derive(Default)]
pub(crate) struct DirListing {
    /// All names, each with its NUL.
    names: Vec<u8>,
    /// Where each name starts, its inode and type.
    entries: Vec<(usize, u64, FileType)>,
    buffer: os::EntryBuffer,
}

impl DirListing {
    /// Replaces the entries by those of `directory`.
    pub(crate) fn read(&mut self, directory: impl AsFd) -> Result<(), Errno> {
        let Self { names, entries, buffer } = self;
        names.clear();
        entries.clear();
        os::for_each_entry(directory, buffer, |name, inode, file_type| {
            if name != c"." && name != c".." {
                entries.push((names.len(), inode, file_type));
                names.extend_from_slice(name.to_bytes_with_nul());
            }
        })
    }

    /// Name, inode and type of each entry.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&CStr, u64, FileType)> {
        self.entries.iter().filter_map(|(start, inode, file_type)| {
            let name = CStr::from_bytes_until_nul(&self.names[*start..]).ok()?;
            Some((name, *inode, *file_type))
        })
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.entries().any(|(entry, _, _)| entry.to_bytes() == name.as_bytes())
    }
}
