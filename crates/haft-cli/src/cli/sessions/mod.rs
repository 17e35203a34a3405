//! `haft sessions`: sessions are listed, searched, shown and exported; those of Claude Code and Codex too, which are only read.

mod export;
pub(in crate::cli) mod foreign;
mod formats;
mod ledger_transcript;
mod list;
mod matching;
mod search;
mod source;

use clap::{Args, Subcommand};
use haft_runtime::Builder;

use super::CommandResult;

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
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  haft sessions\n  haft sessions search 'connection refused'\n  haft sessions export --format html -o run.html\n  \
                  haft sessions list --from claude\n  haft log --session review\n  haft undo --session review"
)]
pub(super) struct SessionsArgs {
    #[command(subcommand)]
    command: Option<SessionsCommand>,
    #[command(flatten)]
    list: list::SessionListArgs,
}

#[derive(Debug, Subcommand)]
enum SessionsCommand {
    /// List sessions, the one with the newest call first; this is what `haft sessions` does.
    List(list::SessionListArgs),
    /// Search what users, models and tools said: prompts, answers, arguments and results of calls; the newest first.
    Search(search::SearchArgs),
    /// Show one session as text.
    Show(export::SessionShowArgs),
    /// Write one session as Markdown, HTML, JSON, JSON lines, or a transcript with which `claude --resume` goes on.
    Export(export::ExportArgs),
}

pub(super) fn run(args: &SessionsArgs) -> CommandResult {
    match &args.command {
        None => list::run(&args.list),
        Some(SessionsCommand::List(args)) => list::run(args),
        Some(SessionsCommand::Search(args)) => search::run(args),
        Some(SessionsCommand::Show(args)) => export::show(args),
        Some(SessionsCommand::Export(args)) => export::run(args),
    }
}
