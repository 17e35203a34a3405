//! Whoever runs the tools, as far as tools need more than a machine: somebody who answers questions, starts agents,
//! asks models, holds servers and carries messages.
//!
//! The command line, the loop and the servers each implement what they can; what nobody implements says so.

use std::future::Future;
use std::pin::Pin;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Configuration, Output, State, ToolError};

/// A line of the log: a call, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Logged {
    /// Its number.
    pub call: i64,
    /// The tool's name.
    pub tool: String,
    /// How it ended, or that it has not.
    pub state: State,
    /// When it started, in milliseconds since 1970.
    pub at: u64,
    /// How many paths it changed.
    pub changes: u64,
    /// The first of them.
    pub paths: Vec<String>,
    /// The call that took it back.
    pub undone_by: Option<i64>,
}

/// What a host is doing. Dropping it gives it up.
pub type Hosted<'a, T> = Pin<Box<dyn Future<Output = Result<T, ToolError>> + Send + 'a>>;

/// A question with a few answers to choose from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserQuestion {
    /// The whole question.
    pub question: String,
    /// A word or two to show above it.
    pub header: String,
    /// The answers offered; the user may always give one of their own.
    pub choices: Vec<Choice>,
    /// Whether several may be chosen.
    pub several: bool,
}

/// One answer offered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// The answer.
    pub label: String,
    /// What choosing it means.
    pub description: String,
}

/// An agent to start for a task of its own.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentOrder {
    /// The task in a few words.
    pub description: String,
    /// The task.
    pub prompt: String,
    /// Which kind of agent.
    pub kind: String,
    /// Which model, in the caller's words.
    pub model: Option<String>,
    /// The agent to go on with.
    pub resume: Option<String>,
    /// Whether the caller goes on meanwhile.
    pub background: bool,
    /// How many rounds it may take.
    pub max_turns: Option<u32>,
    /// What it is called.
    pub name: Option<String>,
    /// The team it belongs to.
    pub team: Option<String>,
    /// Its permission mode.
    pub mode: Option<String>,
}

/// What became of an agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentReport {
    /// Its id, to go on with it or to read its output.
    pub id: String,
    /// What it said at the end; nothing while it runs in the background.
    pub said: Option<String>,
    /// How many rounds it took.
    pub turns: u32,
    /// How many tokens it used.
    pub tokens: u64,
}

/// A plan that waits for the user's yes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PlanReady {
    /// The plan, if the caller wrote it down.
    pub plan: Option<String>,
    /// What it would like to be allowed: a tool and what for.
    pub allow: Vec<(String, String)>,
}

/// A resource that a connected server offers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Resource {
    /// The server.
    pub server: String,
    /// The address on that server.
    pub uri: String,
    /// What it is called.
    pub name: String,
    /// What it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// For example `text/plain`.
    #[serde(default, rename = "mimeType", skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
}

/// Which of the host's models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelRole {
    /// A small and fast one, for a summary.
    Small,
    /// Another one than the caller, for a second opinion.
    Oracle,
}

/// A question to a model, without tools.
#[derive(Debug, Clone, PartialEq)]
pub struct Completion {
    /// Which model.
    pub role: ModelRole,
    /// How it should answer.
    pub system: Option<String>,
    /// The question.
    pub prompt: String,
    /// The most tokens it may answer with.
    pub max_tokens: u32,
}

/// A message for people somewhere else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// The channel, for example `slack`.
    pub channel: String,
    /// The conversation there.
    pub chat_id: String,
    /// The words.
    pub content: String,
}

/// Whoever runs the tools. What one of them does not do itself is left to whoever stands behind it; behind the last one
/// stands nobody, which is then the answer.
pub trait Host: Send + Sync {
    /// Who does what this host does not do itself.
    fn behind(&self) -> Option<&dyn Host> {
        None
    }

    /// Asks the user. One answer per question, in order: the chosen labels, or words of their own.
    fn ask<'a>(&'a self, questions: &'a [UserQuestion]) -> Hosted<'a, Vec<Vec<String>>> {
        match self.behind() {
            Some(host) => host.ask(questions),
            None => nobody(
                "nobody is here to answer questions; go on with your best judgement and say what you assumed",
            ),
        }
    }

    /// Runs an agent to its end, or starts it in the background.
    fn agent<'a>(&'a self, order: &'a AgentOrder) -> Hosted<'a, AgentReport> {
        match self.behind() {
            Some(host) => host.agent(order),
            None => nobody(
                "agents cannot be started here: calls come in without a model; do the task with the other tools",
            ),
        }
    }

    /// Shows a plan to the user; the answer is theirs. An error means no.
    fn plan_ready<'a>(&'a self, plan: &'a PlanReady) -> Hosted<'a, String> {
        match self.behind() {
            Some(host) => host.plan_ready(plan),
            None => nobody("there is no plan mode to leave here"),
        }
    }

    /// The resources of one server, or of all.
    fn resources<'a>(&'a self, server: Option<&'a str>) -> Hosted<'a, Vec<Resource>> {
        match self.behind() {
            Some(host) => host.resources(server),
            None => nobody("no MCP servers are connected here"),
        }
    }

    /// What a resource holds.
    fn resource<'a>(&'a self, server: &'a str, uri: &'a str) -> Hosted<'a, Output> {
        match self.behind() {
            Some(host) => host.resource(server, uri),
            None => nobody("no MCP servers are connected here"),
        }
    }

    /// Whether there is a model of this role.
    fn has_model(&self, role: ModelRole) -> bool {
        self.behind().is_some_and(|host| host.has_model(role))
    }

    /// Asks a model; gives its words.
    fn complete<'a>(&'a self, completion: &'a Completion) -> Hosted<'a, String> {
        match self.behind() {
            Some(host) => host.complete(completion),
            None => nobody("no model is set for this"),
        }
    }

    /// Hands a message over; that it was taken is all that is known.
    fn send<'a>(&'a self, message: &'a Message) -> Hosted<'a, ()> {
        match self.behind() {
            Some(host) => host.send(message),
            None => nobody("no channels are set up here; name one in haft.toml under [channels]"),
        }
    }

    /// The last calls that were recorded here, the newest first.
    fn log(&self, limit: usize) -> Hosted<'_, Vec<Logged>> {
        match self.behind() {
            Some(host) => host.log(limit),
            None => nobody("the ledger cannot be seen from here; `haft log` shows it"),
        }
    }

    /// Takes a call back; the last one that changed something if none is named.
    fn undo(&self, call: Option<i64>) -> Hosted<'_, Output> {
        match self.behind() {
            Some(host) => host.undo(call),
            None => nobody("calls cannot be taken back from here; `haft undo` does it"),
        }
    }

    /// What the user has set, if there is a file for it.
    fn configuration(&self) -> Option<&dyn Configuration> {
        self.behind()?.configuration()
    }

    /// Hears of something that watchers may want to show, for example a new list of todos.
    fn tell(&self, topic: &str, facts: &Value) {
        if let Some(host) = self.behind() {
            host.tell(topic, facts);
        }
    }
}

fn nobody<'a, T>(why: &'static str) -> Hosted<'a, T> {
    Box::pin(async move { Err(ToolError::failed(why)) })
}

/// No host at all.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHost;

impl Host for NoHost {}
