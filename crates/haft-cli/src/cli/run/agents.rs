//! The subagents of a run: their kinds, limits and host.

use std::path::Path;
use std::sync::Arc;

use haft_agent::{
    AgentFacts, AgentHost, AgentKind, AgentKinds, AgentLimits, ProjectInstructions, RunSkills,
    project_instructions, user_instructions,
};
use haft_runtime::Runtime;
use haft_tool::{EffectKind, Host, now_ms};

use super::super::local_time::local_time;
use super::super::screen;
use super::super::setup::Setup;
use super::args::RunArgs;

/// What the agents of a run are made from.
pub(super) struct AgentSetup {
    pub(super) facts: AgentFacts,
    pub(super) host: Arc<AgentHost>,
    pub(super) skills: RunSkills,
    /// The kinds of agents, each with when to use it.
    pub(super) names: Vec<(String, String)>,
    listing: String,
}

/// The instructions of the user and of the project.
fn instructions(setup: &Setup, home: Option<&Path>) -> ProjectInstructions {
    let mut all = home.map(user_instructions).unwrap_or_default();
    let found = project_instructions(setup.workspace());
    all.text.push_str(&found.text);
    all.files.extend(found.files);
    all.warnings.extend(found.warnings);
    all
}

impl AgentSetup {
    pub(super) fn new(
        args: &RunArgs,
        setup: &Setup,
        dialect: &str,
        base: Arc<dyn Host>,
        more: Vec<AgentKind>,
    ) -> Self {
        let home = std::env::home_dir().filter(|home| home.is_absolute());
        let mut kinds = AgentKinds::read(setup.workspace(), home.as_deref());
        for kind in more {
            kinds.add(kind);
        }
        let found = match args.system_prompt {
            // It stands in place of the instructions.
            Some(_) => ProjectInstructions::default(),
            None => instructions(setup, home.as_deref()),
        };
        screen::warnings(&found.warnings);
        screen::warnings(&kinds.warnings);
        let now = local_time(now_ms());
        let facts = AgentFacts {
            dialect: dialect.to_owned(),
            workspace: setup.workspace().to_owned(),
            date: now.split(' ').next().unwrap_or_default().to_owned(),
            instructions: found.text,
        };
        let section = &setup.config.values.agents;
        let defaults = AgentLimits::default();
        let limits = AgentLimits {
            max_running: section.max_running.unwrap_or(defaults.max_running),
            max_depth: section.max_depth.unwrap_or(defaults.max_depth),
            models: section.models.clone(),
        };
        let listing = kinds.listing();
        let names =
            kinds.names().map(|(name, description)| (name.to_owned(), description.to_owned())).collect();
        let host = Arc::new(AgentHost::new(base, kinds, limits, facts.clone()));
        let skills = RunSkills::read(setup.workspace(), home.as_deref());
        Self { facts, host, skills, names, listing }
    }

    /// What the model is told about skills. Where reads are limited to the workspace, so are these.
    pub(super) fn skill_listing(&self) -> Option<String> {
        let is_limited = matches!(self.facts.dialect.as_str(), "loom" | "clawft");
        self.skills.listing(is_limited.then_some(self.facts.workspace.as_path()))
    }

    /// What the model is told about agents, if it can start any.
    pub(super) fn listing(&self, runtime: &Runtime) -> Option<&str> {
        let registry = runtime.registry();
        let starts_agents = |name: &String| {
            registry.is_allowed(name)
                && registry.get(name).is_some_and(|tool| tool.effects().contains(&EffectKind::Spawn))
        };
        registry.names().iter().any(starts_agents).then_some(self.listing.as_str())
    }
}
