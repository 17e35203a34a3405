//! The command line, one file per command.

mod agent;
mod args;
mod arguments;
mod blame;
mod call;
mod complete;
mod config;
mod demo;
mod diff;
mod diff_command;
mod doctor;
mod duration;
mod exec;
mod exit;
mod gateway;
mod gc;
mod housekeeping;
mod interactive;
mod kept_preview;
mod local_time;
mod log;
mod man;
mod mcp;
mod paths;
mod ps;
mod rules;
mod run;
mod sample;
mod sandbox;
pub(crate) mod screen;
mod serve;
mod sessions;
mod setup;
mod show;
mod status_line;
mod telemetry;
pub(crate) mod terminal;
mod tools;
mod tracing_log;
mod trust;
mod undo;
mod undo_preview;
mod usage_error;
mod view;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use haft_tool::ToolError;

use args::{Command, Haft};
pub(crate) use config::add_to_project_network;
use exit::{CliExit, code};
pub(crate) use local_time::age;

/// Runs the command that the arguments name and returns its exit code.
pub fn main() -> ExitCode {
    if complete::answer() {
        return ExitCode::SUCCESS;
    }
    tracing_log::init();
    if let Some(version) = claude_version() {
        screen::result(&version);
        return ExitCode::SUCCESS;
    }
    let (words, is_short) = with_run(std::env::args_os().collect());
    let haft = match Haft::try_parse_from(words) {
        Ok(haft) => haft,
        Err(error) => {
            let error = usage_error::readable(error);
            let is_help = !error.use_stderr();
            let exit = match error.print() {
                Ok(()) if is_help => CliExit::Done,
                _ if std::env::args_os().nth(1).is_some_and(|command| command == "sandbox") => {
                    sandbox::HAFT_FAILED
                }
                Err(_) if is_help => CliExit::Failed,
                _ => CliExit::Usage,
            };
            return ExitCode::from(exit.number());
        }
    };
    let done = match haft.command {
        Command::Run(args) if is_short && args.opens_session() => interactive::run(*args),
        Command::Run(args) => run::run(*args),
        Command::Exec(args) => exec::run(&args),
        Command::Gateway(args) => gateway::run(*args),
        Command::Call(args) => call::run(*args),
        Command::Mcp(args) => mcp::run(*args),
        Command::Serve(args) => serve::run(&args),
        Command::Sandbox(args) => Ok(sandbox::run(&args)),
        Command::Tools(args) => tools::run(&args),
        Command::Log(args) => log::run(&args),
        Command::Show(args) => show::run(&args),
        Command::Diff(args) => diff_command::run(&args),
        Command::Blame(args) => blame::run(&args),
        Command::Sessions(args) => sessions::run(&args),
        Command::Ps(args) => ps::run(&args),
        Command::Undo(args) => undo::undo(&args),
        Command::Redo(args) => undo::redo(&args),
        Command::Gc(args) => gc::run(&args),
        Command::Rules(args) => rules::run(&args),
        Command::Trust(args) => trust::run(&args),
        Command::Config(args) => config::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Demo => demo::run(),
        Command::Completion(args) => complete::completion(&args),
        Command::Man(args) => man::run(&args),
    };
    let exit = done.unwrap_or_else(|error| report_error(&error));
    telemetry::end();
    let exit = match screen::output_error() {
        Some(error) if exit == CliExit::Done => {
            // A closed pipe needs no message: its reader wanted no more.
            if error.kind() != std::io::ErrorKind::BrokenPipe {
                screen::error(&format!("the output cannot be written: {error}"));
            }
            CliExit::Failed
        }
        _ => exit,
    };
    ExitCode::from(exit.number())
}

/// The answer to a question for the version, where Haft is called by the name `claude`: programs look for Claude Code's form there.
fn claude_version() -> Option<String> {
    let mut words = std::env::args_os();
    let name = words.next()?;
    let is_claude = Path::new(&name).file_name().is_some_and(|name| name == "claude");
    let is_asked = words.next().is_some_and(|word| matches!(word.to_str(), Some("-v" | "-V" | "--version")));
    (is_claude && is_asked).then(|| format!("{} (Claude Code)", run::CLAUDE_VERSION))
}

/// The command line with the command `run`, which a flag in its place stands for: `haft -p PROMPT` is `haft run -p PROMPT`. The same
/// holds for a message, which no command is, and on a terminal for nothing. Says whether the command was left out.
fn with_run(mut args: Vec<OsString>) -> (Vec<OsString>, bool) {
    let is_short = match args.get(1).map(|first| first.to_string_lossy()) {
        None => terminal::is_interactive() && std::io::stdout().is_terminal(),
        Some(first) => {
            let is_flag = first.starts_with('-')
                && !matches!(first.as_ref(), "-" | "-h" | "--help" | "-V" | "--version");
            is_flag || first.contains(char::is_whitespace)
        }
    };
    if is_short {
        args.insert(1, "run".into());
    }
    (args, is_short)
}

/// The result of a command.
type CommandResult = Result<CliExit, ToolError>;

/// Prints the error and returns its exit code.
fn report_error(error: &ToolError) -> CliExit {
    screen::error(&error.message);
    code(error.kind)
}
