//! Running commands, to their end or in the background.

use std::path::{Path, PathBuf};
use std::time::Duration;

use haft_tool::{
    Capture, ErrorKind, Exit, FileKind, Finished, RunRequest, TaskClass, TaskInfo, Text, ToolError, World,
    cut_string,
};

/// How much of a stream is kept in memory and in the ledger; the caller sees less.
const MAX_STREAM_BYTES: usize = 8 << 20;

/// How many of the things that the scope denied are listed, one line each.
pub(crate) const MAX_LISTED_DENIALS: usize = 10;

/// The longest argument that Linux passes to a program.
const MAX_COMMAND_BYTES: usize = 128 * 1024 - 1;

/// Refuses what no shell can be given.
pub(crate) fn check_command(command: &str) -> Result<(), ToolError> {
    if command.trim().is_empty() {
        return Err(ToolError::invalid_arguments("command: it is empty"));
    }
    if command.contains('\0') {
        return Err(ToolError::invalid_arguments("command: it contains a NUL byte"));
    }
    if command.len() > MAX_COMMAND_BYTES {
        return Err(ToolError::invalid_arguments(format!(
            "command: it has {} bytes, and a command may have {MAX_COMMAND_BYTES}; write a script file and run that",
            command.len()
        )));
    }
    Ok(())
}

/// The arguments that make `shell` run `command`.
pub(crate) fn shell_argv(shell: &str, command: impl Into<String>) -> Vec<String> {
    vec![shell.to_owned(), "-c".to_owned(), command.into()]
}

/// Runs a program that merges its streams itself and reports to its caller on standard error, in `cwd` or else in the
/// workspace.
pub(crate) fn run_reporting(
    world: &dyn World,
    argv: Vec<String>,
    cwd: Option<PathBuf>,
    timeout: Duration,
) -> Result<Finished, ToolError> {
    world.processes().run(&RunRequest { quiet_stderr: true, ..request(argv, cwd, timeout, false) })
}

/// Runs a program with its streams captured separately, in `cwd` or else in the workspace.
pub(crate) fn run_separate(
    world: &dyn World,
    argv: Vec<String>,
    cwd: Option<PathBuf>,
    timeout: Duration,
) -> Result<Finished, ToolError> {
    world.processes().run(&request(argv, cwd, timeout, false))
}

/// Starts a program as a background task, in `cwd` or else in the workspace.
pub(crate) fn start_task(
    world: &dyn World,
    argv: Vec<String>,
    cwd: Option<PathBuf>,
    description: &str,
    timeout: Option<Duration>,
) -> Result<TaskInfo, ToolError> {
    let request = request(argv, cwd, timeout.unwrap_or(Duration::MAX), true);
    world.tasks().start(&request, description, TaskClass::BACKGROUND)
}

fn request(argv: Vec<String>, cwd: Option<PathBuf>, timeout: Duration, merge: bool) -> RunRequest {
    RunRequest {
        argv: argv.into_iter().map(Into::into).collect(),
        cwd,
        timeout,
        input: Vec::new(),
        merge,
        quiet_stderr: false,
        inherit: false,
        keep_bytes: MAX_STREAM_BYTES,
    }
}

/// What a program wrote to its two streams.
pub(crate) struct StreamTexts {
    pub(crate) stdout: String,
    /// Standard error, followed by what Haft reports about the run.
    pub(crate) stderr: String,
}

impl StreamTexts {
    /// Takes the streams out of `done`.
    pub(crate) fn take(done: &mut Finished) -> Self {
        let mut stderr = stream_text(std::mem::take(&mut done.stderr));
        for fact in done.facts(MAX_LISTED_DENIALS) {
            append_line(&mut stderr, &format!("haft: {fact}\n"));
        }
        Self { stdout: stream_text(std::mem::take(&mut done.stdout)), stderr }
    }
}

/// The text of a stream, with a note in place of what was not kept.
fn stream_text(capture: Capture) -> String {
    let total = capture.total;
    let Text { mut head, missing_bytes, tail } = capture.into_text();
    if missing_bytes > 0 {
        head.push_str(&format!("\n[... {missing_bytes} bytes were not kept ...]\n{tail}"));
        return cut_string(head, total);
    }
    head
}

/// Appends `line` on a line of its own.
pub(crate) fn append_line(text: &mut String, line: &str) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(line);
}

/// The duration of `seconds`; `Duration::MAX` if it is too long to represent.
pub(crate) fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX)
}

/// The whole milliseconds of a duration.
pub(crate) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The exit code, unless a signal or Haft ended the program.
pub(crate) fn exit_code(exit: Exit) -> Option<i32> {
    if let Exit::Code(code) = exit { Some(code) } else { None }
}

/// How a command ended; `None` after exit code 0.
pub(crate) fn exit_message(exit: Exit) -> Option<String> {
    match exit {
        Exit::Code(0) => None,
        Exit::Code(code) => Some(format!("Exit code {code}")),
        Exit::Signal(signal) => Some(format!("Ended by signal {signal}")),
        Exit::TimedOut => Some("Timed out; the command and all it had started were ended".to_owned()),
        Exit::Cancelled => Some("Stopped, with all that it had started".to_owned()),
    }
}

/// The output of a command, how it ended if not well, and what Haft reports about the run.
pub(crate) fn run_text(done: &mut Finished, ending: Option<&str>, notes: &[String]) -> Text {
    let facts = done.facts(MAX_LISTED_DENIALS);
    let mut text = std::mem::take(&mut done.stdout).into_text();
    let end = if text.missing_bytes > 0 { &mut text.tail } else { &mut text.head };
    for line in ending.into_iter().chain(notes.iter().chain(&facts).map(String::as_str)) {
        append_line(end, line);
    }
    if text.total_bytes() == 0 {
        text.head.push_str("(no output)");
    }
    text
}

/// Checks that the directory in the parameter `field` exists.
pub(crate) fn check_directory(world: &dyn World, field: &str, path: &Path) -> Result<(), ToolError> {
    let message = match world.files().kind(path) {
        Ok(FileKind::Dir) => return Ok(()),
        Ok(_) => format!("{} is not a directory", path.display()),
        Err(error) if error.kind == ErrorKind::FileNotFound => error.message,
        Err(error) => return Err(error),
    };
    Err(ToolError::invalid_arguments(format!("{field}: {message}")))
}
