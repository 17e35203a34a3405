//! The spans of a run, from the events in its log: one for each turn and one for each answer of the model.

use std::time::Duration;

use haft_agent::{AnswerArrival, LoggedEvent, RunEvent, RunStart, RunStop, TurnTrace};
use haft_ledger::SessionInfo;
use haft_model::{ModelAddress, ModelErrorKind, ModelResponse, ModelStop, TokenUsage};
use haft_tool::TraceContext;
use url::Url;

use crate::content::ContentCapture;
use crate::names;
use crate::span::{AttributeValue, Attributes, ExportedSpan, SpanKind, ms_to_ns};

/// The name of the main agent.
const MAIN_AGENT: &str = "haft";
/// Why a turn ended if its process died.
const PROCESS_DIED: &str = "interrupted";

/// What is known of a run from the events so far.
pub(crate) struct RunSpans {
    session: SessionInfo,
    start: RunStart,
    provider: String,
    model: String,
    address: Option<ModelAddress>,
    turn: Option<OpenTurn>,
    /// When the last event was written.
    last_at: u64,
    /// The number of the last event.
    pub(crate) seq: u64,
}

/// A turn that has not ended.
struct OpenTurn {
    trace: TurnTrace,
    /// Whether the turn was copied from another run, which already has its spans.
    is_copy: bool,
    started_at: u64,
    usage: TokenUsage,
    cost_usd: Option<f64>,
    inferences: u64,
    calls: u64,
    input: Option<String>,
}

/// An answer of a model, or a failed attempt to get one.
struct Inference<'a> {
    started_at: u64,
    ended_at: u64,
    response: Option<&'a ModelResponse>,
    usage: &'a TokenUsage,
    cost_usd: Option<f64>,
    arrival: AnswerArrival,
    error: Option<String>,
}

impl RunSpans {
    pub(crate) fn new(session: SessionInfo) -> Self {
        Self {
            session,
            start: RunStart::default(),
            provider: String::new(),
            model: String::new(),
            address: None,
            turn: None,
            last_at: 0,
            seq: 0,
        }
    }

    /// The session of the run.
    pub(crate) fn session(&self) -> &SessionInfo {
        &self.session
    }

    /// The context of the turn under way.
    pub(crate) fn turn(&self) -> Option<&TraceContext> {
        self.turn.as_ref().map(|turn| &turn.trace.own)
    }

    /// Whether no turn is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.turn.is_none()
    }

    /// Adds an event, and returns the spans that end with it.
    pub(crate) fn apply(
        &mut self,
        logged: &LoggedEvent,
        content: Option<&ContentCapture>,
    ) -> Vec<ExportedSpan> {
        let mut spans = Vec::new();
        match &logged.event {
            RunEvent::Started(start) => {
                self.start = (**start).clone();
                (self.provider, self.model) = (start.provider.clone(), start.model.clone());
                self.address.clone_from(&start.address);
            }
            RunEvent::ModelChanged { provider, model, address } => {
                if address.is_some() || *provider != self.provider {
                    self.address.clone_from(address);
                }
                (self.provider, self.model) = (provider.clone(), model.clone());
            }
            RunEvent::UserMessage { content: said, trace, .. } => {
                spans.extend(self.end_turn(self.last_at, PROCESS_DIED, Some(PROCESS_DIED.to_owned())));
                let input = content.map(|capture| capture.user_message(said));
                self.begin_turn(logged, trace.clone(), input);
            }
            RunEvent::Answer { response, cost_usd, arrival } => {
                let took = u64::try_from(response.elapsed.as_millis()).unwrap_or(u64::MAX);
                let inference = Inference {
                    started_at: logged.at.saturating_sub(took),
                    ended_at: logged.at,
                    response: Some(response),
                    usage: &response.usage,
                    cost_usd: *cost_usd,
                    arrival: *arrival,
                    error: None,
                };
                spans.extend(self.inference(&inference, logged.seq, content));
            }
            RunEvent::Compacted { usage, cost_usd, .. } if usage.total() > 0 => {
                let (started_at, ended_at) = (self.last_at, logged.at);
                let inference = Inference {
                    started_at,
                    ended_at,
                    response: None,
                    usage,
                    cost_usd: *cost_usd,
                    arrival: AnswerArrival::default(),
                    error: None,
                };
                spans.extend(self.inference(&inference, logged.seq, None));
            }
            RunEvent::CallFinished { .. } => {
                if let Some(turn) = &mut self.turn {
                    turn.calls += 1;
                }
            }
            RunEvent::TurnEnded { stop } => {
                if let RunStop::Failed { kind, .. } = stop {
                    let inference = Inference {
                        started_at: self.last_at,
                        ended_at: logged.at,
                        response: None,
                        usage: &TokenUsage::default(),
                        cost_usd: None,
                        arrival: AnswerArrival::default(),
                        error: Some(kind_name(*kind)),
                    };
                    spans.extend(self.inference(&inference, logged.seq, None));
                }
                spans.extend(self.end_turn(logged.at, stop.name(), stop_error(stop)));
            }
            _ => {}
        }
        self.last_at = logged.at;
        self.seq = logged.seq;
        spans
    }

    /// The span of a turn whose process died, at the end of the log.
    pub(crate) fn end(&mut self) -> Option<ExportedSpan> {
        self.end_turn(self.last_at, PROCESS_DIED, Some(PROCESS_DIED.to_owned()))
    }

    fn begin_turn(&mut self, logged: &LoggedEvent, trace: Option<TurnTrace>, input: Option<String>) {
        let is_copy = trace.is_none() && self.start.forked_from.is_some();
        // Older logs do not store the trace of a turn.
        let trace = trace.unwrap_or_else(|| {
            let parts = ["turn", &self.session.id, &logged.seq.to_string(), &logged.at.to_string()];
            TurnTrace { own: TraceContext::derived(None, &parts), parent: None }
        });
        self.turn = Some(OpenTurn {
            trace,
            is_copy,
            started_at: logged.at,
            usage: TokenUsage::default(),
            cost_usd: Some(0.0),
            inferences: 0,
            calls: 0,
            input,
        });
    }

    fn end_turn(&mut self, at: u64, stop: &'static str, error: Option<String>) -> Option<ExportedSpan> {
        let turn = self.turn.take().filter(|turn| !turn.is_copy)?;
        let mut attributes = self.attributes(names::INVOKE_AGENT);
        attributes.set(names::AGENT_NAME, self.agent());
        if self.start.agent.is_some() {
            attributes.set(names::AGENT_ID, self.session.id.as_str());
        }
        add_usage(&mut attributes, &turn.usage, turn.cost_usd);
        attributes.set(names::INFERENCES, turn.inferences);
        attributes.set(names::TOOL_CALLS, turn.calls);
        attributes.set(names::STOP, stop);
        attributes.set_some(names::ERROR_TYPE, error.as_deref());
        if let Some(input) = turn.input {
            attributes.set(names::INPUT_MESSAGES, input);
            let description = self.start.agent.as_ref().map(|agent| agent.description.as_str());
            attributes.set_some(names::AGENT_DESCRIPTION, description);
        }
        Some(ExportedSpan {
            parent: turn.trace.parent.map(|parent| parent.span_id),
            context: turn.trace.own,
            name: format!("{} {}", names::INVOKE_AGENT, self.agent()),
            kind: SpanKind::Internal,
            start_ns: ms_to_ns(turn.started_at),
            end_ns: ms_to_ns(at.max(turn.started_at)),
            attributes,
            error,
        })
    }

    fn inference(
        &mut self,
        inference: &Inference<'_>,
        seq: u64,
        content: Option<&ContentCapture>,
    ) -> Option<ExportedSpan> {
        let Inference { response, usage, .. } = *inference;
        if self.turn.as_ref().is_some_and(|turn| turn.is_copy) {
            return None;
        }
        let asked = response.map(|response| response.message.origin.model.as_str());
        let model = asked.filter(|model| !model.is_empty()).unwrap_or(&self.model).to_owned();
        let mut attributes = self.attributes(names::CHAT);
        attributes.set(names::REQUEST_MODEL, model.as_str());
        if let Some(response) = response {
            attributes.set(names::RESPONSE_MODEL, response.model.as_str());
            attributes.set_some(names::RESPONSE_ID, response.response_id.as_deref());
            let reason = finish_reason(response);
            attributes.set(names::FINISH_REASONS, AttributeValue::Texts(vec![reason.to_owned()]));
            if let Some(capture) = content {
                let messages = capture.answer(&response.message.parts, reason);
                attributes.set(names::OUTPUT_MESSAGES, messages);
                attributes.set(names::SYSTEM_INSTRUCTIONS, capture.system(&self.start.system));
            }
        }
        add_usage(&mut attributes, usage, inference.cost_usd);
        let AnswerArrival { first_part_ms, retries } = inference.arrival;
        let first = first_part_ms.map(|after| Duration::from_millis(after).as_secs_f64());
        attributes.set_some(names::FIRST_CHUNK, first);
        if retries > 0 {
            attributes.set(names::RETRIES, u64::from(retries));
        }
        self.add_address(&mut attributes);
        attributes.set_some(names::ERROR_TYPE, inference.error.as_deref());
        if let Some(turn) = &mut self.turn {
            turn.inferences += 1;
            turn.usage.add(usage);
            turn.cost_usd = turn.cost_usd.zip(inference.cost_usd).map(|(sum, more)| sum + more);
        }
        let parent = self.turn();
        let at = inference.ended_at.to_string();
        Some(ExportedSpan {
            parent: parent.map(|parent| parent.span_id),
            context: TraceContext::derived(parent, &["chat", &self.session.id, &seq.to_string(), &at]),
            name: format!("{} {model}", names::CHAT),
            kind: SpanKind::Client,
            start_ns: ms_to_ns(inference.started_at),
            end_ns: ms_to_ns(inference.ended_at.max(inference.started_at)),
            attributes,
            error: inference.error.clone(),
        })
    }

    /// The attributes that all spans of the run have.
    fn attributes(&self, operation: &str) -> Attributes {
        let mut attributes = Attributes::default();
        attributes.set(names::OPERATION, operation);
        attributes.set(names::PROVIDER, names::provider(&self.provider));
        attributes.set(names::REQUEST_MODEL, self.model.as_str());
        attributes.set(names::CONVERSATION, self.session.id.as_str());
        attributes.set(names::DIALECT, self.session.dialect.as_str());
        attributes
    }

    /// The kind of the agent, not its name, which a model has chosen.
    fn agent(&self) -> &str {
        self.start.agent.as_ref().map_or(MAIN_AGENT, |origin| &origin.kind)
    }

    fn add_address(&self, attributes: &mut Attributes) {
        let url = self.address.as_ref().and_then(|address| Url::parse(&address.base_url).ok());
        let Some(url) = url else { return };
        attributes.set_some(names::SERVER_ADDRESS, url.host_str());
        attributes.set_some(names::SERVER_PORT, url.port_or_known_default().map(i64::from));
    }
}

fn add_usage(attributes: &mut Attributes, usage: &TokenUsage, cost_usd: Option<f64>) {
    if usage.total() == 0 {
        return;
    }
    attributes.set(names::INPUT_TOKENS, usage.context());
    attributes.set(names::OUTPUT_TOKENS, usage.output);
    if usage.cache_read > 0 {
        attributes.set(names::CACHE_READ_TOKENS, usage.cache_read);
    }
    if usage.cache_write > 0 {
        attributes.set(names::CACHE_WRITE_TOKENS, usage.cache_write);
    }
    attributes.set_some(names::COST_USD, cost_usd);
}

/// Why the model stopped, in the words of the semantic conventions.
fn finish_reason(response: &ModelResponse) -> &'static str {
    match &response.stop {
        ModelStop::End if response.message.calls().next().is_some() => "tool_call",
        ModelStop::End | ModelStop::Paused => "stop",
        ModelStop::Length | ModelStop::ContextFull => "length",
        ModelStop::Refused { .. } => "content_filter",
        _ => "error",
    }
}

/// The kind of error that ended a turn, if one did.
fn stop_error(stop: &RunStop) -> Option<String> {
    match stop {
        RunStop::Done => None,
        RunStop::Failed { kind, .. } => Some(kind_name(*kind)),
        other => Some(other.name().to_owned()),
    }
}

fn kind_name(kind: ModelErrorKind) -> String {
    let name = serde_json::to_value(kind).ok().and_then(|value| value.as_str().map(str::to_owned));
    name.unwrap_or_else(|| "_OTHER".to_owned())
}
