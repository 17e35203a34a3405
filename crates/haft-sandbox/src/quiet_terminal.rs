//! The terminal while Haft itself writes to it: typed keys are not shown, and are read later. Ctrl-C and Ctrl-Z work as ever.

use std::sync::Mutex;

use haft_tool::lock;
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios};

use crate::signals;
use crate::terminal::current_modes;

/// Ends what the line editor may have switched on: bracketed paste.
const RESET: &[u8] = b"\x1b[?2004l";

/// The modes from before the terminal was made quiet.
static MODES_BEFORE: Mutex<Option<Termios>> = Mutex::new(None);
/// The modes at the beginning of the session.
static MODES_AT_START: Mutex<Option<Termios>> = Mutex::new(None);

/// A quiet terminal, until this is dropped. There is only one at a time.
#[derive(Debug)]
pub struct QuietTerminal {
    _private: (),
}

impl QuietTerminal {
    /// Makes the terminal quiet; `None` if standard input is none.
    pub fn new() -> Option<Self> {
        let modes = current_modes()?;
        let mut quiet = modes.clone();
        read_single_keys(&mut quiet);
        *lock(&MODES_BEFORE) = Some(modes);
        signals::handle_stop(true);
        let _ = rustix::termios::tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &quiet);
        Some(Self { _private: () })
    }
}

impl Drop for QuietTerminal {
    fn drop(&mut self) {
        signals::handle_stop(false);
        if let Some(modes) = lock(&MODES_BEFORE).take() {
            let _ = rustix::termios::tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &modes);
        }
    }
}

/// Whether the terminal is quiet.
pub fn terminal_is_quiet() -> bool {
    lock(&MODES_BEFORE).is_some()
}

/// The modes from before the terminal was made quiet, if it is.
pub(crate) fn modes_before() -> Option<Termios> {
    lock(&MODES_BEFORE).clone()
}

/// Keys are read at once and not shown; those that send signals still do.
pub(crate) fn read_single_keys(modes: &mut Termios) {
    modes.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
    modes.special_codes[SpecialCodeIndex::VMIN] = 1;
    modes.special_codes[SpecialCodeIndex::VTIME] = 0;
}

/// Notes the modes that [`restore_terminal`] goes back to.
pub fn note_terminal_modes() {
    *lock(&MODES_AT_START) = current_modes();
}

/// Restores the modes that were noted, for a process that ends at once, or that panics.
pub fn restore_terminal() {
    let modes = lock(&MODES_AT_START).clone();
    let Some(modes) = modes else { return };
    let now = current_modes();
    if now.is_some_and(|now| now.local_modes != modes.local_modes) {
        let _ = rustix::io::write(rustix::stdio::stderr(), RESET);
        let _ = rustix::termios::tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &modes);
    }
}

/// Stops this process as Ctrl-Z does, with the modes from before; returns when it goes on, with the modes of now.
pub(crate) fn stop_process() {
    let (now, before) = (current_modes(), modes_before());
    let set = |modes: &Option<Termios>| {
        if let Some(modes) = modes {
            let _ = rustix::termios::tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, modes);
        }
    };
    set(&before);
    signals::raise_stop();
    set(&now);
}
