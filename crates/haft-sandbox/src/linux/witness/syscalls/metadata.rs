//! Changes modes, owners, times and extended attributes. Landlock does not restrict these calls, so each is performed or
//! refused here.

use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;

use super::{CWD_FD, SYS_FCHMODAT2};
use crate::linux::witness::caller::Caller;
use crate::linux::witness::link_count;
use crate::linux::witness::notifications::Syscall;
use crate::linux::witness::paths::{DirectoryEntry, ResolvedTarget};
use crate::linux::witness::root_dir::open_without_links;
use crate::linux::witness::supervisor::{Reply, Supervisor};
use crate::linux::witness::write_policy::WriteArea;
use crate::process::last_error;

/// The kernel's limit.
const MAX_ATTRIBUTE_BYTES: u64 = 64 * 1024;
const SETID_BITS: u32 = 0o6000;
#[cfg(target_arch = "x86_64")]
const MICROS_PER_SECOND: i64 = 1_000_000;

/// What to change, and the target in the arguments of the call.
struct MetadataRequest {
    /// For denials.
    what: &'static str,
    target: MetadataTarget,
    change: MetadataChange,
}

enum MetadataTarget {
    Fd(i32),
    Path {
        base: i32,
        /// Index of the argument.
        path: usize,
        /// `AT_SYMLINK_NOFOLLOW` and `AT_EMPTY_PATH`.
        flags: i32,
    },
}

enum MetadataChange {
    Mode(u32),
    Owner(u32, u32),
    Times([libc::timespec; 2]),
    SetAttribute { name: CString, value: Vec<u8>, flags: i32 },
    RemoveAttribute(CString),
}

impl MetadataChange {
    fn sets_setid(&self) -> bool {
        matches!(self, Self::Mode(mode) if mode & SETID_BITS != 0)
    }
}

impl Supervisor {
    pub(super) fn change_metadata(&mut self, call: &Syscall) -> Result<Reply, Errno> {
        let MetadataRequest { what, target, change } = parse(call)?;
        let (mut fd, entry) = self.open_target(call, &target)?;
        let stat = rustix::fs::fstat(&fd)?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        let is_own_terminal = || self.terminals.iter().any(|terminal| terminal.is(&stat));
        if kind == FileType::CharacterDevice && is_own_terminal() {
            return Ok(apply(&fd, kind, &change).into());
        }
        let entry = match entry {
            Some(entry) => entry,
            // Pipes, sockets and files without a name belong to the program.
            None => match self.entry_of_fd(&fd) {
                Ok(entry) => entry,
                Err(_) if kind == FileType::CharacterDevice => return Ok(Reply::Value(0)),
                // The name by which it was opened is gone, but others remain.
                Err(_) if kind == FileType::RegularFile && link_count(&stat) > 0 => {
                    if !self.outside_names.has_none(&stat, &self.policy) || change.sets_setid() {
                        return Err(Errno::PERM);
                    }
                    self.recorder.add_altered(&stat);
                    return Ok(apply(&fd, kind, &change).into());
                }
                // The file may get a name later.
                Err(_) if change.sets_setid() => return Err(Errno::PERM),
                Err(_) => return Ok(apply(&fd, kind, &change).into()),
            },
        };
        if !self.may_change(what, &entry) {
            return Err(Errno::PERM);
        }
        if let MetadataChange::SetAttribute { name, .. } | MetadataChange::RemoveAttribute(name) = &change
            && !name.to_bytes().starts_with(b"user.")
            && !name.to_bytes().starts_with(b"system.posix_acl_")
        {
            // These can give privileges to any user who runs the file. The kernel has no other namespaces.
            let is_known =
                name.to_bytes().starts_with(b"security.") || name.to_bytes().starts_with(b"trusted.");
            return Err(if is_known { Errno::PERM } else { Errno::OPNOTSUPP });
        }
        if change.sets_setid() && kind != FileType::Directory {
            self.denials.add(what, entry.path().display().to_string(), "it would run as another user", None);
            return Err(Errno::PERM);
        }
        let is_time = matches!(change, MetadataChange::Times(_));
        let has_outside_names = entry.dir.area == WriteArea::Workspace
            && kind == FileType::RegularFile
            && self.outside_names.has_some(&stat, &self.policy);
        // Undo does not restore times.
        if (!is_time || has_outside_names) && self.before_content_change(&entry)? {
            fd = open_target_entry(&entry)?;
        }
        if let Some(what) = unrecorded(kind, &change).filter(|_| entry.dir.area == WriteArea::Workspace) {
            self.recorder.add_loss(format!("{what} {}", entry.path().display()));
        }
        Ok(apply(&fd, kind, &change).into())
    }

    /// Opens the target, and resolves its entry if the call names a path.
    fn open_target(
        &mut self,
        call: &Syscall,
        target: &MetadataTarget,
    ) -> Result<(OwnedFd, Option<DirectoryEntry>), Errno> {
        let (base, path, flags) = match *target {
            MetadataTarget::Fd(fd) => return Ok((self.copy_fd(call, fd)?, None)),
            MetadataTarget::Path { base, path, flags } => (base, self.read_path(call, path)?, flags),
        };
        if flags & !(libc::AT_SYMLINK_NOFOLLOW | libc::AT_EMPTY_PATH) != 0 {
            return Err(Errno::INVAL);
        }
        let names_base = path.is_empty() && flags & libc::AT_EMPTY_PATH != 0;
        let resolved = if names_base && base == CWD_FD {
            self.resolve(call, base, b".")?
        } else if names_base {
            ResolvedTarget::Fd(self.copy_fd(call, base)?)
        } else if flags & libc::AT_SYMLINK_NOFOLLOW == 0 {
            self.resolve_followed(call, base, &path)?
        } else {
            match self.resolve(call, base, &path)? {
                // For the kernel, a slash at the end makes it follow the link.
                ResolvedTarget::Entry(entry) if entry.has_slash => {
                    self.resolve_followed(call, base, &path)?
                }
                resolved => resolved,
            }
        };
        match resolved {
            ResolvedTarget::Fd(fd) => Ok((fd, None)),
            ResolvedTarget::Entry(entry) if entry.is_root() => Err(Errno::BUSY),
            ResolvedTarget::Entry(entry) => Ok((open_target_entry(&entry)?, Some(entry))),
        }
    }
}

fn open_target_entry(entry: &DirectoryEntry) -> Result<OwnedFd, Errno> {
    if entry.is_not_a_directory() {
        return Err(Errno::NOTDIR);
    }
    open_without_links(entry.dir.fd.as_fd(), entry.name.as_bytes(), OFlags::NOFOLLOW)
}

/// Reads the arguments of the call.
fn parse(call: &Syscall) -> Result<MetadataRequest, Errno> {
    use MetadataChange::{Mode, Owner, RemoveAttribute, SetAttribute, Times};
    let caller = Caller::of(call);
    let nofollow = libc::AT_SYMLINK_NOFOLLOW;
    let int = |index| call.int(index);
    let uint = |index| call.int(index).cast_unsigned();
    let on_path = |what, base, path, flags, change| {
        Ok(MetadataRequest { what, target: MetadataTarget::Path { base, path, flags }, change })
    };
    let on_fd = |what, change| Ok(MetadataRequest { what, target: MetadataTarget::Fd(int(0)), change });
    let attribute_name = || CString::new(caller.read_string(call.arguments[1])?).map_err(|_| Errno::INVAL);
    let set_attribute = || {
        let size = call.arguments[3];
        if size > MAX_ATTRIBUTE_BYTES {
            return Err(Errno::TOOBIG);
        }
        let value = caller.read_bytes(call.arguments[2], usize::try_from(size).unwrap_or(0))?;
        Ok(SetAttribute { name: attribute_name()?, value, flags: int(4) })
    };
    match call.number {
        libc::SYS_fchmod => on_fd("chmod", Mode(uint(1))),
        libc::SYS_fchmodat => on_path("chmod", int(0), 1, 0, Mode(uint(2))),
        SYS_FCHMODAT2 => on_path("chmod", int(0), 1, int(3), Mode(uint(2))),
        libc::SYS_fchown => on_fd("chown", Owner(uint(1), uint(2))),
        libc::SYS_fchownat => on_path("chown", int(0), 1, int(4), Owner(uint(2), uint(3))),
        libc::SYS_setxattr => on_path("setxattr", CWD_FD, 0, 0, set_attribute()?),
        libc::SYS_lsetxattr => on_path("setxattr", CWD_FD, 0, nofollow, set_attribute()?),
        libc::SYS_fsetxattr => on_fd("setxattr", set_attribute()?),
        libc::SYS_removexattr => on_path("removexattr", CWD_FD, 0, 0, RemoveAttribute(attribute_name()?)),
        libc::SYS_lremovexattr => {
            on_path("removexattr", CWD_FD, 0, nofollow, RemoveAttribute(attribute_name()?))
        }
        libc::SYS_fremovexattr => on_fd("removexattr", RemoveAttribute(attribute_name()?)),
        libc::SYS_utimensat => {
            let times = Times(timespecs(caller, call.arguments[2])?);
            match call.arguments[1] {
                0 => on_fd("touch", times),
                _ => on_path("touch", int(0), 1, int(3), times),
            }
        }
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chmod => on_path("chmod", CWD_FD, 0, 0, Mode(uint(1))),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chown => on_path("chown", CWD_FD, 0, 0, Owner(uint(1), uint(2))),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_lchown => on_path("chown", CWD_FD, 0, nofollow, Owner(uint(1), uint(2))),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_utimes => on_path("touch", CWD_FD, 0, 0, Times(timevals(caller, call.arguments[1])?)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_futimesat => {
            let times = Times(timevals(caller, call.arguments[2])?);
            match call.arguments[1] {
                0 => on_fd("touch", times),
                _ => on_path("touch", int(0), 1, 0, times),
            }
        }
        #[cfg(target_arch = "x86_64")]
        libc::SYS_utime => {
            let times = match call.arguments[1] {
                0 => [now(), now()],
                address => {
                    let seconds = read_numbers::<2>(caller, address)?;
                    seconds.map(|seconds| timespec(seconds, 0))
                }
            };
            on_path("touch", CWD_FD, 0, 0, Times(times))
        }
        _ => Err(Errno::NOSYS),
    }
}

/// What a change affects that the record of the entry does not contain.
fn unrecorded(kind: FileType, change: &MetadataChange) -> Option<&'static str> {
    use MetadataChange::{Mode, Owner, RemoveAttribute, SetAttribute};
    match (kind, change) {
        (FileType::Socket, Mode(_) | Owner(..) | SetAttribute { .. } | RemoveAttribute(_)) => {
            Some("the mode, owner or attributes of the socket")
        }
        _ => None,
    }
}

fn timespec(seconds: i64, nanoseconds: i64) -> libc::timespec {
    libc::timespec { tv_sec: seconds, tv_nsec: nanoseconds }
}

fn now() -> libc::timespec {
    timespec(0, libc::UTIME_NOW)
}

fn timespecs(caller: Caller, address: u64) -> Result<[libc::timespec; 2], Errno> {
    if address == 0 {
        return Ok([now(), now()]);
    }
    let [a, b, c, d] = read_numbers::<4>(caller, address)?;
    Ok([timespec(a, b), timespec(c, d)])
}

#[cfg(target_arch = "x86_64")]
fn timevals(caller: Caller, address: u64) -> Result<[libc::timespec; 2], Errno> {
    if address == 0 {
        return Ok([now(), now()]);
    }
    let [a, b, c, d] = read_numbers::<4>(caller, address)?;
    let valid = 0..MICROS_PER_SECOND;
    if !valid.contains(&b) || !valid.contains(&d) {
        return Err(Errno::INVAL);
    }
    Ok([timespec(a, b * 1000), timespec(c, d * 1000)])
}

fn read_numbers<const N: usize>(caller: Caller, address: u64) -> Result<[i64; N], Errno> {
    let bytes = caller.read_bytes(address, N * size_of::<i64>())?;
    let mut numbers = [0; N];
    for (number, bytes) in numbers.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *number = i64::from_ne_bytes(*bytes);
    }
    Ok(numbers)
}

/// Changes the open file. Where an `O_PATH` descriptor cannot be used directly, its path in `/proc` is.
#[expect(unsafe_code, reason = "some of these calls have no safe wrapper")]
fn apply(fd: &OwnedFd, kind: FileType, change: &MetadataChange) -> Result<(), Errno> {
    let proc_path = CString::new(format!("/proc/self/fd/{}", fd.as_raw_fd())).map_err(|_| Errno::INVAL)?;
    let (path, empty) = (proc_path.as_ptr(), c"".as_ptr());
    let is_link = kind == FileType::Symlink;
    // SAFETY: every pointer is to a local value that outlives the call.
    let result = unsafe {
        match change {
            MetadataChange::Mode(_) if is_link => return Err(Errno::OPNOTSUPP),
            MetadataChange::Mode(mode) => match libc::fchmod(fd.as_raw_fd(), mode & 0o7777) {
                -1 if last_error() == Errno::BADF => libc::chmod(path, mode & 0o7777),
                result => result,
            },
            MetadataChange::Owner(uid, gid) => {
                libc::fchownat(fd.as_raw_fd(), empty, *uid, *gid, libc::AT_EMPTY_PATH)
            }
            MetadataChange::Times(times) => {
                libc::utimensat(fd.as_raw_fd(), empty, times.as_ptr(), libc::AT_EMPTY_PATH)
            }
            MetadataChange::SetAttribute { .. } | MetadataChange::RemoveAttribute(_) if is_link => {
                return Err(Errno::PERM);
            }
            MetadataChange::SetAttribute { name, value, flags } => {
                libc::setxattr(path, name.as_ptr(), value.as_ptr().cast(), value.len(), *flags)
            }
            MetadataChange::RemoveAttribute(name) => libc::removexattr(path, name.as_ptr()),
        }
    };
    if result < 0 { Err(last_error()) } else { Ok(()) }
}
