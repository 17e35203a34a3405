//! One turn: from what the user says to the end of the answer.

use std::time::Duration;

use haft_model::{
    AssistantPart, ContentPart, ModelError, ModelErrorKind, ModelResponse, ModelStop, TurnOptions,
};
use haft_tool::{Cancel, ToolError, Value};

use crate::ask::ModelQuestion;
use crate::calls::CallPool;
use crate::compaction::{RoomMade, RoomNeed};
use crate::fold::{INTERRUPTED, NextStep};
use crate::turn_clock::TurnClock;
use crate::{AgentRun, AnswerArrival, AnswerSchema, LoopEvent, RunEvent, RunObserver, RunStop, RunTotals};

/// How often in a row the model is told to go on after an answer that was cut or could not be read.
const MAX_LOOP_MESSAGES: u32 = 3;
/// How often in a turn room is made after the provider said that the context is full.
const MAX_ROOM_ATTEMPTS: u32 = 2;

/// How often in a turn the model is told that its answer does not fit the schema.
const MAX_SCHEMA_ATTEMPTS: u32 = 2;

const CUT_MESSAGE: &str = "Your last answer was cut, because it reached the limit of tokens; a call that was not complete was not made. \
     Go on where it stopped, in smaller steps.";
const FULL_MESSAGE: &str = "Your last answer ended because the context was full. Older parts of the conversation have been removed. Go on \
     where you stopped.";

/// What came of a turn.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TurnReport {
    /// Why it ended.
    pub stop: RunStop,
    /// What the model said last; may be empty.
    pub text: String,
    /// The final answer, if it had to fit a schema and does.
    pub structured: Option<Value>,
    /// The provider that answered last.
    pub provider: String,
    /// The model that answered last.
    pub model: String,
    /// Tokens and cost.
    pub totals: RunTotals,
    /// How often the model was asked.
    pub rounds: u32,
    /// How long it took.
    pub elapsed: Duration,
}

/// What belongs to the turn that is under way.
pub(crate) struct TurnWork<'a> {
    pub(crate) pool: CallPool,
    pub(crate) clock: TurnClock,
    pub(crate) observer: &'a mut dyn RunObserver,
    room_attempts: u32,
    /// How often the model was told that its answer does not fit the schema.
    schema_attempts: u32,
    structured: Option<Value>,
    /// Whether the user asked for the compaction.
    pub(crate) is_compaction_asked: bool,
}

impl TurnWork<'_> {
    /// Why the history is summarised, in the words of hooks.
    pub(crate) const fn compaction_trigger(&self) -> &'static str {
        if self.is_compaction_asked { "manual" } else { "auto" }
    }
}

impl AgentRun {
    /// Says something to the model and drives the turn to its end. Calls that an earlier turn left open get their results first.
    pub fn say(
        &mut self,
        content: Vec<ContentPart>,
        observer: &mut dyn RunObserver,
        cancel: &Cancel,
    ) -> Result<TurnReport, ToolError> {
        self.say_as(content, None, observer, cancel)
    }

    /// The same; the message keeps this id, by which its author names it.
    pub fn say_as(
        &mut self,
        content: Vec<ContentPart>,
        uuid: Option<String>,
        observer: &mut dyn RunObserver,
        cancel: &Cancel,
    ) -> Result<TurnReport, ToolError> {
        self.check_budget()?;
        let mut work = self.begin(observer, cancel);
        self.settle_calls(work.observer)?;
        self.make_calls(&mut work)?;
        self.take_reports(work.observer)?;
        let content = match self.prompt_after_hooks(content, &mut work) {
            Ok(content) => content,
            Err(reason) => return Ok(self.refused_prompt(reason, &mut work)),
        };
        let trace = Some(self.next_turn_trace());
        self.append(RunEvent::UserMessage { content, uuid, trace })?;
        self.trace_calls();
        self.add_schema_instruction()?;
        self.note_changed_tools(work.observer)?;
        self.drive(&mut work)
    }

    /// Drives a turn to its end that was interrupted by the death of its process.
    pub fn proceed(
        &mut self,
        observer: &mut dyn RunObserver,
        cancel: &Cancel,
    ) -> Result<TurnReport, ToolError> {
        if !self.state.is_turn_open {
            return Err(ToolError::invalid_arguments(format!(
                "The last turn of session {} has ended. Give a prompt to continue it.",
                self.parts.session
            )));
        }
        self.check_budget()?;
        let mut work = self.begin(observer, cancel);
        self.settle_calls(work.observer)?;
        self.note_changed_tools(work.observer)?;
        self.drive(&mut work)
    }

    pub(crate) fn begin<'a>(&self, observer: &'a mut dyn RunObserver, cancel: &Cancel) -> TurnWork<'a> {
        self.trace_calls();
        let clock = TurnClock::start(self.settings.limits.time, cancel);
        self.parts.reports.begin_turn(&clock.cancel);
        let pool = CallPool::new(self.parts.runtime.clone());
        TurnWork {
            pool,
            clock,
            observer,
            room_attempts: 0,
            schema_attempts: 0,
            structured: None,
            is_compaction_asked: false,
        }
    }

    /// Refuses a limit of dollars that cannot be kept.
    fn check_budget(&self) -> Result<(), ToolError> {
        let (provider, model) = (&self.state.provider, &self.state.model);
        if self.settings.limits.dollars.is_none() || self.settings.prices.price(provider, model).is_some() {
            return Ok(());
        }
        Err(ToolError::invalid_arguments(format!(
            "The price of {model} is not known, so a limit in dollars cannot be kept. Set it in [model.prices] of haft.toml, or \
             leave out --max-budget-usd."
        )))
    }

    fn drive(&mut self, work: &mut TurnWork<'_>) -> Result<TurnReport, ToolError> {
        // A subagent spends from the budget of the run that started it.
        if self.parts.agent.is_none() {
            self.parts.budget.reset(self.state.turn_totals.cost_usd);
        }
        loop {
            self.take_reports(work.observer)?;
            match self.state.next_step() {
                NextStep::Wait => return Ok(self.report(work)),
                NextStep::Calls => self.make_calls(work)?,
                NextStep::Stop(stop) => self.act_on(stop, work)?,
                NextStep::Ask => match self.limit_reached(work) {
                    Some(stop) => self.end(stop, work)?,
                    None => self.ask(work)?,
                },
            }
        }
    }

    pub(crate) fn report(&self, work: &TurnWork<'_>) -> TurnReport {
        let state = &self.state;
        TurnReport {
            stop: state.last_stop.clone().unwrap_or(RunStop::Done),
            text: state.last_text.clone(),
            structured: work.structured.clone(),
            provider: state.provider.clone(),
            model: state.model.clone(),
            totals: state.turn_totals,
            rounds: state.rounds,
            elapsed: work.clock.start.elapsed(),
        }
    }

    fn limit_reached(&mut self, work: &TurnWork<'_>) -> Option<RunStop> {
        if let Some(explanation) = self.hook_stop.take() {
            return Some(RunStop::Hook { explanation });
        }
        let (limits, state) = (&self.settings.limits, &self.state);
        if let Some(stop) = work.clock.stop() {
            return Some(stop);
        }
        if state.rounds >= limits.rounds {
            return Some(RunStop::MaxTurns { rounds: limits.rounds });
        }
        let dollars = limits.dollars?;
        match self.parts.budget.spent() {
            Some(cost) if cost < dollars => None,
            Some(_) => Some(RunStop::MaxBudget { dollars }),
            None => Some(RunStop::Failed {
                kind: ModelErrorKind::Settings,
                message: format!(
                    "The price of {} is not known, so the limit in dollars cannot be kept.",
                    state.model
                ),
            }),
        }
    }

    pub(crate) fn end(&mut self, stop: RunStop, work: &mut TurnWork<'_>) -> Result<(), ToolError> {
        self.report_failure(&stop, work);
        self.hook_stop = None;
        self.append(RunEvent::TurnEnded { stop: stop.clone() })?;
        work.observer.on_event(&LoopEvent::TurnEnded { stop });
        Ok(())
    }

    /// The options of the next request.
    fn options(&self) -> TurnOptions {
        let mut options = self.settings.options.clone();
        let is_own = self.state.model == self.parts.model.model();
        options.model = (!is_own).then(|| self.state.model.clone());
        options.cache_key.get_or_insert_with(|| self.parts.session.clone());
        let schema = self.settings.output_schema.as_ref().map(AnswerSchema::as_output);
        options.output_schema = schema.filter(|schema| self.parts.model.holds_schema(schema)).cloned();
        options
    }

    fn ask(&mut self, work: &mut TurnWork<'_>) -> Result<(), ToolError> {
        let tools = self.settings.allowed.definitions(&self.parts.runtime);
        if let RoomMade::Failed(error) = self.make_room(RoomNeed::IfDue, &tools, work)? {
            // It may fit all the same; if not, the provider will say so.
            let text = format!("The history could not be summarised: {error}");
            work.observer.on_event(&LoopEvent::Notice { text });
        }
        if work.clock.cancel.is_cancelled() {
            return Ok(());
        }
        let question = ModelQuestion {
            model: self.parts.model.as_ref(),
            conversation: &self.state.conversation,
            tools: &tools,
            options: &self.options(),
            runtime: &self.parts.runtime,
            allowed: &self.settings.allowed,
            cancel: &work.clock.cancel,
            session: &self.parts.session,
        };
        match question.ask(&mut work.pool, work.observer) {
            Ok((response, arrival)) => self.record_answer(response, arrival, work),
            Err(error) => self.act_on_error(error, work),
        }
    }

    fn record_answer(
        &mut self,
        response: ModelResponse,
        arrival: AnswerArrival,
        work: &mut TurnWork<'_>,
    ) -> Result<(), ToolError> {
        let cost_usd = self.cost(&response);
        let response = Box::new(response);
        self.append(RunEvent::Answer { response: response.clone(), cost_usd, arrival })?;
        work.observer.on_event(&LoopEvent::Answered { turn: self.state.turn_totals, response });
        Ok(())
    }

    /// What an answer cost. The price is that of the model as it was asked for, else as the provider names it.
    pub(crate) fn cost(&self, response: &ModelResponse) -> Option<f64> {
        let (prices, provider) = (&self.settings.prices, self.parts.model.provider());
        let asked = prices.cost(provider, &response.message.origin.model, &response.usage);
        asked.or_else(|| prices.cost(provider, &response.model, &response.usage))
    }

    /// Acts on an answer without calls.
    fn act_on(&mut self, stop: ModelStop, work: &mut TurnWork<'_>) -> Result<(), ToolError> {
        match stop {
            ModelStop::Length => self.tell(CUT_MESSAGE.to_owned(), "Its answers were cut too often", work),
            ModelStop::InvalidCall { explanation } => {
                let text = format!(
                    "The provider could not read the call that you wrote ({explanation}). Write it again, with arguments that are \
                     one valid JSON object."
                );
                self.tell(text, "It wrote calls that could not be read too often", work)
            }
            ModelStop::ContextFull => {
                if !self.make_room_or_end("The context of the model is full", work)? {
                    return Ok(());
                }
                self.append(RunEvent::LoopMessage { text: FULL_MESSAGE.to_owned() })
            }
            ModelStop::Refused { explanation } => self.end(RunStop::Refused { explanation }, work),
            ModelStop::Other { name } if name == INTERRUPTED => {
                self.end(work.clock.stop().unwrap_or(RunStop::Interrupted), work)
            }
            _ => self.check_answer(work),
        }
    }

    /// Ends the turn if the answer has the form that it must have; else the model is asked for it once more.
    fn check_answer(&mut self, work: &mut TurnWork<'_>) -> Result<(), ToolError> {
        let Some(schema) = &self.settings.output_schema else { return self.stop_or_go_on(work) };
        match schema.read(&self.state.last_text) {
            Ok(value) => {
                work.structured = Some(value);
                self.stop_or_go_on(work)
            }
            Err(problem) if work.schema_attempts < MAX_SCHEMA_ATTEMPTS => {
                work.schema_attempts += 1;
                let text =
                    format!("Your answer does not fit the schema: {problem}. {}", schema.instruction());
                self.append(RunEvent::LoopMessage { text })
            }
            Err(explanation) => self.end(RunStop::SchemaMismatch { explanation }, work),
        }
    }

    /// Tells the model what form its final answer must have, unless its provider sees to that.
    fn add_schema_instruction(&mut self) -> Result<(), ToolError> {
        let Some(schema) = &self.settings.output_schema else { return Ok(()) };
        if self.parts.model.holds_schema(schema.as_output()) {
            return Ok(());
        }
        let text = schema.instruction();
        self.append(RunEvent::Instructions { files: Vec::new(), text })
    }

    /// Tells the model to go on, unless that was of no use several times.
    fn tell(&mut self, text: String, too_often: &str, work: &mut TurnWork<'_>) -> Result<(), ToolError> {
        if self.state.loop_messages < MAX_LOOP_MESSAGES {
            return self.append(RunEvent::LoopMessage { text });
        }
        let explanation = format!("The model did not come to an end. {too_often}. Ask for less at once.");
        self.end(RunStop::Unfinished { explanation }, work)
    }

    fn act_on_error(&mut self, error: ModelError, work: &mut TurnWork<'_>) -> Result<(), ToolError> {
        if work.clock.cancel.is_cancelled() || error.kind == ModelErrorKind::Cancelled {
            return self.record_partial(error, work);
        }
        let fallback = self.settings.fallback_model.clone().filter(|fallback| *fallback != self.state.model);
        match (error.kind, fallback) {
            (ModelErrorKind::ContextTooLong, _) => {
                self.make_room_or_end(&error.to_string(), work)?;
                Ok(())
            }
            (ModelErrorKind::Overloaded | ModelErrorKind::RateLimit, Some(model)) => {
                let text = format!(
                    "{} {model} answers from here on.",
                    error.message.trim_end_matches('.').to_owned() + "."
                );
                let provider = self.state.provider.clone();
                self.append(RunEvent::ModelChanged { provider, model, address: None })?;
                work.observer.on_event(&LoopEvent::Notice { text });
                Ok(())
            }
            (ModelErrorKind::Refused, _) => self.end(RunStop::Refused { explanation: error.message }, work),
            (kind, _) => self.end(RunStop::Failed { kind, message: error.to_string() }, work),
        }
    }

    /// Keeps what had arrived of an answer that was interrupted: its text and its complete calls.
    fn record_partial(&mut self, error: ModelError, work: &mut TurnWork<'_>) -> Result<(), ToolError> {
        let has_use = |part: &AssistantPart| match part {
            AssistantPart::Text { text, .. } => !text.trim().is_empty(),
            AssistantPart::ToolCall(_) => true,
            _ => false,
        };
        match error.partial {
            Some(mut partial) if partial.message.parts.iter().any(has_use) => {
                partial.stop = ModelStop::Other { name: INTERRUPTED.to_owned() };
                self.record_answer(*partial, AnswerArrival::default(), work)
            }
            _ => {
                let stop = work.clock.stop().unwrap_or(RunStop::Interrupted);
                self.end(stop, work)
            }
        }
    }

    /// Makes room in a context that is full, or ends the turn; true if there is room.
    fn make_room_or_end(&mut self, message: &str, work: &mut TurnWork<'_>) -> Result<bool, ToolError> {
        let tools = self.settings.allowed.definitions(&self.parts.runtime);
        work.room_attempts += 1;
        let need = match work.room_attempts {
            1 => RoomNeed::Some,
            _ => RoomNeed::Summary,
        };
        let made = if work.room_attempts > MAX_ROOM_ATTEMPTS {
            RoomMade::Nothing
        } else {
            self.make_room(need, &tools, work)?
        };
        let why = match made {
            RoomMade::Enough => return Ok(true),
            RoomMade::Nothing => "Compacting the conversation did not help. Start a new run with a smaller task, or use a model \
                 with a larger context."
                .to_owned(),
            RoomMade::Failed(error) => format!("The history could not be summarised: {error}"),
        };
        if let Some(stop) = work.clock.stop() {
            self.end(stop, work)?;
            return Ok(false);
        }
        let message = format!("{} {why}", message.trim_end_matches('.').to_owned() + ".");
        self.end(RunStop::Failed { kind: ModelErrorKind::ContextTooLong, message }, work)?;
        Ok(false)
    }
}
