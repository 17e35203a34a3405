//! The user's own pager, which gets the terminal while it runs.

use std::io::{self, Write};
use std::process::{Command, Stdio};

/// The options of `less` if the user has set none: quit if the text fits, show colours, keep the screen.
const LESS_OPTIONS: &str = "FRX";

/// Passes `text` to the shell command `pager` and waits until the user has closed it. It is the user's own program, so it
/// runs outside the sandbox. An error means that nothing was shown.
pub fn show_in_pager(pager: &str, text: &str) -> io::Result<()> {
    let mut command = Command::new("sh");
    command.arg("-c").arg(pager).stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        command.env("LESS", LESS_OPTIONS);
    }
    let mut child = command.spawn()?;
    ignore_interrupts();
    if let Some(mut input) = child.stdin.take() {
        // The user may close the pager before it has read everything.
        let _ = input.write_all(text.as_bytes());
    }
    let status = child.wait()?;
    // What the shell reports for a program that does not exist or cannot be run.
    match status.code() {
        Some(126 | 127) => Err(io::Error::new(io::ErrorKind::NotFound, pager.to_owned())),
        _ => Ok(()),
    }
}

/// Ctrl-C is the pager's: it would otherwise end Haft and leave the terminal to two programs.
#[expect(unsafe_code, reason = "signal has no safe interface")]
fn ignore_interrupts() {
    // SAFETY: ignoring a signal installs no handler; the child was started before and keeps its own disposition.
    unsafe {
        libc::signal(libc::SIGINT, libc::SIG_IGN);
    }
}
