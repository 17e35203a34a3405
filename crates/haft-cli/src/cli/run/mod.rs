//! `haft run` and `haft -p`: one headless run of the agent loop.

mod args;
mod earlier;
mod local_servers;
mod progress;
mod provider;
mod recording;

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use haft_agent::{
    AgentRun, AllowedTools, PromptFacts, RunLimits, RunParts, RunSettings, RunStop, TurnReport,
    default_rounds, project_instructions, system_prompt,
};
use haft_files::read_bounded;
use haft_model::{ContentPart, ModelErrorKind, PriceTable, TurnOptions};
use haft_tool::{Cancel, ToolError, ToolNeed, json, now_ms};

pub(super) use args::RunArgs;
use args::RunOutputFormat;
use earlier::EarlierRun;
use progress::{ProgressLines, usage_line};
use provider::ChosenModel;

use super::exit::CliExit;
use super::local_time::local_time;
use super::screen::{self, FAINT, styled};
use super::setup::Setup;
use super::{CommandResult, housekeeping, terminal};
use crate::config::ModelSection;

/// Longest prompt.
const MAX_PROMPT_BYTES: u64 = 16 << 20;
/// How long MCP servers may take before the run begins without them.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The entry point of runs, by which the ledger knows their sessions.
const ENTRY_POINT: &str = "run";

pub(super) fn run(mut args: RunArgs) -> CommandResult {
    let prompt = prompt(&args.prompt)?;
    let earlier = EarlierRun::find(&args)?;
    if prompt.is_none() && earlier.as_ref().is_none_or(|earlier| !earlier.state.is_turn_open) {
        return Err(ToolError::invalid_arguments(
            "there is no prompt. Give one: haft -p 'What does this project do?', or - to read it from standard input",
        ));
    }
    if let Some(earlier) = &earlier {
        args.at.workspace.workspace.get_or_insert_with(|| earlier.workspace.clone());
    }
    let setup = Setup::load(&args.at.workspace)?;
    if let Some(earlier) = &earlier
        && setup.dialect(&args.at.dialect) != earlier.state.start.dialect
    {
        args.at.dialect.dialect.get_or_insert_with(|| earlier.state.start.dialect.clone());
    }
    let allowed = allowed_tools(&mut args);
    let entries = setup.entries(&args.servers)?;
    let mut selection = setup.tool_selection(&args.at.dialect)?;
    if !setup.names_tools(&args.at.dialect) {
        let has_search = setup.config.values.tools.has_search_engine();
        selection = selection.where_needs_are_met(|need| match need {
            ToolNeed::SearchEngine => has_search,
            ToolNeed::McpServers => !entries.is_empty(),
            ToolNeed::UserAnswers => terminal::is_interactive(),
            _ => false,
        });
    }
    let builder = selection.into_builder(setup.builder()).entry_point(ENTRY_POINT);
    let (builder, servers) = setup.add_servers(entries, &args.at.dialect, builder)?;
    let builder = setup.rules(&args.rules, setup.scope(&args.at.scope, builder)?);
    let builder = match earlier.as_ref().filter(|_| !args.fork_session) {
        Some(earlier) => builder.session(&earlier.session),
        None => builder,
    };
    let runtime = builder.asker(terminal::asker(&setup)).build()?;
    screen::warnings(runtime.warnings());

    let section = &setup.config.values.model;
    let known =
        earlier.as_ref().map(|earlier| (earlier.state.provider.as_str(), earlier.state.model.as_str()));
    let chosen = provider::choose(&args.model, section, known, &runtime)?;
    if !servers.is_empty() && allowed.tools_enabled() {
        runtime.connect_all(CONNECT_TIMEOUT);
    }
    let dialect = setup.dialect(&args.at.dialect).to_owned();
    let settings = settings(&args, section, &chosen, allowed, dialect.clone());
    let parts = RunParts::new(runtime.clone(), Arc::clone(&chosen.model))?;
    let mut run = match &earlier {
        None => AgentRun::start(parts, settings, system(&args, &setup, &dialect))?,
        Some(earlier) if args.fork_session => AgentRun::fork(parts, settings, &earlier.session)?,
        Some(_) => AgentRun::resume(parts, settings)?,
    };
    if earlier.is_some() && (args.system_prompt.is_some() || args.append_system_prompt.is_some()) {
        run.change_system(system(&args, &setup, &dialect))?;
    }

    let cancel = Cancel::new();
    terminal::cancel_on_signal(&cancel, false)?;
    let mut progress = ProgressLines::new(args.verbose);
    let report = match prompt {
        Some(prompt) => run.say(vec![ContentPart::text(prompt)], &mut progress, &cancel),
        None => run.proceed(&mut progress, &cancel),
    };
    runtime.end();
    for lost in setup.host.close() {
        screen::error(&format!(
            "a message to {} was not delivered: {}",
            lost.message.channel, lost.error.message
        ));
    }
    let report = report?;
    show(&args, &report, run.session());
    housekeeping::run_if_due(runtime.ledger(), &setup.config.values.ledger);
    Ok(exit(&report.stop))
}

/// What the user asks: the words, in which `-` is standard input; without words, standard input if it is no terminal.
fn prompt(words: &[String]) -> Result<Option<String>, ToolError> {
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

/// Which tools the model may call. An empty `--tools` or `--allowedTools` means none, as for Claude Code.
fn allowed_tools(args: &mut RunArgs) -> AllowedTools {
    let is_empty = |list: &[String]| matches!(list, [one] if one.trim().is_empty());
    let no_tools = args.at.dialect.tools.as_deref().is_some_and(is_empty);
    let no_allowed = is_empty(&args.rules.allowed);
    if no_tools {
        args.at.dialect.tools = None;
    }
    args.rules.allowed.retain(|rule| !rule.trim().is_empty());
    if no_tools || no_allowed { AllowedTools::only([]) } else { AllowedTools::all() }
}

fn settings(
    args: &RunArgs,
    section: &ModelSection,
    chosen: &ChosenModel,
    allowed: AllowedTools,
    dialect: String,
) -> RunSettings {
    let defaults = RunSettings::default();
    RunSettings {
        limits: RunLimits {
            rounds: args.max_turns.or(section.max_turns).unwrap_or_else(|| default_rounds(&dialect)),
            dollars: args.max_budget_usd.or(section.max_budget_usd),
            time: args.timeout.map(Duration::from_millis),
        },
        allowed,
        options: TurnOptions {
            effort: args.model.effort.or(section.effort),
            stream: !args.model.no_stream,
            ..TurnOptions::default()
        },
        fast_model: chosen.fast.clone(),
        fallback_model: args.model.fallback_model.clone().or_else(|| section.fallback.clone()),
        prices: PriceTable::list().with(section.prices.clone()),
        context_window: section.context_window,
        compact_percent: section.compact_percent.unwrap_or(defaults.compact_percent),
        dialect,
    }
}

/// The sections of the system prompt.
fn system(args: &RunArgs, setup: &Setup, dialect: &str) -> Vec<String> {
    let mut sections = if let Some(own) = &args.system_prompt {
        vec![own.clone()]
    } else {
        let found = project_instructions(setup.workspace());
        screen::warnings(&found.warnings);
        let now = local_time(now_ms());
        let date = now.split(' ').next().unwrap_or_default();
        let (workspace, instructions) = (setup.workspace(), found.text.as_str());
        system_prompt(&PromptFacts { dialect, workspace, date, instructions })
    };
    sections.extend(args.append_system_prompt.clone());
    sections.retain(|section| !section.trim().is_empty());
    sections
}

fn show(args: &RunArgs, report: &TurnReport, session: &str) {
    let explanation = report.stop.explanation();
    match args.output_format {
        RunOutputFormat::Text => {
            if !report.text.is_empty() {
                screen::result(&report.text);
            }
            if let Some(explanation) = &explanation {
                screen::error(explanation);
                screen::note(&styled(FAINT, &format!("to continue: haft -p --resume {session} PROMPT")));
            }
        }
        RunOutputFormat::Json => {
            let mut object = json!({
                "result": report.text,
                "provider": report.provider,
                "model": report.model,
                "usage": report.totals.usage,
                "cost_usd": report.totals.cost_usd,
                "duration_ms": u64::try_from(report.elapsed.as_millis()).unwrap_or(u64::MAX),
                "num_turns": report.rounds,
                "session_id": session,
                "stop_reason": report.stop.name(),
                "is_error": report.stop != RunStop::Done,
            });
            if let Some(explanation) = explanation {
                object["error"] = explanation.into();
            }
            screen::result(&object.to_string());
        }
    }
    if args.verbose {
        screen::note(&styled(FAINT, &format!("{}; session {session}", usage_line(report))));
    }
}

fn exit(stop: &RunStop) -> CliExit {
    match stop {
        RunStop::Done => CliExit::Done,
        RunStop::Timeout { .. } => CliExit::Timeout,
        RunStop::Interrupted => CliExit::Interrupted,
        RunStop::Failed { kind: ModelErrorKind::UnknownModel, .. } => CliExit::Unknown,
        RunStop::Failed { kind: ModelErrorKind::Settings, .. } => CliExit::Usage,
        _ => CliExit::Failed,
    }
}
