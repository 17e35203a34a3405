//! Landlock: what the kernel itself lets a command do with files, ports, sockets and signals.
//!
//! It is the boundary under the witness: whatever call goes past the supervisor, or is let through by it, has the
//! rights granted here and no others. Landlock grants and cannot subtract, so what may be read is told by its
//! [complement](super::complement). The ruleset is built in Haft before the command starts and enforced in the
//! command's own process.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};

use haft_tool::{ErrorKind, ToolError};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use super::complement::{self, Seen};
use super::resolver::Resolver;

const EXECUTE: u64 = 1;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_DIR: u64 = 1 << 3;
const REMOVE_DIR: u64 = 1 << 4;
const REMOVE_FILE: u64 = 1 << 5;
const MAKE_DIR: u64 = 1 << 7;
const MAKE_REG: u64 = 1 << 8;
const MAKE_SOCK: u64 = 1 << 9;
const MAKE_FIFO: u64 = 1 << 10;
const MAKE_SYM: u64 = 1 << 12;
const REFER: u64 = 1 << 13;
const TRUNCATE: u64 = 1 << 14;
const IOCTL_DEV: u64 = 1 << 15;

/// All that changes files or directories; making devices is in nobody's scope.
const WRITE: u64 = WRITE_FILE
    | REMOVE_DIR
    | REMOVE_FILE
    | MAKE_DIR
    | MAKE_REG
    | MAKE_SOCK
    | MAKE_FIFO
    | MAKE_SYM
    | REFER
    | TRUNCATE;
/// The rights that a rule on something other than a directory may name.
const OF_FILES: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV;

/// To bind and to connect TCP ports.
const TCP: u64 = 0b11;
/// Abstract sockets and signals reach no further than the command's own processes.
const SCOPES: u64 = 0b11;

/// `LANDLOCK_CREATE_RULESET_VERSION`.
const TELL_VERSION: u32 = 1;
/// `LANDLOCK_RULE_PATH_BENEATH`.
const PATH_BENEATH: u32 = 1;

/// What a ruleset takes into its hands: all of it is refused but for what a rule grants.
#[repr(C)]
struct Handled {
    files: u64,
    ports: u64,
    scopes: u64,
}

impl Handled {
    /// All that version `abi` of Landlock knows; ports only if `ports` says so.
    fn of(abi: u32, ports: bool) -> Self {
        let rights = match abi {
            0 | 1 => 13,
            2 => 14,
            3 | 4 => 15,
            5..=8 => 16,
            // Sockets with a name in the file system.
            _ => 17,
        };
        Self {
            files: (1 << rights) - 1,
            ports: if ports && abi >= 4 { TCP } else { 0 },
            scopes: if abi >= 6 { SCOPES } else { 0 },
        }
    }
}

#[repr(C, packed)]
struct PathBeneath {
    rights: u64,
    parent: RawFd,
}

/// What a command may do; everything else that Landlock knows is refused.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Grants<'a> {
    /// Trees and files that are not read, there or not; absolute.
    pub unread: &'a [PathBuf],
    /// Trees and files that are written; none where the witness writes on the command's behalf.
    pub write: &'a [PathBuf],
    /// Character devices that are read and written; what is not there or not a device is left out.
    pub devices: &'a [PathBuf],
    /// The command's own directories, where it may do everything.
    pub scratch: &'a [PathBuf],
    /// Whether TCP ports are left to others to hold.
    pub tcp: bool,
}

/// Rules that a command can be put under.
#[derive(Debug)]
pub(crate) struct Ruleset {
    fd: OwnedFd,
    handled: u64,
    seen: Seen,
}

impl Ruleset {
    /// The rules for `grants`, with the best that the kernel has. `resolver` knows what was looked at just now.
    pub(crate) fn build(grants: &Grants<'_>, resolver: &mut Resolver) -> Result<Self, ToolError> {
        Self::of_version(abi().map_err(unavailable)?, grants, resolver)
    }

    /// The same with what version `abi` of Landlock has.
    pub(super) fn of_version(
        abi: u32,
        grants: &Grants<'_>,
        resolver: &mut Resolver,
    ) -> Result<Self, ToolError> {
        let (fd, handled) = create(abi, !grants.tcp).map_err(unavailable)?;
        let mut ruleset = Self { fd, handled, seen: Seen::default() };
        let failed = |error: Errno| ToolError::io("the rules for the sandbox were not made", &error.into());

        let root = look(Path::new("/")).map_err(failed)?;
        ruleset.add(root.as_fd(), READ_DIR | EXECUTE).map_err(failed)?;
        let excluded: Vec<&Path> = grants.unread.iter().map(PathBuf::as_path).collect();
        let mut grant = |fd: BorrowedFd<'_>| ruleset.add(fd, READ_FILE);
        ruleset.seen = complement::grant(&excluded, resolver, &mut grant).map_err(failed)?;

        for device in grants.devices {
            if let Ok(fd) = look(device)
                && kind(&fd) == Ok(FileType::CharacterDevice)
            {
                ruleset.add(fd.as_fd(), READ_FILE | WRITE_FILE | IOCTL_DEV).map_err(failed)?;
            }
        }
        let all = WRITE | READ_FILE | READ_DIR | EXECUTE;
        for (paths, rights) in [(grants.write, WRITE), (grants.scratch, all)] {
            for path in paths {
                ruleset.grant(path, rights).map_err(|error| {
                    ToolError::io(format!("{} cannot be granted to a command", path.display()), &error.into())
                })?;
            }
        }
        Ok(ruleset)
    }

    /// For [`restrict`]; alive as long as `self`.
    pub(crate) fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// What was looked at to make the rules.
    pub(super) fn seen(&self) -> &Seen {
        &self.seen
    }

    fn grant(&mut self, path: &Path, rights: u64) -> Result<(), Errno> {
        let fd = look(path)?;
        match kind(&fd)? {
            FileType::Directory => self.add(fd.as_fd(), rights),
            // A right on the link would be a right on nothing.
            FileType::Symlink => Err(Errno::LOOP),
            _ => self.add(fd.as_fd(), rights & OF_FILES),
        }
    }

    #[expect(unsafe_code, reason = "Landlock has no safe wrapper")]
    fn add(&mut self, fd: BorrowedFd<'_>, rights: u64) -> Result<(), Errno> {
        let rule = PathBeneath { rights: rights & self.handled, parent: fd.as_raw_fd() };
        // SAFETY: the kernel only reads the rule, which is laid out as it expects.
        let answer = unsafe {
            libc::syscall(libc::SYS_landlock_add_rule, self.fd.as_raw_fd(), PATH_BENEATH, &raw const rule, 0)
        };
        answered(answer).map(drop)
    }
}

/// Puts the calling process and all that it starts under the rules, for good.
///
/// Nothing here allocates, locks or panics: it is called between fork and exec.
#[expect(unsafe_code, reason = "Landlock has no safe wrapper")]
pub(crate) fn restrict(ruleset: RawFd) -> Result<(), Errno> {
    rustix::thread::set_no_new_privs(true)?;
    // SAFETY: no memory is touched; a wrong descriptor is refused.
    answered(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset, 0) }).map(drop)
}

/// Which version of Landlock the kernel has.
#[expect(unsafe_code, reason = "Landlock has no safe wrapper")]
pub(crate) fn abi() -> Result<u32, Errno> {
    let none = std::ptr::null::<Handled>();
    // SAFETY: asked for its version, the kernel reads nothing.
    let answer = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, none, 0, TELL_VERSION) };
    answered(answer).map(|abi| u32::try_from(abi).unwrap_or(0))
}

/// An empty ruleset of version `abi`, or the next lower one there is, and the file rights that it handles.
#[expect(unsafe_code, reason = "Landlock has no safe wrapper")]
fn create(mut abi: u32, ports: bool) -> Result<(OwnedFd, u64), Errno> {
    loop {
        let handled = Handled::of(abi, ports);
        let (at, size) = (&raw const handled, size_of::<Handled>());
        // SAFETY: the kernel only reads the three words.
        match answered(unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, at, size, 0) }) {
            Ok(fd) => {
                let fd = RawFd::try_from(fd).map_err(|_| Errno::BADF)?;
                // SAFETY: the kernel has just made it for us.
                return Ok((unsafe { OwnedFd::from_raw_fd(fd) }, handled.files));
            }
            // A kernel that says more than it has must not leave the command with no rules at all.
            Err(Errno::INVAL) if abi > 1 => abi -= 1,
            Err(error) => return Err(error),
        }
    }
}

/// A handle on what stands at `path`, if a link then on the link.
fn look(path: &Path) -> Result<OwnedFd, Errno> {
    rustix::fs::open(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
}

fn kind(fd: &OwnedFd) -> Result<FileType, Errno> {
    Ok(FileType::from_raw_mode(rustix::fs::fstat(fd)?.st_mode))
}

fn answered(answer: libc::c_long) -> Result<libc::c_long, Errno> {
    if answer < 0 {
        return Err(Errno::from_raw_os_error(
            std::io::Error::last_os_error().raw_os_error().unwrap_or_default(),
        ));
    }
    Ok(answer)
}

/// Why there is no Landlock, and what to do.
pub(super) fn remedy(error: Errno) -> (&'static str, &'static str) {
    match error {
        Errno::NOSYS => (
            "the kernel has no Landlock",
            "use Linux 5.13 or later with CONFIG_SECURITY_LANDLOCK; 6.12 has all of it",
        ),
        Errno::OPNOTSUPP => (
            "Landlock was not turned on when the kernel started",
            "add landlock to lsm= on the kernel's command line",
        ),
        Errno::PERM | Errno::ACCESS => (
            "a container's filter refuses Landlock",
            "use a newer Docker, or run the container with --security-opt seccomp=unconfined",
        ),
        _ => ("the kernel refuses Landlock", "see whether a container or another sandbox is in the way"),
    }
}

fn unavailable(error: Errno) -> ToolError {
    let (why, remedy) = remedy(error);
    ToolError::new(
        ErrorKind::PermissionDenied,
        format!(
            "no command can be held to the scope: {why}; {remedy}, or turn the sandbox off with --sandbox off"
        ),
    )
}
