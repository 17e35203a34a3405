//! What the program that drives a run contributes to it.

use std::sync::Arc;

use haft_agent::AgentKind;
use haft_compat::stream::{HostAgent, InitializeRequest};
use haft_policy::Mode;
use haft_runtime::{Asker, DenyAll};
use haft_tool::Host;

use super::asker::ProgramAsker;
use super::hooks::{self, HookEntry};
use super::sdk_servers;
use super::session::HostSession;
use super::user_questions::ProgramHost;
use crate::servers::HostLinks;

/// Puts a host over another one; says whether it may answer questions about the network.
type WrapHost = Box<dyn FnOnce(Arc<dyn Host>, bool) -> Arc<dyn Host>>;

/// What the program contributes; by default nothing, and the terminal answers questions.
#[derive(Default)]
pub(in crate::cli::run) struct RunHostParts {
    /// Answers questions about calls.
    pub(in crate::cli::run) asker: Option<Arc<dyn Asker>>,
    /// Answers questions of tools.
    pub(in crate::cli::run) host: Option<WrapHost>,
    pub(in crate::cli::run) hooks: Vec<HookEntry>,
    /// Leads to its MCP servers.
    pub(in crate::cli::run) links: Option<HostLinks>,
    /// The names of servers that no flag names.
    pub(in crate::cli::run) host_servers: Vec<String>,
    /// Whether it answers questions of tools.
    pub(in crate::cli::run) answers: Option<bool>,
    /// The permission mode where nothing names one.
    pub(in crate::cli::run) default_mode: Option<Mode>,
    /// Further kinds of subagents.
    pub(in crate::cli::run) kinds: Vec<AgentKind>,
    /// The name of a new session.
    pub(in crate::cli::run) session_name: Option<String>,
}

/// The parts of a run that a program drives.
pub(super) fn of(
    session: &Arc<HostSession>,
    initialize: Option<&InitializeRequest>,
    asker: Option<Arc<ProgramAsker>>,
    session_name: Option<String>,
) -> RunHostParts {
    let answers = asker.is_some();
    let shared = Arc::clone(session);
    RunHostParts {
        host: Some(Box::new(move |base, opens_network| {
            Arc::new(ProgramHost::new(&shared, answers, answers && opens_network, base)) as _
        })),
        hooks: initialize.map(|request| hooks::entries(request, session)).unwrap_or_default(),
        links: Some(sdk_servers::links(session)),
        host_servers: initialize.map(|request| request.sdk_mcp_servers.clone()).unwrap_or_default(),
        answers: Some(answers),
        // A program that answers questions expects to be asked what Claude Code would ask it.
        default_mode: answers.then_some(Mode::Default),
        kinds: initialize.map(|request| request.agents.iter().map(kind).collect()).unwrap_or_default(),
        asker: Some(asker.map_or_else(|| Arc::new(DenyAll) as _, |asker| asker as _)),
        session_name,
    }
}

fn kind((name, agent): (&String, &HostAgent)) -> AgentKind {
    AgentKind {
        name: name.clone(),
        description: agent.description.clone(),
        prompt: agent.prompt.clone(),
        tools: agent.tools.clone(),
        without_tools: agent.disallowed_tools.clone(),
        model: agent.model.clone().filter(|model| model != "inherit"),
        max_turns: agent.max_turns,
        ..AgentKind::default()
    }
}
