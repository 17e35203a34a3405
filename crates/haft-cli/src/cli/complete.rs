//! `haft completion`: a script with which the shell asks this program for candidates, so that tools, calls, sessions and
//! servers are known.

use std::path::PathBuf;

use clap::{Arg, Command, CommandFactory};
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use clap_complete::env::{CompleteEnv, Shells};
use haft::selection::ToolSelection;
use haft_ledger::{Ledger, ReceiptQuery};
use haft_tool::{Definition, ToolError, Value, clip_chars};

use super::args::{CompletionArgs, Haft};
use super::exit::CliExit;
use super::{CommandResult, screen};
use crate::config::{Config, DialectName, Project};

/// Set by the script when the shell wants candidates.
const VARIABLE: &str = "HAFT_COMPLETE";

/// How many calls and sessions are offered, the newest first.
const MAX_CANDIDATES: usize = 50;
const MAX_HELP_CHARS: usize = 60;

/// The subcommands of `haft mcp` whose first word is a server.
const SERVER_COMMANDS: [&str; 8] = ["get", "test", "call", "remove", "trust", "untrust", "login", "logout"];

pub(super) fn completion(args: &CompletionArgs) -> CommandResult {
    let shells = Shells::builtins();
    let name = args.shell.to_string();
    let shell = shells
        .completer(&name)
        .ok_or_else(|| ToolError::invalid_arguments(format!("there is no completion for {name}")))?;
    let mut script = Vec::new();
    shell
        .write_registration(VARIABLE, "haft", "haft", "haft", &mut script)
        .map_err(|error| ToolError::io("write the completion script", &error))?;
    screen::result(&String::from_utf8_lossy(&script));
    Ok(CliExit::Done)
}

/// Prints candidates if the shell asks for them; true if it did.
pub(super) fn answer() -> bool {
    if std::env::var_os(VARIABLE).is_none() {
        return false;
    }
    let here = std::env::current_dir().ok();
    let answered = CompleteEnv::with_factory(|| with_candidates(whole()))
        .var(VARIABLE)
        .try_complete(std::env::args_os(), here.as_deref());
    answered.unwrap_or(true)
}

/// The command line with the flags of every command; normally only those of the typed command are built.
pub(super) fn whole() -> Command {
    Haft::command().mut_subcommands(|command| {
        let name = command.get_name().to_owned();
        let mut command = command.bin_name(format!("haft {name}")).display_name(format!("haft-{name}"));
        command.build();
        command
    })
}

/// The command and its subcommands, each argument with what it may be.
fn with_candidates(command: Command) -> Command {
    let name = command.get_name().to_owned();
    command.mut_args(move |arg| with_values(&name, arg)).mut_subcommands(with_candidates)
}

fn with_values(command: &str, arg: Arg) -> Arg {
    let values: fn() -> Vec<CompletionCandidate> = match (command, arg.get_id().as_str()) {
        (_, "session") => sessions,
        ("call" | "tools", "tool") => tools,
        ("call", "arguments") => argument_names,
        ("show", "id") | ("undo", "ids" | "to") | ("diff", "calls") => calls,
        ("man", "command") => commands,
        (command, "name" | "server") if SERVER_COMMANDS.contains(&command) => servers,
        _ => return arg,
    };
    arg.add(ArgValueCandidates::new(values))
}

/// The workspace and the settings. Nothing is printed: the shell shows only candidates.
fn settings() -> Option<(PathBuf, Config)> {
    let root = Project::of(&std::env::current_dir().ok()?).root;
    let config = Config::load(&root).ok()?;
    Some((root, config))
}

fn definitions() -> Option<Vec<Definition>> {
    let (_, config) = settings()?;
    let typed = word_after("--dialect");
    let set = config.values.dialect.as_ref().map(DialectName::as_str);
    let dialect = typed.as_deref().or(set).unwrap_or(haft_tools::dialects::NAMES[0]);
    let offer = config.values.offer.as_deref().filter(|_| typed.is_none());
    let selection = ToolSelection::new(dialect, offer, &config.values.tools).ok()?;
    Some(selection.registry().ok()?.definitions())
}

fn tools() -> Vec<CompletionCandidate> {
    let tools = definitions().unwrap_or_default().into_iter();
    tools.map(|tool| candidate(&tool.name, &tool.description)).collect()
}

/// `NAME=` for each argument of the typed tool.
fn argument_names() -> Vec<CompletionCandidate> {
    let (Some(typed), Some(all)) = (word_after("call"), definitions()) else { return Vec::new() };
    let Some(tool) = all.into_iter().find(|tool| tool.name == typed) else { return Vec::new() };
    let properties = tool.input_schema["properties"].as_object().cloned().unwrap_or_default();
    let name = |(name, schema): (String, Value)| {
        candidate(
            &format!("{}=", name.trim_start_matches('-')),
            schema["description"].as_str().unwrap_or_default(),
        )
    };
    properties.into_iter().map(name).collect()
}

/// The commands that have a manual page.
fn commands() -> Vec<CompletionCandidate> {
    whole().get_subcommands().map(|command| CompletionCandidate::new(command.get_name())).collect()
}

/// The word that follows `before` on the typed command line.
fn word_after(before: &str) -> Option<String> {
    let mut words = std::env::args().skip_while(|word| word != before).skip(1);
    words.next().filter(|word| !word.is_empty())
}

/// The ledger, if there is one: completion creates nothing.
fn ledger() -> Option<Ledger> {
    let home = Ledger::home_from_env().ok()?;
    haft_files::id_of(&home)?;
    Ledger::open(home).ok()
}

fn calls() -> Vec<CompletionCandidate> {
    let found = || {
        let (root, _) = settings()?;
        let query = ReceiptQuery { workspace: Some(root), limit: MAX_CANDIDATES, ..ReceiptQuery::default() };
        ledger()?.summaries(&query).ok()
    };
    let call = |receipt: &haft_tool::Receipt| {
        candidate(&receipt.id.to_string(), &format!("{} {}", receipt.tool, haft_runtime::about(receipt)))
    };
    found().unwrap_or_default().iter().map(|summary| call(&summary.receipt)).collect()
}

fn sessions() -> Vec<CompletionCandidate> {
    let found = ledger().and_then(|ledger| ledger.sessions(MAX_CANDIDATES).ok()).unwrap_or_default();
    found.iter().map(|session| candidate(&session.id, &session.workspace.display().to_string())).collect()
}

fn servers() -> Vec<CompletionCandidate> {
    let found = || {
        let (root, config) = settings()?;
        config.servers(&root, &[], false).ok()
    };
    let all = found().map(|found| found.all).unwrap_or_default();
    all.iter().map(|server| CompletionCandidate::new(&server.name)).collect()
}

/// A value with one line about it.
fn candidate(value: &str, about: &str) -> CompletionCandidate {
    let line = screen::escape(about.lines().next().unwrap_or_default());
    CompletionCandidate::new(value).help(Some(clip_chars(&line, MAX_HELP_CHARS, 0).into_owned().into()))
}
