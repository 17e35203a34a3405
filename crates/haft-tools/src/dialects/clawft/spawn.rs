//! `spawn`: a program with its arguments, without a shell.

use haft_tool::prelude::*;

use crate::ops::shell::{self, StreamTexts};
use crate::ops::spawn::{SpawnSlots, quote};

const DEFAULT_TIMEOUT_SECS: f64 = 60.0;

/// Run a program in the workspace, without a shell.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The program.
    command: String,
    /// Its arguments.
    args: Option<Vec<String>>,
    /// What it is for, for people.
    description: Option<String>,
    /// Seconds until it is ended (default 60).
    #[schemars(range(min = 0), extend("format" = "seconds"))]
    timeout: Option<f64>,
}

#[derive(Serialize, JsonSchema)]
struct SpawnResult {
    /// -1 if a signal ended it.
    exit_code: i32,
    /// What it wrote.
    stdout: String,
    /// What it wrote as errors.
    stderr: String,
    /// The program.
    command: String,
    /// What it was for.
    description: String,
}

#[derive(Default)]
pub(super) struct Spawn {
    slots: SpawnSlots,
}

impl Tool for Spawn {
    const NAME: &'static str = "spawn";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Run];
    const BOUND: Bound = super::BOUND;
    const CLAMP_NUMBERS: bool = true;
    const OUTPUT_SCHEMA: Option<fn() -> Value> = Some(result_schema_of::<SpawnResult>);
    type Input = Input;
    type Plan = Input;

    fn plan(&self, input: Input, _at: &Planning) -> Result<Planned<Input>, ToolError> {
        shell::check_command(&input.command)?;
        let argv = std::iter::once(&input.command).chain(input.args.iter().flatten());
        if argv.clone().any(|word| word.contains('\0')) {
            return Err(ToolError::invalid_arguments("args: one of them contains a NUL byte"));
        }
        let command = argv.map(|word| quote(word)).collect::<Vec<_>>().join(" ");
        Ok(Planned::new([Effect::Run { command }], input))
    }

    fn perform(&self, input: Input, world: &dyn World) -> Result<Output, ToolError> {
        let _slot = self.slots.take()?;
        let timeout = input.timeout.unwrap_or(DEFAULT_TIMEOUT_SECS);
        let argv = std::iter::once(input.command.clone()).chain(input.args.into_iter().flatten()).collect();
        let mut done = shell::run_separate(world, argv, None, shell::seconds(timeout))?;
        let StreamTexts { stdout, stderr } = StreamTexts::take(&mut done);
        let result = SpawnResult {
            exit_code: shell::exit_code(done.exit).unwrap_or(-1),
            stdout,
            stderr,
            command: input.command,
            description: input.description.unwrap_or_else(|| "(no description)".to_owned()),
        };
        super::run_output(done.exit, timeout, json!(result))
    }
}
