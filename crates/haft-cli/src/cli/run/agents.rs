//! The subagents of a run: their kinds, limits and host.

use std::sync::Arc;

use haft_agent::{AgentFacts, AgentHost, AgentKinds, AgentLimits, ProjectInstructions, project_instructions};
use haft_runtime::Runtime;
use haft_tool::{EffectKind, now_ms};

use super::super::local_time::local_time;
use super::super::screen;
use super::super::setup::Setup;
use super::args::RunArgs;

/// What the agents of a run are made from.
pub(super) struct AgentSetup {
    pub(super) facts: AgentFacts,
    pub(super) host: Arc<AgentHost>,
    listing: String,
}

impl AgentSetup {
    pub(super) fn new(args: &RunArgs, setup: &Setup, dialect: &str) -> Self {
        let home = std::env::home_dir().filter(|home| home.is_absolute());
        let kinds = AgentKinds::read(setup.workspace(), home.as_deref());
        let found = match args.system_prompt {
            // It stands in place of the instructions.
            Some(_) => ProjectInstructions::default(),
            None => project_instructions(setup.workspace()),
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
        let host = Arc::new(AgentHost::new(Arc::clone(&setup.host) as _, kinds, limits, facts.clone()));
        Self { facts, host, listing }
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
