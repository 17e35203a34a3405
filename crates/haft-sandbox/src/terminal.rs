//! The terminal while a command has it: what a command does to it must not answer the questions of Haft.
//!
//! A command can change how lines are read and make the terminal send reports, which look like typed text. So the modes are
//! restored when it ends, and all its processes are stopped while a question is open.

use std::sync::{Arc, Mutex};

use haft_tool::{Cancel, lock};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal};
use rustix::termios::{LocalModes, OptionalActions, Termios};

use crate::process::{block_signals, pipe, process_group, restore_signals, stop_tree};
use crate::quiet_terminal;

/// Longer lines are cut by the terminal itself.
const MAX_LINE_BYTES: usize = 4096;

/// The command of this process that has the terminal.
static LENT: Mutex<Option<LentTerminal>> = Mutex::new(None);

struct LentTerminal {
    reaper: Pid,
    /// The modes before the command.
    modes: Termios,
}

/// The modes of the terminal, before a command gets it.
pub(crate) fn current_modes() -> Option<Termios> {
    rustix::termios::tcgetattr(rustix::stdio::stdin()).ok()
}

/// Notes that the command of `reaper` has got the terminal, which had these modes.
pub(crate) fn lend(reaper: Pid, modes: Termios) {
    *lock(&LENT) = Some(LentTerminal { reaper, modes });
}

/// Takes the terminal back from a command that has ended, with the modes from before it. What it made the terminal send is
/// discarded. If the user's shell `has_taken` it meanwhile, it stays there.
pub(crate) fn take_back(has_taken: bool) {
    let Some(lent) = lock(&LENT).take().filter(|_| !has_taken) else { return };
    // SIGTTOU would stop Haft if it is in the background.
    let mask = block_signals();
    let terminal = rustix::stdio::stdin();
    if let Some(own) = process_group(None) {
        let _ = rustix::termios::tcsetpgrp(terminal, own);
    }
    let _ = rustix::termios::tcsetattr(terminal, OptionalActions::Flush, &lent.modes);
    restore_signals(&mask);
}

/// Whether a program reads single keys from the terminal.
pub fn terminal_is_raw() -> bool {
    current_modes().is_some_and(|modes| !modes.local_modes.contains(LocalModes::ICANON))
}

/// What an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerForm<'a> {
    /// A line, which the user ends with Enter.
    Line,
    /// One of these keys, in lower case. Enter, Escape and Ctrl-D are an empty answer; other keys are ignored.
    Key(&'a str),
}

/// Stops the command that has the terminal, calls `prompt`, reads an answer and lets the command go on. `None` if the command
/// draws the screen or reads a password or cannot be stopped, if this process is in the background, at EOF and when `cancel`
/// fires.
pub fn ask_at_terminal(form: AnswerForm<'_>, prompt: impl FnOnce(), cancel: &Cancel) -> Option<String> {
    let terminal = rustix::stdio::stdin();
    let now = current_modes()?;
    let before_quiet = quiet_terminal::modes_before();
    if before_quiet.is_none() && !now.local_modes.contains(LocalModes::ICANON | LocalModes::ECHO) {
        return None;
    }
    let (own, foreground) = (process_group(None)?, rustix::termios::tcgetpgrp(terminal).ok()?);
    let lent = lock(&LENT);
    let Some(LentTerminal { reaper, modes }) = lent.as_ref() else {
        if foreground != own {
            return None;
        }
        let answer = ask(form, before_quiet.as_ref().unwrap_or(&now), prompt, cancel);
        let _ = rustix::termios::tcsetattr(terminal, OptionalActions::Now, &now);
        return answer;
    };
    let stopped = stop_tree(*reaper);
    // Otherwise SIGTTOU would stop this process, which is in the background.
    let mask = block_signals();
    let mut line = None;
    if stopped.is_complete() && rustix::termios::tcsetpgrp(terminal, own).is_ok() {
        line = ask(form, modes, prompt, cancel);
        let _ = rustix::termios::tcsetattr(terminal, OptionalActions::Now, &now);
        let _ = rustix::termios::tcsetpgrp(terminal, foreground);
    }
    restore_signals(&mask);
    stopped.go_on();
    line
}

/// Asks with these modes. What was typed or reported before is not the answer.
fn ask(form: AnswerForm<'_>, modes: &Termios, prompt: impl FnOnce(), cancel: &Cancel) -> Option<String> {
    let mut modes = modes.clone();
    if matches!(form, AnswerForm::Key(_)) {
        quiet_terminal::read_single_keys(&mut modes);
    }
    rustix::termios::tcsetattr(rustix::stdio::stdin(), OptionalActions::Flush, &modes).ok()?;
    prompt();
    match form {
        AnswerForm::Line => {
            let line = read_terminal(cancel)?;
            // A line that does not end is no answer.
            line.ends_with('\n').then_some(line)
        }
        AnswerForm::Key(keys) => loop {
            let typed = read_terminal(cancel)?;
            if typed.is_empty() {
                return None;
            }
            if let Some(answer) = answer_key(&typed, keys) {
                return Some(answer);
            }
        },
    }
}

/// The answer that one key gives. Several characters at once are a paste or a key such as an arrow, and no answer.
fn answer_key(typed: &str, keys: &str) -> Option<String> {
    let mut characters = typed.trim_end_matches(['\r', '\n']).chars();
    match (characters.next(), characters.next()) {
        (None | Some('\x04' | '\x1b'), None) => Some(String::new()),
        (Some(key), None) => {
            Some(key.to_ascii_lowercase()).filter(|key| keys.contains(*key)).map(String::from)
        }
        _ => None,
    }
}

/// What the terminal gives at once, without the buffer of the standard library, which could keep input of the command.
fn read_terminal(cancel: &Cancel) -> Option<String> {
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
        let mut bytes = [0; MAX_LINE_BYTES];
        match rustix::io::read(terminal, &mut bytes) {
            Ok(length) => return Some(String::from_utf8_lossy(&bytes[..length]).into_owned()),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => return None,
        }
    }
}

/// The processes of a command, while they are stopped.
pub(crate) struct StoppedTree {
    pub(crate) reaper: Pid,
    /// Those that were not stopped before.
    pub(crate) processes: Vec<Pid>,
    pub(crate) is_complete: bool,
}

impl StoppedTree {
    fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// The reaper goes on last, so that it does not see that the command was stopped.
    fn go_on(self) {
        for process in self.processes.into_iter().chain([self.reaper]) {
            let _ = rustix::process::kill_process(process, Signal::CONT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_key_at_a_time_is_an_answer() {
        for (typed, answer) in
            [("y", "y"), ("A", "a"), ("y\r", "y"), ("\r", ""), ("\n", ""), ("\x04", ""), ("\x1b", "")]
        {
            assert_eq!(answer_key(typed, "yna").as_deref(), Some(answer), "{typed:?}");
        }
        for typed in ["q", "yes please\n", "wait", "yy", "\x1b[A", "\x1b[200~y\x1b[201~"] {
            assert_eq!(answer_key(typed, "yna"), None, "{typed:?}");
        }
    }
}
