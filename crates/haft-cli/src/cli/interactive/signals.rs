//! Ctrl-C, TERM and HUP in a session. While the user types, the line editor reads Ctrl-C as a key; signals are for everything else.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use haft_sandbox::{TerminationSignal, on_termination_signal, restore_terminal};
use haft_tool::{Cancel, ToolError, lock};

use super::super::exit::CliExit;
use super::super::screen;

/// Signals that arrive so soon after the first one are the same request.
const SAME_SIGNAL_TIME: Duration = Duration::from_millis(300);

/// What is said after the first Ctrl-C at the prompt.
pub(super) const AGAIN: &str = "Ctrl-C again leaves the session, as does Ctrl-D";

/// What the signals of a session act on.
#[derive(Clone, Default)]
pub(super) struct SessionSignals {
    state: Arc<Mutex<SignalState>>,
}

#[derive(Default)]
struct SignalState {
    /// The turn that runs.
    turn: Option<Cancel>,
    /// When the turn was asked to stop, or the session to end.
    asked: Option<Instant>,
    /// Whether the session ends after the turn.
    ends: bool,
}

impl SessionSignals {
    /// From now on signals come here. Commands that listen themselves take them away, so this is said again after them.
    pub(super) fn listen(&self) -> Result<(), ToolError> {
        let state = Arc::clone(&self.state);
        on_termination_signal(move |signal| lock(&state).receive(signal))
            .map_err(|error| ToolError::io("listen for signals", &error))
    }

    /// A turn begins, which the first Ctrl-C cancels.
    pub(super) fn begin_turn(&self) -> Result<Cancel, ToolError> {
        self.listen()?;
        let cancel = Cancel::new();
        let mut state = lock(&self.state);
        (state.turn, state.asked) = (Some(cancel.clone()), None);
        Ok(cancel)
    }

    /// The turn has ended, or something was typed: the next Ctrl-C is the first one.
    pub(super) fn end_turn(&self) {
        let mut state = lock(&self.state);
        (state.turn, state.asked) = (None, None);
    }

    /// Whether the session was asked to end.
    pub(super) fn must_end(&self) -> bool {
        lock(&self.state).ends
    }
}

impl SignalState {
    fn receive(&mut self, signal: TerminationSignal) {
        let is_terminated = signal == TerminationSignal::Terminate;
        if self.asked.is_some_and(|since| since.elapsed() < SAME_SIGNAL_TIME) {
            return;
        }
        let is_at_prompt = self.turn.is_none();
        if self.asked.is_some() || (is_at_prompt && is_terminated) {
            exit_at_once();
        }
        self.asked = Some(Instant::now());
        self.ends |= is_terminated;
        match &self.turn {
            Some(turn) => turn.cancel(),
            // Without a line editor, which reads Ctrl-C as a key.
            None => screen::note(&format!("\n{AGAIN}")),
        }
    }
}

#[expect(clippy::exit, reason = "the user wants to leave at once; the ledger is safe against it")]
fn exit_at_once() -> ! {
    restore_terminal();
    std::process::exit(CliExit::Interrupted.number().into());
}
