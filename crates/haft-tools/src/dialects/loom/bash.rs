//! `bash`: a shell command with separate streams.

use std::path::PathBuf;
use std::time::Duration;

use haft_tool::prelude::*;
use haft_tool::{ErrorKind, Exit, JsonBound};

use crate::ops::shell::{self, StreamTexts, shell_argv};

const DEFAULT_TIMEOUT_SECS: u64 = 60;
const MAX_STREAM_BYTES: usize = 256 << 10;

/// Run a shell command (`sh -c`).
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The command.
    command: String,
    /// Where it runs, in the workspace (default: the workspace).
    #[schemars(extend("format" = "path"))]
    cwd: Option<String>,
    /// Seconds until it is ended (default 60).
    #[schemars(range(min = 1, max = 300), extend("format" = "seconds"))]
    timeout_secs: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
struct LoomRun {
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

pub(super) struct LoomBash;

pub(super) struct LoomBashPlan {
    command: String,
    cwd: Option<PathBuf>,
    timeout: Duration,
}

impl Tool for LoomBash {
    const NAME: &'static str = "bash";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Run, EffectKind::Read];
    const BOUND: Bound = Bound {
        json: Some(JsonBound {
            max_bytes: super::MAX_RESULT_BYTES,
            strings: Some((MAX_STREAM_BYTES, "truncated")),
        }),
        ..Bound::DEFAULT
    };
    const CLAMP_NUMBERS: bool = true;
    const OUTPUT_SCHEMA: Option<fn() -> Value> = Some(result_schema_of::<LoomRun>);
    type Input = Input;
    type Plan = LoomBashPlan;

    fn plan(&self, input: Input, at: &Planning) -> Result<Planned<LoomBashPlan>, ToolError> {
        shell::check_command(&input.command)?;
        let cwd = input.cwd.map(|cwd| at.absolute(&cwd)).transpose()?;
        let mut effects = vec![Effect::Run { command: input.command.clone() }];
        effects.extend(cwd.clone().map(|path| Effect::Read { path }));
        let timeout = Duration::from_secs(input.timeout_secs.unwrap_or(DEFAULT_TIMEOUT_SECS));
        Ok(Planned::new(effects, LoomBashPlan { command: input.command, cwd, timeout }))
    }

    fn perform(&self, plan: LoomBashPlan, world: &dyn World) -> Result<Output, ToolError> {
        if let Some(cwd) = &plan.cwd {
            shell::check_directory(world, "cwd", cwd)?;
        }
        let mut done = shell::run_separate(world, shell_argv("sh", plan.command), plan.cwd, plan.timeout)?;
        let StreamTexts { stdout, stderr } = StreamTexts::take(&mut done);
        if done.exit == Exit::Cancelled {
            let error = ToolError::new(ErrorKind::Interrupted, "the command was cancelled");
            return Err(error.with_details(json!({"stdout": stdout, "stderr": stderr})));
        }
        let (exit_code, timed_out) = (shell::exit_code(done.exit), done.exit == Exit::TimedOut);
        Ok(Output::json(json!(LoomRun { exit_code, stdout, stderr, timed_out, truncated: false })))
    }
}
