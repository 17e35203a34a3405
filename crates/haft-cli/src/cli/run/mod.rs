//! `haft run` and `haft -p`: one headless run of the agent loop.

mod agents;
mod args;
mod claude_program;
mod drive;
mod earlier;
mod for_session;
mod import;
mod local_servers;
mod prepare;
mod progress;
mod provider;
mod recording;
mod stream;

use std::io::IsTerminal;

use haft_agent::{RunStop, TurnReport};
use haft_files::read_bounded;
use haft_model::ModelErrorKind;
use haft_tool::{Cancel, ToolError};

pub(super) use args::RunArgs;
use args::RunOutputFormat;
pub(super) use earlier::EarlierRun;
pub(super) use for_session::RunListing;
pub(super) use prepare::PreparedRun;
pub(super) use progress::ProgressLines;
use progress::usage_line;
pub(super) use provider::default_model;
pub(super) use stream::{CLAUDE_VERSION, new_uuid};

use super::exit::CliExit;
use super::screen::{self, FAINT, styled};
use super::setup::Setup;
use super::{CommandResult, housekeeping, terminal};

/// Longest prompt.
const MAX_PROMPT_BYTES: u64 = 16 << 20;
/// The entry point of runs, by which the ledger knows their sessions.
const ENTRY_POINT: &str = "run";

pub(super) fn run(mut args: RunArgs) -> CommandResult {
    args.apply_stream_flags()?;
    if args.stream.has_host() || args.output_format != RunOutputFormat::Text {
        return stream::run(args);
    }
    let prompt = prompt(&args.prompt)?;
    let earlier = EarlierRun::find(&args)?;
    if prompt.is_none() && earlier.as_ref().is_none_or(|earlier| !earlier.state.is_turn_open) {
        return Err(ToolError::invalid_arguments(
            "there is no prompt. Give one: haft -p 'What does this project do?', or - to read it from standard input",
        ));
    }
    let mut prepared = PreparedRun::new(&mut args, earlier.as_ref())?;

    let cancel = Cancel::new();
    terminal::cancel_on_signal(&cancel, false)?;
    let mut progress = ProgressLines::new(args.verbose);
    let report = match prompt {
        Some(prompt) => prepared.say(&prompt, &mut progress, &cancel),
        None => prepared.run.proceed(&mut progress, &cancel),
    };
    let collected = prepared.end(&mut progress, &cancel);
    prepared.close_channels();
    let mut report = report?;
    collected?;
    let PreparedRun { setup, runtime, run, .. } = prepared;
    report.totals = run.state().turn_totals;
    show(&args, &report, run.session());
    housekeeping::run_if_due(runtime.ledger(), &setup.config.values.ledger);
    Ok(exit(&report.stop))
}

/// Fails if no model can be chosen, for a command that needs one later.
pub(super) fn check_model(args: &RunArgs, setup: &Setup) -> Result<(), ToolError> {
    let runtime = setup.builder().build()?;
    provider::choose(&args.model, &setup.config.values.model, args.max_turns, None, &runtime).map(drop)
}

/// What the user asks: the words, in which `-` is standard input; without words, standard input if it is no terminal.
pub(super) fn prompt(words: &[String]) -> Result<Option<String>, ToolError> {
    let reads = words.iter().any(|word| word == "-") || (words.is_empty() && !std::io::stdin().is_terminal());
    let input = if reads {
        let read = read_bounded(std::io::stdin().lock(), MAX_PROMPT_BYTES);
        let bytes = read.map_err(|error| ToolError::io("read standard input", &error))?.ok_or_else(|| {
            ToolError::invalid_arguments(format!(
                "the prompt has more than {MAX_PROMPT_BYTES} bytes, which is the limit"
            ))
        })?;
        String::from_utf8_lossy(&bytes).trim_end().to_owned()
    } else {
        String::new()
    };
    let words: Vec<&str> = words.iter().map(String::as_str).filter(|word| *word != "-").collect();
    let parts = [words.join(" "), input];
    let prompt = parts.iter().map(String::as_str).filter(|part| !part.trim().is_empty());
    let prompt = prompt.collect::<Vec<_>>().join("\n\n");
    Ok(Some(prompt).filter(|prompt| !prompt.is_empty()))
}

fn show(args: &RunArgs, report: &TurnReport, session: &str) {
    let explanation = report.stop.explanation();
    if !report.text.is_empty() {
        screen::result(&report.text);
    }
    if let Some(explanation) = &explanation {
        screen::error(explanation);
        screen::note(&styled(FAINT, &format!("to continue: haft -p --resume {session} PROMPT")));
    }
    if args.verbose {
        screen::note(&styled(FAINT, &format!("{}; session {session}", usage_line(report))));
    }
}

pub(super) fn exit(stop: &RunStop) -> CliExit {
    match stop {
        RunStop::Done => CliExit::Done,
        RunStop::Timeout { .. } => CliExit::Timeout,
        RunStop::Interrupted => CliExit::Interrupted,
        RunStop::Failed { kind: ModelErrorKind::UnknownModel, .. } => CliExit::Unknown,
        RunStop::Failed { kind: ModelErrorKind::Settings, .. } => CliExit::Usage,
        _ => CliExit::Failed,
    }
}
