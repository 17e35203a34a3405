//! Opens files for reading if there are secrets where commands may create files, and reopens descriptors.
//!
//! The witness judges every open call. Files that Landlock lets the command read anyway are then opened by the kernel, because
//! a reply with a descriptor takes several times as long; the rest is opened by the witness.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::open::{is_for_writing, open_entry, reply_with_fd};
use crate::linux::witness::notifications::Syscall;
use crate::linux::witness::paths::DirectoryEntry;
use crate::linux::witness::proc_paths::{is_private_proc_file, process_of};
use crate::linux::witness::shown_path::shown_path;
use crate::linux::witness::supervisor::{Reply, Supervisor};
use crate::linux::witness::write_policy::WriteArea;

impl Supervisor {
    pub(super) fn open_for_reading(
        &mut self,
        call: &Syscall,
        entry: &DirectoryEntry,
        flags: OFlags,
    ) -> Result<Reply, Errno> {
        let path = entry.path();
        let kind = entry.file_type()?;
        if kind == FileType::Symlink {
            return Err(Errno::LOOP);
        }
        if self.is_secret(entry) && kind != FileType::Directory {
            return Err(self.refuse_read(path));
        }
        if let Some(process) = process_of(path)
            && is_private_proc_file(path)
            && !self.is_own_process(process)
        {
            let rule = "not one of the command's own processes";
            self.denials.add("read", path.display().to_string(), rule, None);
            return Err(Errno::ACCESS);
        }
        match kind {
            FileType::RegularFile | FileType::Directory if self.is_read_by_kernel(&entry.dir) => {
                return Ok(Reply::Continue);
            }
            FileType::RegularFile | FileType::Directory => {}
            FileType::Fifo => return self.open_blocking(call, entry, flags),
            FileType::Socket => return Err(Errno::NXIO),
            _ if self.policy.is_device(path) => {}
            _ if path.starts_with("/dev/pts") || path == Path::new("/dev/ptmx") => {
                return self.open_terminal(entry, flags);
            }
            _ if path == Path::new("/dev/tty") => return Err(Errno::NXIO),
            _ => {
                self.denials.add("read", path.display().to_string(), "it is a device", None);
                return Err(Errno::ACCESS);
            }
        }
        let open = || open_entry(entry, flags, Mode::empty());
        // Files that are written with the witness's own capabilities are also read with them.
        let is_writable = entry.dir.area == WriteArea::Workspace;
        let fd = if is_writable { open() } else { self.capabilities.without(open) }?;
        Ok(reply_with_fd(fd, flags))
    }

    /// Whether commands may use this device, by whatever path the program named it.
    fn may_use_device(&self, stat: &Stat, flags: OFlags) -> bool {
        let is_listed =
            |device: &PathBuf| rustix::fs::stat(device).is_ok_and(|listed| listed.st_rdev == stat.st_rdev);
        self.policy.devices.iter().any(is_listed)
            || (self.inherits_streams && is_own_stream(stat, flags))
            || self.terminals.iter().any(|terminal| terminal.is(stat))
            || (self.policy.has_namespaces && self.paths.is_own_terminal(stat))
    }

    /// Whether a process that is named in the command's `/proc` belongs to the command.
    fn is_own_process(&self, process: i32) -> bool {
        if self.policy.has_namespaces {
            self.monitor.find_process(process).is_some()
        } else {
            self.monitor.is_descendant(process)
        }
    }

    /// Opens again a file that the program already has open.
    pub(super) fn reopen(&mut self, fd: &OwnedFd, flags: OFlags, mode: Mode) -> Result<Reply, Errno> {
        let stat = rustix::fs::fstat(fd)?;
        let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {}
            FileType::CharacterDevice => {
                if !self.may_use_device(&stat, flags) {
                    let place =
                        shown_path(fd).map_or_else(|_| path.clone(), |path| path.display().to_string());
                    self.denials.add("open", place, "it is a device", None);
                    return Err(Errno::ACCESS);
                }
                let own_flags = flags | OFlags::CLOEXEC | OFlags::NOCTTY;
                return Ok(reply_with_fd(rustix::fs::open(path, own_flags, mode)?, flags));
            }
            // Where the kernel may not open files itself.
            FileType::Fifo if self.policy.judges_reads || !self.policy.restricts_truncation => {
                return reopen_pipe(&path, flags);
            }
            // Landlock does not restrict pipes and sockets.
            _ => return Ok(self.continue_or_fail(Errno::NXIO)),
        }
        let entry = self.entry_of_fd(fd).map_err(|_| Errno::ACCESS)?;
        if is_for_writing(flags) && self.inherits_streams && is_own_stream(&stat, flags) {
            // The user gave the command this file as a standard stream.
            let own_flags = (flags - OFlags::CREATE) | OFlags::CLOEXEC;
            return Ok(reply_with_fd(rustix::fs::open(path, own_flags, Mode::empty())?, flags));
        }
        // The descriptor may have been opened only for writing.
        if !flags.contains(OFlags::WRONLY) && self.is_secret(&entry) {
            return Err(self.refuse_read(entry.path()));
        }
        if is_for_writing(flags) {
            if !self.may_change("write", &entry) {
                return Err(Errno::ACCESS);
            }
            self.check_no_git_config("write", &entry)?;
            if self.before_content_change(&entry)? {
                let fd = open_entry(
                    &entry,
                    flags - OFlags::NOFOLLOW - OFlags::CREATE - OFlags::EXCL,
                    Mode::empty(),
                )?;
                return Ok(reply_with_fd(fd, flags));
            }
        }
        let own_flags = (flags - OFlags::NOFOLLOW - OFlags::CREATE - OFlags::EXCL) | OFlags::CLOEXEC;
        let open = || rustix::fs::open(path, own_flags, Mode::empty());
        let fd = if is_for_writing(flags) { open() } else { self.capabilities.without(open) }?;
        Ok(reply_with_fd(fd, flags))
    }
}

/// Whether this is one of Haft's own streams, opened with no more access than it has.
fn is_own_stream(stat: &Stat, flags: OFlags) -> bool {
    let streams = [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()];
    streams.iter().any(|stream| {
        let own = rustix::fs::fstat(stream).map(|own| (own.st_dev, own.st_ino));
        let access = rustix::fs::fcntl_getfl(stream).map(|own| own & OFlags::ACCMODE);
        own == Ok((stat.st_dev, stat.st_ino))
            && access.is_ok_and(|own| own == OFlags::RDWR || own == flags & OFlags::ACCMODE)
    })
}

/// Opens a pipe again. It does not block, because the program has the other end.
fn reopen_pipe(path: &str, flags: OFlags) -> Result<Reply, Errno> {
    let own_flags = (flags - OFlags::NOFOLLOW - OFlags::CREATE) | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let fd = rustix::fs::open(path, own_flags, Mode::empty())?;
    if !flags.contains(OFlags::NONBLOCK) {
        rustix::fs::fcntl_setfl(&fd, rustix::fs::fcntl_getfl(&fd)? - OFlags::NONBLOCK)?;
    }
    Ok(reply_with_fd(fd, flags))
}
