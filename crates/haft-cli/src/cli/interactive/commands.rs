//! The commands of a session: what begins with a slash.

use clap::Parser;
use haft_ledger::Ledger;
use haft_sandbox::QuietTerminal;
use haft_tool::{ErrorKind, ToolError, clip_chars, close_names};

use super::super::args::{Command, Haft};
use super::super::local_time::local_time;
use super::super::run::RunListing;
use super::super::screen::{self, BOLD, FAINT, NAME, styled};
use super::super::view::clip_columns;
use super::super::{diff_command, log, mcp, report_error, sandbox, show, undo};
use super::live::columns;
use super::{InteractiveSession, SessionFlow};

/// Runs that `/resume` lists.
const MAX_LISTED_RUNS: usize = 10;
/// How much of a first message is listed.
const MAX_WORDS_CHARS: usize = 200;

/// A command of a session.
pub(super) struct SlashCommand {
    pub(super) name: &'static str,
    usage: &'static str,
    about: &'static str,
    run: fn(&mut InteractiveSession, &[&str]) -> Result<SessionFlow, ToolError>,
}

/// All commands, in the order of `/help`.
pub(super) const COMMANDS: &[SlashCommand] = &[
    command("undo", "", "take back the last turn, files and conversation together", undo_turn),
    command("diff", "[ID]", "what this session changed, or one call", diff),
    command("log", "[FLAGS]", "the calls of this session; flags as for `haft log`", log_calls),
    command("show", "[ID]", "one call in full; the last one without a number", show_call),
    command("model", "[[PROVIDER] NAME]", "show the model, or go on with another one", model),
    command("compact", "", "replace old messages by a summary", compact),
    command("tools", "", "the tools that the model may call", tools),
    command("mcp", "", "the MCP servers", servers),
    command("resume", "[SESSION]", "list the runs here, or continue one", resume),
    command("continue", "", "go on with a turn that was interrupted", go_on),
    command("new", "", "begin a new conversation", new_run),
    command("help", "", "this list", help),
    command("exit", "", "leave; Ctrl-D does the same", exit),
];

const fn command(
    name: &'static str,
    usage: &'static str,
    about: &'static str,
    run: fn(&mut InteractiveSession, &[&str]) -> Result<SessionFlow, ToolError>,
) -> SlashCommand {
    SlashCommand { name, usage, about, run }
}

/// Runs a line that begins with a slash.
pub(super) fn run(session: &mut InteractiveSession, line: &str) -> Result<SessionFlow, ToolError> {
    let mut words = line.trim_start_matches('/').split_whitespace();
    let name = words.next().unwrap_or("help");
    let words: Vec<&str> = words.collect();
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        let near = close_names(name, COMMANDS.iter().map(|command| command.name));
        let near = near.first().map(|near| format!(" Did you mean /{near}?")).unwrap_or_default();
        let message = format!("There is no command /{name}.{near} /help lists the commands.");
        return Err(ToolError::new(ErrorKind::NotFound, message));
    };
    (command.run)(session, &words)
}

/// Whether a line is meant as a command: a path is not.
pub(super) fn is_command(line: &str) -> bool {
    let first = line.split_whitespace().next().unwrap_or_default();
    first.strip_prefix('/').is_some_and(|name| !name.contains('/'))
}

/// Runs a shell command in the sandbox, recorded; the model does not see it.
pub(super) fn run_shell(session: &mut InteractiveSession, command: &str) -> Result<SessionFlow, ToolError> {
    let mut words = vec!["sandbox"];
    let run = session.run_session();
    if let Some(run) = &run {
        words.extend(["--session", run]);
    }
    words.extend(["--", "sh", "-c", command]);
    session.haft_command(&words)
}

impl InteractiveSession {
    /// Runs a command of the command line in this workspace.
    fn haft_command(&mut self, words: &[&str]) -> Result<SessionFlow, ToolError> {
        let workspace = self.workspace.display().to_string();
        let (name, rest) = words.split_first().map_or(("", words), |(name, rest)| (*name, rest));
        let mut all = vec!["haft", name];
        if name != "show" {
            all.extend(["--workspace", &workspace]);
        }
        if self.is_plain && ["log", "diff", "show"].contains(&name) {
            all.extend(["--color", "never", "--no-pager"]);
        }
        all.extend(rest);
        let parsed = Haft::try_parse_from(&all).map_err(|error| {
            ToolError::invalid_arguments(error.to_string().trim_start_matches("error: ").trim_end())
        })?;
        let done = match &parsed.command {
            Command::Log(args) => log::run(args),
            Command::Show(args) => show::run(args),
            Command::Diff(args) => diff_command::run(args),
            Command::Undo(args) => undo::undo(args),
            Command::Sandbox(args) => Ok(sandbox::run(args)),
            _ => Err(ToolError::internal("this command is not for sessions")),
        };
        if let Err(error) = done {
            report_error(&error);
        }
        self.signals.listen()?;
        Ok(SessionFlow::GoOn)
    }

    /// The flags that mean this session's calls.
    fn of_session<'a>(&self, command: &'a str, words: &[&'a str]) -> Result<Vec<String>, ToolError> {
        let mut all = vec![command.to_owned()];
        if words.is_empty() {
            let run = self.run_session().ok_or_else(no_run)?;
            all.extend(["--session".to_owned(), run]);
        }
        all.extend(words.iter().map(|word| (*word).to_owned()));
        Ok(all)
    }
}

fn no_run() -> ToolError {
    ToolError::new(ErrorKind::NotFound, "Nothing was said yet in this session.")
}

fn run_words(session: &mut InteractiveSession, words: &[String]) -> Result<SessionFlow, ToolError> {
    session.haft_command(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

fn undo_turn(session: &mut InteractiveSession, _: &[&str]) -> Result<SessionFlow, ToolError> {
    let prepared = session.prepared.as_mut().ok_or_else(no_run)?;
    let (run, turn) = (prepared.run.session().to_owned(), prepared.run.state().turns.len());
    if turn == 0 {
        return Err(no_run());
    }
    prepared.run.release();
    let done = {
        // The question is answered by a key.
        let _quiet = QuietTerminal::new();
        session.haft_command(&["undo", "--run", &run, "--turn", &turn.to_string()])
    };
    if let Some(prepared) = &mut session.prepared {
        prepared.run.reload()?;
    }
    done
}

fn diff(session: &mut InteractiveSession, words: &[&str]) -> Result<SessionFlow, ToolError> {
    let words = session.of_session("diff", words)?;
    run_words(session, &words)
}

fn log_calls(session: &mut InteractiveSession, words: &[&str]) -> Result<SessionFlow, ToolError> {
    let words = session.of_session("log", words)?;
    run_words(session, &words)
}

fn show_call(session: &mut InteractiveSession, words: &[&str]) -> Result<SessionFlow, ToolError> {
    let last = session.last_call.map(|id| id.to_string());
    match (words, &last) {
        ([], Some(last)) => session.haft_command(&["show", last]),
        ([], None) => Err(ToolError::new(ErrorKind::NotFound, "No call was made yet in this session.")),
        (words, _) => session.haft_command(&[&["show"], words].concat()),
    }
}

fn model(session: &mut InteractiveSession, words: &[&str]) -> Result<SessionFlow, ToolError> {
    let (provider, name) = match words {
        [] => {
            screen::note(&session.model_words());
            return Ok(SessionFlow::GoOn);
        }
        [name] => (None, *name),
        [provider, name] => (Some(*provider), *name),
        _ => return Err(ToolError::invalid_arguments("/model takes a name, or a provider and a name")),
    };
    session.args.change_model(provider, name, session.prepared.as_mut())?;
    if session.prepared.is_none() {
        session.prepare()?;
    }
    screen::note(&session.model_words());
    Ok(SessionFlow::GoOn)
}

fn compact(session: &mut InteractiveSession, _: &[&str]) -> Result<SessionFlow, ToolError> {
    let is_done = session.with_turn(|prepared, view, cancel| prepared.run.compact(view, cancel))?;
    if !is_done {
        screen::note("there is nothing to summarise");
    }
    session.show_status(None);
    Ok(SessionFlow::GoOn)
}

fn tools(session: &mut InteractiveSession, _: &[&str]) -> Result<SessionFlow, ToolError> {
    session.prepare()?;
    let Some(prepared) = &session.prepared else { return Err(no_run()) };
    let columns = columns().saturating_sub(1);
    let mut text = String::new();
    for tool in prepared.runtime.definitions() {
        let name = screen::escape(&tool.name);
        let about = screen::escape(tool.description.lines().next().unwrap_or_default());
        let about = clip_columns(&about, columns.saturating_sub(name.chars().count() + 2)).into_owned();
        text.push_str(&format!("{}  {}\n", styled(NAME, &name), styled(FAINT, &about)));
    }
    screen::out(&text);
    Ok(SessionFlow::GoOn)
}

fn servers(session: &mut InteractiveSession, _: &[&str]) -> Result<SessionFlow, ToolError> {
    let workspace = session.workspace.display().to_string();
    let parsed = Haft::try_parse_from(["haft", "mcp", "list", "--workspace", &workspace]);
    if let Ok(Haft { command: Command::Mcp(args) }) = parsed {
        mcp::run(*args)?;
    }
    session.signals.listen()?;
    Ok(SessionFlow::GoOn)
}

fn resume(session: &mut InteractiveSession, words: &[&str]) -> Result<SessionFlow, ToolError> {
    let Some(id) = words.first() else {
        let runs = RunListing::newest(&session.workspace, MAX_LISTED_RUNS)?;
        if runs.is_empty() {
            screen::note("there are no runs in this workspace");
        }
        let columns = columns().saturating_sub(1);
        for run in runs {
            let words = screen::escape(&clip_chars(&run.first_words, MAX_WORDS_CHARS, 0));
            let head = format!("{}  {}  ", run.session, local_time(run.last_at));
            let words = clip_columns(&words, columns.saturating_sub(head.chars().count())).into_owned();
            screen::out(&format!("{}{words}\n", styled(FAINT, &head)));
        }
        screen::note(&styled(FAINT, "to continue one: /resume SESSION"));
        return Ok(SessionFlow::GoOn);
    };
    let before = session.run_session();
    let named = Ledger::open(Ledger::home_from_env()?)?.session_in(id, &session.workspace)?;
    if before.as_ref() == Some(&named.id) {
        session.show_earlier();
        return Ok(SessionFlow::GoOn);
    }
    session.args.continue_run(id);
    match session.prepare_again() {
        Ok(()) => session.show_earlier(),
        Err(error) => {
            // The session goes on with the run that it had.
            match before {
                Some(before) => session.args.continue_run(&before),
                None => session.args.begin_run(),
            }
            return Err(error);
        }
    }
    Ok(SessionFlow::GoOn)
}

fn go_on(session: &mut InteractiveSession, _: &[&str]) -> Result<SessionFlow, ToolError> {
    session.proceed()?;
    Ok(SessionFlow::GoOn)
}

fn new_run(session: &mut InteractiveSession, _: &[&str]) -> Result<SessionFlow, ToolError> {
    session.args.begin_run();
    session.prepare_again()?;
    screen::note(&session.model_words());
    Ok(SessionFlow::GoOn)
}

#[expect(clippy::unnecessary_wraps, reason = "all commands have one signature")]
fn help(_: &mut InteractiveSession, _: &[&str]) -> Result<SessionFlow, ToolError> {
    let mut text = String::new();
    let usage = |command: &SlashCommand| format!("/{} {}", command.name, command.usage);
    let wide = COMMANDS.iter().map(|command| usage(command).len()).max().unwrap_or_default();
    for command in COMMANDS {
        let padded = format!("{:<wide$}", usage(command));
        text.push_str(&format!("  {}  {}\n", styled(NAME, &padded), command.about));
    }
    for (keys, about) in [
        ("!COMMAND", "run a shell command in the sandbox, recorded; the model does not see it"),
        ("@PATH", "name a file; Tab completes it"),
        ("Alt-Enter", "a new line; so is a backslash at the end of a line"),
        ("Ctrl-O", "expand the last call, as /show does"),
        ("Ctrl-C", "stop the turn; twice: leave"),
        ("Up, Ctrl-R", "what was typed earlier; search in it"),
    ] {
        text.push_str(&format!("  {}  {about}\n", styled(BOLD, &format!("{keys:<wide$}"))));
    }
    screen::out(&text);
    Ok(SessionFlow::GoOn)
}

#[expect(clippy::unnecessary_wraps, reason = "all commands have one signature")]
fn exit(_: &mut InteractiveSession, _: &[&str]) -> Result<SessionFlow, ToolError> {
    Ok(SessionFlow::End)
}
