//! Starting a subagent, and driving it to its end.

use std::sync::{Arc, Mutex};

use haft_model::{ContentPart, Model, NamedModel, PartModel};
use haft_policy::Mode;
use haft_runtime::{AgentSession, Runtime};
use haft_tool::{
    AgentReport, AgentRequest, AnyTool, Cancel, EffectKind, ErrorKind, Progress, TaskState, ToolError,
    ToolNeed, lock,
};

use super::progress::AgentProgress;
use super::table::{AgentSlot, AgentStatus, BackgroundAgent};
use super::{AgentHost, AgentOrigin, AttachedRun};
use crate::reports::Spending;
use crate::{
    AgentKind, AgentRun, AllowedTools, PromptFacts, RunParts, RunSettings, RunState, RunStop, TurnReport,
    agent_prompt, read_run,
};

/// What the entry point of a subagent's session begins with.
const AGENT_OF: &str = "agent of ";

/// The entry point of the sessions of a run's agents.
pub fn agent_entry_point(parent: &str) -> String {
    format!("{AGENT_OF}{parent}")
}

/// The session whose agent one with this entry point is.
pub fn parent_of_agent(entry_point: &str) -> Option<&str> {
    entry_point.strip_prefix(AGENT_OF)
}

/// A subagent that is ready to go.
struct ReadyAgent {
    run: AgentRun,
    host: Arc<AgentHost>,
    parent: AttachedRun,
    prompt: String,
    /// What it is called in questions and progress.
    name: String,
    _slot: AgentSlot,
}

impl AgentHost {
    /// Runs an agent to its end, or starts it in the background.
    pub(super) fn spawn(
        &self,
        order: &AgentRequest,
        progress: &dyn Fn(Progress),
        cancel: &Cancel,
    ) -> Result<AgentReport, ToolError> {
        let agent = self.ready(order)?;
        if !order.background {
            let status = Mutex::default();
            return agent.drive(progress, &status, cancel);
        }
        let id = agent.run.session().to_owned();
        let entry = Arc::new(BackgroundAgent {
            id: id.clone(),
            owner: agent.parent.session.clone(),
            description: order.description.clone(),
            cancel: Cancel::new(),
            ended: Cancel::new(),
            status: Arc::default(),
        });
        let its = Arc::clone(&entry);
        // It outlives the call, but not the turn if the user stops that.
        let turn = agent.parent.reports.turn();
        let work = move || {
            let own = its.cancel.clone();
            let _link = turn.map(|turn| turn.on_cancel(move || own.cancel()));
            let done = agent.drive(&|_| {}, &its.status, &its.cancel);
            let mut status = lock(&its.status);
            (status.state, status.text) = match done {
                _ if its.cancel.is_cancelled() => (TaskState::Stopped, "It was stopped.".to_owned()),
                Ok(report) => (TaskState::Completed, report.said.unwrap_or_default()),
                Err(error) => (TaskState::Failed, error.message),
            };
            drop(status);
            its.ended.cancel();
        };
        let thread = std::thread::Builder::new().name("haft-agent".to_owned()).spawn(work);
        thread.map_err(|error| ToolError::io("start a thread for the agent", &error))?;
        self.share.table.add(entry);
        Ok(AgentReport { id, said: None, turns: 0, tokens: 0 })
    }

    fn ready(&self, order: &AgentRequest) -> Result<ReadyAgent, ToolError> {
        if order.team.is_some() {
            return Err(ToolError::invalid_arguments(
                "team_name: there are no teams of agents here. Leave it out",
            ));
        }
        let share = &self.share;
        if self.depth >= share.limits.max_depth {
            return Err(ToolError::failed(format!(
                "Agents may be nested {} deep, and this one is. Do the task with the other tools.",
                share.limits.max_depth
            )));
        }
        let parent = self.attached()?;
        let runtime = parent.runtime.upgrade().ok_or_else(|| ToolError::internal("the run has ended"))?;
        let mut slot = share.table.slot()?;
        let earlier =
            order.resume.as_deref().map(|id| earlier_agent(&runtime, &parent.session, id)).transpose()?;
        let asked_kind = earlier.as_ref().and_then(|(_, state)| state.start.agent.as_ref());
        let kind = share.kinds.find(asked_kind.map_or(&order.kind, |origin| &origin.kind))?;
        let name = order.name.clone().or_else(|| asked_kind.and_then(|origin| origin.name.clone()));
        let shown_name = name.clone().unwrap_or_else(|| kind.name.clone());
        let host = Arc::new(Self {
            share: Arc::clone(share),
            depth: self.depth + 1,
            name: Some(shown_name.clone()),
            run: Mutex::default(),
        });
        let own = runtime.for_agent(AgentSession {
            name: shown_name.clone(),
            session: earlier.as_ref().map(|(id, _)| id.clone()),
            entry_point: agent_entry_point(&parent.session),
            mode: mode(order, kind, runtime.mode())?,
            host: Arc::clone(&host) as _,
            trace: order.trace.clone(),
        })?;
        let model =
            self.model(order, kind, name.as_deref(), earlier.as_ref().map(|(_, state)| state), &parent)?;
        let settings = self.settings(order, kind, &own, &parent);
        let origin = AgentOrigin {
            parent: parent.session.clone(),
            kind: kind.name.clone(),
            name,
            description: order.description.clone(),
        };
        let parts = RunParts {
            budget: Arc::clone(&parent.budget),
            agent: Some(origin),
            ..RunParts::new(own, model)?
        };
        slot.drive(&parts.session)?;
        let run = match earlier {
            Some(_) => AgentRun::resume(parts, settings)?,
            None => AgentRun::start(parts, settings, self.system(kind))?,
        };
        host.attach(&run);
        Ok(ReadyAgent { run, host, parent, prompt: order.prompt.clone(), name: shown_name, _slot: slot })
    }

    /// The model of an agent: by its lines of a script, by the name that the order or its kind gives, else the parent's.
    fn model(
        &self,
        order: &AgentRequest,
        kind: &AgentKind,
        name: Option<&str>,
        earlier: Option<&RunState>,
        parent: &AttachedRun,
    ) -> Result<Arc<dyn Model>, ToolError> {
        let names: Vec<&str> = name.into_iter().chain([kind.name.as_str()]).collect();
        let model = match parent.model.for_part(&names) {
            PartModel::Same => Arc::clone(&parent.model),
            PartModel::Other(model) => model,
            PartModel::Missing => {
                return Err(ToolError::failed(format!(
                    "No model answers for the agent {}.",
                    names.join(" or ")
                )));
            }
        };
        let wanted = order.model.as_deref().or(kind.model.as_deref().filter(|_| earlier.is_none()));
        let wanted = wanted.and_then(|name| self.share.limits.model(name, model.provider()));
        let before =
            earlier.filter(|state| state.provider == model.provider()).map(|state| state.model.clone());
        Ok(match wanted.or(before) {
            Some(name) if name != model.model() => Arc::new(NamedModel::new(model, name)),
            _ => model,
        })
    }

    fn settings(
        &self,
        order: &AgentRequest,
        kind: &AgentKind,
        runtime: &Runtime,
        parent: &AttachedRun,
    ) -> RunSettings {
        let mut settings = parent.settings.clone();
        let most = settings.limits.rounds;
        settings.limits.rounds = order.max_turns.or(kind.max_turns).unwrap_or(most).min(most);
        // The parent's own clock stops it.
        settings.limits.time = None;
        settings.output_schema = None;
        let is_deepest = self.depth + 1 >= self.share.limits.max_depth;
        settings.allowed = allowed_tools(kind, runtime, is_deepest).within(&settings.allowed);
        settings
    }

    fn system(&self, kind: &AgentKind) -> Vec<String> {
        let facts = &self.share.facts;
        let facts = PromptFacts {
            dialect: &facts.dialect,
            workspace: &facts.workspace,
            date: &facts.date,
            instructions: &facts.instructions,
        };
        agent_prompt(&facts, &kind.prompt)
    }
}

impl ReadyAgent {
    fn drive(
        mut self,
        progress: &dyn Fn(Progress),
        status: &Mutex<AgentStatus>,
        cancel: &Cancel,
    ) -> Result<AgentReport, ToolError> {
        let mut observer = AgentProgress { name: &self.name, progress, status };
        let said = self.run.say(vec![ContentPart::text(&self.prompt)], &mut observer, cancel);
        // What it started in the background ends with it.
        self.host.close();
        let totals = self.run.state().turn_totals;
        let id = self.run.session().to_owned();
        let on = format!("agent {id}");
        self.parent.reports.spend(Spending { on, usage: totals.usage, cost_usd: totals.cost_usd });
        report(&id, said?, totals.usage.total())
    }
}

/// What the caller is told at the end.
fn report(id: &str, turn: TurnReport, tokens: u64) -> Result<AgentReport, ToolError> {
    let explanation = match &turn.stop {
        RunStop::Done => None,
        RunStop::Interrupted => {
            return Err(ToolError::new(
                ErrorKind::Interrupted,
                format!("Agent {id} was stopped before it was done"),
            ));
        }
        RunStop::MaxTurns { rounds } => {
            Some(format!("It stopped after {rounds} rounds, its limit. To go on with it: resume."))
        }
        RunStop::Failed { message, .. } => {
            return Err(ToolError::failed(format!("Agent {id} failed: {message}")));
        }
        stop => stop.explanation(),
    };
    let said = match explanation {
        Some(explanation) => format!("{}\n\n({explanation})", turn.text).trim_start().to_owned(),
        None => turn.text,
    };
    Ok(AgentReport { id: id.to_owned(), said: Some(said), turns: turn.rounds, tokens })
}

/// The mode of an agent: never one that allows more than the parent's.
fn mode(order: &AgentRequest, kind: &AgentKind, parent: Mode) -> Result<Mode, ToolError> {
    let ordered = match order.mode.as_deref() {
        None => None,
        Some("delegate") => {
            return Err(ToolError::invalid_arguments("mode: delegate is for teams, and there are none here"));
        }
        Some(name) => {
            Some(name.parse::<Mode>().map_err(|why| ToolError::invalid_arguments(format!("mode: {why}")))?)
        }
    };
    let kind_s = kind.mode.filter(|mode| mode.is_within(parent)).unwrap_or(parent);
    Ok(ordered.map_or(kind_s, |ordered| {
        // A kind that only reads stays that way.
        if kind.reads_only && kind_s.is_within(ordered) { kind_s } else { ordered }
    }))
}

/// The tools of an agent.
fn allowed_tools(kind: &AgentKind, runtime: &Runtime, is_deepest: bool) -> AllowedTools {
    let registry = runtime.registry();
    let wire_name =
        |name: &String| registry.get(name).map_or_else(|| name.clone(), |tool| tool.name().to_owned());
    let names = registry.names();
    let tools = || names.iter().filter_map(|name| registry.get(name));
    let names_where = |is_it: &dyn Fn(&Arc<dyn AnyTool>) -> bool| -> Vec<String> {
        tools().filter(|tool| is_it(tool)).map(|tool| tool.name().to_owned()).collect()
    };
    let reads = |tool: &Arc<dyn AnyTool>| {
        use EffectKind::{Inspect, Reach, Read};
        tool.effects().iter().all(|kind| matches!(kind, Read | Inspect | Reach))
    };
    let is_the_callers = |tool: &Arc<dyn AnyTool>| {
        tool.needs() == Some(ToolNeed::PlanApproval)
            || (is_deepest && tool.effects().contains(&EffectKind::Spawn))
    };
    let allowed = match (&kind.tools, kind.reads_only) {
        (_, true) => AllowedTools::only(names_where(&reads)),
        (Some(tools), false) => AllowedTools::only(tools.iter().map(wire_name)),
        (None, false) => AllowedTools::all(),
    };
    allowed.except(kind.without_tools.iter().map(wire_name)).except(names_where(&is_the_callers))
}

/// An earlier agent of this run.
fn earlier_agent(runtime: &Runtime, parent: &str, id: &str) -> Result<(String, RunState), ToolError> {
    let ledger = runtime.ledger()?;
    let unknown =
        || ToolError::new(ErrorKind::InvalidArguments, format!("resume: this run has no agent {id:?}"));
    let session = ledger.session(id.trim()).map_err(|_| unknown())?;
    if session.entry_point != agent_entry_point(parent) {
        return Err(unknown());
    }
    let state = read_run(&ledger, &session.id)?.ok_or_else(unknown)?;
    Ok((session.id, state))
}
