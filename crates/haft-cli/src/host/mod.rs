//! The command line as a host: a person who answers, the user's settings, and channels for messages.

mod bus;
mod terminal;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Mutex;

use haft_bus::{ChannelSettings, Undelivered};
use haft_tool::{
    Cancel, Configuration, Host, Message, NoHost, PlanReady, ToolError, UserQuestion, Value, lock,
};

use crate::cli::screen::{self, NOTE, painted};
use crate::cli::terminal::at_the_terminal;
use crate::config::{Config, Live};
use bus::Channels;

/// The host of the commands that make calls.
pub(crate) struct CommandLine {
    settings: Option<Live>,
    /// Whether a user can be asked at the terminal.
    person: bool,
    channels: Channels,
    /// Warnings about servers that were shown already.
    said: Mutex<BTreeSet<String>>,
}

impl CommandLine {
    /// A host with the settings and channels of `config`; `person` says whether a user can be asked.
    pub(crate) fn new(config: &Config, workspace: &Path, person: bool) -> Self {
        let settings = config.path().map(|path| Live::new(path.to_owned(), workspace.to_owned()));
        Self {
            settings,
            person,
            channels: Channels::new(config.values.channels.clone()),
            said: Mutex::default(),
        }
    }

    /// A host that only knows where the settings are, so that they are protected and can be restored.
    pub(crate) fn settings_only(path: Option<&Path>, workspace: &Path) -> Self {
        let settings = path.map(|path| Live::new(path.to_owned(), workspace.to_owned()));
        let channels = Channels::new(BTreeMap::<String, ChannelSettings>::new());
        Self { settings, person: false, channels, said: Mutex::default() }
    }

    /// Waits until every message has been delivered, and tells of those that were not.
    pub(crate) fn close(&self) -> Vec<Undelivered> {
        self.channels.close()
    }
}

impl Host for CommandLine {
    fn ask(&self, questions: &[UserQuestion], cancel: &Cancel) -> Result<Vec<Vec<String>>, ToolError> {
        if !self.person {
            return NoHost.ask(questions, cancel);
        }
        let questions = questions.to_vec();
        at_the_terminal(cancel, move || terminal::ask(&questions))
    }

    fn plan_ready(&self, plan: &PlanReady, cancel: &Cancel) -> Result<String, ToolError> {
        if !self.person {
            return NoHost.plan_ready(plan, cancel);
        }
        let plan = plan.clone();
        at_the_terminal(cancel, move || terminal::approve(&plan))
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
        let mut said = lock(&self.said);
        if said.insert(warning.to_owned()) {
            screen::note(&format!("{}: {}", painted(NOTE, "note"), screen::harmless(warning)));
        }
    }
}
