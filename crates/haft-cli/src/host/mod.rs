//! The command line as a host: a person who answers, the user's settings, and channels for messages.

mod bus;
mod terminal;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Mutex;

use haft_bus::{ChannelSettings, Undelivered};
use haft_tool::{Configuration, Host, Hosted, Message, NoHost, PlanReady, UserQuestion, Value, lock};

use crate::cli::screen::{self, NOTE, painted};
use crate::cli::terminal::at_the_terminal;
use crate::config::{Config, Live};
use bus::Channels;

/// The host of the commands that make calls.
pub(crate) struct CommandLine {
    settings: Option<Live>,
    /// Whether somebody sits at the terminal.
    person: bool,
    channels: Channels,
    /// What was said of servers; nobody wants to read it twice.
    said: Mutex<BTreeSet<String>>,
}

impl CommandLine {
    /// A host with the settings and channels of `config`; `person` says whether somebody can be asked.
    pub(crate) fn new(config: &Config, workspace: &Path, person: bool) -> Self {
        let settings = config.path().map(|path| Live::new(path.to_owned(), workspace.to_owned()));
        Self {
            settings,
            person,
            channels: Channels::new(config.values.channels.clone()),
            said: Mutex::default(),
        }
    }

    /// A host that only knows where the settings are, so that they are protected and can be put back.
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
    fn ask<'a>(&'a self, questions: &'a [UserQuestion]) -> Hosted<'a, Vec<Vec<String>>> {
        if !self.person {
            return NoHost.ask(questions);
        }
        let questions = questions.to_vec();
        Box::pin(async move { at_the_terminal(move || terminal::ask(&questions)).await })
    }

    fn plan_ready<'a>(&'a self, plan: &'a PlanReady) -> Hosted<'a, String> {
        if !self.person {
            return NoHost.plan_ready(plan);
        }
        let plan = plan.clone();
        Box::pin(async move { at_the_terminal(move || terminal::approve(&plan)).await })
    }

    fn send<'a>(&'a self, message: &'a Message) -> Hosted<'a, ()> {
        if self.channels.is_empty() {
            return NoHost.send(message);
        }
        Box::pin(async move { self.channels.send(message) })
    }

    fn configuration(&self) -> Option<&dyn Configuration> {
        self.settings.as_ref().map(|settings| settings as &dyn Configuration)
    }

    fn tell(&self, topic: &str, facts: &Value) {
        let warning = facts.get("warning").and_then(Value::as_str).filter(|_| topic == "server");
        let Some(warning) = warning else { return };
        let mut said = lock(&self.said);
        if said.insert(warning.to_owned()) {
            screen::note(&format!("{}: {}", painted(NOTE, "note"), screen::harmless(warning)));
        }
    }
}
