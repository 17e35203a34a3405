//! `Bash`: a shell command.

use std::path::PathBuf;
use std::time::Duration;

use haft_tool::prelude::*;
use haft_tool::{ErrorKind, Exit, path_to_text};

use crate::ops::shell::{self, shell_argv};
use crate::ops::working_dir;
use crate::ops::write::write;

const DEFAULT_TIMEOUT_MS: u64 = 120_000;
const MAX_TIMEOUT_MS: u64 = 600_000;

/// Run a command with bash; `cd` lasts for later calls. Output and errors come together. It gets no input, and all that it started ends with it. For servers and long work use `run_in_background`, then `TaskOutput`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    command: String,
    /// Milliseconds until it is ended (default 120000; none in the background).
    #[schemars(range(min = 1, max = MAX_TIMEOUT_MS), extend("format" = "milliseconds"))]
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

/// The result of a `sed` command that the client has computed.
#[derive(Deserialize, JsonSchema)]
#[schemars(description = "")]
struct SimulatedEdit {
    #[serde(rename = "filePath")]
    path: String,
    #[serde(rename = "newContent")]
    content: String,
}

pub(super) struct Bash;

pub(super) enum BashPlan {
    Run { command: String, timeout_ms: u64 },
    Start { command: String, description: Option<String>, timeout: Option<Duration> },
    Write { path: PathBuf, content: String },
}

impl Tool for Bash {
    const NAME: &'static str = "Bash";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Run, EffectKind::Unsandboxed, EffectKind::Write];
    const HAS_PREVIEW: bool = true;
    type Input = Input;
    type Plan = BashPlan;

    fn plan(&self, input: Input, at: &Planning) -> Result<Planned<BashPlan>, ToolError> {
        if let Some(edit) = input.simulated {
            let path = at.only_absolute("filePath", &edit.path)?;
            let effect = Effect::Write { path: path.clone() };
            return Ok(Planned::new([effect], BashPlan::Write { path, content: edit.content }));
        }
        let command = input.command;
        shell::check_command(&command)?;
        let mut effects = vec![Effect::Run { command: command.clone() }];
        effects.extend((input.disable_sandbox == Some(true)).then_some(Effect::Unsandboxed));
        let plan = if input.run_in_background == Some(true) {
            let timeout = input.timeout.map(Duration::from_millis);
            BashPlan::Start { command, description: input.description, timeout }
        } else {
            let timeout_ms = input.timeout.unwrap_or(DEFAULT_TIMEOUT_MS).min(MAX_TIMEOUT_MS);
            BashPlan::Run { command, timeout_ms }
        };
        Ok(Planned::new(effects, plan))
    }

    fn perform(&self, plan: BashPlan, world: &dyn World) -> Result<Output, ToolError> {
        match plan {
            BashPlan::Run { command, timeout_ms } => run(world, &command, timeout_ms),
            BashPlan::Start { command, description, timeout } => {
                let description = description.as_deref().unwrap_or(&command);
                let cwd = working_dir::current(world)?;
                let task = shell::start_task(world, shell_argv("bash", &command), cwd, description, timeout)?;
                let text = format!("Command running in background with ID: {}", task.id);
                let structured = json!({"backgroundTaskId": task.id, "receipt": task.receipt});
                Ok(Output::text(text).with_structured(structured))
            }
            BashPlan::Write { path, content } => {
                let result = write(world, &path, &content)?;
                let path = &result.written.path;
                let text = format!("Wrote {} as the command would have", path.display());
                let structured = json!({"filePath": path_to_text(path), "bytes": result.bytes});
                Ok(Output::text(text).with_structured(structured))
            }
        }
    }
}

fn run(world: &dyn World, command: &str, timeout_ms: u64) -> Result<Output, ToolError> {
    let cwd = working_dir::current(world)?;
    let argv = shell_argv("bash", working_dir::reporting(command));
    let mut done = shell::run_reporting(world, argv, cwd.clone(), Duration::from_millis(timeout_ms))?;
    let new_cwd = working_dir::take_report(&mut done).filter(|_| done.exit == Exit::Code(0));
    let reset = new_cwd.and_then(|new| working_dir::keep(world, cwd.as_deref(), &new));
    let (kind, ending) = match done.exit {
        Exit::Code(0) => (None, None),
        Exit::TimedOut => {
            let ended = "the command and all it had started were ended";
            (Some(ErrorKind::Timeout), Some(format!("Timed out after {timeout_ms} ms; {ended}")))
        }
        Exit::Cancelled => (Some(ErrorKind::Interrupted), Some("Cancelled".to_owned())),
        exit => (Some(ErrorKind::ExecutionFailed), shell::exit_message(exit)),
    };
    let structured = json!({
        "exitCode": shell::exit_code(done.exit),
        "signal": match done.exit { Exit::Signal(signal) => Some(signal), _ => None },
        "timedOut": done.exit == Exit::TimedOut,
        "interrupted": done.exit == Exit::Cancelled,
        "outputBytes": done.stdout.total,
        "durationMs": shell::milliseconds(done.elapsed),
        "leftBehind": done.left_behind,
        "denials": done.denials,
        "runsOnBuild": done.runs_on_build,
        "exhausted": done.exhausted,
    });
    let text = shell::run_text(&mut done, ending.as_deref(), reset.as_slice());
    let output = Output::text(text).with_structured(structured);
    Ok(kind.into_iter().fold(output, Output::failed))
}
