//! A run that is ready to go on, made from flags, settings and what the ledger has of it.

use std::sync::Arc;
use std::time::Duration;

use haft_agent::{
    AgentFacts, AgentHost, AgentRun, AllowedTools, PromptFacts, RunLimits, RunParts, RunSettings, RunSkills,
    default_rounds, system_prompt,
};
use haft_model::{ModelSet, PriceTable, TurnOptions};
use haft_policy::Mode;
use haft_runtime::Runtime;
use haft_tool::{Host, ToolError, ToolNeed};

use super::super::setup::Setup;
use super::super::{screen, terminal};
use super::ENTRY_POINT;
use super::agents::AgentSetup;
use super::args::RunArgs;
use super::earlier::EarlierRun;
use super::provider::{self, ChosenModel};
use super::stream::{RunHostParts, sdk_servers};
use crate::config::ModelSection;
use crate::servers::Servers;

/// How long MCP servers may take before the run begins without them.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A run that is ready to go on.
pub(in crate::cli) struct PreparedRun {
    pub(in crate::cli) setup: Setup,
    pub(in crate::cli) runtime: Runtime,
    pub(in crate::cli) run: AgentRun,
    /// The models between which prompts are routed, if they are.
    pub(super) routed: Option<ModelSet>,
    /// Starts subagents. It is closed when the run is over, and attached again when its model or settings have changed.
    pub(in crate::cli) agents: Arc<AgentHost>,
    /// Makes the message of a prompt.
    pub(in crate::cli) skills: RunSkills,
    /// The MCP servers.
    pub(super) servers: Servers,
    /// Whether the model is offered tools.
    pub(super) has_tools: bool,
    /// The kinds of agents, each with when to use it.
    pub(super) agent_names: Vec<(String, String)>,
}

impl PreparedRun {
    /// A new run, or the earlier one or a copy of it.
    pub(in crate::cli) fn new(args: &mut RunArgs, earlier: Option<&EarlierRun>) -> Result<Self, ToolError> {
        let session = earlier.filter(|_| !args.fork_session).map(|earlier| earlier.session.as_str());
        Self::prepare(args, earlier, session, RunHostParts::default())
    }

    /// The same for a run that a program drives.
    pub(super) fn with_host(
        args: &mut RunArgs,
        earlier: Option<&EarlierRun>,
        parts: RunHostParts,
    ) -> Result<Self, ToolError> {
        let session = earlier.filter(|_| !args.fork_session).map(|earlier| earlier.session.as_str());
        Self::prepare(args, earlier, session, parts)
    }

    /// A new run in this session, or its earlier one.
    pub(in crate::cli) fn in_session(
        args: &mut RunArgs,
        earlier: Option<&EarlierRun>,
        session: &str,
    ) -> Result<Self, ToolError> {
        Self::prepare(args, earlier, Some(session), RunHostParts::default())
    }

    fn prepare(
        args: &mut RunArgs,
        earlier: Option<&EarlierRun>,
        session: Option<&str>,
        parts: RunHostParts,
    ) -> Result<Self, ToolError> {
        if let Some(earlier) = earlier {
            args.at.workspace.workspace.get_or_insert_with(|| earlier.workspace.clone());
        }
        let imported = earlier.and_then(|earlier| earlier.imported.as_ref());
        let earlier = earlier.filter(|earlier| earlier.imported.is_none());
        let mut setup = Setup::load_for_calls(&args.at.workspace, &args.rules)?;
        let RunHostParts {
            asker,
            host,
            hooks,
            links,
            host_servers,
            answers,
            default_mode,
            kinds,
            session_name,
        } = parts;
        setup.links = links;
        for (event, matcher, hook) in hooks {
            setup.claude.hooks.add_host(event, &matcher, hook);
        }
        if !setup.names_mode(&args.rules) {
            args.rules.permission_mode = default_mode;
        }
        setup.config.values.tools.loom.has_host_model = true;
        if let Some(earlier) = earlier
            && setup.dialect(&args.at.dialect) != earlier.state.start.dialect
        {
            args.at.dialect.dialect.get_or_insert_with(|| earlier.state.start.dialect.clone());
        }
        let allowed = allowed_tools(args);
        let mut entries = setup.entries(&args.servers)?;
        let named = sdk_servers::entries(&host_servers, &entries).map_err(ToolError::invalid_arguments)?;
        entries.extend(named);
        let answers_questions = answers.unwrap_or_else(terminal::is_interactive);
        let approves_plans =
            answers.unwrap_or_else(|| terminal::is_interactive() && setup.mode(&args.rules) == Mode::Plan);
        let mut selection = setup.tool_selection(&args.at.dialect)?;
        if !setup.names_tools(&args.at.dialect) {
            let has_search = setup.config.values.tools.has_search_engine();
            selection = selection.where_needs_are_met(|need| match need {
                ToolNeed::SearchEngine => has_search,
                ToolNeed::McpServers => !entries.is_empty(),
                ToolNeed::UserAnswers => answers_questions,
                ToolNeed::AgentLoop => true,
                ToolNeed::PlanApproval => approves_plans,
                _ => false,
            });
        }
        let dialect = setup.dialect(&args.at.dialect).to_owned();
        let base: Arc<dyn Host> = Arc::clone(&setup.host) as _;
        let base = match host {
            Some(wrap) => wrap(base, !setup.claude.is_strict_network),
            None => base,
        };
        let agents = AgentSetup::new(args, &setup, &dialect, base, kinds);
        let builder = selection.into_builder(setup.builder()).entry_point(ENTRY_POINT);
        let builder = builder.host(Arc::clone(&agents.host) as _);
        let (builder, servers) = setup.add_servers(entries, &args.at.dialect, builder)?;
        let builder = setup.rules(&args.rules, setup.scope(&args.at.scope, builder)?);
        let builder = match session {
            Some(name) if imported.is_some() => builder.named_session(name),
            Some(session) => builder.session(session),
            None => match session_name {
                Some(name) => builder.named_session(name),
                None => builder,
            },
        };
        let asker = asker.unwrap_or_else(|| terminal::asker(&setup));
        let runtime = builder.asker(asker).build()?;
        screen::warnings(runtime.warnings());

        let section = &setup.config.values.model;
        let known = earlier.map(|earlier| &earlier.state);
        let chosen = provider::choose(&args.model, section, args.max_turns, known, &runtime)?;
        if !servers.is_empty() && allowed.tools_enabled() {
            runtime.connect_all(CONNECT_TIMEOUT);
        }
        let tools_enabled = allowed.tools_enabled();
        let settings = settings(args, section, &chosen, allowed, dialect)?;
        let parts = RunParts::new(runtime.clone(), Arc::clone(&chosen.model))?;
        let mut run = match earlier {
            None => AgentRun::start(parts, settings, system(args, &agents, &runtime, tools_enabled))?,
            Some(earlier) if args.fork_session => AgentRun::fork(parts, settings, &earlier.session)?,
            Some(_) => AgentRun::resume(parts, settings)?,
        };
        if let Some(messages) = imported {
            run.import("claude", messages.clone())?;
        }
        if earlier.is_some() && (args.system_prompt.is_some() || args.append_system_prompt.is_some()) {
            run.change_system(system(args, &agents, &runtime, tools_enabled))?;
        }
        let routes = args.model.route || section.route.unwrap_or(false);
        let routed = routes.then(|| chosen.models());
        agents.host.attach(&run);
        let AgentSetup { host: agents, skills, names: agent_names, .. } = agents;
        Ok(Self {
            setup,
            runtime,
            run,
            routed,
            agents,
            skills,
            servers,
            has_tools: tools_enabled,
            agent_names,
        })
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
) -> Result<RunSettings, ToolError> {
    let defaults = RunSettings::default();
    let schema = args.stream.schema()?;
    Ok(RunSettings {
        limits: RunLimits {
            rounds: args.max_turns.or(section.max_turns).unwrap_or_else(|| default_rounds(&dialect)),
            dollars: args.max_budget_usd.or(section.max_budget_usd),
            time: args.timeout.map(Duration::from_millis),
        },
        allowed,
        nested_instructions: args.system_prompt.is_none(),
        options: TurnOptions {
            effort: args.model.effort.or(section.effort),
            stream: !args.model.no_stream,
            ..TurnOptions::default()
        },
        output_schema: args.output_schema.clone().or(schema),
        fast_model: chosen.fast.clone(),
        fallback_model: args.model.fallback_model.clone().or_else(|| section.fallback.clone()),
        prices: PriceTable::list().with(section.prices.clone()),
        context_window: section.context_window,
        compact_percent: section.compact_percent.unwrap_or(defaults.compact_percent),
        dialect,
    })
}

/// The sections of the system prompt.
fn system(args: &RunArgs, agents: &AgentSetup, runtime: &Runtime, tools_enabled: bool) -> Vec<String> {
    let mut sections = if let Some(own) = &args.system_prompt {
        vec![own.clone()]
    } else {
        let AgentFacts { dialect, workspace, date, instructions } = &agents.facts;
        let mut sections = system_prompt(&PromptFacts { dialect, workspace, date, instructions });
        if tools_enabled {
            let listings =
                agents.listing(runtime).map(str::to_owned).into_iter().chain(agents.skill_listing());
            sections.splice(1..1, listings);
        }
        sections
    };
    sections.extend(args.append_system_prompt.clone());
    sections.retain(|section| !section.trim().is_empty());
    sections
}
