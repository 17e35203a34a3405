//! `exec_shell`: a shell command with separate streams.

use haft_tool::prelude::*;

use crate::ops::denylist::denied;
use crate::ops::shell::{self, StreamTexts, shell_argv};

const DEFAULT_TIMEOUT_SECS: f64 = 30.0;

/// Run a shell command (`sh -c`) in the workspace.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The command.
    command: String,
    /// Seconds until it is ended (default 30).
    #[schemars(range(min = 0, max = 300), extend("format" = "seconds"))]
    timeout: Option<f64>,
}

#[derive(Serialize, JsonSchema)]
struct ClawftRun {
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

impl Tool for ExecShell {
    const NAME: &'static str = "exec_shell";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Run];
    const BOUND: Bound = super::BOUND;
    const CLAMP_NUMBERS: bool = true;
    const OUTPUT_SCHEMA: Option<fn() -> Value> = Some(result_schema_of::<ClawftRun>);
    type Input = Input;
    type Plan = Input;

    fn plan(&self, input: Input, _at: &Planning) -> Result<Planned<Input>, ToolError> {
        shell::check_command(&input.command)?;
        if let Some(what) = denied(&input.command) {
            return Err(ToolError::denied(format!(
                "the command was not started: it looks like {what}, which is on the denylist"
            )));
        }
        Ok(Planned::new([Effect::Run { command: input.command.clone() }], input))
    }

    fn perform(&self, input: Input, world: &dyn World) -> Result<Output, ToolError> {
        let timeout = input.timeout.unwrap_or(DEFAULT_TIMEOUT_SECS);
        let argv = shell_argv("sh", input.command);
        let mut done = shell::run_separate(world, argv, None, shell::seconds(timeout))?;
        let StreamTexts { stdout, stderr } = StreamTexts::take(&mut done);
        let exit_code = shell::exit_code(done.exit).unwrap_or(-1);
        let duration_ms = shell::milliseconds(done.elapsed);
        super::run_output(done.exit, timeout, json!(ClawftRun { exit_code, stdout, stderr, duration_ms }))
    }
}
