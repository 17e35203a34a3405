//! The process that waits for an answer: its memory, its descriptors, its directory, its umask.

use std::collections::HashMap;
use std::fs;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::notify::{Call, last_error};

/// The longest path that the kernel takes.
const PATH_MAX: usize = 4096;
const PAGE: usize = 4096;

/// The thread behind a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target {
    thread: i32,
}

impl Target {
    pub(super) fn of(call: &Call) -> Self {
        Self { thread: call.thread }
    }

    /// Reads a string that ends with a NUL.
    pub(super) fn string(self, address: u64) -> Result<Vec<u8>, Errno> {
        let mut string = Vec::with_capacity(256);
        let mut chunk = [0_u8; 256];
        let mut at = usize::try_from(address).map_err(|_| Errno::FAULT)?;
        while string.len() < PATH_MAX {
            // A page may be the last one that is there.
            let length = chunk.len().min(PAGE - at % PAGE);
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
    pub(super) fn bytes(self, address: u64, length: usize) -> Result<Vec<u8>, Errno> {
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
        // SAFETY: the local vector is `into`; the remote one is read in the other process, which may only fail.
        let read =
            unsafe { libc::process_vm_readv(self.thread, &raw const local, 1, &raw const remote, 1, 0) };
        match usize::try_from(read) {
            Ok(0) => Err(Errno::FAULT),
            Ok(read) => Ok(read),
            Err(_) => Err(last_error()),
        }
    }

    /// A copy of the target's descriptor, so that nobody can put another in its place.
    #[expect(unsafe_code, reason = "pidfd_getfd has no safe wrapper")]
    pub(super) fn descriptor(self, fd: i32) -> Result<OwnedFd, Errno> {
        let process = self.process();
        let pid = rustix::process::Pid::from_raw(process).ok_or(Errno::SRCH)?;
        let handle = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty())?;
        // SAFETY: plain numbers; the result is a new descriptor of ours.
        let got = unsafe { libc::syscall(libc::SYS_pidfd_getfd, handle.as_raw_fd(), fd, 0) };
        match i32::try_from(got) {
            // SAFETY: the kernel just made it for us.
            Ok(got) if got >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(got) }),
            _ => Err(last_error()),
        }
    }

    /// The directory that relative paths start from: the working directory, or the one behind `fd`.
    pub(super) fn base(self, fd: i32) -> String {
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

/// What each thread's files are created without. Asking costs more than creating a file, so it is remembered until
/// the thread changes it.
#[derive(Debug, Default)]
pub(super) struct Umasks {
    known: HashMap<i32, Mode>,
}

impl Umasks {
    pub(super) fn of(&mut self, target: Target) -> Mode {
        if let Some(mask) = self.known.get(&target.thread) {
            return *mask;
        }
        let status = target.status();
        let mask = field(&status, "Umask:").and_then(|mask| u32::from_str_radix(mask, 8).ok());
        let mask = Mode::from_raw_mode(mask.unwrap_or(0o022));
        if self.known.len() >= 512 {
            self.known.clear();
        }
        self.known.insert(target.thread, mask);
        mask
    }

    /// Forgets what is known: a thread changes its umask, or its number may pass to another.
    pub(super) fn forget_all(&mut self) {
        self.known.clear();
    }
}

/// Opens a path that only Haft names.
pub(super) fn place(path: &str) -> Result<OwnedFd, Errno> {
    rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
}
