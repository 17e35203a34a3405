//! The command line as a host: questions at the terminal, the user's settings, and channels for messages.

mod bus;
mod question;
mod reach;
mod terminal;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Mutex;

use haft_bus::{ChannelSettings, Undelivered};
use haft_sandbox::{AnswerForm, terminal_is_quiet};
use haft_tool::{
    Audience, Cancel, Configuration, Host, HostAnswer, HostRequest, Message, NoHost, PlanReady, ToolError,
    UserQuestion, Value, lock,
};

use crate::cli::screen::{self, BOLD, NAME, NOTE, styled};
use crate::cli::terminal::{ask_user, note_answer};
use crate::config::{Config, LiveSettings};
use bus::Channels;
pub(crate) use question::question_text;
pub(crate) use reach::{ProjectSettings, reach_question};

/// The host of the commands that make calls.
pub(crate) struct CommandLine {
    settings: Option<LiveSettings>,
    project: ProjectSettings,
    /// Whether a user can be asked at the terminal.
    is_interactive: bool,
    /// Whether the user does not want to be asked for permission, not even on a page.
    asks_nobody: bool,
    channels: Channels,
    /// Warnings about servers that were shown already.
    shown: Mutex<BTreeSet<String>>,
}

impl CommandLine {
    /// A host with the settings and channels of `config`; `is_interactive` says whether the user can be asked.
    pub(crate) fn new(config: &Config, workspace: &Path, is_interactive: bool) -> Self {
        let settings = config.path().map(|path| LiveSettings::new(path.to_owned(), workspace.to_owned()));
        Self {
            settings,
            project: ProjectSettings::new(workspace, config.path()),
            is_interactive,
            asks_nobody: false,
            channels: Channels::new(config.values.channels.clone()),
            shown: Mutex::default(),
        }
    }

    /// The host, where the user does not want to be asked for permission.
    #[must_use]
    pub(crate) fn asking_nobody(self) -> Self {
        Self { asks_nobody: true, ..self }
    }

    /// A host with only the path of the settings, so that they are protected and can be restored.
    pub(crate) fn settings_only(path: Option<&Path>, workspace: &Path) -> Self {
        let settings = path.map(|path| LiveSettings::new(path.to_owned(), workspace.to_owned()));
        let channels = Channels::new(BTreeMap::<String, ChannelSettings>::new());
        let project = ProjectSettings::new(workspace, path);
        Self {
            settings,
            project,
            is_interactive: false,
            asks_nobody: false,
            channels,
            shown: Mutex::default(),
        }
    }

    /// Where the answers about hosts are kept.
    pub(crate) fn project(&self) -> &ProjectSettings {
        &self.project
    }

    /// Waits for the delivery of messages; returns those that were not delivered.
    pub(crate) fn close(&self) -> Vec<Undelivered> {
        self.channels.close()
    }
}

impl Host for CommandLine {
    fn audience(&self) -> Audience {
        match (self.asks_nobody, self.is_interactive) {
            (true, _) => Audience::NoOne,
            (false, true) => Audience::Person,
            (false, false) => Audience::PagesOnly,
        }
    }

    fn ask(&self, questions: &[UserQuestion], cancel: &Cancel) -> Result<Vec<Vec<String>>, ToolError> {
        if !self.is_interactive {
            return NoHost.ask(questions, cancel);
        }
        terminal::ask(questions, cancel)
    }

    fn may_reach(&self, request: &HostRequest, cancel: &Cancel) -> Option<HostAnswer> {
        if !self.is_interactive || self.asks_nobody {
            return None;
        }
        let choices = self.project.choices();
        let letters: Vec<String> = choices.iter().map(|choice| choice.letter.to_string()).collect();
        let mut text = format!("\n{}\n", styled(BOLD, &reach_question(request)));
        for choice in &choices {
            let letter = styled(NAME, &choice.letter.to_string());
            text.push_str(&format!("  {letter}  {} ({})\n", choice.name, choice.means));
        }
        text.push_str(&styled(NOTE, &format!("Allow it? [{}] ", letters.join("/"))));
        let keys = letters.concat();
        let form = if terminal_is_quiet() { AnswerForm::Key(&keys) } else { AnswerForm::Line };
        let answer = self.project.answer(&ask_user(form, &text, cancel).ok()?);
        if answer == HostAnswer::Project {
            match self.project.remember(request) {
                Ok(done) => screen::note(&screen::sanitize(&done)),
                Err(error) => screen::error(&error.message),
            }
        }
        Some(answer)
    }

    fn plan_ready(&self, plan: &PlanReady, cancel: &Cancel) -> Result<String, ToolError> {
        if !self.is_interactive {
            return NoHost.plan_ready(plan, cancel);
        }
        terminal::approve(plan, cancel)
    }

    fn answered_elsewhere(&self, by: &str, did: &str) {
        if self.is_interactive {
            note_answer(by, did);
        }
    }

    fn send(&self, message: &Message) -> Result<(), ToolError> {
        if self.channels.is_empty() {
            return NoHost.send(message);
        }
        self.channels.send(message)
    }

    fn configuration(&self) -> Option<&dyn Configuration> {
        self.settings.as_ref().map(|settings| settings as &dyn Configuration)
    }

    fn notify(&self, topic: &str, facts: &Value) {
        let warning = facts.get("warning").and_then(Value::as_str).filter(|_| topic == "server");
        let Some(warning) = warning else { return };
        if lock(&self.shown).insert(warning.to_owned()) {
            screen::warnings(&[warning.to_owned()]);
        }
    }
}
