//! The run that is continued: the one that is named, or the last one in the workspace. A session of Claude Code that the ledger does not
//! know is continued as a new run.

use std::path::{Path, PathBuf};

use haft_agent::{RunState, read_run};
use haft_files::real_named;
use haft_ledger::{Ledger, SessionInfo};
use haft_model::ChatMessage;
use haft_tool::{ErrorKind, ToolError};

use super::ENTRY_POINT;
use super::args::RunArgs;
use super::import::ImportedConversation;

/// Sessions that are looked at for the last run.
const MAX_LISTED_COUNT: usize = 1_000;

/// A run in the ledger, or a conversation from elsewhere with which a new one begins.
pub(in crate::cli) struct EarlierRun {
    /// Its id; of a conversation from elsewhere the name that its run gets.
    pub(super) session: String,
    pub(super) workspace: PathBuf,
    /// The name of its session, if it has one.
    name: Option<String>,
    pub(super) state: RunState,
    /// The messages with which a new run begins.
    pub(super) imported: Option<Vec<ChatMessage>>,
}

impl EarlierRun {
    /// The run that the flags name; `None` if a new one is to begin.
    pub(in crate::cli) fn find(args: &RunArgs) -> Result<Option<Self>, ToolError> {
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
            Some(name) => match ledger.session_in(name.trim(), &folder) {
                Ok(session) => session,
                Err(error) if error.kind == ErrorKind::NotFound => {
                    let imported = ImportedConversation::find(name.trim(), &folder)?;
                    return imported.map(|imported| Some(Self::from(imported))).ok_or(error);
                }
                Err(error) => return Err(error),
            },
            None => last_run(&ledger, &folder)?,
        };
        let state = read_run(&ledger, &session.id)?.ok_or_else(|| no_run(&session.id))?;
        let SessionInfo { id, workspace, name, .. } = session;
        Ok(Some(Self { session: id, workspace, name, state, imported: None }))
    }

    /// The name of its session, if it has one.
    pub(super) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The run of a session; `None` if it has none yet.
    pub(in crate::cli) fn of_session(ledger: &Ledger, id: &str) -> Result<Option<Self>, ToolError> {
        let session = ledger.session(id)?;
        let state = read_run(ledger, &session.id)?;
        let SessionInfo { id, workspace, name, .. } = session;
        Ok(state.map(|state| Self { session: id, workspace, name, state, imported: None }))
    }

    /// The sequence number with which its last turn began.
    pub(in crate::cli) fn last_turn(&self) -> Option<u64> {
        self.state.turns.last().map(|turn| turn.seq)
    }
}

impl From<ImportedConversation> for EarlierRun {
    fn from(imported: ImportedConversation) -> Self {
        let ImportedConversation { id, workspace, messages } = imported;
        Self { session: id, workspace, name: None, state: RunState::default(), imported: Some(messages) }
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
