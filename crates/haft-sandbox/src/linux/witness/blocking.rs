//! Calls that may block, each performed by a thread of its own that can be interrupted.

use std::os::unix::thread::JoinHandleExt;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::caller::Caller;
use super::notifications::{NotifyListener, Syscall};
use super::supervisor::Reply;
use crate::process::block_signals;

/// Blocked calls of one command at a time; further ones fail with EAGAIN.
const MAX_BLOCKED_CALLS: usize = 64;
/// The threads of a command, including those whose callers have just been killed.
const MAX_THREADS: usize = 4 * MAX_BLOCKED_CALLS;
/// How often the callers are checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(40);
const STACK_BYTES: usize = 64 * 1024;
/// Interrupts a thread. It is ignored by default, so it does no harm without the handler.
const INTERRUPT_SIGNAL: libc::c_int = libc::SIGURG;
/// `ERESTARTSYS`, the kernel's internal result of an interrupted call: it repeats the call or returns EINTR, as the signal's
/// handler asks.
const RESTART_ERRNO: i32 = 512;

/// The blocked calls of one command.
#[derive(Default)]
pub(super) struct BlockedCalls {
    calls: Vec<BlockedCall>,
    checked_at: Option<Instant>,
}

struct BlockedCall {
    id: u64,
    caller: Caller,
    thread: JoinHandle<()>,
    /// Whether the call was performed, so that only the reply is left.
    is_performed: Arc<AtomicBool>,
}

impl BlockedCall {
    fn is_blocked(&self) -> bool {
        !self.is_performed.load(Ordering::SeqCst) && !self.thread.is_finished()
    }

    /// Interrupts the call until it has failed. The interrupt can arrive before the thread blocks, so it is repeated.
    fn end(&self) {
        while self.is_blocked() {
            interrupt(&self.thread);
            std::thread::park_timeout(Duration::from_millis(1));
        }
    }
}

impl BlockedCalls {
    /// Performs a call in another thread, which sends the reply.
    pub(super) fn start(
        &mut self,
        listener: &Arc<NotifyListener>,
        call: &Syscall,
        act: impl FnOnce() -> Result<Reply, Errno> + Send + 'static,
    ) -> Result<Reply, Errno> {
        static HANDLER: Once = Once::new();
        HANDLER.call_once(install_handler);
        self.calls.retain(|call| !call.thread.is_finished());
        // The opening of a FIFO by a process that was killed must not be the other end of this one.
        for call in self.calls.iter().filter(|call| !listener.is_valid(call.id)) {
            call.end();
        }
        let waiting = self.calls.iter().filter(|call| listener.is_valid(call.id)).count();
        if waiting >= MAX_BLOCKED_CALLS || self.calls.len() >= MAX_THREADS {
            return Err(Errno::AGAIN);
        }
        let (id, listener) = (call.id, Arc::clone(listener));
        let is_performed = Arc::new(AtomicBool::new(false));
        let performed = Arc::clone(&is_performed);
        let work = move || {
            let restart = Errno::from_raw_os_error(RESTART_ERRNO);
            allow_interrupts();
            let result = act().map_err(|error| if error == Errno::INTR { restart } else { error });
            block_signals();
            performed.store(true, Ordering::SeqCst);
            listener.send_reply(id, result.unwrap_or_else(Reply::Error));
        };
        let thread = std::thread::Builder::new().name("haft-blocked".to_owned()).stack_size(STACK_BYTES);
        let thread = thread.spawn(work).map_err(|_| Errno::AGAIN)?;
        self.calls.push(BlockedCall { id, caller: Caller::of(call), thread, is_performed });
        Ok(Reply::Deferred)
    }

    /// Interrupts the calls of callers that were killed or have a signal to handle. The interrupt can arrive before the thread
    /// blocks, so this is repeated until the thread has ended.
    pub(super) fn check(&mut self, listener: &NotifyListener) {
        if self.calls.is_empty() || self.checked_at.is_some_and(|at| at.elapsed() < CHECK_INTERVAL) {
            return;
        }
        self.checked_at = Some(Instant::now());
        self.calls.retain(|call| !call.thread.is_finished());
        for call in self.calls.iter().filter(|call| call.is_blocked()) {
            if !listener.is_valid(call.id) || call.caller.has_pending_signal() {
                interrupt(&call.thread);
            }
        }
    }

    /// Ends all threads. No caller may be left.
    pub(super) fn finish(mut self) {
        for call in self.calls.drain(..) {
            call.end();
            let _ = call.thread.join();
        }
    }
}

#[expect(unsafe_code, reason = "signals to threads have no safe wrapper")]
#[allow(clippy::allow_attributes, clippy::unnecessary_cast, reason = "musl's handle is a pointer")]
fn interrupt(thread: &JoinHandle<()>) {
    // SAFETY: the thread has not been joined, so its handle is valid.
    unsafe { libc::pthread_kill(thread.as_pthread_t() as libc::pthread_t, INTERRUPT_SIGNAL) };
}

/// Lets [`INTERRUPT_SIGNAL`] interrupt this thread, in which all signals are blocked.
#[expect(unsafe_code, reason = "signal masks have no safe wrapper")]
fn allow_interrupts() {
    // SAFETY: a sigset_t is plain data, and the calls only use the local one.
    unsafe {
        let mut interrupt = std::mem::zeroed();
        libc::sigemptyset(&raw mut interrupt);
        libc::sigaddset(&raw mut interrupt, INTERRUPT_SIGNAL);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const interrupt, ptr::null_mut());
    }
}

/// Installs a handler that does nothing, unless there is one already: any handler interrupts a system call.
#[expect(unsafe_code, reason = "signal handlers have no safe wrapper")]
#[expect(clippy::fn_to_numeric_cast_any, reason = "sigaction takes a handler as a number")]
fn install_handler() {
    extern "C" fn ignore(_: libc::c_int) {}
    // SAFETY: a zeroed sigaction is a valid one, and the handler does nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(INTERRUPT_SIGNAL, ptr::null(), &raw mut action);
        if action.sa_sigaction == libc::SIG_DFL || action.sa_sigaction == libc::SIG_IGN {
            action = std::mem::zeroed();
            action.sa_sigaction = ignore as *const () as libc::sighandler_t;
            libc::sigaction(INTERRUPT_SIGNAL, &raw const action, ptr::null_mut());
        }
    }
}
