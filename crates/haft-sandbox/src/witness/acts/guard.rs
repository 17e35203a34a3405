//! What is guarded: by its name, by the directory it lies in, by what it says.

use std::io::Read;
use std::path::Path;

use haft_policy::Guard;
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::sandbox::git;
use crate::witness::paths::Spot;
use crate::witness::places::Area;
use crate::witness::recorder::undisturbed;
use crate::witness::supervisor::Supervisor;

/// No honest configuration is longer.
const LONGEST_CONFIG: u64 = 1 << 20;
/// A directory with more entries does not become a `.git`.
const MOST_ENTRIES: usize = 20_000;

impl Supervisor {
    /// Why a spot is guarded, if it is.
    pub(super) fn guard_of(&self, spot: &Spot) -> Option<Guard> {
        if spot.dir.area != Area::Root {
            return None;
        }
        let path = spot.path();
        self.places.guard(path, spot.dir.made).or_else(|| self.bare_guard(spot, path))
    }

    /// A directory can be git's without the name `.git`: then its hooks and its configuration count as well.
    fn bare_guard(&self, spot: &Spot, path: &Path) -> Option<Guard> {
        let granted = || self.places.scope.unguarded.iter().any(|granted| path.starts_with(granted));
        let is_git = |prefix: &str| {
            ["HEAD", "objects", "refs"].iter().all(|name| {
                let name = format!("{prefix}{name}");
                rustix::fs::statat(&spot.dir.fd, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
            })
        };
        let in_hooks = spot.dir.path.file_name().is_some_and(|name| name == "hooks");
        if in_hooks && !spot.name.to_string_lossy().ends_with(".sample") && is_git("../") {
            return Some(Guard::Hook).filter(|_| !granted());
        }
        if (spot.name == "config" || spot.name == "config.worktree") && is_git("") {
            return Some(Guard::GitConfig).filter(|_| !granted());
        }
        None
    }

    /// Whether git itself writes such a file when it makes a worktree or a submodule.
    pub(super) fn is_git_linkage(path: &Path) -> bool {
        let mut parts = path.iter();
        parts.any(|part| part == ".git") && parts.any(|part| part == "worktrees" || part == "modules")
    }

    /// Puts a new configuration in place if it names no new programs: a copy of exactly the bytes that were looked at.
    pub(super) fn install_config(&mut self, from: &Spot, to: &Spot) -> Result<(), Errno> {
        // A copy is put in place, so it does not matter who can still write the original.
        let (new, mode) = read_any(&from.dir.fd, from.name.as_os_str())?;
        let old = match read_any(&to.dir.fd, to.name.as_os_str()) {
            Ok((old, _)) => old,
            Err(Errno::NOENT) => Vec::new(),
            Err(error) => return Err(error),
        };
        let path = to.path();
        let programs = git::programs_in(path, &old, &new);
        if !programs.is_empty() {
            return Err(self.refuse_guarded("write", path, Guard::GitConfig, &programs.join(", ")));
        }
        self.touch(from)?;
        self.touch(to)?;
        let temp = format!(".haft-{:016x}", random()?);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&to.dir.fd, &temp, flags, Mode::RUSR | Mode::WUSR)?;
        let installed = write_all(&fd, &new)
            .and_then(|()| rustix::fs::fchmod(&fd, mode))
            .and_then(|()| rustix::fs::renameat(&to.dir.fd, &temp, &to.dir.fd, &to.name));
        if installed.is_err() {
            let _ = rustix::fs::unlinkat(&to.dir.fd, &temp, AtFlags::empty());
            return installed;
        }
        rustix::fs::unlinkat(&from.dir.fd, &from.name, AtFlags::empty())
    }

    /// Refuses a directory that would bring guarded files to where they count.
    pub(super) fn may_become(&mut self, from: &Spot, to: &Spot) -> Result<(), Errno> {
        let (old, new) = (from.path(), to.path());
        let counts = |name: &str| new.components().any(|part| part.as_os_str().eq_ignore_ascii_case(name));
        let made = self.recorder.is_made(new) || (!to.exists() && self.recorder.was_never(new));
        let was_made = self.recorder.is_made(old);
        if made && !counts(".git") && !counts(".claude") && !counts(".config") {
            return Ok(());
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let top = rustix::fs::openat(&from.dir.fd, &from.name, flags, Mode::empty())?;
        let mut open = vec![(top, std::path::PathBuf::new())];
        let mut seen = 0;
        while let Some((dir, below)) = open.pop() {
            for entry in rustix::fs::Dir::read_from(&dir)?.flatten() {
                let name = entry.file_name();
                if matches!(name.to_bytes(), b"." | b"..") {
                    continue;
                }
                seen += 1;
                let below = below
                    .join(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(name.to_bytes()));
                let place = new.join(&below);
                let was = self.places.guard(&old.join(&below), was_made);
                let is = self.places.guard(&place, made);
                let kind = rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode;
                let kind = FileType::from_raw_mode(kind);
                let directory = kind == FileType::Directory;
                if kind == FileType::Symlink && is_inside_git(&place) {
                    return Err(self.refuse_guarded("move", &place, Guard::GitLink, "a link"));
                }
                if let Some(guard) = is.filter(|is| was != Some(*is) && !directory) {
                    self.may_bring(&dir, name, guard, &place)?;
                }
                if seen > MOST_ENTRIES {
                    return Err(self.refuse_guarded(
                        "move",
                        new,
                        Guard::Hook,
                        "too many files to look through",
                    ));
                }
                // Right below a .git, objects and references are data, whatever their names.
                let data = place.parent().is_some_and(|parent| parent.ends_with(".git"))
                    && matches!(name.to_bytes(), b"objects" | b"refs" | b"logs");
                if directory && !data {
                    open.push((rustix::fs::openat(&dir, name, flags, Mode::empty())?, below));
                }
            }
        }
        Ok(())
    }

    fn may_bring(
        &mut self,
        dir: &std::os::fd::OwnedFd,
        name: &std::ffi::CStr,
        guard: Guard,
        path: &Path,
    ) -> Result<(), Errno> {
        let detail = match guard {
            Guard::GitConfig => {
                let (new, _) = read_at(dir, name)?;
                let programs = git::programs_in(path, b"", &new);
                if programs.is_empty() {
                    return Ok(());
                }
                programs.join(", ")
            }
            Guard::GitLink => {
                let (bytes, _) = read_at(dir, name)?;
                match git::leads_astray(&path.to_string_lossy(), &bytes) {
                    None => return Ok(()),
                    Some(why) => why,
                }
            }
            Guard::Settings | Guard::Hook => String::new(),
        };
        Err(self.refuse_guarded("move", path, guard, &detail))
    }
}

/// Whether a link at this path could lead git to another configuration, or to hooks.
pub(super) fn is_inside_git(path: &Path) -> bool {
    let mut parts = path.iter().skip_while(|part| *part != ".git").skip(1);
    let places = ["hooks", "modules", "worktrees", "config", "config.worktree", "commondir", "gitdir"];
    parts.next().is_some_and(|first| places.iter().any(|place| first == *place))
}

/// Reads a file that nobody can write any more.
fn read_at(dir: &std::os::fd::OwnedFd, name: &std::ffi::CStr) -> Result<(Vec<u8>, Mode), Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(dir, name, flags, Mode::empty())?;
    if !undisturbed(&fd) {
        // Whoever can still write it could make the look worthless.
        return Err(Errno::TXTBSY);
    }
    drop(fd);
    read_any(dir, name)
}

fn read_any(dir: &std::os::fd::OwnedFd, name: impl rustix::path::Arg) -> Result<(Vec<u8>, Mode), Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(dir, name, flags, Mode::empty())?;
    let stat = rustix::fs::fstat(&fd)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Errno::ACCESS);
    }
    let mut bytes = Vec::new();
    let read = std::fs::File::from(fd).take(LONGEST_CONFIG + 1).read_to_end(&mut bytes);
    read.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    if bytes.len() as u64 > LONGEST_CONFIG {
        return Err(Errno::FBIG);
    }
    Ok((bytes, Mode::from_raw_mode(stat.st_mode & 0o777)))
}

fn write_all(fd: &std::os::fd::OwnedFd, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match rustix::io::write(fd, bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn random() -> Result<u64, Errno> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|_| Errno::IO)?;
    Ok(u64::from_ne_bytes(bytes))
}
