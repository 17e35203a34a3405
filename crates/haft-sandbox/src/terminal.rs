//! A question at the terminal while a command runs there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use haft_tool::Cancel;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::Signal;
use rustix::termios::{LocalModes, QueueSelector};

use crate::process::{block_signals, pipe, restore_signals};

/// Longer lines are cut by the terminal itself.
const MAX_LINE_BYTES: usize = 4096;

/// Whether a command of this process has the terminal.
static IS_LENT: AtomicBool = AtomicBool::new(false);

/// Notes that a command has got the terminal, or that it has ended.
pub(crate) fn set_lent(lent: bool) {
    IS_LENT.store(lent, Ordering::SeqCst);
}

/// Whether a program reads single keys from the terminal.
pub fn terminal_is_raw() -> bool {
    let modes = rustix::termios::tcgetattr(rustix::stdio::stdin()).map(|terminal| terminal.local_modes);
    modes.is_ok_and(|modes| !modes.contains(LocalModes::ICANON))
}

/// Takes the terminal from the command that has it, calls `prompt`, reads one line and gives the terminal back. `None` if the
/// command draws the screen or reads a password, if this process is in the background, at EOF and when `cancel` fires.
pub fn ask_at_terminal(prompt: impl FnOnce(), cancel: &Cancel) -> Option<String> {
    let terminal = rustix::stdio::stdin();
    let modes = rustix::termios::tcgetattr(terminal).ok()?.local_modes;
    if !modes.contains(LocalModes::ICANON | LocalModes::ECHO) {
        return None;
    }
    let (own, foreground) = (rustix::process::getpgrp(), rustix::termios::tcgetpgrp(terminal).ok()?);
    if foreground != own && !IS_LENT.load(Ordering::SeqCst) {
        return None;
    }
    // Otherwise SIGTTOU would stop this process, which is in the background.
    let mask = block_signals();
    let mut line = None;
    if foreground == own || rustix::termios::tcsetpgrp(terminal, own).is_ok() {
        // What was typed before the question is not its answer.
        let _ = rustix::termios::tcflush(terminal, QueueSelector::IFlush);
        prompt();
        line = read_line(cancel);
    }
    if foreground != own {
        let _ = rustix::termios::tcsetpgrp(terminal, foreground);
        // It was stopped if it used the terminal meanwhile.
        let _ = rustix::process::kill_process_group(foreground, Signal::CONT);
    }
    restore_signals(&mask);
    line
}

/// Reads a line without the buffer of the standard library, which could keep input of the command.
fn read_line(cancel: &Cancel) -> Option<String> {
    let terminal = rustix::stdio::stdin();
    let (cancelled, wake) = pipe().ok()?;
    let wake = Arc::new(wake);
    let _listener = cancel.on_cancel(move || {
        let _ = rustix::io::write(&*wake, &[1]);
    });
    loop {
        let mut fds =
            [PollFd::new(&cancelled, PollFlags::IN), PollFd::from_borrowed_fd(terminal, PollFlags::IN)];
        match rustix::event::poll(&mut fds, None) {
            Err(Errno::INTR) => continue,
            Err(_) => return None,
            Ok(_) if !fds[0].revents().is_empty() => return None,
            Ok(_) => {}
        }
        let mut line = [0; MAX_LINE_BYTES];
        match rustix::io::read(terminal, &mut line) {
            Ok(0) => return None,
            Ok(length) => return Some(String::from_utf8_lossy(&line[..length]).into_owned()),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => return None,
        }
    }
}
