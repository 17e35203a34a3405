//! `haft sessions list`: the sessions that made calls, and the transcripts of other agents.

use clap::Args;
use haft_ledger::UsedSession;
use haft_tool::{clip_chars, json};

use super::super::CommandResult;
use super::super::args::WorkspaceArgs;
use super::super::exit::CliExit;
use super::super::local_time::local_time;
use super::super::screen::{self, FAINT, NAME, styled};
use super::super::view::ViewArgs;
use super::foreign::{ForeignAgent, ForeignFile, ForeignFiles};

// No doc comment, because clap would show it instead of the command's own help.
#[derive(Debug, Args)]
pub(super) struct SessionListArgs {
    /// Number of sessions to list.
    #[arg(short = 'n', long, default_value_t = 20, value_parser = super::super::paths::list_length)]
    limit: usize,
    /// List the sessions of every workspace.
    #[arg(long)]
    all: bool,
    /// Print one JSON object per line.
    #[arg(long)]
    json: bool,
    /// List the transcripts of another agent instead.
    #[arg(long, value_enum, value_name = "AGENT")]
    from: Option<ForeignAgent>,
    #[command(flatten)]
    view: ViewArgs,
    #[command(flatten)]
    workspace: WorkspaceArgs,
}

/// Characters of what the user said first.
const MAX_WORDS_CHARS: usize = 60;

pub(super) fn run(args: &SessionListArgs) -> CommandResult {
    args.view.set_colors();
    if let Some(agent) = args.from {
        return run_foreign(args, agent);
    }
    let runtime = args.workspace.builder()?.build()?;
    runtime.recover()?;
    let here = (!args.all).then(|| runtime.workspace());
    let sessions = runtime.ledger()?.used_sessions(here, args.limit)?;
    if args.json {
        for UsedSession { info, last_call_at, changing_calls } in &sessions {
            let object = json!({
                "id": info.id,
                "name": info.name,
                "workspace": info.workspace.display().to_string(),
                "entry_point": info.entry_point,
                "dialect": info.dialect,
                "started_at": info.started_at,
                "last_call_at": last_call_at,
                "calls": info.calls,
                "changing_calls": changing_calls,
            });
            screen::result(&object.to_string());
        }
        return Ok(CliExit::Done);
    }
    if sessions.is_empty() {
        let place = here.map(|here| format!(" in {}", here.display())).unwrap_or_default();
        screen::note(&format!("no calls are recorded{place}"));
    }
    args.view.show(&sessions.iter().map(|session| line(session, args.all)).collect::<String>());
    Ok(CliExit::Done)
}

fn line(session: &UsedSession, with_place: bool) -> String {
    let UsedSession { info, last_call_at, changing_calls } = session;
    let name = info.name.as_deref().map(screen::escape).unwrap_or_default();
    let changing = match changing_calls {
        0 => String::new(),
        some => format!(", {some} changed something"),
    };
    let place = if with_place {
        format!("  {}", styled(FAINT, &screen::escape(&info.workspace.display().to_string())))
    } else {
        String::new()
    };
    format!(
        "{}  {}  {}  {}  {}{changing}{place}\n",
        info.id,
        styled(NAME, &format!("{name:<16}")),
        local_time(*last_call_at),
        styled(FAINT, &format!("{:<7}", screen::escape(&info.entry_point))),
        screen::count(info.calls, "call"),
    )
}

fn run_foreign(args: &SessionListArgs, agent: ForeignAgent) -> CommandResult {
    let folder = args.workspace.folder()?;
    let here = (!args.all).then_some(folder.as_path());
    let files = ForeignFiles::find(agent, here)?;
    let mut text = String::new();
    let mut count = 0;
    for file in files.iter().take(args.limit) {
        count += 1;
        if args.json {
            screen::result(&foreign_json(agent, file).to_string());
        } else {
            text.push_str(&foreign_line(file, args.all));
        }
    }
    if args.json {
        return Ok(CliExit::Done);
    }
    if count == 0 {
        let place = here.map(|here| format!(" of {}", here.display())).unwrap_or_default();
        screen::note(&format!("there are no transcripts{place} in {}", files.root().display()));
    }
    args.view.show(&text);
    Ok(CliExit::Done)
}

fn foreign_json(agent: ForeignAgent, file: &ForeignFile) -> haft_tool::Value {
    let head = file.head();
    json!({
        "id": file.id,
        "from": agent.source().name(),
        "name": head.name,
        "workspace": head.workspace,
        "started_at": head.started_at,
        "last_at": file.changed_at,
        "first_words": head.first_words(),
        "path": file.path.display().to_string(),
    })
}

fn foreign_line(file: &ForeignFile, with_place: bool) -> String {
    let head = file.head();
    let words = head.name.as_deref().or_else(|| head.first_words()).unwrap_or_default();
    let words = screen::escape(&clip_chars(words.lines().next().unwrap_or_default(), MAX_WORDS_CHARS, 0));
    let place = head.workspace.as_deref().filter(|_| with_place);
    let place = place.map(|place| format!("  {}", styled(FAINT, &screen::escape(place)))).unwrap_or_default();
    format!(
        "{}  {}  {}{place}\n",
        screen::escape(&file.id),
        local_time(file.changed_at),
        styled(NAME, &words)
    )
}
