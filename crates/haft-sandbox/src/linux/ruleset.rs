//! Landlock: what the kernel itself lets a command do with files, TCP ports, sockets and signals.
//!
//! It is the boundary below the witness: a call that the witness does not see, or lets continue, has only the rights
//! granted here. Landlock grants and cannot subtract, so reading is granted by [`read_grants`](super::read_grants). The
//! ruleset is built in Haft and enforced by the command's process.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, make_bitflags,
};
use rustix::fs::FileType;
use rustix::io::Errno;

use super::namespaces::Namespaces;
use super::open_path;
use super::read_grants::{GrantedTrees, grant_all_except};
use crate::process::last_error;

/// Every right that changes files or directories, except for the creation of devices.
const WRITE: BitFlags<AccessFs> = make_bitflags!(AccessFs::{
    WriteFile | RemoveDir | RemoveFile | MakeDir | MakeReg | MakeSock | MakeFifo | MakeSym | Refer | Truncate
});
/// Every right that reads or executes.
const READ: BitFlags<AccessFs> = make_bitflags!(AccessFs::{ReadFile | ReadDir | Execute});
const USE_DEVICE: BitFlags<AccessFs> = make_bitflags!(AccessFs::{ReadFile | WriteFile | IoctlDev});
/// The newest version whose rights are used. Later ones also restrict connections to sockets, which the witness does.
const MAX_ABI: u32 = 7;
/// `LANDLOCK_CREATE_RULESET_VERSION`.
const GET_VERSION: u32 = 1;

/// What a command may do; everything else that Landlock knows is refused.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FileGrants<'a> {
    /// The command's own namespaces. What it may not read is not visible there.
    pub(super) namespaces: Option<&'a Arc<Namespaces>>,
    /// Absolute paths that are not read, existing or not. With namespaces most of them are not visible and need not be here.
    pub(super) unreadable: &'a [PathBuf],
    /// Paths that are written by the command itself; empty if the witness writes on its behalf.
    pub(super) writable: &'a [PathBuf],
    /// Character devices that are read and written. Paths that are none are ignored.
    pub(super) devices: &'a [PathBuf],
    /// The command's own directories, with every right.
    pub(super) private: &'a [PathBuf],
    /// Whether all TCP ports are granted.
    pub(super) tcp: bool,
}

/// A Landlock ruleset.
#[derive(Debug)]
pub(super) struct LandlockRuleset {
    fd: OwnedFd,
    granted: GrantedTrees,
}

impl LandlockRuleset {
    /// A ruleset with everything that the kernel supports. Fails unless the kernel enforces all of it.
    pub(super) fn new(grants: &FileGrants<'_>) -> io::Result<Self> {
        Self::with_abi(abi()?, grants)
    }

    /// A ruleset with what version `abi` supports.
    pub(super) fn with_abi(abi: u32, grants: &FileGrants<'_>) -> io::Result<Self> {
        let abi = ABI::from(abi.min(MAX_ABI).cast_signed());
        let root = grants.namespaces.map(|namespaces| namespaces.root());
        let mut builder = RulesetBuilder {
            root,
            handled: AccessFs::from_all(abi),
            created: create(abi, grants.tcp).map_err(io::Error::other)?,
        };
        let top = open_path(root, Path::new("/"))?;
        let mut granted = GrantedTrees::default();
        if grants.namespaces.is_some() && grants.unreadable.is_empty() {
            builder.grant(top.as_fd(), READ)?;
        } else {
            builder.grant(top.as_fd(), AccessFs::ReadDir | AccessFs::Execute)?;
            let mut grant_read = |fd: BorrowedFd<'_>| builder.grant(fd, AccessFs::ReadFile.into());
            granted = grant_all_except(root, grants.unreadable, &mut grant_read)?;
        }
        for device in grants.devices {
            if let Ok(fd) = open_path(root, device)
                && file_type(&fd)? == FileType::CharacterDevice
            {
                builder.grant(fd.as_fd(), USE_DEVICE)?;
            }
        }
        for (paths, rights) in [(grants.writable, WRITE), (grants.private, WRITE | READ | AccessFs::IoctlDev)]
        {
            for path in paths {
                let added = builder.grant_path(path, rights);
                added
                    .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
            }
        }
        let fd: Option<OwnedFd> = builder.created.into();
        let fd = fd.ok_or_else(|| io::Error::other("the kernel does not enforce the Landlock ruleset"))?;
        Ok(Self { fd, granted })
    }

    /// For [`restrict_self`]; valid as long as `self`.
    pub(super) fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// What may be read.
    pub(super) fn granted(&self) -> &GrantedTrees {
        &self.granted
    }

    /// Whether the same rules would be made again.
    pub(super) fn is_current(&self) -> bool {
        self.granted.are_current()
    }
}

struct RulesetBuilder<'a> {
    root: Option<BorrowedFd<'a>>,
    handled: BitFlags<AccessFs>,
    created: RulesetCreated,
}

impl RulesetBuilder<'_> {
    fn grant_path(&mut self, path: &Path, rights: BitFlags<AccessFs>) -> io::Result<()> {
        let fd = open_path(self.root, path)?;
        match file_type(&fd)? {
            FileType::Directory => self.grant(fd.as_fd(), rights),
            // A right on a link has no effect.
            FileType::Symlink => Err(Errno::LOOP.into()),
            _ => self.grant(fd.as_fd(), rights & AccessFs::from_file(ABI::V7)),
        }
    }

    fn grant(&mut self, fd: BorrowedFd<'_>, rights: BitFlags<AccessFs>) -> io::Result<()> {
        let rule = PathBeneath::new(fd, rights & self.handled);
        (&mut self.created).add_rule(rule).map(drop).map_err(io::Error::other)
    }
}

fn create(abi: ABI, tcp: bool) -> Result<RulesetCreated, RulesetError> {
    // With a hard requirement the kernel either enforces everything that is asked for, or this fails.
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(abi))?;
    if !tcp && abi >= ABI::V4 {
        ruleset = ruleset.handle_access(AccessNet::from_all(abi))?;
    }
    if abi >= ABI::V6 {
        ruleset = ruleset.scope(landlock::Scope::from_all(abi))?;
    }
    ruleset.create()
}

/// Restricts this process and its descendants for good.
///
/// Does not allocate, lock or panic: it is called between fork and exec.
#[expect(unsafe_code, reason = "the wrapper of the landlock crate allocates")]
pub(super) fn restrict_self(ruleset: RawFd) -> Result<(), Errno> {
    rustix::thread::set_no_new_privs(true)?;
    // SAFETY: no memory is touched; an invalid descriptor is refused.
    let result = unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset, 0) };
    if result < 0 { Err(last_error()) } else { Ok(()) }
}

/// The version of Landlock that the kernel supports.
#[expect(unsafe_code, reason = "the landlock crate does not return the version")]
pub(super) fn abi() -> Result<u32, Errno> {
    let none = std::ptr::null::<u8>();
    // SAFETY: asked for its version, the kernel reads no memory.
    let version = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, none, 0, GET_VERSION) };
    let version = u32::try_from(version).map_err(|_| last_error())?;
    // An older version can be asked for, to try what holds on older kernels.
    let limit = std::env::var("HAFT_LANDLOCK_ABI").ok().and_then(|limit| limit.parse().ok());
    Ok(limit.map_or(version, |limit: u32| version.min(limit.max(1))))
}

/// What a version of Landlock does not restrict.
pub(super) fn missing_parts(abi: u32) -> Vec<&'static str> {
    let parts =
        [(3, "file truncation"), (4, "TCP ports"), (5, "device ioctls"), (6, "signals and abstract sockets")];
    parts.iter().filter(|(since, _)| abi < *since).map(|(_, part)| *part).collect()
}

fn file_type(fd: &OwnedFd) -> Result<FileType, Errno> {
    Ok(FileType::from_raw_mode(rustix::fs::fstat(fd)?.st_mode))
}

/// Why Landlock is unavailable, and what to do.
pub(super) fn explain(error: Errno) -> (&'static str, &'static str) {
    match error {
        Errno::NOSYS => (
            "the kernel has no Landlock",
            "Use Linux 5.13 or later with CONFIG_SECURITY_LANDLOCK; 6.12 has all of it",
        ),
        Errno::OPNOTSUPP => (
            "Landlock was not enabled when the kernel started",
            "Add landlock to lsm= on the kernel's command line",
        ),
        Errno::PERM | Errno::ACCESS => (
            "a container's seccomp filter refuses Landlock",
            "Use a newer Docker, or run the container with --security-opt seccomp=unconfined",
        ),
        _ => ("the kernel refuses Landlock", "Check whether a container or another sandbox is in the way"),
    }
}
