//! SIGINT, SIGTERM, SIGHUP, SIGCONT and SIGTSTP, delivered to listeners on a thread of their own.

use std::io;
use std::os::fd::{BorrowedFd, IntoRawFd, OwnedFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, Ordering};

use haft_tool::lock;

use crate::process::pipe;
use crate::quiet_terminal;

/// A signal that asks this process to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminationSignal {
    /// SIGINT: Ctrl-C in the terminal.
    Interrupt,
    /// SIGTERM, or SIGHUP: the terminal was closed.
    Terminate,
}

type SignalListener = Box<dyn FnMut(TerminationSignal) + Send>;

/// The current listener.
static LISTENER: Mutex<Option<SignalListener>> = Mutex::new(None);
/// The write end of the pipe from the handler to the thread; -1 until the handler is installed, never closed.
static PIPE_TO_THREAD: AtomicI32 = AtomicI32::new(-1);
/// Stack of the thread that calls the listener.
const STACK_BYTES: usize = 128 * 1024;

type ContinueListener = Box<dyn Fn() + Send>;

/// What is called when this process goes on after it was stopped.
static CONTINUE_LISTENER: Mutex<Option<ContinueListener>> = Mutex::new(None);

/// From now on `listener` is called whenever this process goes on after it was stopped, as by Ctrl-Z and `fg`.
pub fn on_continue(listener: impl Fn() + Send + 'static) -> io::Result<()> {
    *lock(&CONTINUE_LISTENER) = Some(Box::new(listener));
    start_thread()?;
    install_handler(libc::SIGCONT);
    Ok(())
}

/// From now on these signals do not end this process but are passed to `listener`, in place of any earlier one. Those that
/// are ignored, as under `nohup`, stay so.
pub fn on_termination_signal(listener: impl FnMut(TerminationSignal) + Send + 'static) -> io::Result<()> {
    *lock(&LISTENER) = Some(Box::new(listener));
    start_thread()?;
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        install_handler(signal);
    }
    Ok(())
}

/// Whether Ctrl-Z restores the modes of the terminal before this process stops. If the thread cannot be started it does not.
pub(crate) fn handle_stop(is_handled: bool) {
    if is_handled && start_thread().is_ok() {
        install_handler(libc::SIGTSTP);
    } else {
        reset_handler(libc::SIGTSTP);
    }
}

/// Stops this process until it is continued.
#[expect(
    unsafe_code,
    reason = "rustix cannot send a signal to the thread itself, and only that stops it before the call returns"
)]
pub(crate) fn raise_stop() {
    // SAFETY: raise has no preconditions.
    unsafe {
        libc::raise(libc::SIGSTOP);
    }
}

#[expect(unsafe_code, reason = "signal handlers have no safe wrapper")]
fn reset_handler(signal: libc::c_int) {
    // SAFETY: a zeroed sigaction is a valid one; its handler is the default.
    unsafe {
        let mut old: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut old);
        if old.sa_sigaction != libc::SIG_IGN {
            let action: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, &raw const action, std::ptr::null_mut());
        }
    }
}

/// Starts the thread that calls the listeners, once.
fn start_thread() -> io::Result<()> {
    static STARTING: Mutex<()> = Mutex::new(());
    let _starting = lock(&STARTING);
    if PIPE_TO_THREAD.load(Ordering::SeqCst) >= 0 {
        return Ok(());
    }
    let (read_end, write_end) = pipe()?;
    // A signal handler must never block.
    rustix::io::ioctl_fionbio(&write_end, true)?;
    let thread = std::thread::Builder::new().name("signals".to_owned()).stack_size(STACK_BYTES);
    thread.spawn(move || forward(&read_end))?;
    PIPE_TO_THREAD.store(write_end.into_raw_fd(), Ordering::SeqCst);
    Ok(())
}

/// Passes signal numbers from the pipe to the current listener.
fn forward(read_end: &OwnedFd) {
    let mut byte = [0];
    loop {
        match rustix::io::read(read_end, &mut byte) {
            Ok(1) => {}
            Err(rustix::io::Errno::INTR) => continue,
            _ => return,
        }
        if i32::from(byte[0]) == libc::SIGTSTP {
            quiet_terminal::stop_process();
            continue;
        }
        if i32::from(byte[0]) == libc::SIGCONT {
            if let Some(listener) = &*lock(&CONTINUE_LISTENER) {
                listener();
            }
            continue;
        }
        let interrupt = i32::from(byte[0]) == libc::SIGINT;
        let signal = if interrupt { TerminationSignal::Interrupt } else { TerminationSignal::Terminate };
        if let Some(listener) = &mut *lock(&LISTENER) {
            listener(signal);
        }
    }
}

#[expect(unsafe_code, reason = "signal handlers have no safe wrapper")]
#[expect(clippy::fn_to_numeric_cast_any, reason = "sigaction takes a handler as a number")]
fn install_handler(signal: libc::c_int) {
    // SAFETY: a zeroed sigaction is a valid one, and the handler only writes to a pipe.
    unsafe {
        let mut old: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut old);
        if old.sa_sigaction == libc::SIG_IGN {
            return;
        }
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(signal, &raw const action, std::ptr::null_mut());
    }
}

#[expect(unsafe_code, reason = "the pipe is known by its number")]
extern "C" fn handler(signal: libc::c_int) {
    let number = [u8::try_from(signal).unwrap_or_default()];
    // SAFETY: the descriptor is stored before the handler is installed, and never closed.
    let write_end = unsafe { BorrowedFd::borrow_raw(PIPE_TO_THREAD.load(Ordering::Relaxed)) };
    // A full pipe already holds enough signals. On Linux this does not touch `errno` of the interrupted code.
    let _ = rustix::io::write(write_end, &number);
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use rustix::process::{Signal, getpid, kill_process};

    use super::*;

    #[test]
    fn signals_go_to_the_last_listener() {
        let ((early, late), mut received) = ((channel(), channel()), Vec::new());
        on_termination_signal(move |signal| early.0.send(signal).unwrap()).unwrap();
        on_termination_signal(move |signal| late.0.send(signal).unwrap()).unwrap();
        for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
            kill_process(getpid(), signal).unwrap();
            received.push(late.1.recv_timeout(Duration::from_secs(10)).unwrap());
        }
        let expected =
            [TerminationSignal::Interrupt, TerminationSignal::Terminate, TerminationSignal::Terminate];
        assert_eq!(received, expected);
        assert!(early.1.try_recv().is_err());
    }
}
