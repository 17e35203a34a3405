//! The World: the only interface between a tool and the machine.
//!
//! Its parts are traits, so that the same tool runs on this machine, on a remote one or in a test.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{CallTrace, Cancel, Files, Host, Http, NoHost, NoHttp, Node, Progress, Tasks, Text, ToolError};

/// How many files a note names at most.
const MAX_NAMED_FILES: usize = 5;

/// Whether a path is absolute and lexically normal.
fn is_normal(path: &str) -> bool {
    let below = path.strip_prefix('/').filter(|below| !below.is_empty());
    below.is_some_and(|below| below.split('/').all(|part| !matches!(part, "" | "." | "..")))
}

/// Removes `.` and `..` lexically.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(normal.pop()),
            Component::CurDir => {}
            part => normal.push(part),
        }
    }
    normal
}

/// All that `plan` learns about the machine: the workspace.
#[derive(Debug, Clone)]
pub struct Planning {
    /// The workspace, links resolved.
    pub workspace: PathBuf,
    /// The workspace as the user wrote it, if that differs.
    pub spelled: Option<PathBuf>,
    /// Where commands start: the workspace, or the directory in it where the user typed the call.
    pub cwd: PathBuf,
    /// The user's home directory, to suggest a path in place of `~/x`.
    pub home: Option<PathBuf>,
    /// Whether relative paths are accepted where a dialect requires absolute ones.
    pub accepts_relative: bool,
}

impl Planning {
    /// Calls in this workspace, whose links are resolved.
    pub fn new(workspace: PathBuf) -> Self {
        Self { cwd: workspace.clone(), workspace, spelled: None, home: None, accepts_relative: false }
    }

    /// `path` as an absolute path without `.` and `..`, resolved lexically; relative paths start in the workspace.
    pub fn absolute(&self, path: &str) -> Result<PathBuf, ToolError> {
        if path.is_empty() {
            return Err(ToolError::invalid_arguments("the path is empty"));
        }
        if path.contains('\0') {
            return Err(ToolError::invalid_arguments("the path contains a NUL byte"));
        }
        if let Some(rest) = path.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/')) {
            return Err(self.tilde_error(path, rest.trim_start_matches('/')));
        }
        let normal = if is_normal(path) { PathBuf::from(path) } else { normal(&self.workspace.join(path)) };
        if let Some(rest) = self.spelled.as_ref().and_then(|spelled| normal.strip_prefix(spelled).ok()) {
            return Ok(self.workspace.join(rest));
        }
        Ok(normal)
    }

    /// Only shells expand `~`: a file tool would create a directory of that name.
    fn tilde_error(&self, path: &str, rest: &str) -> ToolError {
        let instead = match &self.home {
            Some(home) => format!("did you mean {:?}?", home.join(rest).display().to_string()),
            None => "write the absolute path".to_owned(),
        };
        ToolError::invalid_arguments(format!("the path {path:?}: ~ is not expanded here; {instead}"))
    }

    /// Like [`Planning::absolute`], but refuses relative paths unless they are accepted here.
    pub fn only_absolute(&self, field: &str, path: &str) -> Result<PathBuf, ToolError> {
        let normal = self.absolute(path)?;
        if self.accepts_relative || Path::new(path).is_absolute() {
            return Ok(normal);
        }
        Err(ToolError::invalid_arguments(format!(
            "{field}: expected an absolute path, got {path:?}; did you mean {:?}?",
            normal.display().to_string()
        )))
    }
}

/// The only interface between a call and the machine. Built from a scope, which it enforces.
pub trait World: Send + Sync {
    /// Resolves paths the same way as in `plan`.
    fn planning(&self) -> &Planning;
    /// File access.
    fn files(&self) -> &dyn Files;
    /// Commands that run to their end.
    fn processes(&self) -> &dyn Processes;
    /// Commands that continue after their call.
    fn tasks(&self) -> &dyn Tasks;
    /// HTTP.
    fn http(&self) -> &dyn Http {
        &NoHttp
    }
    /// The application that runs the tools.
    fn host(&self) -> &dyn Host {
        &NoHost
    }
    /// The newest value that a call of the session stored under a name.
    fn note(&self, _name: &str) -> Result<Option<Value>, ToolError> {
        Ok(None)
    }
    /// Stores a value for later calls of the session, for example its todos. It holds once this call has completed.
    fn set_note(&self, _name: &str, _value: Value) {}
    /// Ends plan mode, because the user approved a plan, and allows these tools for the rest of the session.
    fn approve_plan(&self, _tools: &[String]) {}
    /// Where the call belongs in a trace, for what it starts.
    fn trace(&self) -> Option<CallTrace> {
        None
    }
    /// The time, in milliseconds since 1970.
    fn now_ms(&self) -> u64 {
        crate::now_ms()
    }
    /// Reports progress.
    fn progress(&self, progress: Progress);
    /// The cancellation of the call.
    fn cancelled(&self) -> &Cancel;
}

/// A command.
#[derive(Debug, Clone)]
pub struct RunRequest {
    /// The program and its arguments.
    pub argv: Vec<OsString>,
    /// Its working directory; the workspace by default.
    pub cwd: Option<PathBuf>,
    /// The time limit.
    pub timeout: Duration,
    /// What it reads from standard input; nothing by default. Not for a command that inherits Haft's own streams.
    pub input: Vec<u8>,
    /// Whether both streams go into `stdout`, in the order they were written.
    pub merge: bool,
    /// Whether standard error is captured but not passed on as progress: the command reports to its caller there.
    pub quiet_stderr: bool,
    /// Whether the command inherits Haft's own streams, terminal included, instead of being captured.
    pub inherit: bool,
    /// How many bytes of each stream are kept, half from the beginning and half from the end.
    pub keep_bytes: usize,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It exited with this code.
    Code(i32),
    /// A signal that Haft did not send.
    Signal(i32),
    /// Haft ended it at the time limit.
    TimedOut,
    /// Haft ended it because the call was cancelled.
    Cancelled,
}

impl Exit {
    /// The exit code that a shell would report: 128 and the number of a signal, 124 at the time limit, 130 if cancelled.
    pub const fn code(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
            Self::TimedOut => 124,
            Self::Cancelled => 130,
        }
    }
}

/// The kept part of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Capture {
    /// The first bytes.
    pub head: Vec<u8>,
    /// The last bytes, if there were more than fit.
    pub tail: Vec<u8>,
    /// The number of bytes in all.
    pub total: u64,
}

impl Capture {
    /// The stream as text; invalid UTF-8 becomes replacement characters.
    pub fn into_text(self) -> Text {
        let missing_bytes = self.total - (self.head.len() + self.tail.len()) as u64;
        if missing_bytes == 0 {
            let mut all = self.head;
            all.extend_from_slice(&self.tail);
            return lossy(all).into();
        }
        Text { head: lossy(self.head), missing_bytes, tail: lossy(self.tail) }
    }
}

fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// A command that has ended with all processes it started.
#[derive(Debug, Clone)]
pub struct Finished {
    /// How it ended.
    pub exit: Exit,
    /// Its standard output, or both streams if they were merged.
    pub stdout: Capture,
    /// Its standard error.
    pub stderr: Capture,
    /// How long it ran.
    pub elapsed: Duration,
    /// The number of processes it left running, which were ended with it.
    pub left_behind: u32,
    /// What the scope denied.
    pub denials: Vec<Denial>,
    /// Why Haft ended it early: it exceeded a limit of memory, processes or disk.
    pub exhausted: Option<String>,
    /// Files that it changed and that run when the project is built or run, as paths in the workspace.
    pub runs_on_build: Vec<String>,
    /// What it would have changed, if it was only a preview.
    pub previewed: Option<Vec<PreviewedChange>>,
}

/// A change that a command would have made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviewedChange {
    /// What would have changed.
    pub path: PathBuf,
    /// Its state.
    pub before: Node,
    /// The state that it would have.
    pub after: Node,
    /// Where its new content is kept until the session ends.
    pub content: PathBuf,
}

impl Finished {
    /// Notes for the caller, one line each: at most `max_denials` denials, why it was ended, what it left running.
    pub fn facts(&self, max_denials: usize) -> Vec<String> {
        let mut lines: Vec<String> = self.denials.iter().take(max_denials).map(Denial::line).collect();
        if self.denials.len() > max_denials {
            lines.push(format!("Refused: {} more", self.denials.len() - max_denials));
        }
        lines.extend(runs_on_build_line(&self.runs_on_build));
        lines.extend(self.exhausted.iter().map(|why| format!("Ended, with all that it had started: {why}")));
        if self.left_behind > 0 {
            let processes = if self.left_behind == 1 { "process" } else { "processes" };
            lines.push(format!("{} background {processes} ended with the command", self.left_behind));
        }
        lines
    }
}

/// The line that tells people about changed files that run when the project is built or run.
pub fn runs_on_build_line(paths: &[String]) -> Option<String> {
    let named = &paths[..paths.len().min(MAX_NAMED_FILES)];
    let more = match paths.len().saturating_sub(MAX_NAMED_FILES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!named.is_empty()).then(|| format!("Changes what runs on build: {}{more}", named.join(", ")))
}

/// An operation of a command that the scope denied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denial {
    /// The operation: `write`, `read`, `connect`, `signal`, ….
    pub what: String,
    /// The path, the address or the process.
    #[serde(rename = "where")]
    pub place: String,
    /// The part of the scope that denied it.
    pub rule: String,
    /// How the user can allow it, if that is possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow: Option<String>,
    /// The number of attempts.
    pub times: u32,
}

impl Denial {
    /// One line for a model or a person.
    pub fn line(&self) -> String {
        let Self { what, place, rule, allow, times } = self;
        let often = if *times > 1 { format!(" ({times} times)") } else { String::new() };
        let allow = allow.as_ref().map(|allow| format!("; to allow it: {allow}")).unwrap_or_default();
        format!("Refused: {what} {place}{often}: {rule}{allow}")
    }
}

/// The processes inside the scope.
pub trait Processes: Send + Sync {
    /// Runs a command to its end and ends all processes it started.
    fn run(&self, request: &RunRequest) -> Result<Finished, ToolError>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn paths_are_resolved_lexically() {
        let planning = Planning {
            spelled: Some("/link".into()),
            home: Some("/home/me".into()),
            ..Planning::new("/w".into())
        };
        assert_eq!(planning.absolute("a/./b/../c").unwrap(), Path::new("/w/a/c"));
        assert_eq!(planning.absolute("/link/a").unwrap(), Path::new("/w/a"));
        assert_eq!(planning.absolute("/x/../../y").unwrap(), Path::new("/y"));
        assert_eq!(planning.absolute("a\0b").unwrap_err().kind, ErrorKind::InvalidArguments);
        let error = planning.absolute("~/notes/a.txt").unwrap_err();
        assert_eq!(
            error.message,
            "the path \"~/notes/a.txt\": ~ is not expanded here; did you mean \"/home/me/notes/a.txt\"?"
        );
        assert_eq!(planning.absolute("~").unwrap_err().kind, ErrorKind::InvalidArguments);
        assert_eq!(planning.absolute("~$report.docx").unwrap(), Path::new("/w/~$report.docx"));
        let error = planning.only_absolute("file_path", "a.txt").unwrap_err();
        assert_eq!(
            error.message,
            "file_path: expected an absolute path, got \"a.txt\"; did you mean \"/w/a.txt\"?"
        );
    }

    #[test]
    fn complete_capture_is_one_text() {
        let capture = Capture { head: b"ab\xff".to_vec(), tail: b"cd".to_vec(), total: 5 };
        assert_eq!(capture.into_text().head, "ab\u{fffd}cd");
    }
}
