//! The signals that ask this process to end, heard on a thread of their own.
//!
//! To start that thread takes longer than many a command, so whoever runs just one can leave it until the command has
//! lasted for a moment.

use std::os::fd::{IntoRawFd, OwnedFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use haft_tool::{ToolError, lock};

use crate::process::pipe;

/// Who wants an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The person who pressed Ctrl-C.
    Interrupt,
    /// Whoever sent SIGTERM.
    Terminate,
}

/// The thread needs next to nothing.
const STACK: usize = 128 * 1024;

type Listener = Box<dyn FnMut(Stop) + Send>;

/// Who hears of the signals now.
static LISTENER: Mutex<Option<Listener>> = Mutex::new(None);
/// Where the handler writes; set before there is a handler, and never closed.
static STRIKE: AtomicI32 = AtomicI32::new(-1);
/// What the handler wrote, until there is a thread that reads it.
static UNHEARD: Mutex<Option<OwnedFd>> = Mutex::new(None);
/// What this process leaves with at the second signal that nobody has heard yet; below zero once there is a thread.
static LEAVE: AtomicI32 = AtomicI32::new(-1);
static STRUCK: AtomicBool = AtomicBool::new(false);

/// From now on SIGINT and SIGTERM do not end this process, but are told to `listener`, on a thread of their own. Who listened
/// before hears nothing any more.
pub fn hear_stops(listener: impl FnMut(Stop) + Send + 'static) -> Result<(), ToolError> {
    expect_stops(-1, listener)?;
    attend_stops()
}

/// The same, but there is a thread only once a command that this process waits for lasts longer than a moment. Until then
/// the first signal waits, and the second one leaves with `code`.
pub fn expect_stops(code: i32, listener: impl FnMut(Stop) + Send + 'static) -> Result<(), ToolError> {
    *lock(&LISTENER) = Some(Box::new(listener));
    let mut unheard = lock(&UNHEARD);
    if STRIKE.load(Ordering::SeqCst) >= 0 {
        return Ok(());
    }
    let failed = |error: rustix::io::Errno| ToolError::io("listen for signals", &error.into());
    let (hear, strike) = pipe().map_err(failed)?;
    // A handler must never wait.
    rustix::io::ioctl_fionbio(&strike, true).map_err(failed)?;
    *unheard = Some(hear);
    LEAVE.store(code, Ordering::SeqCst);
    STRIKE.store(strike.into_raw_fd(), Ordering::SeqCst);
    handle(libc::SIGINT);
    handle(libc::SIGTERM);
    Ok(())
}

/// Whether signals are expected and nobody listens yet.
pub(crate) fn unattended() -> bool {
    LEAVE.load(Ordering::Relaxed) >= 0
}

/// Listens from now on for what is expected, if anything is.
pub fn attend_stops() -> Result<(), ToolError> {
    let mut unheard = lock(&UNHEARD);
    let Some(hear) = unheard.take() else { return Ok(()) };
    let thread = std::thread::Builder::new().name("stops".to_owned()).stack_size(STACK);
    let started = thread.spawn(move || tell(&hear));
    started.map_err(|error| ToolError::io("listen for signals", &error))?;
    LEAVE.store(-1, Ordering::SeqCst);
    Ok(())
}

fn tell(hear: &OwnedFd) {
    let mut byte = [0];
    loop {
        match rustix::io::read(hear, &mut byte) {
            Ok(1) => {}
            Err(rustix::io::Errno::INTR) => continue,
            _ => return,
        }
        let stop = if i32::from(byte[0]) == libc::SIGINT { Stop::Interrupt } else { Stop::Terminate };
        if let Some(listener) = &mut *lock(&LISTENER) {
            listener(stop);
        }
    }
}

#[expect(unsafe_code, reason = "signal handlers have no safe wrapper")]
#[expect(clippy::fn_to_numeric_cast_any, reason = "sigaction takes a handler as a number")]
fn handle(signal: libc::c_int) {
    // SAFETY: a zeroed sigaction is a valid one, and the handler does nothing but one write.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = heard as *const () as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(signal, &raw const action, std::ptr::null_mut());
    }
}

#[expect(unsafe_code, reason = "a handler may only make system calls")]
extern "C" fn heard(signal: libc::c_int) {
    let code = LEAVE.load(Ordering::Relaxed);
    if code >= 0 && STRUCK.swap(true, Ordering::Relaxed) {
        // SAFETY: a handler may end the process at once.
        unsafe { libc::_exit(code) };
    }
    let number = [u8::try_from(signal).unwrap_or_default()];
    // SAFETY: the descriptor is set before there is a handler and never closed. A full pipe tells enough already.
    let strike = unsafe { std::os::fd::BorrowedFd::borrow_raw(STRIKE.load(Ordering::Relaxed)) };
    // On Linux this leaves `errno` of whoever is interrupted alone.
    let _ = rustix::io::write(strike, &number);
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use rustix::process::{Signal, getpid, kill_process};

    use super::*;

    #[test]
    fn signals_are_told_to_whoever_listens_last() {
        let ((early, late), mut heard) = ((channel(), channel()), Vec::new());
        hear_stops(move |stop| early.0.send(stop).unwrap()).unwrap();
        hear_stops(move |stop| late.0.send(stop).unwrap()).unwrap();
        for signal in [Signal::INT, Signal::TERM] {
            kill_process(getpid(), signal).unwrap();
            heard.push(late.1.recv_timeout(Duration::from_secs(10)).unwrap());
        }
        assert_eq!(heard, [Stop::Interrupt, Stop::Terminate]);
        assert!(early.1.try_recv().is_err());
    }

    #[test]
    fn what_is_only_expected_is_heard_once_somebody_attends() {
        let (tell, heard) = channel();
        expect_stops(3, move |stop| tell.send(stop).unwrap()).unwrap();
        assert!(unattended());
        kill_process(getpid(), Signal::TERM).unwrap();
        assert!(heard.try_recv().is_err(), "there is no thread yet");
        attend_stops().unwrap();
        assert_eq!(heard.recv_timeout(Duration::from_secs(10)).unwrap(), Stop::Terminate);
        assert!(!unattended());
        kill_process(getpid(), Signal::TERM).unwrap();
        assert_eq!(heard.recv_timeout(Duration::from_secs(10)).unwrap(), Stop::Terminate);
    }
}
