//! The thread that waits for a reply: its memory, descriptors, working directory and umask.

use std::collections::{HashMap, VecDeque};
use std::fs;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::notifications::Syscall;
use crate::process::{last_error, process_group};

/// The kernel's limit for a path.
const PATH_MAX: usize = 4096;
/// The smallest page size of any architecture; every page size is a multiple of it.
const MIN_PAGE_BYTES: usize = 4096;
/// Most paths are shorter.
const READ_BYTES: usize = 256;
const DEFAULT_UMASK: u32 = 0o022;
/// `PIDFD_THREAD`: a handle of one thread, which may have a table of descriptors of its own.
const PIDFD_THREAD: PidfdFlags = PidfdFlags::from_bits_retain(libc::O_EXCL.cast_unsigned());
const MAX_CACHED_UMASKS: usize = 512;
/// Threads that are about to set their umask at the same time.
const MAX_CHANGING_THREADS: usize = 64;
/// How many of them are checked when a umask is needed.
const MAX_CHECKED_CHANGES: usize = 4;

/// The thread behind a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Caller {
    thread: i32,
}

/// The numbers of a thread and of its process in their own pid namespace.
#[derive(Debug, Clone, Copy)]
pub(super) struct OwnIds {
    pub(super) thread: i32,
    pub(super) process: i32,
}

impl OwnIds {
    pub(super) fn has(self, id: i32) -> bool {
        id == self.thread || id == self.process
    }
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

    /// A handle of the thread, and whether it is really the thread's. Before Linux 6.9 it is that of its process, if both share
    /// their descriptors at the moment.
    pub(super) fn pidfd(self) -> Result<(OwnedFd, bool), Errno> {
        let open = |id, flags| pidfd_open(Pid::from_raw(id).ok_or(Errno::SRCH)?, flags);
        match open(self.thread, PIDFD_THREAD) {
            // Linux before 6.9.
            Err(Errno::INVAL) => {}
            opened => return Ok((opened?, true)),
        }
        let process = self.process();
        if process != self.thread && !share_descriptors(process, self.thread) {
            return Err(Errno::ACCESS);
        }
        Ok((open(process, PidfdFlags::empty())?, false))
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
    fn process(self) -> i32 {
        field(&self.status(), "Tgid:").and_then(|tgid| tgid.parse().ok()).unwrap_or(self.thread)
    }

    /// `None` if the thread has ended.
    pub(super) fn own_ids(self) -> Option<OwnIds> {
        let status = self.status();
        let innermost = |name| field(&status, name)?.split_ascii_whitespace().last()?.parse().ok();
        Some(OwnIds { thread: innermost("NSpid:")?, process: innermost("NStgid:")? })
    }

    /// The process group.
    pub(super) fn group(self) -> Option<Pid> {
        Pid::from_raw(self.thread).and_then(|thread| process_group(Some(thread)))
    }

    /// The number of the process group in the process's own pid namespace.
    pub(super) fn own_group(self) -> Option<i32> {
        field(&self.status(), "NSpgid:")?.split_ascii_whitespace().last()?.parse().ok()
    }

    /// The size up to which the caller may extend a file.
    #[expect(unsafe_code, reason = "the limits of other processes have no safe reader")]
    pub(super) fn max_file_bytes(self) -> u64 {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the limit is only written to.
        let result =
            unsafe { libc::prlimit(self.thread, libc::RLIMIT_FSIZE, std::ptr::null(), &raw mut limit) };
        if result == 0 { limit.rlim_cur } else { 0 }
    }

    /// Whether the thread has a signal to handle.
    pub(super) fn has_pending_signal(self) -> bool {
        let status = self.status();
        let mask =
            |name| field(&status, name).and_then(|mask| u64::from_str_radix(mask, 16).ok()).unwrap_or(0);
        (mask("SigPnd:") | mask("ShdPnd:")) & !mask("SigBlk:") & !mask("SigIgn:") != 0
    }

    pub(super) fn thread(self) -> i32 {
        self.thread
    }

    fn umask(self) -> Option<Mode> {
        let umask = field(&self.status(), "Umask:").and_then(|umask| u32::from_str_radix(umask, 8).ok());
        umask.map(Mode::from_raw_mode)
    }

    fn status(self) -> String {
        fs::read_to_string(format!("/proc/{}/status", self.thread)).unwrap_or_default()
    }
}

fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

/// A copy of a descriptor of a thread.
#[expect(unsafe_code, reason = "pidfd_getfd has no safe wrapper")]
pub(super) fn copy_fd(thread: &OwnedFd, fd: i32) -> Result<OwnedFd, Errno> {
    // SAFETY: plain numbers; the result is a new descriptor of this process.
    let copy = unsafe { libc::syscall(libc::SYS_pidfd_getfd, thread.as_raw_fd(), fd, 0) };
    match i32::try_from(copy) {
        // SAFETY: the kernel has just created it.
        Ok(copy) if copy >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(copy) }),
        _ => Err(last_error()),
    }
}

/// Whether two threads have the same table of descriptors.
#[expect(unsafe_code, reason = "kcmp has no safe wrapper")]
fn share_descriptors(first: i32, second: i32) -> bool {
    const KCMP_FILES: libc::c_int = 2;
    // SAFETY: plain numbers.
    unsafe { libc::syscall(libc::SYS_kcmp, first, second, KCMP_FILES, 0, 0) == 0 }
}

/// The umasks of threads. Reading one takes longer than creating a file, so they are cached until any thread changes its umask.
#[derive(Debug, Default)]
pub(super) struct UmaskCache {
    /// Each with the thread's directory in `/proc`. That is empty once the thread has ended, so a reused number is noticed.
    known: HashMap<i32, (OwnedFd, Mode)>,
    /// Threads that may still be about to set this umask. It is not known which threads share theirs with them.
    changing: VecDeque<(Caller, Mode)>,
    /// Whether there were too many of them; from then on nothing is cached.
    is_off: bool,
}

impl UmaskCache {
    pub(super) fn get(&mut self, caller: Caller) -> Mode {
        for _ in 0..self.changing.len().min(MAX_CHECKED_CHANGES) {
            if let Some(change) = self.changing.pop_front()
                && is_pending(change)
            {
                self.changing.push_back(change);
            }
        }
        if let Some((directory, umask)) = self.known.get(&caller.thread)
            && rustix::fs::statat(directory, "comm", AtFlags::SYMLINK_NOFOLLOW).is_ok()
        {
            return *umask;
        }
        let directory = open_proc(&format!("/proc/{}", caller.thread));
        let Some(umask) = caller.umask() else { return Mode::from_raw_mode(DEFAULT_UMASK) };
        if self.known.len() >= MAX_CACHED_UMASKS {
            self.known.clear();
        }
        if !self.is_off
            && self.changing.is_empty()
            && let Ok(directory) = directory
        {
            self.known.insert(caller.thread, (directory, umask));
        }
        umask
    }

    /// Must be called before a thread sets its umask.
    pub(super) fn change(&mut self, caller: Caller, umask: u64) {
        self.known.clear();
        if self.is_off {
            return;
        }
        if self.changing.len() >= MAX_CHANGING_THREADS
            && let Some(oldest) = self.changing.pop_front()
            && is_pending(oldest)
        {
            self.is_off = true;
            self.changing.clear();
            return;
        }
        let umask = Mode::from_raw_mode(u32::try_from(umask & 0o777).unwrap_or_default());
        self.changing.push_back((caller, umask));
    }

    /// Must be called for each call of a thread: if it was about to set its umask, it has done so by now.
    pub(super) fn forget_change(&mut self, caller: Caller) {
        self.changing.retain(|(thread, _)| thread.thread != caller.thread);
    }
}

/// Whether the thread may still be about to set this umask.
fn is_pending((thread, umask): (Caller, Mode)) -> bool {
    thread.umask().is_some_and(|current| current != umask)
}

/// Opens a path in `/proc` that only the witness names.
pub(super) fn open_proc(path: &str) -> Result<OwnedFd, Errno> {
    rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread that lives as long as the test, with its number.
    fn waiting_thread(scope_end: std::sync::mpsc::Receiver<()>) -> (std::thread::JoinHandle<()>, Caller) {
        let (send, receive) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            send.send(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
            let _ = scope_end.recv();
        });
        (thread, Caller::of_process(receive.recv().unwrap()))
    }

    #[test]
    fn changes_of_umasks_are_bounded() {
        let own = Caller::of_process(rustix::thread::gettid().as_raw_nonzero().get());
        let umask = own.umask().unwrap();
        let other = u64::from(!umask.as_raw_mode() & 0o777);
        let mut cache = UmaskCache::default();
        for _ in 0..10_000 {
            cache.forget_change(own);
            cache.change(own, other);
        }
        assert_eq!(cache.changing.len(), 1, "a thread changes its umask once at a time");
        assert_eq!(cache.get(own), umask);
        assert!(cache.known.is_empty(), "another thread may be about to change it");
        cache.forget_change(own);
        assert_eq!(cache.get(own), umask);
        assert_eq!(cache.known.len(), 1);

        let (ends, threads): (Vec<_>, Vec<_>) = (0..=MAX_CHANGING_THREADS)
            .map(|_| {
                let (end, ended) = std::sync::mpsc::channel();
                (end, waiting_thread(ended))
            })
            .unzip();
        for (_, thread) in &threads {
            cache.change(*thread, other);
            assert!(cache.changing.len() <= MAX_CHANGING_THREADS);
        }
        assert!(cache.is_off, "all of them may still be about to set it");
        assert_eq!(cache.get(own), umask);
        assert!(cache.known.is_empty());
        drop(ends);
        for (thread, _) in threads {
            thread.join().unwrap();
        }
    }

    #[test]
    fn changes_of_ended_threads_are_forgotten() {
        let mut cache = UmaskCache::default();
        for _ in 0..4 * MAX_CHANGING_THREADS {
            let (end, ended) = std::sync::mpsc::channel();
            let (thread, caller) = waiting_thread(ended);
            cache.change(caller, 0o777);
            drop(end);
            thread.join().unwrap();
            while std::path::Path::new(&format!("/proc/self/task/{}", caller.thread)).exists() {
                std::thread::yield_now();
            }
        }
        assert!(!cache.is_off && cache.changing.len() <= MAX_CHANGING_THREADS);
    }
}
