//! The session that a command names: of the ledger, or of another agent.

use std::path::Path;

use clap::Args;
use haft_compat::transcripts::Transcript;
use haft_files::real_named;
use haft_ledger::{Ledger, SessionInfo};
use haft_tool::{ErrorKind, ToolError};

use super::super::args::WorkspaceArgs;
use super::foreign::{ForeignAgent, ForeignFiles};
use super::ledger_transcript;

/// Sessions that are looked at for the newest.
const MAX_LISTED_COUNT: usize = 1_000;

// No doc comment, because clap would show it instead of the command's own help.
#[derive(Debug, Args)]
pub(super) struct SourceArgs {
    /// Id or name of the session [default: the newest in this workspace].
    #[arg(value_name = "SESSION")]
    session: Option<String>,
    /// Read a transcript of another agent instead of the ledger.
    #[arg(long, value_enum, value_name = "AGENT")]
    from: Option<ForeignAgent>,
    #[command(flatten)]
    pub(super) workspace: WorkspaceArgs,
}

impl SourceArgs {
    /// The transcript of the session.
    pub(super) fn transcript(&self) -> Result<Transcript, ToolError> {
        match self.from {
            Some(agent) => self.foreign(agent),
            None => self.own(),
        }
    }

    fn foreign(&self, agent: ForeignAgent) -> Result<Transcript, ToolError> {
        let Some(id) = &self.session else {
            let folder = self.workspace.folder()?;
            let files = ForeignFiles::find(agent, Some(&folder))?;
            return files.iter().next().ok_or_else(|| none_in(&folder.display().to_string()))?.read();
        };
        ForeignFiles::find(agent, None)?.with_id(id)?.read()
    }

    fn own(&self) -> Result<Transcript, ToolError> {
        let (ledger, session) = self.ledger_session()?;
        ledger_transcript::read(&ledger, &session)
    }

    /// The session in the ledger.
    pub(super) fn ledger_session(&self) -> Result<(Ledger, SessionInfo), ToolError> {
        if self.from.is_some() {
            return Err(ToolError::invalid_arguments(
                "--from: the transcripts of other agents have no spans. Leave it out, or use another format",
            ));
        }
        let ledger = Ledger::open(Ledger::home_from_env()?)?;
        let folder = self.workspace.folder()?;
        let folder = real_named(&folder).unwrap_or(folder);
        let session = match &self.session {
            Some(name) => ledger.session_in(name.trim(), &folder)?,
            None => newest(&ledger, &folder)?.ok_or_else(|| none_in(&folder.display().to_string()))?,
        };
        Ok((ledger, session))
    }
}

/// The session of the workspace in which something happened last.
fn newest(ledger: &Ledger, workspace: &Path) -> Result<Option<SessionInfo>, ToolError> {
    let mut sessions: Vec<(u64, SessionInfo)> = Vec::new();
    for session in ledger.sessions(MAX_LISTED_COUNT)? {
        let last_event = ledger.last_event_at(&session.id)?;
        if session.workspace == workspace && (session.calls > 0 || last_event.is_some()) {
            sessions.push((last_event.unwrap_or(session.started_at), session));
        }
    }
    Ok(sessions.into_iter().max_by_key(|(at, _)| *at).map(|(_, session)| session))
}

fn none_in(place: &str) -> ToolError {
    let message = format!(
        "There is no session in {place}. Name one; `haft sessions --all` lists those of every workspace."
    );
    ToolError::new(ErrorKind::NotFound, message)
}
