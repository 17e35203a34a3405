//! Opens files for writing, and truncates them by name.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::linux::witness::caller::Caller;
use crate::linux::witness::notifications::Syscall;
use crate::linux::witness::paths::{DirectoryEntry, MAX_LINKS, ResolvedTarget};
use crate::linux::witness::supervisor::{Reply, Supervisor};
use crate::linux::witness::terminals::OwnTerminal;
use crate::linux::witness::write_policy::WriteArea;

/// Opens an entry with the program's flags. Links have been followed before.
pub(super) fn open_entry(entry: &DirectoryEntry, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    // NOCTTY: a terminal must not become Haft's.
    let flags = flags | OFlags::CLOEXEC | OFlags::NOCTTY;
    let creates = flags.intersects(OFlags::CREATE) || flags.contains(OFlags::TMPFILE);
    let mode = if creates { mode & without_setid() } else { Mode::empty() };
    // Not O_NOFOLLOW, because the program would see that in the file's flags.
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let open = |flags| rustix::fs::openat2(&entry.dir.fd, entry.name_as_written(), flags, mode, resolve);
    if flags.intersects(OFlags::NONBLOCK | OFlags::EXCL) {
        return open(flags);
    }
    // Another program may have put a FIFO there, so opening must not block.
    let fd = open(flags | OFlags::NONBLOCK)?;
    rustix::fs::fcntl_setfl(&fd, rustix::fs::fcntl_getfl(&fd)? - OFlags::NONBLOCK)?;
    Ok(fd)
}

/// A reply with a descriptor that the program asked for with `flags`.
pub(super) fn reply_with_fd(fd: OwnedFd, flags: OFlags) -> Reply {
    Reply::Fd { fd, close_on_exec: flags.contains(OFlags::CLOEXEC) }
}

impl Supervisor {
    /// Opens a file with the program's umask.
    pub(super) fn open(
        &mut self,
        call: &Syscall,
        base: i32,
        path: usize,
        flags: i32,
        mode: u64,
    ) -> Result<Reply, Errno> {
        let path = self.read_path(call, path)?;
        let flags = OFlags::from_bits_retain(flags.cast_unsigned());
        let mode = Mode::from_raw_mode(u32::try_from(mode & 0o7777).unwrap_or_default());
        let mut target = match self.resolve(call, base, &path) {
            Err(Errno::LOOP | Errno::XDEV) => return Ok(self.continue_or_fail(Errno::ACCESS)),
            target => target?,
        };
        for _ in 0..MAX_LINKS {
            let entry = match target {
                ResolvedTarget::Entry(entry) => entry,
                ResolvedTarget::Fd(fd) => return self.reopen(&fd, flags, mode),
            };
            let opened = if is_for_writing(flags) {
                self.open_for_writing(call, &entry, flags, mode)
            } else {
                self.open_for_reading(call, &entry, flags)
            };
            match opened {
                Err(Errno::LOOP) if !flags.contains(OFlags::NOFOLLOW) => {
                    // O_EXCL does not follow links.
                    if flags.contains(OFlags::CREATE | OFlags::EXCL) {
                        return Err(Errno::EXIST);
                    }
                    target = self.follow(call, ResolvedTarget::Entry(entry))?;
                }
                other => return other,
            }
        }
        Err(Errno::LOOP)
    }

    /// Lets the kernel return the exact error, because the program has no right to write. If the witness opens every file, this
    /// returns the error itself: the kernel would allow reading.
    pub(super) fn continue_or_fail(&self, error: Errno) -> Reply {
        // Before Linux 6.2 Landlock does not restrict truncation.
        if self.policy.judges_reads || !self.policy.restricts_truncation {
            Reply::Error(error)
        } else {
            Reply::Continue
        }
    }

    fn open_for_writing(
        &mut self,
        call: &Syscall,
        entry: &DirectoryEntry,
        flags: OFlags,
        mode: Mode,
    ) -> Result<Reply, Errno> {
        if entry.has_slash {
            return Ok(self.continue_or_fail(Errno::ISDIR));
        }
        if entry.dir.area == WriteArea::Private
            && !self.policy.judges_reads
            && self.policy.restricts_truncation
        {
            self.before_change(entry)?;
            return Ok(Reply::Continue);
        }
        if entry.dir.path.starts_with("/dev")
            && let Some(reply) = self.open_device(entry, flags)
        {
            return reply;
        }
        if entry.dir.is_new && entry.dir.area == WriteArea::Workspace && flags.contains(OFlags::CREATE) {
            // Most files in new directories are new, too, and have no previous state to store.
            match self.create_new(call, entry, flags, mode) {
                Err(Errno::EXIST) => {}
                other => return other,
            }
        }
        let exclusive = flags.contains(OFlags::CREATE | OFlags::EXCL) && !flags.contains(OFlags::TMPFILE);
        // For an exclusive creation the kernel itself checks whether the file exists.
        let stat = if exclusive && self.recorder.is_known(entry) { Err(Errno::NOENT) } else { entry.stat() };
        let kind = stat.as_ref().map(|stat| FileType::from_raw_mode(stat.st_mode)).map_err(|error| *error);
        match (kind, &stat) {
            (Ok(FileType::Symlink), _) => return Err(Errno::LOOP),
            (Ok(FileType::Directory), _) if !flags.contains(OFlags::TMPFILE) => {
                return Ok(self.continue_or_fail(Errno::ISDIR));
            }
            (Ok(_), _) if !flags.contains(OFlags::WRONLY) && self.is_secret(entry) => {
                return Err(self.refuse_read(entry.path()));
            }
            (_, Err(error)) if !flags.contains(OFlags::CREATE) => return Err(*error),
            _ => {}
        }
        if flags.contains(OFlags::TMPFILE) {
            return self.open_unnamed(call, entry, flags, mode);
        }
        if !self.may_change("write", entry) {
            return Ok(self.continue_or_fail(Errno::ACCESS));
        }
        self.check_no_git_config("write", entry)?;
        match kind.ok() {
            None | Some(FileType::RegularFile) => {}
            Some(FileType::Fifo) => return self.open_blocking(call, entry, flags),
            Some(FileType::Socket) => return Err(Errno::NXIO),
            Some(_) => {
                self.denials.add("write", entry.path().display().to_string(), "it is a device", None);
                return Err(Errno::ACCESS);
            }
        }
        match kind {
            Err(Errno::NOENT) => self.before_creation(entry)?,
            // The kernel refuses to create it exclusively.
            _ if exclusive => {}
            _ => _ = self.before_content_change(entry)?,
        }
        self.use_umask_of(call);
        let fd = open_entry(entry, flags, mode)?;
        if entry.dir.area == WriteArea::Workspace {
            self.recorder.after_opening(entry, rustix::fs::fstat(&fd), kind.is_err());
        }
        if kind.is_err() && self.policy.is_secret(entry.path()) {
            self.own_secrets.add(entry, &fd);
        }
        Ok(reply_with_fd(fd, flags))
    }

    /// Opens the devices that commands may use; `None` for other files in `/dev`.
    fn open_device(&mut self, entry: &DirectoryEntry, flags: OFlags) -> Option<Result<Reply, Errno>> {
        let path = entry.path();
        if self.policy.is_device(path) {
            let opened = open_entry(entry, flags, Mode::empty());
            return Some(opened.map(|fd| reply_with_fd(fd, flags)));
        }
        if path == Path::new("/dev/tty") {
            // Shells open it to find out whether there is a terminal.
            return Some(Ok(self.continue_or_fail(Errno::NXIO)));
        }
        if path.starts_with("/dev/pts") || path == Path::new("/dev/ptmx") {
            return Some(self.open_terminal(entry, flags));
        }
        None
    }

    /// Creates a file in a new directory.
    fn create_new(
        &mut self,
        call: &Syscall,
        entry: &DirectoryEntry,
        flags: OFlags,
        mode: Mode,
    ) -> Result<Reply, Errno> {
        self.use_umask_of(call);
        let fd = open_entry(entry, flags | OFlags::EXCL, mode)?;
        self.recorder.after_creation(entry);
        if self.policy.is_secret(entry.path()) {
            self.own_secrets.add(entry, &fd);
        }
        Ok(reply_with_fd(fd, flags))
    }

    /// Opens a file without a name (`O_TMPFILE`).
    fn open_unnamed(
        &mut self,
        call: &Syscall,
        entry: &DirectoryEntry,
        flags: OFlags,
        mode: Mode,
    ) -> Result<Reply, Errno> {
        if self.policy.area(entry.path()) == WriteArea::Outside {
            return Ok(self.continue_or_fail(Errno::ACCESS));
        }
        self.use_umask_of(call);
        Ok(reply_with_fd(open_entry(entry, flags, mode)?, flags))
    }

    /// Opens a file in another thread, because it may block: a FIFO until the other end is opened.
    pub(super) fn open_blocking(
        &mut self,
        call: &Syscall,
        entry: &DirectoryEntry,
        flags: OFlags,
    ) -> Result<Reply, Errno> {
        // Through a handle, because the name may lead to another file by the time the thread runs.
        let path_flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let found = rustix::fs::openat(&entry.dir.fd, &entry.name, path_flags, Mode::empty())?;
        if FileType::from_raw_mode(rustix::fs::fstat(&found)?.st_mode) != FileType::Fifo {
            return Err(Errno::AGAIN);
        }
        self.blocked.start(&self.listener, call, move || {
            let own_flags = (flags - OFlags::CREATE - OFlags::NOFOLLOW) | OFlags::CLOEXEC;
            let fd =
                rustix::fs::open(format!("/proc/self/fd/{}", found.as_raw_fd()), own_flags, Mode::empty())?;
            Ok(reply_with_fd(fd, flags))
        })
    }

    /// Opens a pseudo-terminal that the command created; others are refused.
    pub(super) fn open_terminal(&mut self, entry: &DirectoryEntry, flags: OFlags) -> Result<Reply, Errno> {
        let number = entry.name.to_str().and_then(|name| name.parse().ok());
        let is_master = entry.name == "ptmx";
        let is_own = |number| self.terminals.iter().any(|terminal| terminal.has_number(number));
        if !is_master && !number.is_some_and(is_own) {
            let path = entry.path().display().to_string();
            self.denials.add("write", path, "it is the terminal of another program", None);
            return Err(Errno::ACCESS);
        }
        let fd = open_entry(entry, flags, Mode::empty())?;
        if is_master && let Ok(terminal) = OwnTerminal::of_master(&fd, self.paths.root()) {
            self.terminals.retain(OwnTerminal::is_open);
            self.terminals.push(terminal);
        }
        Ok(reply_with_fd(fd, flags))
    }

    /// Performs truncate(2).
    pub(super) fn truncate(&mut self, call: &Syscall, path: usize, length: u64) -> Result<Reply, Errno> {
        if length.cast_signed() < 0 {
            return Err(Errno::INVAL);
        }
        let path = self.read_path(call, path)?;
        let ResolvedTarget::Entry(entry) = self.resolve_followed(call, libc::AT_FDCWD, &path)? else {
            return Err(Errno::ACCESS);
        };
        let stat = entry.stat()?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile if entry.has_slash => return Err(Errno::NOTDIR),
            FileType::RegularFile => {}
            FileType::Directory => return Err(Errno::ISDIR),
            _ => return Err(Errno::INVAL),
        }
        if !self.may_change("truncate", &entry) {
            return Err(Errno::ACCESS);
        }
        if length > Caller::of(call).max_file_bytes() {
            return Err(Errno::FBIG);
        }
        self.check_no_git_config("truncate", &entry)?;
        self.before_content_change(&entry)?;
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&entry.dir.fd, &entry.name, flags, Mode::empty())?;
        Ok(rustix::fs::ftruncate(&fd, length).into())
    }
}

/// Whether an open call could change a file.
pub(super) fn is_for_writing(flags: OFlags) -> bool {
    flags.intersects(OFlags::WRONLY | OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC)
}

/// All mode bits but setuid and setgid: no program may run as another user because of a command.
pub(super) fn without_setid() -> Mode {
    !(Mode::SUID | Mode::SGID)
}
