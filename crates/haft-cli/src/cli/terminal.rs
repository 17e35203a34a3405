//! The user at the terminal: questions, Ctrl-C, and waiting for a call.

use std::future::Future;
use std::io::{BufRead, IsTerminal, Write};
use std::os::fd::OwnedFd;
use std::sync::{Arc, mpsc};

use haft_runtime::{Asker, DenyAll, PermissionAnswer, Question};
use haft_sandbox::{TerminationSignal, on_termination_signal};
use haft_tool::{Cancel, ErrorKind, ToolError};

use super::exit::CliExit;
use super::screen::{self, NOTE, styled};
pub(super) use super::status_line::StatusLine;
use crate::host::question_text;

/// Whether the user can be asked: standard input and standard error are a terminal.
pub(super) fn is_interactive() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks the user yes or no; anything but yes is no.
pub(super) fn confirm(question: &str) -> bool {
    screen::prompt(&format!("{} [y/N] ", styled(NOTE, question)));
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).is_ok() && matches!(line.trim(), "y" | "Y" | "yes")
}

/// Asks for a change on the terminal; prints why there is no consent. Without a terminal the answer is no.
pub(super) fn confirm_change(question: &str) -> bool {
    if !is_interactive() {
        screen::error(&format!("{question} There is no terminal to ask on. To confirm: --yes"));
        return false;
    }
    let confirmed = confirm(question);
    if !confirmed {
        screen::note("nothing was changed");
    }
    confirmed
}

/// Asks the user at the terminal, or denies where there is no terminal.
pub(super) fn asker() -> Arc<dyn Asker> {
    if is_interactive() { Arc::new(TerminalAsker) } else { Arc::new(DenyAll) }
}

struct TerminalAsker;

impl Asker for TerminalAsker {
    fn ask(&self, question: &Question, cancel: &Cancel) -> PermissionAnswer {
        let prompt = format!("{} Run it?", question_text(question));
        match read_terminal(cancel, move || Ok(confirm(&prompt))) {
            Ok(true) => PermissionAnswer::Allow { by: "the user at the terminal".to_owned() },
            _ => PermissionAnswer::Deny { why: "The user at the terminal said no".to_owned() },
        }
    }
}

/// Reads the terminal on a thread of its own, because a blocked read cannot be cancelled.
pub(crate) fn read_terminal<T: Send + 'static>(
    cancel: &Cancel,
    read: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let (answered, answer) = mpsc::channel();
    let cancelled = answered.clone();
    let _listener = cancel.on_cancel(move || {
        let why = "cancelled while the user was being asked";
        let _ = cancelled.send(Err(ToolError::new(ErrorKind::Interrupted, why)));
    });
    std::thread::spawn(move || answered.send(read()));
    answer.recv().unwrap_or_else(|_| Err(ToolError::internal("the terminal could not be read")))
}

/// Runs `work` to its end. The first Ctrl-C (or TERM, HUP) cancels, the second exits at once.
pub(super) fn wait<T>(cancel: &Cancel, work: impl Future<Output = T>) -> Result<T, ToolError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .map_err(|error| ToolError::io("start the runtime", &error))?;
    cancel_on_signal(cancel, false)?;
    let done = runtime.block_on(work);
    runtime.shutdown_background();
    Ok(done)
}

/// From now on the first TERM or HUP cancels and the second exits at once. So does Ctrl-C, unless a program has the terminal: then
/// the first one is the program's.
pub(super) fn cancel_on_signal(cancel: &Cancel, program: bool) -> Result<(), ToolError> {
    let cancel = cancel.clone();
    let mut asked = false;
    let listener = move |signal| {
        if asked {
            #[expect(
                clippy::exit,
                reason = "the second signal means at once; the ledger is safe against it"
            )]
            std::process::exit(CliExit::Interrupted.number().into());
        }
        if !(program && signal == TerminationSignal::Interrupt) {
            asked = true;
            cancel.cancel();
        }
    };
    on_termination_signal(listener).map_err(|error| ToolError::io("listen for signals", &error))
}

/// A descriptor that becomes readable with the first Ctrl-C, TERM or HUP; the second one exits at once.
pub(super) fn readable_on_signal() -> Result<OwnedFd, ToolError> {
    let (read_end, write_end) =
        std::io::pipe().map_err(|error| ToolError::io("listen for signals", &error))?;
    let cancel = Cancel::new();
    cancel.then(move || {
        // The pipe is empty, so this fails only if the reader is gone.
        let _ = (&write_end).write_all(&[0]);
    });
    cancel_on_signal(&cancel, false)?;
    Ok(read_end.into())
}
