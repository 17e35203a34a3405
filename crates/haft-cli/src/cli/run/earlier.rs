//! The run that is continued: the one that is named, or the last one in the workspace.

use std::path::{Path, PathBuf};

use haft_agent::{RunState, read_run};
use haft_files::real_named;
use haft_ledger::{Ledger, SessionInfo};
use haft_tool::{ErrorKind, ToolError};

use super::ENTRY_POINT;
use super::args::RunArgs;

/// Sessions that are looked at for the last run.
const MAX_LISTED_COUNT: usize = 1_000;

/// A run in the ledger.
pub(in crate::cli) struct EarlierRun {
    pub(super) session: String,
    pub(super) workspace: PathBuf,
    /// The name of its session, if it has one.
    name: Option<String>,
    pub(super) state: RunState,
}

impl EarlierRun {
    /// The run that the flags name; `None` if a new one is to begin.
    pub(super) fn find(args: &RunArgs) -> Result<Option<Self>, ToolError> {
        if args.resume.is_none() && !args.continue_last {
            if args.fork_session {
                let why = "--fork-session needs a run to copy: --resume SESSION or --continue";
                return Err(ToolError::invalid_arguments(why));
            }
            return Ok(None);
        }
        let ledger = Ledger::open(Ledger::home_from_env()?)?;
        let folder = args.at.workspace.folder()?;
        let folder = real_named(&folder).unwrap_or(folder);
        let session = match &args.resume {
            Some(name) => ledger.session_in(name.trim(), &folder)?,
            None => last_run(&ledger, &folder)?,
        };
        let state = read_run(&ledger, &session.id)?.ok_or_else(|| no_run(&session.id))?;
        Ok(Some(Self { session: session.id, workspace: session.workspace, name: session.name, state }))
    }

    /// The name of its session, if it has one.
    pub(super) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The run of a session; `None` if it has none yet.
    pub(in crate::cli) fn of_session(ledger: &Ledger, id: &str) -> Result<Option<Self>, ToolError> {
        let session = ledger.session(id)?;
        let state = read_run(ledger, &session.id)?;
        Ok(state.map(|state| Self {
            session: session.id,
            workspace: session.workspace,
            name: session.name,
            state,
        }))
    }

    /// The sequence number with which its last turn began.
    pub(in crate::cli) fn last_turn(&self) -> Option<u64> {
        self.state.turns.last().map(|turn| turn.seq)
    }
}

/// The last run in which something was said.
fn last_run(ledger: &Ledger, folder: &Path) -> Result<SessionInfo, ToolError> {
    let mut runs = Vec::new();
    for session in ledger.sessions(MAX_LISTED_COUNT)? {
        if session.workspace == folder
            && session.entry_point == ENTRY_POINT
            && let Some(at) = ledger.last_event_at(&session.id)?
        {
            runs.push((at, session));
        }
    }
    runs.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    for (_, session) in runs {
        if read_run(ledger, &session.id)?.is_some_and(|state| !state.turns.is_empty()) {
            return Ok(session);
        }
    }
    let message = format!("there is no run to continue in {}", folder.display());
    Err(ToolError::new(ErrorKind::NotFound, message))
}

fn no_run(session: &str) -> ToolError {
    let message =
        format!("session {session} made calls, but no run; only runs of `haft -p` can be continued");
    ToolError::new(ErrorKind::NotFound, message)
}
