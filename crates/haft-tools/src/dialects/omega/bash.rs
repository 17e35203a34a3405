//! `bash`: a shell command.

use std::time::Duration;

use haft_tool::prelude::*;
use haft_tool::{ErrorKind, Exit, Finished, Text};

use crate::ops::shell::{self, shell_argv};

const MAX_CHARS: usize = 30_000;
const TIMEOUT: Duration = Duration::from_mins(2);

/// Run a bash command in the workspace, for at most 120 seconds.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The command.
    command: String,
}

pub(super) struct OmegaBash;

impl Tool for OmegaBash {
    const NAME: &'static str = "bash";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Run];
    const BOUND: Bound = super::limit(MAX_CHARS);
    type Input = Input;
    type Plan = String;

    fn plan(&self, input: Input, _at: &Planning) -> Result<Planned<String>, ToolError> {
        shell::check_command(&input.command)?;
        Ok(Planned::new([Effect::Run { command: input.command.clone() }], input.command))
    }

    fn perform(&self, command: String, world: &dyn World) -> Result<Output, ToolError> {
        Ok(output(shell::run_separate(world, shell_argv("bash", command), None, TIMEOUT)?))
    }
}

/// Standard output, then standard error, then what Haft reports about the run.
fn output(done: Finished) -> Output {
    let facts = done.facts(shell::MAX_LISTED_DENIALS).join("\n");
    let exit = done.exit;
    let streams = done.stdout.into_text().then(done.stderr.into_text());
    let ended = "the command and all it had started were ended. What it had written:";
    let (text, kind) = match exit {
        Exit::Code(code) => {
            let empty = streams.total_bytes() == 0;
            let text = if empty { format!("(exit code: {code})").into() } else { streams };
            (text, (code != 0).then_some(ErrorKind::ExecutionFailed))
        }
        Exit::Signal(signal) => {
            let ending = format!("(exit code: -1, ended by signal {signal})");
            (streams.then(ending.into()), Some(ErrorKind::ExecutionFailed))
        }
        // The reason comes first, because the end of a long text is cut.
        Exit::TimedOut => {
            let reason = format!("Timed out after {} seconds; {ended}", TIMEOUT.as_secs());
            (Text::from(reason).then(streams), Some(ErrorKind::Timeout))
        }
        Exit::Cancelled => {
            (Text::from(format!("Cancelled; {ended}")).then(streams), Some(ErrorKind::Interrupted))
        }
    };
    let structured = json!({"exit_code": shell::exit_code(exit)});
    let output = Output::text(text.then(facts.into())).with_structured(structured);
    kind.into_iter().fold(output, Output::failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_tool::Capture;

    fn text_and_kind(exit: Exit, stdout: &str, stderr: &str) -> (String, Option<ErrorKind>) {
        let capture = |text: &str| Capture { head: text.into(), tail: Vec::new(), total: text.len() as u64 };
        let output = output(Finished {
            exit,
            stdout: capture(stdout),
            stderr: capture(stderr),
            elapsed: TIMEOUT,
            left_behind: 0,
            denials: Vec::new(),
            exhausted: None,
            runs_on_build: Vec::new(),
            previewed: None,
        });
        (output.as_text(), output.error_kind)
    }

    #[test]
    fn timeout_is_an_error_with_partial_output() {
        let (text, kind) = text_and_kind(Exit::TimedOut, "half", "a line\n");
        assert_eq!(kind, Some(ErrorKind::Timeout));
        assert!(text.starts_with("Timed out after 120 seconds;"), "{text}");
        assert!(text.ends_with("What it had written:\nhalf\na line\n"), "{text}");
    }

    #[test]
    fn signal_has_exit_code_minus_one() {
        let failed = Some(ErrorKind::ExecutionFailed);
        let signal = "(exit code: -1, ended by signal 9)".to_owned();
        assert_eq!(text_and_kind(Exit::Signal(9), "", ""), (signal, failed));
        assert_eq!(text_and_kind(Exit::Code(3), "", ""), ("(exit code: 3)".into(), failed));
        assert_eq!(text_and_kind(Exit::Code(3), "out", "err"), ("out\nerr".into(), failed));
        assert_eq!(text_and_kind(Exit::Code(0), "", ""), ("(exit code: 0)".into(), None));
    }
}
