//! `Bash`: a shell command.

use std::path::{Path, PathBuf};
use std::time::Duration;

use haft_tool::{
    Effect, EffectKind, ErrorKind, Exit, JsonSchema, Output, Planned, Planning, Text, Tool, ToolError, World,
    json, path_to_text,
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

/// What the call does.
pub(super) enum BashPlan {
    Run { command: String, timeout_ms: u64 },
    Background { command: String, description: Option<String>, timeout: Option<Duration> },
    Write { path: PathBuf, content: String },
}

impl Tool for Bash {
    const NAME: &'static str = "Bash";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Run, EffectKind::Unsandboxed, EffectKind::Write];
    type Input = Input;
    type Plan = BashPlan;

    fn plan(&self, input: Input, at: &Planning) -> Result<Planned<BashPlan>, ToolError> {
        if let Some(edit) = input.simulated {
            let path = at.only_absolute("filePath", &edit.path)?;
            let effect = Effect::Write { path: path.clone() };
            return Ok(Planned::new([effect], BashPlan::Write { path, content: edit.content }));
        }
        let command = input.command;
        shell::check(&command)?;
        let mut effects = vec![Effect::Run { command: command.clone() }];
        if input.disable_sandbox == Some(true) {
            effects.push(Effect::Unsandboxed);
        }
        let plan = if input.run_in_background == Some(true) {
            let timeout = input.timeout.map(Duration::from_millis);
            BashPlan::Background { command, description: input.description, timeout }
        } else {
            let timeout_ms = input.timeout.unwrap_or(DEFAULT_TIMEOUT_MS).min(MOST_TIMEOUT_MS);
            BashPlan::Run { command, timeout_ms }
        };
        Ok(Planned::new(effects, plan))
    }

    fn perform(&self, plan: BashPlan, world: &dyn World) -> Result<Output, ToolError> {
        match plan {
            BashPlan::Run { command, timeout_ms } => run(world, &command, timeout_ms),
            BashPlan::Background { command, description, timeout } => {
                start(world, &command, description.as_deref(), timeout)
            }
            BashPlan::Write { path, content } => write_instead(world, &path, &content),
        }
    }
}

fn run(world: &dyn World, command: &str, timeout_ms: u64) -> Result<Output, ToolError> {
    let done = shell::run(world, "bash", command, Duration::from_millis(timeout_ms), true)?;
    let (kind, last) = match done.exit {
        Exit::Code(0) => (None, None),
        Exit::Code(code) => (Some(ErrorKind::ExecutionFailed), Some(format!("Exit code {code}"))),
        Exit::Signal(signal) => (Some(ErrorKind::ExecutionFailed), Some(format!("Ended by signal {signal}"))),
        Exit::TimedOut => {
            let text =
                format!("Timed out after {timeout_ms} ms; the command and all it had started were ended");
            (Some(ErrorKind::Timeout), Some(text))
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

fn write_instead(world: &dyn World, path: &Path, content: &str) -> Result<Output, ToolError> {
    let wrote = write(world, path, content)?;
    let text = format!("Wrote {} as the command would have", wrote.written.path.display());
    Ok(Output::text(text)
        .with_structured(json!({"filePath": path_to_text(&wrote.written.path), "bytes": wrote.bytes})))
}

fn start(
    world: &dyn World,
    command: &str,
    description: Option<&str>,
    timeout: Option<Duration>,
) -> Result<Output, ToolError> {
    let task = shell::start(world, "bash", command, description, timeout)?;
    let text = format!("Command running in background with ID: {}", task.id);
    Ok(Output::text(text).with_structured(json!({"backgroundTaskId": task.id, "receipt": task.receipt})))
}
