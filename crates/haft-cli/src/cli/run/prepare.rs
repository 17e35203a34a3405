//! A run that is ready to go on, made from flags, settings and what the ledger has of it.

use std::sync::Arc;
use std::time::Duration;

use haft_agent::{
    AgentRun, AllowedTools, PromptFacts, RunLimits, RunParts, RunSettings, default_rounds,
    project_instructions, system_prompt,
};
use haft_model::{PriceTable, TurnOptions};
use haft_runtime::Runtime;
use haft_tool::{ToolError, ToolNeed, now_ms};

use super::super::local_time::local_time;
use super::super::setup::Setup;
use super::super::{screen, terminal};
use super::ENTRY_POINT;
use super::args::RunArgs;
use super::earlier::EarlierRun;
use super::provider::{self, ChosenModel};
use crate::config::ModelSection;

/// How long MCP servers may take before the run begins without them.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A run that is ready to go on.
pub(in crate::cli) struct PreparedRun {
    pub(in crate::cli) setup: Setup,
    pub(in crate::cli) runtime: Runtime,
    pub(in crate::cli) run: AgentRun,
}

impl PreparedRun {
    /// A new run, or the earlier one or a copy of it.
    pub(in crate::cli) fn new(args: &mut RunArgs, earlier: Option<&EarlierRun>) -> Result<Self, ToolError> {
        let session = earlier.filter(|_| !args.fork_session).map(|earlier| earlier.session.as_str());
        Self::prepare(args, earlier, session)
    }

    /// A new run in this session, or its earlier one.
    pub(in crate::cli) fn in_session(
        args: &mut RunArgs,
        earlier: Option<&EarlierRun>,
        session: &str,
    ) -> Result<Self, ToolError> {
        Self::prepare(args, earlier, Some(session))
    }

    fn prepare(
        args: &mut RunArgs,
        earlier: Option<&EarlierRun>,
        session: Option<&str>,
    ) -> Result<Self, ToolError> {
        if let Some(earlier) = earlier {
            args.at.workspace.workspace.get_or_insert_with(|| earlier.workspace.clone());
        }
        let setup = Setup::load(&args.at.workspace)?;
        if let Some(earlier) = earlier
            && setup.dialect(&args.at.dialect) != earlier.state.start.dialect
        {
            args.at.dialect.dialect.get_or_insert_with(|| earlier.state.start.dialect.clone());
        }
        let allowed = allowed_tools(args);
        let entries = setup.entries(&args.servers)?;
        let mut selection = setup.tool_selection(&args.at.dialect)?;
        if !setup.names_tools(&args.at.dialect) {
            let has_search = setup.config.values.tools.has_search_engine();
            selection = selection.where_needs_are_met(|need| match need {
                ToolNeed::SearchEngine => has_search,
                ToolNeed::McpServers => !entries.is_empty(),
                ToolNeed::UserAnswers => terminal::is_interactive(),
                _ => false,
            });
        }
        let builder = selection.into_builder(setup.builder()).entry_point(ENTRY_POINT);
        let (builder, servers) = setup.add_servers(entries, &args.at.dialect, builder)?;
        let builder = setup.rules(&args.rules, setup.scope(&args.at.scope, builder)?);
        let builder = match session {
            Some(session) => builder.session(session),
            None => builder,
        };
        let runtime = builder.asker(terminal::asker(&setup)).build()?;
        screen::warnings(runtime.warnings());

        let section = &setup.config.values.model;
        let known = earlier.map(|earlier| (earlier.state.provider.as_str(), earlier.state.model.as_str()));
        let chosen = provider::choose(&args.model, section, known, &runtime)?;
        if !servers.is_empty() && allowed.tools_enabled() {
            runtime.connect_all(CONNECT_TIMEOUT);
        }
        let dialect = setup.dialect(&args.at.dialect).to_owned();
        let settings = settings(args, section, &chosen, allowed, dialect.clone());
        let parts = RunParts::new(runtime.clone(), Arc::clone(&chosen.model))?;
        let mut run = match earlier {
            None => AgentRun::start(parts, settings, system(args, &setup, &dialect))?,
            Some(earlier) if args.fork_session => AgentRun::fork(parts, settings, &earlier.session)?,
            Some(_) => AgentRun::resume(parts, settings)?,
        };
        if earlier.is_some() && (args.system_prompt.is_some() || args.append_system_prompt.is_some()) {
            run.change_system(system(args, &setup, &dialect))?;
        }
        Ok(Self { setup, runtime, run })
    }
}

/// Which tools the model may call. An empty `--tools` or `--allowedTools` means none, as for Claude Code.
fn allowed_tools(args: &mut RunArgs) -> AllowedTools {
    let is_empty = |list: &[String]| matches!(list, [one] if one.trim().is_empty());
    let no_tools = args.at.dialect.tools.as_deref().is_some_and(is_empty);
    let no_allowed = is_empty(&args.rules.allowed);
    if no_tools {
        args.at.dialect.tools = None;
    }
    args.rules.allowed.retain(|rule| !rule.trim().is_empty());
    if no_tools || no_allowed { AllowedTools::only([]) } else { AllowedTools::all() }
}

fn settings(
    args: &RunArgs,
    section: &ModelSection,
    chosen: &ChosenModel,
    allowed: AllowedTools,
    dialect: String,
) -> RunSettings {
    let defaults = RunSettings::default();
    RunSettings {
        limits: RunLimits {
            rounds: args.max_turns.or(section.max_turns).unwrap_or_else(|| default_rounds(&dialect)),
            dollars: args.max_budget_usd.or(section.max_budget_usd),
            time: args.timeout.map(Duration::from_millis),
        },
        allowed,
        options: TurnOptions {
            effort: args.model.effort.or(section.effort),
            stream: !args.model.no_stream,
            ..TurnOptions::default()
        },
        fast_model: chosen.fast.clone(),
        fallback_model: args.model.fallback_model.clone().or_else(|| section.fallback.clone()),
        prices: PriceTable::list().with(section.prices.clone()),
        context_window: section.context_window,
        compact_percent: section.compact_percent.unwrap_or(defaults.compact_percent),
        dialect,
    }
}

/// The sections of the system prompt.
fn system(args: &RunArgs, setup: &Setup, dialect: &str) -> Vec<String> {
    let mut sections = if let Some(own) = &args.system_prompt {
        vec![own.clone()]
    } else {
        let found = project_instructions(setup.workspace());
        screen::warnings(&found.warnings);
        let now = local_time(now_ms());
        let date = now.split(' ').next().unwrap_or_default();
        let (workspace, instructions) = (setup.workspace(), found.text.as_str());
        system_prompt(&PromptFacts { dialect, workspace, date, instructions })
    };
    sections.extend(args.append_system_prompt.clone());
    sections.retain(|section| !section.trim().is_empty());
    sections
}
