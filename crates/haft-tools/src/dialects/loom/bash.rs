//! `bash`: a shell command, its streams apart.

use std::path::{Path, PathBuf};
use std::time::Duration;

use haft_tool::{
    Bound, Effect, EffectKind, ErrorKind, Exit, FileKind, JsonBound, JsonSchema, Output, Planned, Planning,
    Tool, ToolError, Value, World, json, result_schema_of,
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

/// The command, and where and how long it runs.
pub(super) struct BashPlan {
    command: String,
    cwd: Option<PathBuf>,
    timeout: Duration,
}

impl Tool for Bash {
    const NAME: &'static str = "bash";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Run, EffectKind::Read];
    const BOUND: Bound = Bound {
        json: Some(JsonBound {
            max_bytes: super::MOST_BYTES,
            strings: Some((MOST_STREAM_BYTES, "truncated")),
        }),
        ..Bound::DEFAULT
    };
    const CLAMP_NUMBERS: bool = true;
    const OUTPUT_SCHEMA: Option<fn() -> Value> = Some(result_schema_of::<Given>);
    type Input = Input;
    type Plan = BashPlan;

    fn plan(&self, input: Input, at: &Planning) -> Result<Planned<BashPlan>, ToolError> {
        shell::check(&input.command)?;
        let cwd = input.cwd.map(|cwd| at.absolute(&cwd)).transpose()?;
        let mut effects = vec![Effect::Run { command: input.command.clone() }];
        effects.extend(cwd.clone().map(|path| Effect::Read { path }));
        let timeout = Duration::from_secs(input.timeout_secs.unwrap_or(DEFAULT_SECONDS));
        Ok(Planned::new(effects, BashPlan { command: input.command, cwd, timeout }))
    }

    fn perform(&self, plan: BashPlan, world: &dyn World) -> Result<Output, ToolError> {
        if let Some(cwd) = &plan.cwd {
            check_directory(world, cwd)?;
        }
        let argv = vec!["sh".to_owned(), "-c".to_owned(), plan.command];
        let mut done = shell::run_apart(world, argv, plan.cwd, plan.timeout)?;
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
}

/// Checks that the command's working directory exists.
fn check_directory(world: &dyn World, path: &Path) -> Result<(), ToolError> {
    match world.files().kind(path) {
        Ok(FileKind::Dir) => Ok(()),
        Ok(_) => Err(ToolError::invalid_arguments(format!("cwd: {} is not a directory", path.display()))),
        Err(error) if error.kind == ErrorKind::FileNotFound => {
            Err(ToolError::invalid_arguments(format!("cwd: {}", error.message)))
        }
        Err(error) => Err(error),
    }
}
