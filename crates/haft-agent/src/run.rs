//! A run: a model, a runtime, and the log of what happened.

use std::sync::Arc;

use haft_ledger::{EventLog, RunDriver};
use haft_model::{ChatMessage, Model};
use haft_runtime::Runtime;
use haft_tool::{Definition, ErrorKind, ToolError, TraceContext, now_ms};

use crate::calls::FinishedCall;
use crate::reports::Spending;
use crate::run_log::{RunLog, read_events};
use crate::settle::{CallFate, fate_of};
use crate::{
    AgentOrigin, LoopEvent, RUN_LOG_VERSION, RunEvent, RunObserver, RunReports, RunSettings, RunStart,
    RunState, TurnBudget, TurnTrace, call_results,
};

/// What a run needs.
#[derive(Clone)]
pub struct RunParts {
    /// Makes the calls.
    pub runtime: Runtime,
    /// Answers.
    pub model: Arc<dyn Model>,
    /// Stores the events.
    pub log: Arc<dyn EventLog>,
    /// The session whose log is the run.
    pub session: String,
    /// Receives what the tools report.
    pub reports: Arc<RunReports>,
    /// What the run and its agents have spent in a turn.
    pub budget: Arc<TurnBudget>,
    /// Whose subagent the run is, if it is one.
    pub agent: Option<AgentOrigin>,
    /// The span that its turns are below.
    pub trace_parent: Option<TraceContext>,
}

impl RunParts {
    /// A run in the runtime's own session and ledger.
    pub fn new(runtime: Runtime, model: Arc<dyn Model>) -> Result<Self, ToolError> {
        let (log, session) = (Arc::new(runtime.ledger()?), runtime.session()?);
        let (reports, budget) = (Arc::default(), Arc::default());
        let trace_parent = runtime.trace_parent();
        Ok(Self { runtime, model, log, session, reports, budget, agent: None, trace_parent })
    }
}

/// A run of the agent loop. It blocks the thread that drives it; calls have threads of their own.
pub struct AgentRun {
    pub(crate) parts: RunParts,
    pub(crate) settings: RunSettings,
    pub(crate) state: RunState,
    log: RunLog,
    /// Keeps other processes from driving the run.
    driver: Option<RunDriver>,
    /// Whether the run had begun before.
    pub(crate) is_resumed: bool,
    /// Whether it is a copy that was just made.
    pub(crate) is_copy: bool,
    /// Whether hooks were told that it begins.
    pub(crate) is_announced: bool,
    /// Why a hook wants the turn to end.
    pub(crate) hook_stop: Option<String>,
}

impl AgentRun {
    /// Starts a run in a session that has none, with these sections of the system prompt.
    pub fn start(parts: RunParts, settings: RunSettings, system: Vec<String>) -> Result<Self, ToolError> {
        let driver = parts.runtime.ledger()?.drive_run(&parts.session)?;
        let start = RunStart {
            version: RUN_LOG_VERSION,
            provider: parts.model.provider().to_owned(),
            model: parts.model.model().to_owned(),
            address: parts.model.address(),
            dialect: settings.dialect.clone(),
            limits: settings.limits.clone(),
            system,
            tools_hash: tools_hash(&settings.allowed.definitions(&parts.runtime))?,
            forked_from: None,
            agent: parts.agent.clone(),
        };
        let log = RunLog::new(Arc::clone(&parts.log), parts.session.clone(), 0);
        let mut run = Self::new(parts, settings, RunState::default(), log, driver);
        run.append(RunEvent::Started(Box::new(start)))?;
        Ok(run)
    }

    /// Continues the run of the session, which no other process may be driving. What became of calls that were under way is found out when the run goes on.
    pub fn resume(parts: RunParts, settings: RunSettings) -> Result<Self, ToolError> {
        let driver = parts.runtime.ledger()?.drive_run(&parts.session)?;
        let events = read_events(parts.log.as_ref(), &parts.session)?;
        let state = RunState::of(&events).ok_or_else(|| no_run(&parts.session))?;
        let log = RunLog::new(Arc::clone(&parts.log), parts.session.clone(), state.seq);
        let mut run = Self::new(parts, settings, state, log, driver);
        run.is_resumed = true;
        run.use_model()?;
        Ok(run)
    }

    /// Lets the run begin with a conversation from elsewhere. Fails if something was said already.
    pub fn import(&mut self, from: &str, messages: Vec<ChatMessage>) -> Result<(), ToolError> {
        if !self.state.conversation.messages.is_empty() {
            let why = format!("Session {} has a conversation already.", self.parts.session);
            return Err(ToolError::invalid_arguments(why));
        }
        self.append(RunEvent::Imported { from: from.to_owned(), messages })
    }

    fn new(parts: RunParts, settings: RunSettings, state: RunState, log: RunLog, driver: RunDriver) -> Self {
        Self {
            parts,
            settings,
            state,
            log,
            driver: Some(driver),
            is_resumed: false,
            is_copy: false,
            is_announced: false,
            hook_stop: None,
        }
    }

    /// Lets something else drive the run until [`AgentRun::reload`].
    pub fn release(&mut self) {
        self.driver = None;
    }

    /// Reads the state from the log, behind which the run goes on: after something else has written it.
    pub fn reload(&mut self) -> Result<(), ToolError> {
        if self.driver.is_none() {
            self.driver = Some(self.parts.runtime.ledger()?.drive_run(&self.parts.session)?);
        }
        let (log, session) = (Arc::clone(&self.parts.log), self.parts.session.clone());
        let state = RunState::of(&read_events(log.as_ref(), &session)?).ok_or_else(|| no_run(&session))?;
        self.log = RunLog::new(log, session, state.seq);
        self.state = state;
        Ok(())
    }

    /// The state after all events.
    pub fn state(&self) -> &RunState {
        &self.state
    }

    /// The session whose log is the run.
    pub fn session(&self) -> &str {
        &self.parts.session
    }

    /// The settings, which hold from the next turn on.
    pub fn settings_mut(&mut self) -> &mut RunSettings {
        &mut self.settings
    }

    /// Goes on with another model.
    pub fn change_model(&mut self, model: Arc<dyn Model>) -> Result<(), ToolError> {
        self.parts.model = model;
        self.use_model()
    }

    /// Goes on with another model of the same provider.
    pub fn use_model_named(&mut self, model: &str) -> Result<(), ToolError> {
        if self.state.model == model {
            return Ok(());
        }
        let (provider, model) = (self.state.provider.clone(), model.to_owned());
        self.append(RunEvent::ModelChanged { provider, model, address: None })
    }

    /// Goes on with another system prompt.
    pub fn change_system(&mut self, system: Vec<String>) -> Result<(), ToolError> {
        if system == self.state.conversation.system {
            return Ok(());
        }
        self.append(RunEvent::SystemChanged { system })
    }

    /// Records that the model of the parts answers from here on, unless it does already.
    fn use_model(&mut self) -> Result<(), ToolError> {
        let (provider, model) = (self.parts.model.provider(), self.parts.model.model());
        let address = self.parts.model.address();
        let is_same = (self.state.provider.as_str(), self.state.model.as_str()) == (provider, model);
        if is_same && self.state.address == address {
            return Ok(());
        }
        let (provider, model) = (provider.to_owned(), model.to_owned());
        self.append(RunEvent::ModelChanged { provider, model, address })
    }

    /// Records an event. Nothing counts that is not recorded.
    pub(crate) fn append(&mut self, event: RunEvent) -> Result<(), ToolError> {
        if let RunEvent::Answer { cost_usd, .. } | RunEvent::Compacted { cost_usd, .. } = &event {
            self.parts.budget.add(*cost_usd);
        }
        let logged = self.log.append(event)?;
        self.state.apply(&logged);
        Ok(())
    }

    /// Where the next turn belongs in a trace. Its id is in no other log, because the time is part of it.
    pub(crate) fn next_turn_trace(&self) -> TurnTrace {
        let parent = self.parts.trace_parent.clone();
        let (session, at) = (self.parts.session.as_str(), now_ms().to_string());
        let own =
            TraceContext::derived(parent.as_ref(), &["turn", session, &self.state.seq.to_string(), &at]);
        TurnTrace { own, parent }
    }

    /// Lets the calls that begin from now on belong to the last turn.
    pub(crate) fn trace_calls(&self) {
        let trace = self.state.turns.last().and_then(|turn| turn.trace.as_ref());
        let parent = trace.map(|trace| trace.own.clone());
        self.parts.runtime.set_trace_parent(parent.or_else(|| self.parts.trace_parent.clone()));
    }

    /// Tells the user if the tools are others than at the beginning.
    pub(crate) fn note_changed_tools(&self, observer: &mut dyn RunObserver) -> Result<(), ToolError> {
        let start = &self.state.start;
        let is_first = self.state.turns.len() <= 1 && self.state.rounds == 0;
        if is_first
            || tools_hash(&self.settings.allowed.definitions(&self.parts.runtime))? == start.tools_hash
        {
            return Ok(());
        }
        let text = "The tools are not the same as when this run began.".to_owned();
        observer.on_event(&LoopEvent::Notice { text });
        Ok(())
    }

    /// Finds out what became of calls that were started by a process that died.
    pub(crate) fn settle_calls(&mut self, observer: &mut dyn RunObserver) -> Result<(), ToolError> {
        let is_unclear = |open: &&crate::OpenCall| open.is_started && open.result.is_none();
        let unclear: Vec<_> =
            self.state.open_calls.iter().filter(is_unclear).map(|open| open.call.clone()).collect();
        if unclear.is_empty() {
            return Ok(());
        }
        self.parts.runtime.recover()?;
        let since = self.state.asked_at;
        for call in unclear {
            let fate = fate_of(&call, &self.parts.runtime, &self.parts.session, since)?;
            if let CallFate::Ended(result, receipt) = fate {
                let changes = self.parts.runtime.ledger()?.receipt(receipt)?.changes.len();
                let finished = FinishedCall { receipt: Some(receipt), changes, ..FinishedCall::new(*result) };
                self.finish_call(finished, observer)?;
            }
        }
        Ok(())
    }

    /// Records the result of a call.
    pub(crate) fn finish_call(
        &mut self,
        finished: FinishedCall,
        observer: &mut dyn RunObserver,
    ) -> Result<(), ToolError> {
        let FinishedCall { result, receipt, changes, elapsed, structured, verdict, stop } = finished;
        self.hook_stop = self.hook_stop.take().or(stop);
        let open = self.state.open_calls.iter().find(|open| open.call.id == result.call_id);
        let Some(call) = open.map(|open| &open.call) else {
            return Err(ToolError::internal(format!("the result of {} belongs to no call", result.call_id)));
        };
        let result = call_results::with_repetition(&self.state.conversation, call, result);
        self.append(RunEvent::CallFinished { result: result.clone(), receipt })?;
        observer.on_event(&LoopEvent::CallFinished {
            result,
            receipt,
            changes,
            elapsed,
            structured,
            verdict,
        });
        self.take_reports(observer)
    }

    /// Records and passes on what the tools have reported: tokens of subagents, todos.
    pub fn take_reports(&mut self, observer: &mut dyn RunObserver) -> Result<(), ToolError> {
        let (spendings, todos) = self.parts.reports.take();
        for Spending { on, usage, cost_usd } in spendings {
            self.append(RunEvent::Spent { on, usage, cost_usd })?;
        }
        if let Some(todos) = todos {
            observer.on_event(&LoopEvent::TodosChanged { todos });
        }
        Ok(())
    }
}

pub(crate) fn no_run(session: &str) -> ToolError {
    let message = format!("Session {session} has no run to continue. `haft sessions` lists the sessions.");
    ToolError::new(ErrorKind::NotFound, message)
}

/// The hash of the definitions, by which a change is noticed.
fn tools_hash(tools: &[Definition]) -> Result<String, ToolError> {
    Ok(blake3::hash(&serde_json::to_vec(tools)?).to_hex().to_string())
}
