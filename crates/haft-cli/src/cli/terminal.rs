//! The person at the terminal: answers questions, presses Ctrl-C, waits.

use std::future::Future;
use std::io::{BufRead, IsTerminal, Write};
use std::sync::{Arc, mpsc};

use haft_runtime::{Answer, Asker, DenyAll, Question};
use haft_sandbox::{TerminationSignal, on_termination_signal};
use haft_tool::{Cancel, ErrorKind, ToolError};

use super::exit::Exit;
use super::screen::{self, NOTE, painted};
pub(super) use super::waiting::Waiting;

/// Whether a person can be asked.
pub(super) fn is_there() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks a person yes or no; anything but yes is no.
pub(super) fn confirm(question: &str) -> bool {
    let mut err = anstream::stderr().lock();
    let _ = write!(err, "{} [y/N] ", painted(NOTE, question)).and_then(|()| err.flush());
    drop(err);
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).is_ok() && matches!(line.trim(), "y" | "Y" | "yes")
}

/// The person at the terminal, if there is one.
pub(super) fn asker() -> Arc<dyn Asker> {
    if is_there() { Arc::new(Person) } else { Arc::new(DenyAll) }
}

struct Person;

impl Asker for Person {
    fn ask(&self, question: &Question, cancel: &Cancel) -> Answer {
        let words = format!("{}: {}. Run it?", question.tool, screen::harmless(&question.reason));
        match at_the_terminal(cancel, move || Ok(confirm(&words))) {
            Ok(true) => Answer::Allow { by: "the person at the terminal".to_owned() },
            _ => Answer::Deny { why: "The person at the terminal said no".to_owned() },
        }
    }
}

/// Reads the terminal on a thread of its own, because a blocked read cannot be cancelled.
pub(crate) fn at_the_terminal<T: Send + 'static>(
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

/// Runs `work` to its end. The first Ctrl-C (or TERM) cancels, the second leaves at once.
pub(super) fn wait<T>(cancel: &Cancel, work: impl Future<Output = T>) -> Result<T, ToolError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .map_err(|error| ToolError::io("start the runtime", &error))?;
    listen(cancel, false)?;
    let done = runtime.block_on(work);
    runtime.shutdown_background();
    Ok(done)
}

/// The first TERM from now on cancels, the second leaves at once. So does Ctrl-C, unless a program has the terminal: then
/// the first ones are the program's.
pub(super) fn listen(cancel: &Cancel, program: bool) -> Result<(), ToolError> {
    let cancel = cancel.clone();
    let mut asked = false;
    let listener = move |signal| {
        if asked {
            #[expect(clippy::exit, reason = "the person has asked twice; the ledger is safe against this")]
            std::process::exit(Exit::Interrupted.number().into());
        }
        if !(program && signal == TerminationSignal::Interrupt) {
            asked = true;
            cancel.cancel();
        }
    };
    on_termination_signal(listener).map_err(|error| ToolError::io("listen for signals", &error))
}
