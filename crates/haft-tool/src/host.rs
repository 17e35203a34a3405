//! What tools need beyond a machine: answers of the user, agents, models, MCP servers, channels.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Cancel, Configuration, Output, Progress, TaskState, ToolError, TraceContext};

/// A question with a few answers to choose from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserQuestion {
    /// The whole question.
    pub question: String,
    /// A word or two to show above it.
    pub header: String,
    /// The answers offered; the user may always give one of their own.
    pub choices: Vec<AnswerOption>,
    /// Whether several may be chosen.
    pub several: bool,
}

/// One answer offered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerOption {
    /// The answer.
    pub label: String,
    /// What choosing it means.
    pub description: String,
}

/// An agent to start for a task of its own.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentRequest {
    /// The task in a few words.
    pub description: String,
    /// The task.
    pub prompt: String,
    /// Which kind of agent.
    pub kind: String,
    /// Which model, in the caller's words.
    pub model: Option<String>,
    /// The agent to continue.
    pub resume: Option<String>,
    /// Whether the caller continues meanwhile.
    pub background: bool,
    /// How many rounds it may take.
    pub max_turns: Option<u32>,
    /// What it is called.
    pub name: Option<String>,
    /// The team it belongs to.
    pub team: Option<String>,
    /// Its permission mode.
    pub mode: Option<String>,
    /// The span of the call that starts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceContext>,
}

/// A report about an agent that has ended, or runs in the background.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentReport {
    /// Its id, to continue it or to read its output.
    pub id: String,
    /// What it said at the end; nothing while it runs in the background.
    pub said: Option<String>,
    /// How many rounds it took.
    pub turns: u32,
    /// How many tokens it used.
    pub tokens: u64,
}

/// An agent that runs in the background, or did.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentTask {
    /// Its id.
    pub id: String,
    /// The task in a few words.
    pub description: String,
    /// Its state.
    pub state: TaskState,
    /// What it said at the end, or what it is doing.
    pub text: String,
}

/// A plan that waits for the user's approval.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PlanReady {
    /// The plan, if the caller wrote it down.
    pub plan: Option<String>,
    /// What it asks to be allowed: a tool and what for.
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
#[non_exhaustive]
pub enum ModelRole {
    /// A small and fast one, for a summary.
    Small,
    /// A different one than the caller, for a second opinion.
    Oracle,
}

/// A question to a model, without tools.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelRequest {
    /// Which model.
    pub role: ModelRole,
    /// The model's name, if it must be a particular one.
    pub model: Option<String>,
    /// How it should answer.
    pub system: Option<String>,
    /// The question.
    pub prompt: String,
    /// The most tokens it may answer with.
    pub max_tokens: u32,
}

/// A host that a command wants to reach and that its scope does not list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRequest {
    /// The command.
    pub command: String,
    /// The host.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The entry of a list of domains that would allow it.
    pub entry: String,
}

/// What the user said to a [`HostRequest`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostAnswer {
    /// No.
    Refuse,
    /// For this command.
    Once,
    /// Until the session ends.
    Session,
    /// For every session in this project; the host has stored that.
    Project,
}

/// Who can be asked where a call is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// A person.
    Person,
    /// No one here, but a server's page may show the question to a person.
    PagesOnly,
    /// No one anywhere: the user does not want to be asked.
    NoOne,
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

/// What tools need beyond a machine: answers of the user, agents, models, servers, channels.
///
/// The command line, the loop and the MCP server each implement what they can. A method that a host does not implement is
/// forwarded to [`Host::fallback`] or, without one, returns an error that says so. All methods may block, and must return soon
/// after `cancel` fires.
pub trait Host: Send + Sync {
    /// The host that implements what this one does not.
    fn fallback(&self) -> Option<&dyn Host> {
        None
    }

    /// Who can be asked by [`Host::ask`], [`Host::may_reach`] and [`Host::plan_ready`].
    fn audience(&self) -> Audience {
        self.fallback().map_or(Audience::PagesOnly, Host::audience)
    }

    /// Asks the user. One answer per question, in order: the chosen labels, or a text of their own.
    fn ask(&self, questions: &[UserQuestion], cancel: &Cancel) -> Result<Vec<Vec<String>>, ToolError> {
        match self.fallback() {
            Some(host) => host.ask(questions, cancel),
            None => unavailable(
                "No one can answer questions here. Continue with your best judgement and say what you assumed.",
            ),
        }
    }

    /// Asks the user whether a command may reach a host; `None` if no one can be asked.
    fn may_reach(&self, request: &HostRequest, cancel: &Cancel) -> Option<HostAnswer> {
        self.fallback()?.may_reach(request, cancel)
    }

    /// Called after [`Host::ask`], [`Host::may_reach`] or [`Host::plan_ready`] has returned because the question was answered
    /// elsewhere. `by` names the person, `did` what they did, such as "denied it".
    fn answered_elsewhere(&self, by: &str, did: &str) {
        if let Some(host) = self.fallback() {
            host.answered_elsewhere(by, did);
        }
    }

    /// Runs an agent to its end, or starts it in the background. What it does is reported to `progress`.
    fn agent(
        &self,
        order: &AgentRequest,
        progress: &dyn Fn(Progress),
        cancel: &Cancel,
    ) -> Result<AgentReport, ToolError> {
        match self.fallback() {
            Some(host) => host.agent(order, progress, cancel),
            None => unavailable(
                "Agents cannot be started here, because no model is connected. Do the task with the other tools.",
            ),
        }
    }

    /// The agent with this id, if it was started in the background. `wait` is how long to wait for its end.
    fn agent_task(&self, id: &str, wait: Option<Duration>, cancel: &Cancel) -> Option<AgentTask> {
        self.fallback()?.agent_task(id, wait, cancel)
    }

    /// Ends the agent with this id, if it was started in the background, and waits until that is done.
    fn stop_agent(&self, id: &str, cancel: &Cancel) -> Option<AgentTask> {
        self.fallback()?.stop_agent(id, cancel)
    }

    /// Shows a plan to the user and returns their answer; an error means no.
    fn plan_ready(&self, plan: &PlanReady, cancel: &Cancel) -> Result<String, ToolError> {
        match self.fallback() {
            Some(host) => host.plan_ready(plan, cancel),
            None => unavailable("There is no plan mode here. Continue with the task."),
        }
    }

    /// The resources of one MCP server, or of all.
    fn resources(&self, server: Option<&str>) -> Result<Vec<Resource>, ToolError> {
        match self.fallback() {
            Some(host) => host.resources(server),
            None => unavailable("No MCP servers are connected here."),
        }
    }

    /// The contents of a resource.
    fn resource(&self, server: &str, uri: &str) -> Result<Output, ToolError> {
        match self.fallback() {
            Some(host) => host.resource(server, uri),
            None => unavailable("No MCP servers are connected here."),
        }
    }

    /// Whether there is a model of this role.
    fn has_model(&self, role: ModelRole) -> bool {
        self.fallback().is_some_and(|host| host.has_model(role))
    }

    /// Asks a model and returns its text.
    fn complete(&self, completion: &ModelRequest, cancel: &Cancel) -> Result<String, ToolError> {
        match self.fallback() {
            Some(host) => host.complete(completion, cancel),
            None => unavailable("No model is configured for this."),
        }
    }

    /// Queues a message; success does not mean that it was delivered.
    fn send(&self, message: &Message) -> Result<(), ToolError> {
        match self.fallback() {
            Some(host) => host.send(message),
            None => unavailable("No channels are configured here. Add one to haft.toml under [channels]."),
        }
    }

    /// The user's settings, if there is a file for them.
    fn configuration(&self) -> Option<&dyn Configuration> {
        self.fallback()?.configuration()
    }

    /// Reports something that user interfaces may show, for example a new list of todos.
    fn notify(&self, topic: &str, facts: &Value) {
        if let Some(host) = self.fallback() {
            host.notify(topic, facts);
        }
    }
}

fn unavailable<T>(why: &str) -> Result<T, ToolError> {
    Err(ToolError::failed(why))
}

/// A host that implements nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHost;

impl Host for NoHost {}
