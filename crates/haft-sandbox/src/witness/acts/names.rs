//! Making and removing names: directories, links, nodes.

use std::ffi::OsStr;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;

use haft_policy::Guard;
use rustix::fs::{AtFlags, FileType, Mode};
use rustix::io::Errno;

use super::files::no_special_bits;
use super::guard::is_inside_git;
use crate::witness::notify::Call;
use crate::witness::paths::{Found, Spot};
use crate::witness::places::Area;
use crate::witness::supervisor::{Answer, Supervisor};
use crate::witness::target::Target;

impl Supervisor {
    /// The spot that a path names; none if it is one of the program's own descriptors.
    pub(super) fn spot(&mut self, call: &Call, base: i32, path: usize) -> Result<Spot, Errno> {
        let path = Self::path(call, path)?;
        match self.find(call, base, &path)? {
            Found::Spot(spot) => Ok(spot),
            Found::Descriptor(_) => Err(Errno::ACCESS),
        }
    }

    /// A spot where a name is about to be made; the kernel's own words if there is one already.
    fn new_spot(&mut self, call: &Call, base: i32, path: usize) -> Result<Spot, Errno> {
        let spot = self.spot(call, base, path)?;
        if spot.exists() {
            return Err(Errno::EXIST);
        }
        if !self.may_change("create", &spot) {
            return Err(Errno::ACCESS);
        }
        Ok(spot)
    }

    pub(super) fn make_directory(
        &mut self,
        call: &Call,
        base: i32,
        path: usize,
        mode: u64,
    ) -> Result<Answer, Errno> {
        let spot = self.new_spot(call, base, path)?;
        match self.guard_of(&spot) {
            // A directory for git is made by git init; a directory is no settings file.
            None | Some(Guard::GitLink | Guard::GitConfig) => {}
            Some(guard) => return Err(self.refuse_guarded("create", spot.path(), guard, "")),
        }
        self.touch(&spot)?;
        self.with_umask_of(call);
        let mode = Mode::from_raw_mode(u32::try_from(mode & 0o7777).unwrap_or_default());
        Ok(rustix::fs::mkdirat(&spot.dir.fd, spot.word(), mode & no_special_bits()).into())
    }

    pub(super) fn make_node(
        &mut self,
        call: &Call,
        base: i32,
        path: usize,
        mode: u64,
    ) -> Result<Answer, Errno> {
        let mode = u32::try_from(mode & 0o177_777).unwrap_or_default();
        let kind = match FileType::from_raw_mode(mode) {
            FileType::Unknown => FileType::RegularFile,
            kind @ (FileType::RegularFile | FileType::Fifo | FileType::Socket) => kind,
            FileType::Symlink => return Err(Errno::INVAL),
            _ => return Err(Errno::PERM),
        };
        let spot = self.new_spot(call, base, path)?;
        self.refuse_any_guard("create", &spot)?;
        self.touch(&spot)?;
        self.with_umask_of(call);
        let mode = Mode::from_raw_mode(mode) & no_special_bits();
        Ok(rustix::fs::mknodat(&spot.dir.fd, spot.word(), kind, mode, 0).into())
    }

    pub(super) fn make_link(
        &mut self,
        call: &Call,
        target: usize,
        base: i32,
        path: usize,
    ) -> Result<Answer, Errno> {
        let target = Self::path(call, target)?;
        let spot = self.new_spot(call, base, path)?;
        self.refuse_any_guard("create", &spot)?;
        // Git tries out whether there are links at all with one that leads to this name, and removes it.
        if spot.dir.area == Area::Root && target != b"testing" && is_inside_git(spot.path()) {
            return Err(self.refuse_guarded("create", spot.path(), Guard::GitLink, "a link"));
        }
        self.touch(&spot)?;
        self.dirs.forget();
        Ok(rustix::fs::symlinkat(OsStr::from_bytes(&target), &spot.dir.fd, spot.word()).into())
    }

    /// One more name for a file. What is guarded, secret or outside gets none: it would be reached under it.
    pub(super) fn make_name(
        &mut self,
        call: &Call,
        (old_base, old): (i32, usize),
        (new_base, new): (i32, usize),
        flags: i32,
    ) -> Result<Answer, Errno> {
        if flags & !(libc::AT_SYMLINK_FOLLOW | libc::AT_EMPTY_PATH) != 0 {
            return Err(Errno::INVAL);
        }
        let path = Self::path(call, old)?;
        let found = if path.is_empty() && flags & libc::AT_EMPTY_PATH != 0 {
            Found::Descriptor(Target::of(call).descriptor(old_base)?)
        } else {
            let found = self.find(call, old_base, &path)?;
            if flags & libc::AT_SYMLINK_FOLLOW != 0 { self.follow(call, found)? } else { found }
        };
        let source = match found {
            Found::Descriptor(fd) => {
                // A file that never had a name was opened by the witness; any other is found under its own.
                if rustix::fs::fstat(&fd)?.st_nlink == 0 {
                    let spot = self.new_spot(call, new_base, new)?;
                    self.refuse_any_guard("create", &spot)?;
                    self.touch(&spot)?;
                    if spot.dir.area == Area::Root {
                        self.recorder.opened(&spot);
                    }
                    let held = format!("/proc/self/fd/{}", fd.as_raw_fd());
                    let follow = AtFlags::SYMLINK_FOLLOW;
                    let here = rustix::fs::CWD;
                    return Ok(rustix::fs::linkat(here, held, &spot.dir.fd, spot.word(), follow).into());
                }
                self.spot_of(&fd)?
            }
            Found::Spot(spot) => spot,
        };
        let spot = self.new_spot(call, new_base, new)?;
        match FileType::from_raw_mode(source.stat()?.st_mode) {
            FileType::Directory => return Err(Errno::PERM),
            FileType::Symlink if source.slash => return Err(Errno::PERM),
            _ if source.slash => return Err(Errno::NOTDIR),
            _ => {}
        }
        if !self.may_change("link", &source) {
            return Err(Errno::ACCESS);
        }
        if self.places.is_secret(source.path()) {
            return Err(self.refuse_read(source.path()));
        }
        self.refuse_any_guard("link", &source)?;
        self.refuse_any_guard("create", &spot)?;
        // What is written under the new name is written under the old one, too.
        self.touch(&source)?;
        self.touch(&spot)?;
        let (from, to) = (&source.dir.fd, &spot.dir.fd);
        Ok(rustix::fs::linkat(from, &source.name, to, spot.word(), AtFlags::empty()).into())
    }

    pub(super) fn remove(
        &mut self,
        call: &Call,
        base: i32,
        path: usize,
        directory: bool,
    ) -> Result<Answer, Errno> {
        let spot = self.spot(call, base, path)?;
        match (spot.dots, directory) {
            (0, _) => {}
            (1, true) => return Err(Errno::INVAL),
            (_, true) => return Err(Errno::NOTEMPTY),
            (_, false) => return Err(Errno::ISDIR),
        }
        let stat = spot.stat()?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        match (directory, kind) {
            (true, FileType::Directory) => {}
            (true, _) => return Err(Errno::NOTDIR),
            (false, FileType::Directory) => return Err(Errno::ISDIR),
            (false, _) if spot.slash => return Err(Errno::NOTDIR),
            (false, _) => {}
        }
        if !self.may_change("delete", &spot) {
            return Err(Errno::ACCESS);
        }
        if let Some(guard @ Guard::Settings) = self.guard_of(&spot) {
            return Err(self.refuse_guarded("delete", spot.path(), guard, ""));
        }
        self.touch(&spot)?;
        let flags = if directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        let removed = rustix::fs::unlinkat(&spot.dir.fd, spot.word(), flags);
        if removed.is_ok() && matches!(kind, FileType::Directory | FileType::Symlink) {
            self.dirs.forget();
        }
        Ok(removed.into())
    }

    /// Refuses a spot that is guarded in any way.
    pub(super) fn refuse_any_guard(&mut self, what: &str, spot: &Spot) -> Result<(), Errno> {
        match self.guard_of(spot) {
            Some(guard) => Err(self.refuse_guarded(what, spot.path(), guard, "")),
            None => Ok(()),
        }
    }
}
