//! Runs that the page starts and continues. Each is a separate process, `haft run`, so that it outlives the server.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use haft_files::read_named;
use haft_ledger::Ledger;
use haft_sandbox::{DetachedProcess, spawn_detached};
use haft_server::DecodedAttachment;
use haft_tool::{Cancel, ErrorKind, ToolError, Value, json, lock};
use rustix::process::{Pid, Signal, kill_process};

use super::super::exit::CliExit;
use super::super::run::new_uuid;
use super::super::sandbox::DETACHED;

/// How long a run may take to appear in the ledger.
const START_TIMEOUT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// How much of a failed run's output is shown.
const MAX_ERROR_BYTES: usize = 2_000;
/// How much of the output is read; a run that failed at its start wrote little.
const MAX_OUTPUT_BYTES: u64 = 16 << 20;

/// The message of a run, and how the run is started.
pub(super) struct DetachedRun<'a> {
    pub(super) workspace: &'a Path,
    pub(super) prompt: &'a str,
    pub(super) provider: Option<&'a str>,
    pub(super) model: Option<&'a str>,
    pub(super) permission_mode: Option<&'a str>,
    pub(super) attachments: &'a [DecodedAttachment],
}

/// Processes of runs that may still be running. They are kept only so that no zombies remain.
#[derive(Default)]
pub(super) struct RunProcesses(Mutex<Vec<DetachedProcess>>);

impl RunProcesses {
    /// Starts a run and returns its session.
    pub(super) fn start(&self, ledger: &Ledger, request: &DetachedRun<'_>) -> Result<String, ToolError> {
        let name = new_uuid();
        let process = spawn(ledger, request, ["--session-id".to_owned(), name.clone()])?;
        self.wait_for(process, |_| {
            let Ok(session) = ledger.session(&name) else { return Ok(None) };
            // A session without events means that its model could not be chosen.
            Ok(ledger.last_event_at(&session.id)?.map(|_| session.id))
        })
    }

    /// Continues a run.
    pub(super) fn continue_run(
        &self,
        ledger: &Ledger,
        session: &str,
        request: &DetachedRun<'_>,
    ) -> Result<(), ToolError> {
        // Read first, because a quick turn may be over before the process is seen to drive the run.
        let before = ledger.last_event_at(session)?;
        let process = spawn(ledger, request, ["--resume".to_owned(), session.to_owned()])?;
        let driver = || -> Result<_, ToolError> {
            Ok(ledger.driven_runs()?.into_iter().find(|run| run.session == session))
        };
        let begun = self.wait_for(process, |pid| match driver()? {
            Some(run) => Ok((run.pid == Some(pid)).then_some(())),
            None => Ok((ledger.last_event_at(session)? != before).then_some(())),
        });
        begun.map_err(|error| match driver() {
            // Another process was quicker, so this one has given up.
            Ok(Some(_)) if error.kind == ErrorKind::ExecutionFailed => {
                ToolError::new(ErrorKind::Conflict, error.message)
            }
            _ => error,
        })
    }

    /// Waits until `find` finds something. Fails with the process's last error if it ends before that.
    fn wait_for<T>(
        &self,
        mut process: DetachedProcess,
        find: impl Fn(u32) -> Result<Option<T>, ToolError>,
    ) -> Result<T, ToolError> {
        let (started, pause) = (Instant::now(), Cancel::new());
        let found = loop {
            let exit_code = match process.try_wait() {
                Ok(exit_code) => exit_code,
                Err(error) => break Err(ToolError::io("wait for the run", &error)),
            };
            match (find(process.pid).transpose(), exit_code) {
                (Some(found), _) => break found,
                (None, Some(code)) => {
                    return Err(ToolError::new(error_kind(code), last_error(&process.output)));
                }
                (None, None) if started.elapsed() > START_TIMEOUT => {
                    let (limit, output) = (START_TIMEOUT.as_secs(), process.output.display());
                    let why = format!(
                        "The run has not started after {limit} s. Its output is in {output}. It may still begin; look at \
                         Sessions before you start it again."
                    );
                    break Err(ToolError::new(ErrorKind::Timeout, why));
                }
                (None, None) => {}
            }
            pause.wait(POLL_INTERVAL);
        };
        let mut running = lock(&self.0);
        running.retain_mut(|earlier| matches!(earlier.try_wait(), Ok(None)));
        running.push(process);
        found
    }
}

/// The kind of error behind the exit code of a run's process.
fn error_kind(code: i32) -> ErrorKind {
    let kinds = [
        (CliExit::Usage, ErrorKind::InvalidArguments),
        (CliExit::Denied, ErrorKind::PermissionDenied),
        (CliExit::Unknown, ErrorKind::NotFound),
        (CliExit::Timeout, ErrorKind::Timeout),
    ];
    let found = kinds.into_iter().find(|(exit, _)| i32::from(exit.number()) == code);
    found.map_or(ErrorKind::ExecutionFailed, |(_, kind)| kind)
}

fn spawn(
    ledger: &Ledger,
    request: &DetachedRun<'_>,
    which: [String; 2],
) -> Result<DetachedProcess, ToolError> {
    let flag = |name: &str, value: Option<&str>| {
        value.map(|value| [name.into(), value.into()]).into_iter().flatten().collect::<Vec<OsString>>()
    };
    let mut arguments: Vec<OsString> = vec!["run".into(), "--input-format".into(), "stream-json".into()];
    arguments.extend(["--output-format".into(), "stream-json".into(), "--verbose".into()]);
    arguments.extend(["--workspace".into(), request.workspace.into()]);
    arguments.extend(which.map(OsString::from));
    arguments.extend(flag("--provider", request.provider));
    arguments.extend(flag("--model", request.model));
    arguments.extend(flag("--permission-mode", request.permission_mode));
    let input = format!("{}\n", message(request));
    spawn_detached(arguments, input.as_bytes(), &ledger.home().join(DETACHED))
        .map_err(|error| ToolError::io("start the run", &error))
}

/// The message, in the format of programs that drive a run.
fn message(request: &DetachedRun<'_>) -> Value {
    let mut content = vec![json!({ "type": "text", "text": request.prompt })];
    for attachment in request.attachments {
        content.push(match attachment {
            DecodedAttachment::Text { name, text } => {
                json!({ "type": "text", "text": format!("<file name={name:?}>\n{text}\n</file>") })
            }
            DecodedAttachment::Image { media_type, data } => json!({
                "type": "image",
                "source": { "type": "base64", "media_type": media_type, "data": data },
            }),
        });
    }
    json!({ "type": "user", "message": { "role": "user", "content": content } })
}

/// The last error in the output of a failed run.
fn last_error(output: &Path) -> String {
    let bytes = read_named(output, MAX_OUTPUT_BYTES).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let error = text.lines().rev().find_map(|line| line.strip_prefix("error: "));
    let text = error.unwrap_or_else(|| text.trim());
    let start = text.ceil_char_boundary(text.len().saturating_sub(MAX_ERROR_BYTES));
    if text.is_empty() {
        "The run ended immediately without a message.".to_owned()
    } else {
        text[start..].to_owned()
    }
}

/// Interrupts the turn of a process, as Ctrl-C does.
pub(super) fn interrupt(pid: u32) -> Result<(), ToolError> {
    let process = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let process = process.ok_or_else(|| ToolError::internal(format!("{pid} is not a process")))?;
    kill_process(process, Signal::INT)
        .map_err(|error| ToolError::io("interrupt the run", &std::io::Error::from(error)))
}
