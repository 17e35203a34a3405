//! What an interactive session needs of the flags of a run.

use std::io::IsTerminal;
use std::path::Path;

use haft_agent::read_run;
use haft_ledger::Ledger;
use haft_model::{ChatMessage, ContentPart};
use haft_tool::{ErrorKind, ToolError};

use super::super::args::WorkspaceArgs;
use super::super::terminal;
use super::args::{RunArgs, RunOutputFormat, SCRIPT, providers};
use super::earlier::EarlierRun;
use super::prepare::PreparedRun;
use super::provider;
use super::{ENTRY_POINT, prompt};

/// Sessions that are looked at for runs.
const MAX_LISTED_COUNT: usize = 1_000;

/// A run that can be continued.
pub(in crate::cli) struct RunListing {
    pub(in crate::cli) session: String,
    pub(in crate::cli) last_at: u64,
    /// What the user said first.
    pub(in crate::cli) first_words: String,
}

impl RunArgs {
    /// Whether these flags, without a command before them, open a session.
    pub(in crate::cli) fn opens_session(&self) -> bool {
        let is_text = matches!(self.output_format, RunOutputFormat::Text);
        !self.print
            && is_text
            && !self.stream.has_host()
            && terminal::is_interactive()
            && std::io::stdout().is_terminal()
    }

    pub(in crate::cli) fn is_plain(&self) -> bool {
        self.plain
    }

    pub(in crate::cli) fn workspace(&self) -> &WorkspaceArgs {
        &self.at.workspace
    }

    /// The words that are the first message.
    pub(in crate::cli) fn take_first_message(&mut self) -> Result<Option<String>, ToolError> {
        let words = std::mem::take(&mut self.prompt);
        if words.is_empty() { Ok(None) } else { prompt(&words) }
    }

    /// Prepares the run that the flags name. From then on the same run is meant.
    pub(in crate::cli) fn prepare(&mut self) -> Result<PreparedRun, ToolError> {
        let earlier = EarlierRun::find(self)?;
        let prepared = PreparedRun::new(self, earlier.as_ref())?;
        self.continue_run(prepared.run.session());
        Ok(prepared)
    }

    /// From now on this run is meant.
    pub(in crate::cli) fn continue_run(&mut self, session: &str) {
        (self.resume, self.continue_last, self.fork_session) = (Some(session.to_owned()), false, false);
    }

    /// From now on a new run is meant.
    pub(in crate::cli) fn begin_run(&mut self) {
        (self.resume, self.continue_last, self.fork_session) = (None, false, false);
    }

    /// Goes on with another model, of this provider or of the same one.
    pub(in crate::cli) fn change_model(
        &mut self,
        provider: Option<&str>,
        model: &str,
        prepared: Option<&mut PreparedRun>,
    ) -> Result<(), ToolError> {
        let mut flags = self.model.clone();
        flags.model = Some(model.to_owned());
        match (provider, prepared.as_ref()) {
            (Some(provider), _) => {
                check_provider(provider)?;
                (flags.provider, flags.base_url, flags.wire) = (Some(provider.to_owned()), None, None);
            }
            (None, Some(prepared)) => {
                let now = prepared.run.state().provider.clone();
                flags.provider = flags.provider.or(Some(now));
            }
            (None, None) => {}
        }
        if let Some(prepared) = prepared {
            let section = &prepared.setup.config.values.model;
            let chosen = provider::choose(&flags, section, self.max_turns, None, &prepared.runtime)?;
            prepared.routed = None;
            prepared.run.change_model(chosen.model)?;
            prepared.run.settings_mut().fast_model = chosen.fast;
            prepared.agents.attach(&prepared.run);
        }
        self.model = flags;
        Ok(())
    }
}

impl RunListing {
    /// The newest runs in a workspace.
    pub(in crate::cli) fn newest(workspace: &Path, limit: usize) -> Result<Vec<Self>, ToolError> {
        let ledger = Ledger::open(Ledger::home_from_env()?)?;
        let mut runs = Vec::new();
        for session in ledger.sessions(MAX_LISTED_COUNT)? {
            if session.workspace == workspace
                && session.entry_point == ENTRY_POINT
                && let Some(at) = ledger.last_event_at(&session.id)?
            {
                runs.push((at, session.id));
            }
        }
        runs.sort_unstable_by(|a, b| b.cmp(a));
        let mut listed = Vec::new();
        for (last_at, session) in runs {
            let Some(state) = read_run(&ledger, &session)?.filter(|state| !state.turns.is_empty()) else {
                continue;
            };
            let first_words = state.conversation.messages.iter().find_map(said).unwrap_or_default();
            listed.push(Self { session, last_at, first_words });
            if listed.len() == limit {
                break;
            }
        }
        Ok(listed)
    }
}

/// Refuses the name of a provider that does not exist. A script is named on the command line, with its file.
fn check_provider(name: &str) -> Result<(), ToolError> {
    let names: Vec<&str> = providers().into_iter().filter(|name| *name != SCRIPT).collect();
    if names.contains(&name) {
        return Ok(());
    }
    let why = format!("{name:?} is no provider. There are: {}.", names.join(", "));
    Err(ToolError::new(ErrorKind::NotFound, why))
}

/// What the user said in a message.
fn said(message: &ChatMessage) -> Option<String> {
    let ChatMessage::User { content } = message else { return None };
    content.iter().find_map(|part| match part {
        ContentPart::Text { text } => Some(text.clone()),
        ContentPart::Image { .. } => None,
    })
}
