//! `exec_shell`: a shell command, its streams apart.

use haft_tool::{
    Bound, Effect, Exit, JsonSchema, Output, Planning, SideEffect, Tool, ToolError, Value, World, json,
    result_schema_of,
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

impl Tool for ExecShell {
    type Input = Input;

    fn name(&self) -> &'static str {
        "exec_shell"
    }

    fn gives(&self) -> Option<fn() -> Value> {
        Some(result_schema_of::<Given>)
    }

    fn side_effect(&self) -> SideEffect {
        SideEffect::Mutating
    }

    fn plan(&self, input: &Input, _planning: &Planning) -> Result<Vec<Effect>, ToolError> {
        shell::check(&input.command)?;
        if let Some(what) = denylist::refusal(&input.command) {
            return Err(ToolError::denied(format!(
                "the command was not started: it looks like {what}, which is on the denylist"
            )));
        }
        Ok(vec![Effect::Run { command: input.command.clone() }])
    }

    async fn perform(&self, input: Input, world: &dyn World) -> Result<Output, ToolError> {
        let seconds = input.timeout.unwrap_or(DEFAULT_SECONDS);
        let argv = vec!["sh".to_owned(), "-c".to_owned(), input.command];
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

    fn bound(&self) -> Bound {
        super::limit()
    }

    fn clamps(&self) -> bool {
        true
    }
}
