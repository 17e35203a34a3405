//! Subagents: runs of their own that a call starts, and the questions of tools to a model.

mod completion;
mod host;
mod progress;
mod spawn;
mod table;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use haft_model::Model;
use haft_runtime::WeakRuntime;
use haft_tool::{Host, ToolError, lock};
use serde::{Deserialize, Serialize};

use crate::{AgentKinds, AgentRun, RunReports, RunSettings, TurnBudget};
pub use spawn::{agent_entry_point, parent_of_agent};
use table::AgentTable;

const DEFAULT_MAX_RUNNING: usize = 10;
const DEFAULT_MAX_DEPTH: usize = 2;

/// The names of models, by provider: those that `sonnet`, `opus` and `haiku` stand for.
const MODEL_ALIASES: &[(&str, [&str; 3])] = &[
    ("anthropic", ["claude-sonnet-5-5", "claude-opus-5", "claude-haiku-5-5"]),
    ("openai", ["gpt-6.1-sol", "gpt-6.1-sol", "gpt-6-luna"]),
    ("gemini", ["gemini-4-argon", "gemini-4-argon", "gemini-3.5-flash-lite"]),
    ("claude-cli", ["sonnet", "opus", "haiku"]),
];

/// Where a subagent's run comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentOrigin {
    /// The session of the run that started it.
    pub parent: String,
    /// Its kind.
    pub kind: String,
    /// Its name, if it was given one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its task in a few words.
    pub description: String,
}

/// Limits of subagents, and the models that names stand for.
#[derive(Debug, Clone)]
pub struct AgentLimits {
    /// How many may run at once in this process.
    pub max_running: usize,
    /// How deep they may be nested.
    pub max_depth: usize,
    /// The models that names such as `haiku` stand for; before the built-in ones.
    pub models: BTreeMap<String, String>,
}

impl Default for AgentLimits {
    fn default() -> Self {
        Self { max_running: DEFAULT_MAX_RUNNING, max_depth: DEFAULT_MAX_DEPTH, models: BTreeMap::new() }
    }
}

impl AgentLimits {
    /// The model that a name stands for at a provider; `None` if it stands for none there.
    fn model(&self, name: &str, provider: &str) -> Option<String> {
        let own = self.models.get(name).cloned();
        own.or_else(|| {
            let (_, models) = MODEL_ALIASES.iter().find(|(of, _)| *of == provider)?;
            let at = ["sonnet", "opus", "haiku"].iter().position(|alias| *alias == name)?;
            Some(models[at].to_owned())
        })
    }
}

/// What the system prompt of a subagent says about where and when it is.
#[derive(Debug, Clone, Default)]
pub struct AgentFacts {
    /// The dialect of the tools.
    pub dialect: String,
    /// The directory that calls work in.
    pub workspace: PathBuf,
    /// The date.
    pub date: String,
    /// The project's own instructions.
    pub instructions: String,
}

/// What all agents of a process share.
struct AgentShare {
    base: Arc<dyn Host>,
    kinds: AgentKinds,
    limits: AgentLimits,
    facts: AgentFacts,
    table: Arc<AgentTable>,
}

/// The host of a run's tools: it starts agents, asks models, and passes everything else on to the host of the entry point.
pub struct AgentHost {
    share: Arc<AgentShare>,
    depth: usize,
    /// The subagent's name, if this is the host of one.
    name: Option<String>,
    run: Mutex<Option<AttachedRun>>,
}

/// The run whose tools use the host.
#[derive(Clone)]
struct AttachedRun {
    /// Not kept alive by its own host.
    runtime: WeakRuntime,
    model: Arc<dyn Model>,
    session: String,
    reports: Arc<RunReports>,
    budget: Arc<TurnBudget>,
    settings: RunSettings,
}

impl AgentHost {
    /// A host for a run, over the host of its entry point. It can do nothing before [`AgentHost::attach`].
    pub fn new(base: Arc<dyn Host>, kinds: AgentKinds, limits: AgentLimits, facts: AgentFacts) -> Self {
        let table = Arc::new(AgentTable::new(limits.max_running));
        let share = Arc::new(AgentShare { base, kinds, limits, facts, table });
        Self { share, depth: 0, name: None, run: Mutex::default() }
    }

    /// Names the run whose tools use the host; also after its model or settings have changed.
    pub fn attach(&self, run: &AgentRun) {
        let parts = &run.parts;
        *lock(&self.run) = Some(AttachedRun {
            runtime: parts.runtime.downgrade(),
            model: Arc::clone(&parts.model),
            session: parts.session.clone(),
            reports: Arc::clone(&parts.reports),
            budget: Arc::clone(&parts.budget),
            settings: run.settings.clone(),
        });
    }

    fn attached(&self) -> Result<AttachedRun, ToolError> {
        lock(&self.run).clone().ok_or_else(|| ToolError::internal("the host of agents has no run"))
    }
}
