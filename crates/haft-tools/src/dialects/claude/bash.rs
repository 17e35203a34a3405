//! `Bash`: a shell command.

use std::time::Duration;

use haft_tool::{
    Effect, ErrorKind, Exit, JsonSchema, Output, Planning, SideEffect, Text, Tool, ToolError, World, json,
    path_to_text,
};
use serde::Deserialize;

use crate::ops::shell;
use crate::ops::write::write;

const DEFAULT_TIMEOUT_MS: u64 = 120_000;
const MOST_TIMEOUT_MS: u64 = 600_000;

/// Run a command with bash in the workspace. Output and errors come together; everything the command started ends with it. Nothing can be typed into it. For servers and long work use `run_in_background`, then `TaskOutput`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    command: String,
    /// Milliseconds until it is ended (default 120000; none in the background).
    #[schemars(range(min = 1, max = 600_000))]
    timeout: Option<u64>,
    /// What it does, in a few words, for people.
    description: Option<String>,
    /// Leave it running and return at once with a task id.
    run_in_background: Option<bool>,
    /// Run it without the sandbox; the user has to allow that.
    #[serde(rename = "dangerouslyDisableSandbox")]
    disable_sandbox: Option<bool>,
    #[serde(rename = "_simulatedSedEdit")]
    simulated: Option<SimulatedEdit>,
}

/// What a client that has worked out the command's edit sends with it.
#[derive(Deserialize, JsonSchema)]
#[schemars(description = "")]
struct SimulatedEdit {
    #[serde(rename = "filePath")]
    path: String,
    #[serde(rename = "newContent")]
    content: String,
}

pub(super) struct Bash;

impl Tool for Bash {
    type Input = Input;

    fn name(&self) -> &'static str {
        "Bash"
    }

    fn side_effect(&self) -> SideEffect {
        SideEffect::Mutating
    }

    fn plan(&self, input: &Input, planning: &Planning) -> Result<Vec<Effect>, ToolError> {
        if let Some(edit) = &input.simulated {
            return Ok(vec![Effect::Write { path: planning.only_absolute("filePath", &edit.path)? }]);
        }
        shell::check(&input.command)?;
        let free = (input.disable_sandbox == Some(true)).then_some(Effect::Unsandboxed);
        Ok(std::iter::once(Effect::Run { command: input.command.clone() }).chain(free).collect())
    }

    async fn perform(&self, input: Input, world: &dyn World) -> Result<Output, ToolError> {
        if let Some(edit) = &input.simulated {
            return write_instead(edit, world);
        }
        if input.run_in_background == Some(true) {
            return leave_running(&input, world);
        }
        let timeout = input.timeout.unwrap_or(DEFAULT_TIMEOUT_MS).min(MOST_TIMEOUT_MS);
        let done = shell::run(world, "bash", &input.command, Duration::from_millis(timeout), true)?;
        let (kind, last) = match done.exit {
            Exit::Code(0) => (None, None),
            Exit::Code(code) => (Some(ErrorKind::ExecutionFailed), Some(format!("Exit code {code}"))),
            Exit::Signal(signal) => {
                (Some(ErrorKind::ExecutionFailed), Some(format!("Ended by signal {signal}")))
            }
            Exit::TimedOut => {
                let said =
                    format!("Timed out after {timeout} ms; the command and all it had started were ended");
                (Some(ErrorKind::Timeout), Some(said))
            }
            Exit::Cancelled => (Some(ErrorKind::Interrupted), Some("Cancelled".to_owned())),
        };
        let facts = done.facts(shell::MOST_REFUSALS);
        let total = done.stdout.total;
        let mut text: Text = done.stdout.into_text();
        let end = if text.missing_bytes > 0 { &mut text.tail } else { &mut text.head };
        for line in last.iter().chain(&facts) {
            if !end.is_empty() && !end.ends_with('\n') {
                end.push('\n');
            }
            end.push_str(line);
        }
        if text.total_bytes() == 0 {
            text.head.push_str("(no output)");
        }
        let output = Output::text(text).with_structured(json!({
            "exitCode": match done.exit { Exit::Code(code) => Some(code), _ => None },
            "signal": match done.exit { Exit::Signal(signal) => Some(signal), _ => None },
            "timedOut": done.exit == Exit::TimedOut,
            "interrupted": done.exit == Exit::Cancelled,
            "outputBytes": total,
            "durationMs": u64::try_from(done.elapsed.as_millis()).unwrap_or(u64::MAX),
            "leftBehind": done.left_behind,
            "denials": done.denials,
            "exhausted": done.exhausted,
        }));
        Ok(match kind {
            Some(kind) => output.failed(kind),
            None => output,
        })
    }
}

fn write_instead(edit: &SimulatedEdit, world: &dyn World) -> Result<Output, ToolError> {
    let path = world.planning().only_absolute("filePath", &edit.path)?;
    let wrote = write(world, &path, &edit.content)?;
    let said = format!("Wrote {} as the command would have", wrote.written.path.display());
    Ok(Output::text(said)
        .with_structured(json!({"filePath": path_to_text(&wrote.written.path), "bytes": wrote.bytes})))
}

fn leave_running(input: &Input, world: &dyn World) -> Result<Output, ToolError> {
    let timeout = input.timeout.map(Duration::from_millis);
    let task = shell::start(world, "bash", &input.command, input.description.as_deref(), timeout)?;
    let said = format!("Command running in background with ID: {}", task.id);
    Ok(Output::text(said).with_structured(json!({"backgroundTaskId": task.id, "receipt": task.receipt})))
}
