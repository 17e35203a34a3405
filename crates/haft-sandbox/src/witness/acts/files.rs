//! Opening, and cutting by name.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use haft_policy::Guard;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::witness::notify::Call;
use crate::witness::paths::{Found, Spot};
use crate::witness::places::Area;
use crate::witness::supervisor::{Answer, Supervisor};

const MOST_LINKS: u32 = 40;

/// Opens a name as the program asked, but follows no link: that has been done.
pub(super) fn open_here(spot: &Spot, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    // Not by a flag, which the program would see; the terminal is not Haft's to take.
    let flags = flags | OFlags::CLOEXEC | OFlags::NOCTTY;
    let creates = flags.intersects(OFlags::CREATE) || flags.contains(OFlags::TMPFILE);
    let mode = if creates { mode & no_special_bits() } else { Mode::empty() };
    let resolve = rustix::fs::ResolveFlags::NO_SYMLINKS | rustix::fs::ResolveFlags::NO_MAGICLINKS;
    rustix::fs::openat2(&spot.dir.fd, spot.word(), flags, mode, resolve)
}

impl Supervisor {
    /// Opens on the program's behalf, with the program's umask.
    pub(super) fn open(
        &mut self,
        call: &Call,
        base: i32,
        path: usize,
        flags: i32,
        mode: u64,
    ) -> Result<Answer, Errno> {
        let path = Self::path(call, path)?;
        let flags = OFlags::from_bits_retain(flags.cast_unsigned());
        let mode = Mode::from_raw_mode(u32::try_from(mode & 0o7777).unwrap_or_default());
        let mut found = match self.find(call, base, &path) {
            // The kernel tells it in its own words, for there is no right to write.
            Err(Errno::LOOP | Errno::XDEV) => return Ok(self.let_go(Errno::ACCESS)),
            found => found?,
        };
        let writes = is_for_writing(flags);
        for _ in 0..MOST_LINKS {
            let spot = match found {
                Found::Spot(spot) => spot,
                Found::Descriptor(fd) => return self.reopen(&fd, flags, mode),
            };
            let opened = if writes {
                self.open_to_write(call, &spot, flags, mode)
            } else {
                self.open_to_read(call, &spot, flags)
            };
            match opened {
                Err(Errno::LOOP) if !flags.contains(OFlags::NOFOLLOW) => {
                    // An exclusive creation never follows.
                    if flags.contains(OFlags::CREATE | OFlags::EXCL) {
                        return Err(Errno::EXIST);
                    }
                    let again = self.follow(call, Found::Spot(spot))?;
                    found = again;
                }
                other => return other,
            }
        }
        Err(Errno::LOOP)
    }

    /// Lets the kernel answer, which knows better words; where reading is watched, too, that could be too much.
    pub(super) fn let_go(&self, otherwise: Errno) -> Answer {
        if self.places.reads { Answer::Fail(otherwise) } else { Answer::GoOn }
    }

    fn open_to_write(
        &mut self,
        call: &Call,
        spot: &Spot,
        flags: OFlags,
        mode: Mode,
    ) -> Result<Answer, Errno> {
        if spot.slash {
            return Ok(self.let_go(Errno::ISDIR));
        }
        if Self::is_scratch(spot) && !self.places.reads {
            return Ok(Answer::GoOn);
        }
        if spot.dir.path.starts_with("/dev")
            && let Some(answer) = self.open_device(spot, flags)
        {
            return answer;
        }
        if spot.dir.new && spot.dir.area == Area::Root && flags.contains(OFlags::CREATE) {
            // Most files in new directories are new, too, and then there is nothing to look at before.
            match self.create(call, spot, flags, mode) {
                Err(Errno::EXIST) => {}
                other => return other,
            }
        }
        // A name that must be new is looked at by the kernel; before that only if it must be kept.
        let exclusive = flags.contains(OFlags::CREATE | OFlags::EXCL) && !flags.contains(OFlags::TMPFILE);
        let stat = if exclusive && self.recorder.knows(spot) { Err(Errno::NOENT) } else { spot.stat() };
        if let Ok(stat) = &stat {
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Symlink => return Err(Errno::LOOP),
                FileType::Directory if !flags.contains(OFlags::TMPFILE) => {
                    return Ok(self.let_go(Errno::ISDIR));
                }
                _ if !flags.contains(OFlags::WRONLY) && self.places.is_secret(spot.path()) => {
                    return Err(self.refuse_read(spot.path()));
                }
                _ => self.recorder.alters(stat),
            }
        } else if !flags.contains(OFlags::CREATE) {
            return Err(stat.err().unwrap_or(Errno::NOENT));
        }
        if flags.contains(OFlags::TMPFILE) {
            return self.open_unnamed(call, spot, flags, mode);
        }
        if !self.may_change("write", spot) {
            return Ok(self.let_go(Errno::ACCESS));
        }
        self.may_write_guarded(spot, stat.is_ok())?;
        let kind = stat.map(|stat| FileType::from_raw_mode(stat.st_mode));
        match kind.ok() {
            None | Some(FileType::RegularFile) => {}
            Some(FileType::Fifo) => return Ok(self.open_fifo(call, spot, flags)),
            Some(FileType::Socket) => return Err(Errno::NXIO),
            Some(_) => {
                let path = spot.path().display().to_string();
                self.denials.add("write", path, "it is a device", None);
                return Err(Errno::ACCESS);
            }
        }
        if kind == Err(Errno::NOENT) {
            self.touch_absent(spot)?;
        } else {
            self.touch(spot)?;
        }
        self.with_umask_of(call);
        let fd = open_here(spot, flags, mode)?;
        if spot.dir.area == Area::Root {
            self.recorder.opened(spot);
        }
        Ok(Answer::Descriptor { fd, close_on_exec: flags.contains(OFlags::CLOEXEC) })
    }

    /// Opens what programs need of `/dev`; nothing if it is none of that.
    fn open_device(&mut self, spot: &Spot, flags: OFlags) -> Option<Result<Answer, Errno>> {
        let path = spot.path();
        if self.places.is_device(path) {
            let close_on_exec = flags.contains(OFlags::CLOEXEC);
            let opened = open_here(spot, flags, Mode::empty());
            return Some(opened.map(|fd| Answer::Descriptor { fd, close_on_exec }));
        }
        if path == Path::new("/dev/tty") {
            // Shells try it to find out whether somebody is there.
            return Some(Ok(self.let_go(Errno::NXIO)));
        }
        if path.starts_with("/dev/pts") || path == Path::new("/dev/ptmx") {
            return Some(self.open_terminal(spot, flags));
        }
        None
    }

    /// Makes a file in a directory that the command made.
    fn create(&mut self, call: &Call, spot: &Spot, flags: OFlags, mode: Mode) -> Result<Answer, Errno> {
        self.may_write_guarded(spot, false)?;
        self.with_umask_of(call);
        let fd = open_here(spot, flags | OFlags::EXCL, mode)?;
        self.recorder.opened(spot);
        Ok(Answer::Descriptor { fd, close_on_exec: flags.contains(OFlags::CLOEXEC) })
    }

    /// A file without a name, in a directory that may be written.
    fn open_unnamed(&mut self, call: &Call, spot: &Spot, flags: OFlags, mode: Mode) -> Result<Answer, Errno> {
        if self.places.area(spot.path()) == Area::Outside {
            return Ok(self.let_go(Errno::ACCESS));
        }
        self.with_umask_of(call);
        let fd = open_here(spot, flags, mode)?;
        Ok(Answer::Descriptor { fd, close_on_exec: flags.contains(OFlags::CLOEXEC) })
    }

    /// A pipe with a name may wait for its other end, so another thread opens it.
    pub(super) fn open_fifo(&mut self, call: &Call, spot: &Spot, flags: OFlags) -> Answer {
        let (listener, id, spot_fd) = (Arc::clone(&self.listener), call.id, spot.dir.fd.try_clone());
        let name = spot.name.clone();
        std::thread::spawn(move || {
            let opened = spot_fd.map_err(|_| Errno::MFILE).and_then(|dir| {
                let ours = (flags - OFlags::CREATE) | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                rustix::fs::openat(&dir, &name, ours, Mode::empty())
            });
            match opened {
                Ok(fd) => listener.hand_over(id, fd, flags.contains(OFlags::CLOEXEC)),
                Err(error) => listener.answer(id, Err(error)),
            }
        });
        Answer::Later
    }

    /// A terminal of the program's own making; those of others are not touched.
    pub(super) fn open_terminal(&mut self, spot: &Spot, flags: OFlags) -> Result<Answer, Errno> {
        let path = spot.path();
        let number = spot.name.to_str().and_then(|name| name.parse().ok());
        let master = spot.name == "ptmx";
        if !master && !number.is_some_and(|number| self.terminals.contains(&number)) {
            let place = path.display().to_string();
            self.denials.add("write", place, "it is the terminal of another program", None);
            return Err(Errno::ACCESS);
        }
        let ours = flags | OFlags::CLOEXEC | OFlags::NOCTTY;
        let fd = rustix::fs::openat(&spot.dir.fd, &spot.name, ours, Mode::empty())?;
        if master && let Some(number) = terminal_number(&fd) {
            self.terminals.push(number);
        }
        Ok(Answer::Descriptor { fd, close_on_exec: flags.contains(OFlags::CLOEXEC) })
    }

    /// Cuts a file by name.
    pub(super) fn truncate(&mut self, call: &Call, path: usize, length: u64) -> Result<Answer, Errno> {
        let path = Self::path(call, path)?;
        let Found::Spot(spot) = self.find_through(call, libc::AT_FDCWD, &path)? else {
            return Err(Errno::ACCESS);
        };
        let stat = spot.stat()?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile if spot.slash => return Err(Errno::NOTDIR),
            FileType::RegularFile => {}
            FileType::Directory => return Err(Errno::ISDIR),
            _ => return Err(Errno::INVAL),
        }
        if !self.may_change("truncate", &spot) {
            return Err(Errno::ACCESS);
        }
        self.may_write_guarded(&spot, true)?;
        self.touch(&spot)?;
        self.recorder.alters(&stat);
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&spot.dir.fd, &spot.name, flags, Mode::empty())?;
        Ok(rustix::fs::ftruncate(&fd, length).into())
    }

    /// Refuses to open a guarded file for writing.
    pub(super) fn may_write_guarded(&mut self, spot: &Spot, exists: bool) -> Result<(), Errno> {
        if spot.dir.area != Area::Root {
            return Ok(());
        }
        let path = spot.path();
        let Some(guard) = self.guard_of(spot) else { return Ok(()) };
        // Some programs write these in place when they make a repository, a worktree or a submodule; what they say is
        // looked at in the end.
        let made = spot.dir.made && matches!(guard, Guard::GitConfig | Guard::GitLink);
        if made || (guard == Guard::GitLink && !exists && Self::is_git_linkage(path)) {
            return Ok(());
        }
        Err(self.refuse_guarded("write", path, guard, ""))
    }
}

/// Whether an open file could be changed.
pub(super) fn is_for_writing(flags: OFlags) -> bool {
    flags.intersects(OFlags::WRONLY | OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC)
}

/// Nothing runs as somebody else because a command said so.
pub(super) fn no_special_bits() -> Mode {
    !(Mode::SUID | Mode::SGID)
}

#[expect(unsafe_code, reason = "the request has no safe wrapper")]
fn terminal_number(fd: &OwnedFd) -> Option<u32> {
    let mut number: libc::c_uint = 0;
    // SAFETY: TIOCGPTN writes one unsigned int.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), libc::TIOCGPTN, &raw mut number) };
    (result == 0).then_some(number)
}
