//! The entries of a directory, as the kernel lists them, in a buffer that is used again and again.

use std::ffi::CStr;
use std::os::fd::OwnedFd;

use rustix::fs::FileType;
use rustix::io::Errno;

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
