//! Running a shell command, to its end or in the background.

use std::path::PathBuf;
use std::time::Duration;

use haft_tool::{
    Capture, Exit, Finished, RunRequest, TaskClass, TaskInfo, Text, ToolError, World, cut_string,
};

/// How much of a stream is kept in memory and in the ledger; the caller sees less.
const KEEP_BYTES: usize = 8 << 20;

/// The most refusals that a model is told of, one line each.
pub(crate) const MOST_REFUSALS: usize = 10;

/// The longest argument that Linux passes to a program.
const MOST_COMMAND_BYTES: usize = 128 * 1024 - 1;

/// Refuses what no shell could be given.
pub(crate) fn check(command: &str) -> Result<(), ToolError> {
    if command.trim().is_empty() {
        return Err(ToolError::invalid_arguments("command: it is empty"));
    }
    if command.contains('\0') {
        return Err(ToolError::invalid_arguments("command: it contains a NUL byte"));
    }
    if command.len() > MOST_COMMAND_BYTES {
        return Err(ToolError::invalid_arguments(format!(
            "command: it has {} bytes, and a command may have {MOST_COMMAND_BYTES}; write a script file and run that",
            command.len()
        )));
    }
    Ok(())
}

/// Runs `command` by `shell -c` in the workspace.
pub(crate) fn run(
    world: &dyn World,
    shell: &str,
    command: &str,
    timeout: Duration,
    merge: bool,
) -> Result<Finished, ToolError> {
    world.processes().run(&request(shell, command, timeout, merge))
}

/// Runs a program of these words, its two streams apart, in `cwd` or else in the workspace.
pub(crate) fn run_apart(
    world: &dyn World,
    argv: Vec<String>,
    cwd: Option<PathBuf>,
    timeout: Duration,
) -> Result<Finished, ToolError> {
    let request = RunRequest { argv, cwd, timeout, merge: false, inherit: false, keep_bytes: KEEP_BYTES };
    world.processes().run(&request)
}

/// What a command wrote, with a word about what was not kept of it.
pub(crate) fn written(capture: Capture) -> String {
    let total = capture.total;
    let Text { mut head, missing_bytes, tail } = capture.into_text();
    if missing_bytes > 0 {
        head.push_str(&format!("\n[... {missing_bytes} bytes were not kept ...]\n{tail}"));
        return cut_string(head, total);
    }
    head
}

/// What a command wrote to standard error, and then what else there is to say of it.
pub(crate) fn errors(done: &mut Finished) -> String {
    let mut text = written(std::mem::take(&mut done.stderr));
    for fact in done.facts(MOST_REFUSALS) {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&format!("haft: {fact}\n"));
    }
    text
}

/// Seconds as callers write them, fractions too.
pub(crate) fn seconds(seconds: f64) -> Duration {
    // Whoever asks for longer than there is time means forever.
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX)
}

/// Starts `command` by `shell -c` in the workspace and leaves it running.
pub(crate) fn start(
    world: &dyn World,
    shell: &str,
    command: &str,
    description: Option<&str>,
    timeout: Option<Duration>,
) -> Result<TaskInfo, ToolError> {
    let request = request(shell, command, timeout.unwrap_or(Duration::MAX), true);
    world.tasks().start(&request, description.unwrap_or(command), TaskClass::BACKGROUND)
}

/// How a command ended, in words; nothing if all is well.
pub(crate) fn ending(exit: Exit) -> Option<String> {
    match exit {
        Exit::Code(0) => None,
        Exit::Code(code) => Some(format!("Exit code {code}")),
        Exit::Signal(signal) => Some(format!("Ended by signal {signal}")),
        Exit::TimedOut => Some("Timed out; the command and all it had started were ended".to_owned()),
        Exit::Cancelled => Some("Stopped, with all that it had started".to_owned()),
    }
}

fn request(shell: &str, command: &str, timeout: Duration, merge: bool) -> RunRequest {
    RunRequest {
        argv: vec![shell.to_owned(), "-c".to_owned(), command.to_owned()],
        cwd: None,
        timeout,
        merge,
        inherit: false,
        keep_bytes: KEEP_BYTES,
    }
}
