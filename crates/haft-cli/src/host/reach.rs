//! The question whether a command may reach a host, and where the answer "always" is kept.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use haft_tool::net::{Domains, Peer, entry_for};
use haft_tool::{HostAnswer, HostRequest, ToolError, clip_chars};

use crate::cli::add_to_project_network;
use crate::cli::screen::escape;
use crate::config::{Config, project_key};

/// How much of a command is shown.
const MAX_COMMAND_CHARS: usize = 200;

/// The project that a question is about, and the user's file.
#[derive(Debug, Clone)]
pub(crate) struct ProjectSettings {
    workspace: PathBuf,
    /// `None` where there is no place for the user's settings.
    file: Option<PathBuf>,
}

/// One answer: its letter, its name in a form, what it means.
pub(crate) struct ReachChoice {
    pub(crate) letter: char,
    pub(crate) name: &'static str,
    pub(crate) means: String,
    answer: HostAnswer,
}

impl ProjectSettings {
    pub(crate) fn new(workspace: &Path, file: Option<&Path>) -> Self {
        Self { workspace: workspace.to_owned(), file: file.map(Path::to_owned) }
    }

    /// The answers that can be given.
    pub(crate) fn choices(&self) -> Vec<ReachChoice> {
        let choice =
            |letter, name, means: &str, answer| ReachChoice { letter, name, means: means.to_owned(), answer };
        let mut all = vec![
            choice('o', "once", "for this command", HostAnswer::Once),
            choice('s', "session", "until this session ends", HostAnswer::Session),
        ];
        let project = project_key(&self.workspace);
        // A name that is not UTF-8 would be stored as another one.
        if let Some(file) = self.file.as_ref().filter(|_| !project.contains(char::REPLACEMENT_CHARACTER)) {
            let (project, file) = (escape(&project), escape(&file.display().to_string()));
            let means = format!("in this project, {project}; written to {file}");
            all.push(choice('a', "always", &means, HostAnswer::Project));
        }
        all.push(choice('n', "no", "refuse it", HostAnswer::Refuse));
        all
    }

    /// The answer that a letter or a name means; anything unknown is no.
    pub(crate) fn answer(&self, text: &str) -> HostAnswer {
        let text = text.trim().to_ascii_lowercase();
        let is_meant = |choice: &&ReachChoice| text == choice.name || text == choice.letter.to_string();
        self.choices().iter().find(is_meant).map_or(HostAnswer::Refuse, |choice| choice.answer)
    }

    /// Stores the answer "always": the host is added to the project's list in the user's own file, which no call can write. A name
    /// of which the address must be listed too is not stored, because that alone would allow nothing.
    pub(crate) fn remember(&self, request: &HostRequest) -> Result<String, ToolError> {
        let HostRequest { host, port, entry, .. } = request;
        if let Some((address, range)) = haft_net::special_address(host)
            && !self.lists(address, *port)
        {
            let address = entry_for(&Peer::from(address), *port);
            return Err(ToolError::denied(format!(
                "{host} was not stored: its name resolves to {address}, {range}, which is reached only if it is listed too. To \
                 allow it: haft config add network {entry} {address}"
            )));
        }
        add_to_project_network(&self.workspace, entry)
    }

    /// Whether the settings list this address.
    fn lists(&self, address: IpAddr, port: u16) -> bool {
        let words = Config::load(&self.workspace).map(|config| config.network(&self.workspace).0);
        let domains = words.ok().and_then(|words| Domains::parse(&words).ok());
        domains.is_some_and(|domains| domains.lists(address, port))
    }
}

/// The question itself.
pub(crate) fn reach_question(request: &HostRequest) -> String {
    let HostRequest { command, host, port, .. } = request;
    let command = escape(&clip_chars(command, MAX_COMMAND_CHARS, 0));
    format!("A command wants to reach {}:{port}.\n  The command: {command}\n", escape(host))
}
