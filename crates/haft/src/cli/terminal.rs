//! The person at the terminal: answers questions, presses Ctrl-C, waits.

use std::future::Future;
use std::io::{BufRead, IsTerminal, Write};
use std::pin::Pin;
use std::sync::Arc;

use haft_runtime::{Answer, Asker, Nobody, Question};
use haft_tool::{Cancel, ToolError};

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
    if is_there() { Arc::new(Person) } else { Arc::new(Nobody) }
}

struct Person;

impl Asker for Person {
    fn ask<'a>(&'a self, question: &'a Question) -> Pin<Box<dyn Future<Output = Answer> + Send + 'a>> {
        let words = format!("{}: {}. Run it?", question.tool, screen::harmless(&question.reason));
        Box::pin(async move {
            match tokio::task::spawn_blocking(move || confirm(&words)).await {
                Ok(true) => Answer::Allow { by: "the person at the terminal".to_owned() },
                _ => Answer::Deny { why: "the person at the terminal said no".to_owned() },
            }
        })
    }
}

/// Like [`wait`] while a program has the terminal: Ctrl-C is the program's, and only TERM, or a second one, ours.
pub(super) fn wait_with_child<T>(cancel: &Cancel, work: impl Future<Output = T>) -> Result<T, ToolError> {
    waiting(cancel, is_there(), work)
}

/// Runs `work` to its end. The first Ctrl-C (or TERM) cancels, the second leaves at once.
pub(super) fn wait<T>(cancel: &Cancel, work: impl Future<Output = T>) -> Result<T, ToolError> {
    waiting(cancel, false, work)
}

fn waiting<T>(cancel: &Cancel, patient: bool, work: impl Future<Output = T>) -> Result<T, ToolError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .map_err(|error| ToolError::io("start the runtime", &error))?;
    let listening = cancel.clone();
    let done = runtime.block_on(async move {
        tokio::spawn(async move {
            while patient && stop_signal().await == Stop::Interrupt {}
            if !patient {
                stop_signal().await;
            }
            listening.cancel();
            stop_signal().await;
            #[expect(clippy::exit, reason = "the person has asked twice; the ledger is safe against this")]
            std::process::exit(Exit::Interrupted.number().into());
        });
        work.await
    });
    runtime.shutdown_background();
    Ok(done)
}

/// Who wants an end.
#[derive(PartialEq, Eq)]
enum Stop {
    Interrupt,
    Terminate,
}

async fn stop_signal() -> Stop {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return std::future::pending().await;
    };
    std::future::poll_fn(|cx| match interrupt.poll_recv(cx) {
        std::task::Poll::Ready(_) => std::task::Poll::Ready(Stop::Interrupt),
        std::task::Poll::Pending => terminate.poll_recv(cx).map(|_| Stop::Terminate),
    })
    .await
}
