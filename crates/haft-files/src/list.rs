//! The entries of a directory, as the kernel lists them, in a buffer that is used again and again.

use std::ffi::{CStr, OsStr};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use haft_tool::{DirEntry, FileKind, ToolError};
use rustix::fs::{AtFlags, FileType, OFlags};
use rustix::io::Errno;

use super::{LocalFiles, kind};

impl LocalFiles {
    /// The first `most` entries of a directory by name, and how many it has. Only those are looked at one by one.
    pub(super) fn list_dir(&self, path: &Path, most: usize) -> Result<(Vec<DirEntry>, u64), ToolError> {
        if self.kind_of(path)? != FileKind::Dir {
            return Err(ToolError::invalid_path(format!("{} is not a directory", path.display())));
        }
        let (fd, _) = self.open_any(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC)?;
        let mut listing = Listing::default();
        listing.read(&fd).map_err(|error| ToolError::io(path.display(), &error.into()))?;
        let mut names: Vec<&CStr> = listing.entries().map(|(name, _, _)| name).collect();
        let total = names.len() as u64;
        if most < names.len() {
            names.select_nth_unstable(most);
            names.truncate(most);
        }
        names.sort_unstable();
        let entry = |name: &CStr| {
            // An entry that vanished meanwhile is no longer an entry.
            let stat = rustix::fs::statat(&fd, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
            Some(DirEntry {
                name: OsStr::from_bytes(name.to_bytes()).to_owned(),
                kind: kind(FileType::from_raw_mode(stat.st_mode)),
                size: u64::try_from(stat.st_size).unwrap_or(0),
            })
        };
        Ok((names.into_iter().filter_map(entry).collect(), total))
    }
}

/// The entries of one directory.
#[derive(Default)]
pub(super) struct Listing {
    /// All names, each with its closing NUL.
    names: Vec<u8>,
    entries: Vec<(usize, u64, FileType)>,
    #[cfg(target_os = "linux")]
    buffer: Vec<std::mem::MaybeUninit<u8>>,
}

impl Listing {
    /// Lists the directory, forgetting the one before.
    pub(super) fn read(&mut self, directory: &OwnedFd) -> Result<(), Errno> {
        self.names.clear();
        self.entries.clear();
        self.fill(directory)
    }

    #[cfg(target_os = "linux")]
    fn fill(&mut self, directory: &OwnedFd) -> Result<(), Errno> {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize(64 * 1024, std::mem::MaybeUninit::uninit());
        let mut entries = rustix::fs::RawDir::new(directory, &mut buffer);
        while let Some(entry) = entries.next() {
            let entry = entry?;
            self.push(entry.file_name(), entry.ino(), entry.file_type());
        }
        self.buffer = buffer;
        Ok(())
    }

    #[cfg(not(target_os = "linux"))]
    fn fill(&mut self, directory: &OwnedFd) -> Result<(), Errno> {
        for entry in rustix::fs::Dir::read_from(directory)? {
            let entry = entry?;
            self.push(entry.file_name(), entry.ino(), entry.file_type());
        }
        Ok(())
    }

    fn push(&mut self, name: &CStr, inode: u64, file_type: FileType) {
        if name != c"." && name != c".." {
            self.entries.push((self.names.len(), inode, file_type));
            self.names.extend_from_slice(name.to_bytes_with_nul());
        }
    }

    /// Name, inode and kind of each entry.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&CStr, u64, FileType)> {
        self.entries.iter().filter_map(|(start, inode, file_type)| {
            let name = CStr::from_bytes_until_nul(&self.names[*start..]).ok()?;
            Some((name, *inode, *file_type))
        })
    }

    /// Whether there is an entry of that name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.entries().any(|(entry, _, _)| entry.to_bytes() == name.as_bytes())
    }
}
