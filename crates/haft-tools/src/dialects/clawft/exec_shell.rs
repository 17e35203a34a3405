//! `exec_shell`: a shell command, its streams apart.

use haft_tool::{
    Bound, Effect, EffectKind, Exit, JsonSchema, Output, Planned, Planning, Tool, ToolError, Value, World,
    json, result_schema_of,
};
use serde::{Deserialize, Serialize};

use super::ended_early;
use crate::ops::{denylist, shell};

const DEFAULT_SECONDS: f64 = 30.0;

/// Run a shell command (`sh -c`) in the workspace.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The command.
    command: String,
    /// Seconds until it is ended (default 30).
    #[schemars(range(min = 0, max = 300))]
    timeout: Option<f64>,
}

#[derive(Serialize, JsonSchema)]
struct Given {
    /// -1 if a signal ended it.
    exit_code: i32,
    /// What it wrote.
    stdout: String,
    /// What it wrote as errors.
    stderr: String,
    /// How long it took.
    duration_ms: u64,
}

pub(super) struct ExecShell;

/// The command, and how many seconds it may take.
pub(super) struct ShellPlan {
    command: String,
    seconds: f64,
}

impl Tool for ExecShell {
    const NAME: &'static str = "exec_shell";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Run];
    const BOUND: Bound = super::BOUND;
    const CLAMP_NUMBERS: bool = true;
    const OUTPUT_SCHEMA: Option<fn() -> Value> = Some(result_schema_of::<Given>);
    type Input = Input;
    type Plan = ShellPlan;

    fn plan(&self, input: Input, _at: &Planning) -> Result<Planned<ShellPlan>, ToolError> {
        shell::check(&input.command)?;
        if let Some(what) = denylist::refusal(&input.command) {
            return Err(ToolError::denied(format!(
                "the command was not started: it looks like {what}, which is on the denylist"
            )));
        }
        let effect = Effect::Run { command: input.command.clone() };
        let seconds = input.timeout.unwrap_or(DEFAULT_SECONDS);
        Ok(Planned::new([effect], ShellPlan { command: input.command, seconds }))
    }

    fn perform(&self, plan: ShellPlan, world: &dyn World) -> Result<Output, ToolError> {
        let ShellPlan { command, seconds } = plan;
        let argv = vec!["sh".to_owned(), "-c".to_owned(), command];
        let mut done = shell::run_apart(world, argv, None, shell::seconds(seconds))?;
        let stderr = shell::errors(&mut done);
        let exit_code = if let Exit::Code(code) = done.exit { code } else { -1 };
        let result = json!(Given {
            exit_code,
            stdout: shell::written(done.stdout),
            stderr,
            duration_ms: u64::try_from(done.elapsed.as_millis()).unwrap_or(u64::MAX),
        });
        ended_early(done.exit, seconds, result).map(Output::json)
    }
}
