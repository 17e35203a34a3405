//! `spawn`: a program with its arguments, without a shell.

use std::sync::atomic::{AtomicUsize, Ordering};

use haft_tool::{
    Bound, Effect, EffectKind, Exit, JsonSchema, Output, Planned, Planning, Tool, ToolError, Value, World,
    json, result_schema_of,
};
use serde::{Deserialize, Serialize};

use super::ended_early;
use crate::ops::shell;

const DEFAULT_SECONDS: f64 = 60.0;
const MOST_AT_ONCE: usize = 5;

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
    #[schemars(range(min = 0))]
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
    /// The program.
    command: String,
    /// What it was for.
    description: String,
}

/// Counts the programs that are running, for all who share the dialect.
#[derive(Default)]
pub(super) struct Spawn {
    running: AtomicUsize,
}

impl Tool for Spawn {
    const NAME: &'static str = "spawn";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Run];
    const BOUND: Bound = super::BOUND;
    const CLAMP_NUMBERS: bool = true;
    const OUTPUT_SCHEMA: Option<fn() -> Value> = Some(result_schema_of::<Given>);
    type Input = Input;
    type Plan = Input;

    fn plan(&self, input: Input, _at: &Planning) -> Result<Planned<Input>, ToolError> {
        shell::check(&input.command)?;
        let words = std::iter::once(&input.command).chain(input.args.iter().flatten());
        if words.clone().any(|word| word.contains('\0')) {
            return Err(ToolError::invalid_arguments("args: one of them contains a NUL byte"));
        }
        let command = words.map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
        Ok(Planned::new([Effect::Run { command }], input))
    }

    fn perform(&self, input: Input, world: &dyn World) -> Result<Output, ToolError> {
        let _place = Place::take(&self.running)?;
        let seconds = input.timeout.unwrap_or(DEFAULT_SECONDS);
        let argv = std::iter::once(input.command.clone()).chain(input.args.into_iter().flatten()).collect();
        let mut done = shell::run_apart(world, argv, None, shell::seconds(seconds))?;
        let stderr = shell::errors(&mut done);
        let exit_code = if let Exit::Code(code) = done.exit { code } else { -1 };
        let result = json!(Given {
            exit_code,
            stdout: shell::written(done.stdout),
            stderr,
            command: input.command,
            description: input.description.unwrap_or_else(|| "(no description)".to_owned()),
        });
        ended_early(done.exit, seconds, result).map(Output::json)
    }
}

/// One of the places for running programs, until dropped.
struct Place<'a>(&'a AtomicUsize);

impl<'a> Place<'a> {
    fn take(running: &'a AtomicUsize) -> Result<Self, ToolError> {
        let more = |count| (count < MOST_AT_ONCE).then_some(count + 1);
        match running.fetch_update(Ordering::AcqRel, Ordering::Acquire, more) {
            Ok(_) => Ok(Self(running)),
            Err(count) => Err(ToolError::failed(format!(
                "{count} spawned programs are running already, and {MOST_AT_ONCE} is the limit; wait until one has ended"
            ))),
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A word as a shell would have to be given it, so that rules read the command as one.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_so_that_a_shell_reads_them_back() {
        assert_eq!(quoted("--release"), "--release");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("$(x)"), "'$(x)'");
    }

    #[test]
    fn the_sixth_has_to_wait_until_one_has_ended() {
        let running = AtomicUsize::new(0);
        let places: Vec<_> = (0..MOST_AT_ONCE).map(|_| Place::take(&running).unwrap()).collect();
        let Err(error) = Place::take(&running) else { panic!("a sixth place") };
        assert_eq!(error.kind, haft_tool::ErrorKind::ExecutionFailed);
        assert!(error.message.contains("5 is the limit"), "{error}");
        drop(places);
        assert!(Place::take(&running).is_ok());
    }
}
