//! `bash`: a shell command.

use std::time::Duration;

use haft_tool::{
    Bound, Effect, EffectKind, ErrorKind, Exit, Finished, JsonSchema, Output, Planned, Planning, Text, Tool,
    ToolError, World, json,
};
use serde::Deserialize;

use crate::ops::shell;

const MOST_CHARS: usize = 30_000;
const TIMEOUT: Duration = Duration::from_mins(2);

/// Run a bash command in the workspace, for at most 120 seconds.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The command.
    command: String,
}

pub(super) struct Bash;

impl Tool for Bash {
    const NAME: &'static str = "bash";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Run];
    const BOUND: Bound = super::limit(MOST_CHARS);
    type Input = Input;
    type Plan = String;

    fn plan(&self, input: Input, _at: &Planning) -> Result<Planned<String>, ToolError> {
        shell::check(&input.command)?;
        Ok(Planned::new([Effect::Run { command: input.command.clone() }], input.command))
    }

    fn perform(&self, command: String, world: &dyn World) -> Result<Output, ToolError> {
        let argv = vec!["bash".to_owned(), "-c".to_owned(), command];
        Ok(told(shell::run_apart(world, argv, None, TIMEOUT)?))
    }
}

/// Standard output, then standard error, then what else there is to say.
fn told(done: Finished) -> Output {
    let facts = done.facts(shell::MOST_REFUSALS).join("\n");
    let exit = done.exit;
    let written = done.stdout.into_text().then(done.stderr.into_text());
    let (text, kind) = match exit {
        Exit::Code(code) => {
            let text =
                if written.total_bytes() == 0 { format!("(exit code: {code})").into() } else { written };
            (text, (code != 0).then_some(ErrorKind::ExecutionFailed))
        }
        Exit::Signal(signal) => {
            let said = format!("(exit code: -1, ended by signal {signal})");
            (written.then(said.into()), Some(ErrorKind::ExecutionFailed))
        }
        // The beginning is what is shown of a long text, so this comes first.
        Exit::TimedOut => {
            let said = format!(
                "Timed out after {} seconds; the command and all it had started were ended. What it had written:",
                TIMEOUT.as_secs()
            );
            (Text::from(said).then(written), Some(ErrorKind::Timeout))
        }
        Exit::Cancelled => {
            let said = "Cancelled; the command and all it had started were ended. What it had written:";
            (Text::from(said).then(written), Some(ErrorKind::Interrupted))
        }
    };
    let code = if let Exit::Code(code) = exit { Some(code) } else { None };
    let output = Output::text(text.then(facts.into())).with_structured(json!({"exit_code": code}));
    match kind {
        Some(kind) => output.failed(kind),
        None => output,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_tool::Capture;

    fn ended(exit: Exit, stdout: &str, stderr: &str) -> (String, Option<ErrorKind>) {
        let capture = |text: &str| Capture { head: text.into(), tail: Vec::new(), total: text.len() as u64 };
        let output = told(Finished {
            exit,
            stdout: capture(stdout),
            stderr: capture(stderr),
            elapsed: TIMEOUT,
            left_behind: 0,
            denials: Vec::new(),
            exhausted: None,
        });
        (output.as_text(), output.error_kind)
    }

    #[test]
    fn a_timeout_is_an_error_that_keeps_what_was_written() {
        let (said, kind) = ended(Exit::TimedOut, "half", "a line\n");
        assert_eq!(kind, Some(ErrorKind::Timeout));
        assert!(said.starts_with("Timed out after 120 seconds;"), "{said}");
        assert!(said.ends_with("What it had written:\nhalf\na line\n"), "{said}");
    }

    #[test]
    fn a_signal_has_the_code_of_the_unknown() {
        let failed = Some(ErrorKind::ExecutionFailed);
        assert_eq!(ended(Exit::Signal(9), "", ""), ("(exit code: -1, ended by signal 9)".into(), failed));
        assert_eq!(ended(Exit::Code(3), "", ""), ("(exit code: 3)".into(), failed));
        assert_eq!(ended(Exit::Code(3), "out", "err"), ("out\nerr".into(), failed));
        assert_eq!(ended(Exit::Code(0), "", ""), ("(exit code: 0)".into(), None));
    }
}
