//! The thread that waits for a reply: its memory, descriptors, working directory and umask.

use std::collections::HashMap;
use std::fs;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::notifications::Syscall;
use crate::process::last_error;

/// The kernel's limit for a path.
const PATH_MAX: usize = 4096;
/// A multiple of the page size on every architecture is also a multiple of this.
const MIN_PAGE_BYTES: usize = 4096;
/// Most paths are shorter.
const READ_BYTES: usize = 256;
const DEFAULT_UMASK: u32 = 0o022;
const MAX_CACHED_UMASKS: usize = 512;

/// The thread behind a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Caller {
    thread: i32,
}

impl Caller {
    pub(super) fn of(call: &Syscall) -> Self {
        Self { thread: call.thread }
    }

    /// The main thread of a process.
    pub(super) fn of_process(process: i32) -> Self {
        Self { thread: process }
    }

    /// Reads a string up to its NUL.
    pub(super) fn read_string(self, address: u64) -> Result<Vec<u8>, Errno> {
        let mut string = Vec::with_capacity(READ_BYTES);
        let mut chunk = [0_u8; READ_BYTES];
        let mut at = usize::try_from(address).map_err(|_| Errno::FAULT)?;
        while string.len() < PATH_MAX {
            // Not beyond the page: the next one may not be mapped.
            let length = chunk.len().min(MIN_PAGE_BYTES - at % MIN_PAGE_BYTES);
            let read = self.read(at, &mut chunk[..length])?;
            if let Some(end) = chunk[..read].iter().position(|&byte| byte == 0) {
                string.extend_from_slice(&chunk[..end]);
                return if string.len() < PATH_MAX { Ok(string) } else { Err(Errno::NAMETOOLONG) };
            }
            string.extend_from_slice(&chunk[..read]);
            at += read;
        }
        Err(Errno::NAMETOOLONG)
    }

    /// Reads exactly `length` bytes.
    pub(super) fn read_bytes(self, address: u64, length: usize) -> Result<Vec<u8>, Errno> {
        let mut bytes = vec![0; length];
        let at = usize::try_from(address).map_err(|_| Errno::FAULT)?;
        if length > 0 && self.read(at, &mut bytes)? != length {
            return Err(Errno::FAULT);
        }
        Ok(bytes)
    }

    #[expect(unsafe_code, reason = "another process's memory has no safe reader")]
    fn read(self, at: usize, into: &mut [u8]) -> Result<usize, Errno> {
        let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
        let remote = libc::iovec { iov_base: at as *mut libc::c_void, iov_len: into.len() };
        // SAFETY: the local vector is `into`; the remote one is only read in the other process.
        let read =
            unsafe { libc::process_vm_readv(self.thread, &raw const local, 1, &raw const remote, 1, 0) };
        match usize::try_from(read) {
            Ok(0) => Err(Errno::FAULT),
            Ok(read) => Ok(read),
            Err(_) => Err(last_error()),
        }
    }

    /// Writes all of `bytes`.
    #[expect(unsafe_code, reason = "another process's memory has no safe writer")]
    pub(super) fn write_bytes(self, address: u64, bytes: &[u8]) -> Result<(), Errno> {
        let at = usize::try_from(address).map_err(|_| Errno::FAULT)?;
        let local = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        let remote = libc::iovec { iov_base: at as *mut libc::c_void, iov_len: bytes.len() };
        // SAFETY: the local vector is `bytes`, which is only read.
        let written =
            unsafe { libc::process_vm_writev(self.thread, &raw const local, 1, &raw const remote, 1, 0) };
        if usize::try_from(written) == Ok(bytes.len()) { Ok(()) } else { Err(Errno::FAULT) }
    }

    /// A copy of the caller's descriptor, which the caller cannot replace.
    #[expect(unsafe_code, reason = "pidfd_getfd has no safe wrapper")]
    pub(super) fn copy_fd(self, fd: i32) -> Result<OwnedFd, Errno> {
        let pid = rustix::process::Pid::from_raw(self.process()).ok_or(Errno::SRCH)?;
        let pidfd = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty())?;
        // SAFETY: plain numbers; the result is a new descriptor of this process.
        let copy = unsafe { libc::syscall(libc::SYS_pidfd_getfd, pidfd.as_raw_fd(), fd, 0) };
        match i32::try_from(copy) {
            // SAFETY: the kernel has just created it.
            Ok(copy) if copy >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(copy) }),
            _ => Err(last_error()),
        }
    }

    /// The directory that relative paths start from, as a path in `/proc`: the working directory, or descriptor `fd`.
    pub(super) fn base_path(self, fd: i32) -> String {
        if fd == libc::AT_FDCWD {
            format!("/proc/{}/cwd", self.thread)
        } else {
            format!("/proc/{}/fd/{fd}", self.thread)
        }
    }

    /// The process that the thread belongs to.
    pub(super) fn process(self) -> i32 {
        field(&self.status(), "Tgid:").and_then(|tgid| tgid.parse().ok()).unwrap_or(self.thread)
    }

    /// The numbers of the thread and of its process in their own pid namespace.
    pub(super) fn own_ids(self) -> Vec<i32> {
        let status = self.status();
        let innermost =
            |name| field(&status, name).and_then(|ids| ids.split_ascii_whitespace().last()?.parse().ok());
        ["NSpid:", "NStgid:"].into_iter().filter_map(innermost).collect()
    }

    /// The number of the process group in the process's own pid namespace.
    pub(super) fn own_group(self) -> Option<i32> {
        field(&self.status(), "NSpgid:")?.split_ascii_whitespace().last()?.parse().ok()
    }

    pub(super) fn thread(self) -> i32 {
        self.thread
    }

    fn status(self) -> String {
        fs::read_to_string(format!("/proc/{}/status", self.thread)).unwrap_or_default()
    }
}

fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

/// The umasks of threads. Reading one takes longer than creating a file, so they are cached until a thread changes its
/// umask.
#[derive(Debug, Default)]
pub(super) struct UmaskCache {
    known: HashMap<i32, Mode>,
}

impl UmaskCache {
    pub(super) fn get(&mut self, caller: Caller) -> Mode {
        if let Some(umask) = self.known.get(&caller.thread) {
            return *umask;
        }
        let status = caller.status();
        let umask = field(&status, "Umask:").and_then(|umask| u32::from_str_radix(umask, 8).ok());
        let umask = Mode::from_raw_mode(umask.unwrap_or(DEFAULT_UMASK));
        if self.known.len() >= MAX_CACHED_UMASKS {
            self.known.clear();
        }
        self.known.insert(caller.thread, umask);
        umask
    }

    pub(super) fn clear(&mut self) {
        self.known.clear();
    }
}

/// Opens a path in `/proc` that only the witness names.
pub(super) fn open_proc(path: &str) -> Result<OwnedFd, Errno> {
    rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
}
