//! `bash`: a shell command, its streams apart.

use std::path::PathBuf;
use std::time::Duration;

use haft_tool::{
    Bound, Effect, ErrorKind, Exit, FileKind, JsonBound, JsonSchema, Output, Planning, SideEffect, Tool,
    ToolError, Value, World, json, result_schema_of,
};
use serde::{Deserialize, Serialize};

use crate::ops::shell;

const DEFAULT_SECONDS: u64 = 60;
const MOST_STREAM_BYTES: usize = 256 << 10;

/// Run a shell command (`sh -c`).
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The command.
    command: String,
    /// Where it runs, in the workspace (default: the workspace).
    cwd: Option<String>,
    /// Seconds until it is ended (default 60).
    #[schemars(range(min = 1, max = 300))]
    timeout_secs: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
struct Given {
    /// Null if it did not end by itself.
    exit_code: Option<i32>,
    /// What it wrote.
    stdout: String,
    /// What it wrote as errors.
    stderr: String,
    /// Whether it took too long and was ended.
    timed_out: bool,
    /// Whether it wrote more than is here.
    truncated: bool,
}

pub(super) struct Bash;

impl Tool for Bash {
    type Input = Input;

    fn name(&self) -> &'static str {
        "bash"
    }

    fn gives(&self) -> Option<fn() -> Value> {
        Some(result_schema_of::<Given>)
    }

    fn side_effect(&self) -> SideEffect {
        SideEffect::Mutating
    }

    fn plan(&self, input: &Input, planning: &Planning) -> Result<Vec<Effect>, ToolError> {
        shell::check(&input.command)?;
        let mut effects = vec![Effect::Run { command: input.command.clone() }];
        if let Some(cwd) = &input.cwd {
            effects.push(Effect::Read { path: planning.absolute(cwd)? });
        }
        Ok(effects)
    }

    async fn perform(&self, input: Input, world: &dyn World) -> Result<Output, ToolError> {
        let cwd = input.cwd.map(|cwd| directory(world, &cwd)).transpose()?;
        let argv = vec!["sh".to_owned(), "-c".to_owned(), input.command];
        let timeout = Duration::from_secs(input.timeout_secs.unwrap_or(DEFAULT_SECONDS));
        let mut done = shell::run_apart(world, argv, cwd, timeout)?;
        let stderr = shell::errors(&mut done);
        let stdout = shell::written(done.stdout);
        if done.exit == Exit::Cancelled {
            let details = json!({"stdout": stdout, "stderr": stderr});
            return Err(
                ToolError::new(ErrorKind::Interrupted, "the command was cancelled").with_details(details)
            );
        }
        let exit_code = if let Exit::Code(code) = done.exit { Some(code) } else { None };
        let timed_out = done.exit == Exit::TimedOut;
        Ok(Output::json(json!(Given { exit_code, stdout, stderr, timed_out, truncated: false })))
    }

    fn bound(&self) -> Bound {
        let strings = Some((MOST_STREAM_BYTES, "truncated"));
        Bound { json: Some(JsonBound { max_bytes: super::MOST_BYTES, strings }), ..Bound::default() }
    }

    fn clamps(&self) -> bool {
        true
    }
}

/// Where the command runs; it must be there.
fn directory(world: &dyn World, cwd: &str) -> Result<PathBuf, ToolError> {
    let path = world.planning().absolute(cwd)?;
    match world.files().kind(&path) {
        Ok(FileKind::Dir) => Ok(path),
        Ok(_) => Err(ToolError::invalid_arguments(format!("cwd: {} is not a directory", path.display()))),
        Err(error) if error.kind == ErrorKind::FileNotFound => {
            Err(ToolError::invalid_arguments(format!("cwd: {}", error.message)))
        }
        Err(error) => Err(error),
    }
}
