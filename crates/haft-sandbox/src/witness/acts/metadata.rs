//! Modes, owners, times and attributes, by name or by descriptor. Landlock does not know them, so each is done here
//! or refused.

use std::ffi::CString;
use std::os::fd::{AsRawFd, OwnedFd};

use haft_policy::Guard;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use super::HERE;
use crate::witness::notify::{Call, last_error};
use crate::witness::paths::Found;
use crate::witness::places::Area;
use crate::witness::supervisor::{Answer, Supervisor};
use crate::witness::target::Target;

/// Attribute values are not longer than this.
const LONGEST_VALUE: u64 = 64 * 1024;

/// What is to change, and how the call said so.
struct Wish {
    what: &'static str,
    /// The path: base, argument, whether a link at its end is followed.
    name: Option<(i32, usize, bool)>,
    /// The descriptor, where there is no path.
    descriptor: i32,
    act: Act,
}

enum Act {
    Mode(u32),
    Owner(u32, u32),
    Times([libc::timespec; 2]),
    SetAttribute { name: CString, value: Vec<u8>, flags: i32 },
    RemoveAttribute(CString),
}

impl Supervisor {
    pub(super) fn metadata(&mut self, call: &Call) -> Result<Answer, Errno> {
        let wish = wish(call)?;
        let (held, spot) = match wish.name {
            None => (Target::of(call).descriptor(wish.descriptor)?, None),
            Some((base, path, follow)) => {
                let path = Self::path(call, path)?;
                let found = if path.is_empty() && base != HERE {
                    Found::Descriptor(Target::of(call).descriptor(base)?)
                } else if follow {
                    self.find_through(call, base, &path)?
                } else {
                    self.find(call, base, &path)?
                };
                match found {
                    Found::Descriptor(fd) => (fd, None),
                    Found::Spot(spot) => {
                        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                        let held = rustix::fs::openat(&spot.dir.fd, spot.word(), flags, Mode::empty())?;
                        (held, Some(spot))
                    }
                }
            }
        };
        let stat = rustix::fs::fstat(&held)?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        let spot = match spot {
            Some(spot) => spot,
            // Pipes, sockets and files without a name are the program's own.
            None => match self.spot_of(&held) {
                Ok(spot) => spot,
                Err(_) if kind == FileType::CharacterDevice => return Ok(Answer::Done(0)),
                // It may get a name later.
                Err(_) if matches!(wish.act, Act::Mode(mode) if mode & 0o6000 != 0) => {
                    return Err(Errno::PERM);
                }
                Err(_) => return Ok(act(&held, kind, &wish.act).into()),
            },
        };
        if !self.may_change(wish.what, &spot) {
            return Err(Errno::PERM);
        }
        if let Some(guard @ (Guard::Settings | Guard::Hook)) = self.guard_of(&spot) {
            return Err(self.refuse_guarded(wish.what, spot.path(), guard, ""));
        }
        if let Act::SetAttribute { name, .. } | Act::RemoveAttribute(name) = &wish.act
            && !name.to_bytes().starts_with(b"user.")
            && !name.to_bytes().starts_with(b"system.posix_acl_")
        {
            // Others give rights to whoever runs the file.
            return Err(Errno::PERM);
        }
        if let Act::Mode(mode) = wish.act
            && mode & 0o6000 != 0
            && kind != FileType::Directory
        {
            let place = spot.path().display().to_string();
            self.denials.add(wish.what, place, "it would run as another user", None);
            return Err(Errno::PERM);
        }
        // Times are not brought back, so they need no image; everything else does.
        if spot.dir.area == Area::Root && !matches!(wish.act, Act::Times(_)) {
            self.recorder.touch(&spot)?;
            self.recorder.alters(&stat);
            if matches!((&wish.act, kind), (Act::Owner(..), FileType::Directory)) {
                self.recorder.lost(format!("the owner of the directory {}", spot.path().display()));
            }
        }
        Ok(act(&held, kind, &wish.act).into())
    }
}

fn wish(call: &Call) -> Result<Wish, Errno> {
    let target = Target::of(call);
    let a = |index| call.int(index);
    let u = |index| call.int(index).cast_unsigned();
    let text = |index: usize| CString::new(target.string(call.arguments[index])?).map_err(|_| Errno::INVAL);
    let follows = |flags: i32| flags & libc::AT_SYMLINK_NOFOLLOW == 0;
    let by_name = |what, base, path, follow, act| {
        Ok(Wish { what, name: Some((base, path, follow)), descriptor: -1, act })
    };
    let by_descriptor = |what, act| Ok(Wish { what, name: None, descriptor: a(0), act });
    let set = |name, value, size, flags: usize| -> Result<Act, Errno> {
        let size: u64 = call.arguments[size];
        if size > LONGEST_VALUE {
            return Err(Errno::TOOBIG);
        }
        let value = target.bytes(call.arguments[value], usize::try_from(size).unwrap_or(0))?;
        Ok(Act::SetAttribute { name: text(name)?, value, flags: a(flags) })
    };
    match call.number {
        libc::SYS_fchmod => by_descriptor("chmod", Act::Mode(u(1))),
        libc::SYS_fchmodat => by_name("chmod", a(0), 1, true, Act::Mode(u(2))),
        452 => by_name("chmod", a(0), 1, follows(a(3)), Act::Mode(u(2))),
        libc::SYS_fchown => by_descriptor("chown", Act::Owner(u(1), u(2))),
        libc::SYS_fchownat => by_name("chown", a(0), 1, follows(a(4)), Act::Owner(u(2), u(3))),
        libc::SYS_setxattr => by_name("setxattr", HERE, 0, true, set(1, 2, 3, 4)?),
        libc::SYS_lsetxattr => by_name("setxattr", HERE, 0, false, set(1, 2, 3, 4)?),
        libc::SYS_fsetxattr => by_descriptor("setxattr", set(1, 2, 3, 4)?),
        libc::SYS_removexattr => by_name("removexattr", HERE, 0, true, Act::RemoveAttribute(text(1)?)),
        libc::SYS_lremovexattr => by_name("removexattr", HERE, 0, false, Act::RemoveAttribute(text(1)?)),
        libc::SYS_fremovexattr => by_descriptor("removexattr", Act::RemoveAttribute(text(1)?)),
        libc::SYS_utimensat => {
            let times = timespecs(target, call.arguments[2])?;
            if call.arguments[1] == 0 {
                return by_descriptor("touch", Act::Times(times));
            }
            by_name("touch", a(0), 1, follows(a(3)), Act::Times(times))
        }
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chmod => by_name("chmod", HERE, 0, true, Act::Mode(u(1))),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chown => by_name("chown", HERE, 0, true, Act::Owner(u(1), u(2))),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_lchown => by_name("chown", HERE, 0, false, Act::Owner(u(1), u(2))),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_utimes => by_name("touch", HERE, 0, true, Act::Times(timevals(target, call.arguments[1])?)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_futimesat => {
            let times = timevals(target, call.arguments[2])?;
            if call.arguments[1] == 0 {
                return by_descriptor("touch", Act::Times(times));
            }
            by_name("touch", a(0), 1, true, Act::Times(times))
        }
        #[cfg(target_arch = "x86_64")]
        libc::SYS_utime => {
            let times = match call.arguments[1] {
                0 => [now(), now()],
                address => {
                    let numbers = numbers::<2>(target, address)?;
                    numbers.map(|tv_sec| libc::timespec { tv_sec, tv_nsec: 0 })
                }
            };
            by_name("touch", HERE, 0, true, Act::Times(times))
        }
        _ => Err(Errno::NOSYS),
    }
}

fn now() -> libc::timespec {
    libc::timespec { tv_sec: 0, tv_nsec: libc::UTIME_NOW }
}

fn timespecs(target: Target, address: u64) -> Result<[libc::timespec; 2], Errno> {
    if address == 0 {
        return Ok([now(), now()]);
    }
    let [a, b, c, d] = numbers::<4>(target, address)?;
    Ok([libc::timespec { tv_sec: a, tv_nsec: b }, libc::timespec { tv_sec: c, tv_nsec: d }])
}

#[cfg(target_arch = "x86_64")]
fn timevals(target: Target, address: u64) -> Result<[libc::timespec; 2], Errno> {
    if address == 0 {
        return Ok([now(), now()]);
    }
    let [a, b, c, d] = numbers::<4>(target, address)?;
    if !(0..1_000_000).contains(&b) || !(0..1_000_000).contains(&d) {
        return Err(Errno::INVAL);
    }
    Ok([libc::timespec { tv_sec: a, tv_nsec: b * 1000 }, libc::timespec { tv_sec: c, tv_nsec: d * 1000 }])
}

fn numbers<const N: usize>(target: Target, address: u64) -> Result<[i64; N], Errno> {
    let bytes = target.bytes(address, N * 8)?;
    let mut numbers = [0; N];
    for (number, bytes) in numbers.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *number = i64::from_ne_bytes(*bytes);
    }
    Ok(numbers)
}

/// Does it to the very thing that is held, through its link in `/proc`: a handle that only holds can do nothing itself.
#[expect(unsafe_code, reason = "some of these calls have no safe wrapper")]
fn act(held: &OwnedFd, kind: FileType, act: &Act) -> Result<(), Errno> {
    let path = CString::new(format!("/proc/self/fd/{}", held.as_raw_fd())).map_err(|_| Errno::INVAL)?;
    let through = path.as_ptr();
    // SAFETY: every pointer is to a local value that outlives the call.
    let result = unsafe {
        match act {
            Act::Mode(_) if kind == FileType::Symlink => return Err(Errno::OPNOTSUPP),
            Act::Mode(mode) => libc::chmod(through, mode & 0o7777),
            Act::Owner(uid, gid) => {
                let empty = c"".as_ptr();
                libc::fchownat(held.as_raw_fd(), empty, *uid, *gid, libc::AT_EMPTY_PATH)
            }
            Act::Times(times) if kind == FileType::Symlink => {
                let (empty, flags) = (c"".as_ptr(), libc::AT_EMPTY_PATH);
                libc::utimensat(held.as_raw_fd(), empty, times.as_ptr(), flags)
            }
            Act::Times(times) => libc::utimensat(libc::AT_FDCWD, through, times.as_ptr(), 0),
            Act::SetAttribute { .. } | Act::RemoveAttribute(_) if kind == FileType::Symlink => {
                return Err(Errno::PERM);
            }
            Act::SetAttribute { name, value, flags } => {
                libc::setxattr(through, name.as_ptr(), value.as_ptr().cast(), value.len(), *flags)
            }
            Act::RemoveAttribute(name) => libc::removexattr(through, name.as_ptr()),
        }
    };
    if result < 0 { Err(last_error()) } else { Ok(()) }
}
