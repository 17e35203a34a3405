//! Opening for reading, where secrets lie among files that come and go: each file is opened here or not at all.
//!
//! Landlock lets programs be executed there, and so lets them be read; therefore no open is left to the kernel.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use super::files::{is_for_writing, open_here};
use crate::witness::notify::Call;
use crate::witness::paths::Spot;
use crate::witness::places::Area;
use crate::witness::supervisor::{Answer, Supervisor};

impl Supervisor {
    pub(super) fn open_to_read(&mut self, call: &Call, spot: &Spot, flags: OFlags) -> Result<Answer, Errno> {
        let path = spot.path();
        let kind = FileType::from_raw_mode(spot.stat()?.st_mode);
        if kind == FileType::Symlink {
            return Err(Errno::LOOP);
        }
        if self.places.is_secret(path) && kind != FileType::Directory {
            return Err(self.refuse_read(path));
        }
        if let Some(process) = process_of(path)
            && !self.census.has(process)
            && is_private(path)
        {
            let place = path.display().to_string();
            self.denials.add("read", place, "not one of the command's own processes", None);
            return Err(Errno::ACCESS);
        }
        match kind {
            FileType::RegularFile | FileType::Directory => {}
            FileType::Fifo => return Ok(self.open_fifo(call, spot, flags)),
            FileType::Socket => return Err(Errno::NXIO),
            _ if self.places.is_device(path) => {}
            _ if path.starts_with("/dev/pts") || path == Path::new("/dev/ptmx") => {
                return self.open_terminal(spot, flags);
            }
            _ if path == Path::new("/dev/tty") => return Err(Errno::NXIO),
            _ => {
                self.denials.add("read", path.display().to_string(), "it is a device", None);
                return Err(Errno::ACCESS);
            }
        }
        let fd = self.rights.without(|| open_here(spot, flags, Mode::empty()))?;
        Ok(Answer::Descriptor { fd, close_on_exec: flags.contains(OFlags::CLOEXEC) })
    }

    /// Opens again what the program holds already.
    pub(super) fn reopen(&mut self, fd: &OwnedFd, flags: OFlags, mode: Mode) -> Result<Answer, Errno> {
        let stat = rustix::fs::fstat(fd)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {}
            FileType::CharacterDevice => {
                let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
                let ours = flags | OFlags::CLOEXEC | OFlags::NOCTTY;
                let fd = rustix::fs::open(path, ours, mode)?;
                return Ok(Answer::Descriptor { fd, close_on_exec: flags.contains(OFlags::CLOEXEC) });
            }
            FileType::Fifo if self.places.reads => return reopen_pipe(fd, flags),
            // Pipes and sockets have no place in the file system, so Landlock lets them be opened.
            _ => return Ok(self.let_go(Errno::NXIO)),
        }
        let spot = self.spot_of(fd).map_err(|_| Errno::ACCESS)?;
        if is_for_writing(flags) {
            if self.inherits && is_own_stream(&stat, flags) {
                // Whoever started Haft gave it to the command; open again it is nothing new.
                let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
                let fd = rustix::fs::open(path, (flags - OFlags::CREATE) | OFlags::CLOEXEC, Mode::empty())?;
                return Ok(Answer::Descriptor { fd, close_on_exec: flags.contains(OFlags::CLOEXEC) });
            }
            if !self.may_change("write", &spot) {
                return Err(Errno::ACCESS);
            }
            self.may_write_guarded(&spot, true)?;
            self.touch(&spot)?;
            self.recorder.alters(&stat);
            if spot.dir.area == Area::Root {
                self.recorder.opened(&spot);
            }
        } else if self.places.is_secret(spot.path()) {
            return Err(self.refuse_read(spot.path()));
        }
        let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
        let ours = (flags - OFlags::NOFOLLOW - OFlags::CREATE - OFlags::EXCL) | OFlags::CLOEXEC;
        let open = || rustix::fs::open(path, ours, Mode::empty());
        let fd = if is_for_writing(flags) { open() } else { self.rights.without(open) }?;
        Ok(Answer::Descriptor { fd, close_on_exec: flags.contains(OFlags::CLOEXEC) })
    }
}

/// Whether this is one of Haft's own streams, opened for no more than it is.
fn is_own_stream(stat: &rustix::fs::Stat, flags: OFlags) -> bool {
    let streams = [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()];
    streams.iter().any(|stream| {
        let own = rustix::fs::fstat(stream).map(|own| (own.st_dev, own.st_ino));
        let access = rustix::fs::fcntl_getfl(stream).map(|own| own & OFlags::ACCMODE);
        own == Ok((stat.st_dev, stat.st_ino))
            && access.is_ok_and(|own| own == OFlags::RDWR || own == flags & OFlags::ACCMODE)
    })
}

/// Opens a pipe again without waiting for its other end, which the program holds itself.
fn reopen_pipe(fd: &OwnedFd, flags: OFlags) -> Result<Answer, Errno> {
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    let ours = (flags - OFlags::NOFOLLOW - OFlags::CREATE) | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let fd = rustix::fs::open(path, ours, Mode::empty())?;
    if !flags.contains(OFlags::NONBLOCK) {
        rustix::fs::fcntl_setfl(&fd, rustix::fs::fcntl_getfl(&fd)? - OFlags::NONBLOCK)?;
    }
    Ok(Answer::Descriptor { fd, close_on_exec: flags.contains(OFlags::CLOEXEC) })
}

/// The process that a path below `/proc` is about.
fn process_of(path: &Path) -> Option<i32> {
    let rest = path.strip_prefix("/proc").ok()?;
    rest.iter().next()?.to_str()?.parse().ok()
}

/// Whether a file below `/proc/PID` tells more than everybody may know; `ps` has to work.
fn is_private(path: &Path) -> bool {
    const PUBLIC: &[&str] = &["stat", "statm", "status", "cmdline", "comm", "cgroup", "loginuid", "limits"];
    path.file_name().and_then(|name| name.to_str()).is_none_or(|name| !PUBLIC.contains(&name))
}
