//! `haft sessions`: the sessions that made calls.

use clap::Args;
use haft_ledger::UsedSession;
use haft_runtime::Builder;
use haft_tool::json;

use super::CommandResult;
use super::args::WorkspaceArgs;
use super::exit::CliExit;
use super::local_time::local_time;
use super::screen::{self, FAINT, NAME, styled};
use super::view::ViewArgs;

// No doc comment, because clap would show it instead of the command's own help.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct SessionNameArgs {
    /// Continue the session with this name or id; a new name starts a session [default: $`HAFT_SESSION`, else a new one].
    #[arg(id = "session", long, value_name = "NAME")]
    name: Option<String>,
}

impl SessionNameArgs {
    /// The builder with the session that the flag or the variable names.
    pub(super) fn apply(&self, builder: Builder) -> Builder {
        let named = || std::env::var("HAFT_SESSION").ok().filter(|name| !name.is_empty());
        match self.name.clone().or_else(named) {
            Some(name) => builder.named_session(name),
            None => builder,
        }
    }
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  haft sessions\n  haft log --session review\n  haft undo --session review"
)]
pub(super) struct SessionsArgs {
    /// Number of sessions to list.
    #[arg(short = 'n', long, default_value_t = 20, value_parser = super::paths::list_length)]
    limit: usize,
    /// List the sessions of every workspace.
    #[arg(long)]
    all: bool,
    /// Print one JSON object per line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    view: ViewArgs,
    #[command(flatten)]
    workspace: WorkspaceArgs,
}

pub(super) fn run(args: &SessionsArgs) -> CommandResult {
    args.view.set_colors();
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
