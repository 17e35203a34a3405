//! The state of a run: a pure fold over its events. Everything that is sent to the model comes from here.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use haft_model::{
    ChatMessage, ContentPart, Conversation, ModelAddress, ModelResponse, ModelStop, TokenUsage, ToolCall,
    ToolResult,
};

use crate::run_log::live_events;
use crate::{ElidedCall, LoggedEvent, RunEvent, RunStart, RunStop, TurnTrace};

/// How the stop of an answer is called that the user interrupted.
pub(crate) const INTERRUPTED: &str = "interrupted";

/// Tokens and cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunTotals {
    /// The tokens.
    pub usage: TokenUsage,
    /// US dollars; `None` if a price is not known, which is not the same as nothing.
    pub cost_usd: Option<f64>,
}

impl Default for RunTotals {
    fn default() -> Self {
        Self { usage: TokenUsage::default(), cost_usd: Some(0.0) }
    }
}

impl RunTotals {
    fn add(&mut self, usage: &TokenUsage, cost_usd: Option<f64>) {
        self.usage.add(usage);
        self.cost_usd = self.cost_usd.zip(cost_usd).map(|(sum, more)| sum + more);
    }
}

/// A call of the last answer. All of them stay open until each has its result.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenCall {
    /// The call.
    pub call: ToolCall,
    /// Whether it was started.
    pub is_started: bool,
    /// Its result.
    pub result: Option<ToolResult>,
}

/// A turn of the run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TurnMark {
    /// The sequence number of the user's message.
    pub seq: u64,
    /// When it was written, in milliseconds since 1970.
    pub at: u64,
    /// The id that the user's program gave the message.
    pub uuid: Option<String>,
    /// Where it belongs in a trace.
    pub trace: Option<TurnTrace>,
    /// The calls that were made, by their numbers in the ledger.
    pub receipts: Vec<i64>,
}

/// The state of a run after its events.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunState {
    /// What it began with.
    pub start: RunStart,
    /// The conversation. While calls are open, their answer is its last message.
    pub conversation: Conversation,
    /// The provider that answers now.
    pub provider: String,
    /// The model that answers now.
    pub model: String,
    /// Where it is reached.
    pub address: Option<ModelAddress>,
    /// The calls of the last answer, until all of them have results.
    pub open_calls: Vec<OpenCall>,
    /// Whether the last turn has not ended.
    pub is_turn_open: bool,
    /// The turns, oldest first.
    pub turns: Vec<TurnMark>,
    /// Answers in the last turn.
    pub rounds: u32,
    /// Tokens and cost of the last turn.
    pub turn_totals: RunTotals,
    /// Tokens and cost of the run.
    pub totals: RunTotals,
    /// What the model said last in the last turn.
    pub last_text: String,
    /// The numbers in the ledger of the calls whose results are in the conversation.
    pub receipts: BTreeMap<String, i64>,
    /// The instructions of directories that are in the conversation.
    pub(crate) instruction_files: BTreeSet<PathBuf>,
    /// Why the last turn ended.
    pub last_stop: Option<RunStop>,
    /// Why the model stopped, until the loop has acted on it.
    pub(crate) unhandled_stop: Option<ModelStop>,
    /// How often in a row the loop had to tell the model to go on.
    pub(crate) loop_messages: u32,
    /// How often hooks kept the model from stopping in the last turn.
    pub(crate) kept_from_stopping: u32,
    /// When the last event before the last answer was written: its calls did not start earlier.
    pub(crate) asked_at: u64,
    /// Tokens of the context after the last answer, as the provider counted, with the bytes of the conversation at that point.
    pub(crate) measured: Option<(u64, usize)>,
    pub(crate) seq: u64,
    last_at: u64,
}

/// What the loop does next.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum NextStep {
    /// Make the open calls.
    Calls,
    /// Act on an answer without calls.
    Stop(ModelStop),
    /// Ask the model.
    Ask,
    /// Wait for the user.
    Wait,
}

impl RunState {
    /// The state after these events; `None` if no run was started.
    pub(crate) fn of(events: &[LoggedEvent]) -> Option<Self> {
        let live = live_events(events);
        let is_run = matches!(live.first(), Some(LoggedEvent { event: RunEvent::Started(_), .. }));
        let mut state = Self::default();
        for logged in &live {
            state.apply(logged);
        }
        state.seq = events.last().map_or(0, |last| last.seq);
        is_run.then_some(state)
    }

    pub(crate) fn next_step(&self) -> NextStep {
        if !self.is_turn_open {
            return NextStep::Wait;
        }
        if !self.open_calls.is_empty() {
            return NextStep::Calls;
        }
        self.unhandled_stop.clone().map_or(NextStep::Ask, NextStep::Stop)
    }

    /// Adds one event. A rewinding is handled by [`RunState::of`], because it needs the events before.
    pub(crate) fn apply(&mut self, logged: &LoggedEvent) {
        self.seq = logged.seq;
        match &logged.event {
            RunEvent::Started(start) => {
                self.start.clone_from(start);
                self.conversation.system.clone_from(&start.system);
                (self.provider, self.model) = (start.provider.clone(), start.model.clone());
                self.address.clone_from(&start.address);
            }
            RunEvent::UserMessage { content, uuid, trace } => {
                let mark = TurnMark {
                    seq: logged.seq,
                    at: logged.at,
                    uuid: uuid.clone(),
                    trace: trace.clone(),
                    receipts: Vec::new(),
                };
                self.begin_turn(mark, content);
            }
            RunEvent::Imported { messages, .. } => self.conversation.messages.clone_from(messages),
            RunEvent::LoopMessage { text } => {
                self.unhandled_stop = None;
                self.loop_messages += 1;
                self.say(&[ContentPart::text(text)]);
            }
            RunEvent::Instructions { files, text } => {
                self.instruction_files.extend(files.iter().cloned());
                self.say(&[ContentPart::text(text)]);
            }
            RunEvent::HookMessage { hook, text } => {
                if self.unhandled_stop.take().is_some() && hook.ends_with("Stop") {
                    self.kept_from_stopping += 1;
                }
                self.say(&[ContentPart::text(text)]);
            }
            RunEvent::Answer { response, cost_usd, .. } => self.answer(response, *cost_usd),
            RunEvent::CallStarted { call_id } => {
                if let Some(open) = self.open_calls.iter_mut().find(|open| open.call.id == *call_id) {
                    open.is_started = true;
                }
            }
            RunEvent::CallFinished { result, receipt } => self.finish_call(result, *receipt),
            RunEvent::TurnEnded { stop } => {
                self.is_turn_open = false;
                self.unhandled_stop = None;
                self.last_stop = Some(stop.clone());
            }
            RunEvent::ModelChanged { provider, model, address } => {
                if address.is_some() || *provider != self.provider {
                    self.address.clone_from(address);
                }
                (self.provider, self.model) = (provider.clone(), model.clone());
                // Another model counts differently.
                self.measured = None;
            }
            RunEvent::SystemChanged { system } => self.conversation.system.clone_from(system),
            RunEvent::Elided { calls } => self.elide(calls),
            RunEvent::Compacted { summary, kept, usage, cost_usd } => {
                self.add_usage(usage, *cost_usd);
                self.compact(summary, *kept);
            }
            RunEvent::Spent { usage, cost_usd, .. } => self.add_usage(usage, *cost_usd),
            RunEvent::Rewound { .. } | RunEvent::Unknown => {}
        }
        self.last_at = logged.at;
    }

    fn begin_turn(&mut self, mark: TurnMark, content: &[ContentPart]) {
        self.turns.push(mark);
        self.is_turn_open = true;
        (self.rounds, self.loop_messages, self.kept_from_stopping) = (0, 0, 0);
        self.turn_totals = RunTotals::default();
        (self.unhandled_stop, self.last_stop) = (None, None);
        self.last_text.clear();
        self.say(content);
    }

    /// Adds what the user said to the last message if that is not an answer, because some providers refuse two messages of one role.
    fn say(&mut self, more: &[ContentPart]) {
        match self.conversation.messages.last_mut() {
            Some(ChatMessage::User { content } | ChatMessage::ToolResults { content, .. }) => {
                content.extend_from_slice(more);
            }
            _ => self.conversation.messages.push(ChatMessage::User { content: more.to_vec() }),
        }
    }

    fn answer(&mut self, response: &ModelResponse, cost_usd: Option<f64>) {
        self.rounds += 1;
        self.asked_at = self.last_at;
        self.add_usage(&response.usage, cost_usd);
        let message = &response.message;
        let text = message.text();
        if !text.trim().is_empty() {
            self.last_text = text;
        }
        self.open_calls = message
            .calls()
            .map(|call| OpenCall { call: call.clone(), is_started: false, result: None })
            .collect();
        // Providers refuse an empty answer, and one that was refused leads to the next refusal.
        let is_refusal = matches!(response.stop, ModelStop::Refused { .. }) && self.open_calls.is_empty();
        if !message.parts.is_empty() && !is_refusal {
            self.conversation.messages.push(ChatMessage::Assistant(message.clone()));
        }
        if !self.open_calls.is_empty() {
            self.loop_messages = 0;
        }
        let has_to_ask_again = !self.open_calls.is_empty() || response.stop == ModelStop::Paused;
        self.unhandled_stop = (!has_to_ask_again).then(|| response.stop.clone());
        let tokens = response.usage.total();
        self.measured = (tokens > 0).then(|| (tokens, crate::context::bytes_of(&self.conversation)));
    }

    fn finish_call(&mut self, result: &ToolResult, receipt: Option<i64>) {
        let id = &result.call_id;
        let open = self.open_calls.iter_mut().find(|open| open.call.id == *id && open.result.is_none());
        let Some(open) = open else { return };
        open.result = Some(result.clone());
        if let Some(receipt) = receipt {
            self.receipts.insert(id.clone(), receipt);
            if let Some(turn) = self.turns.last_mut() {
                turn.receipts.push(receipt);
            }
        }
        if self.open_calls.iter().all(|open| open.result.is_some()) {
            let results = self.open_calls.drain(..).filter_map(|open| open.result).collect();
            self.conversation.messages.push(ChatMessage::ToolResults { results, content: Vec::new() });
        }
    }

    fn elide(&mut self, calls: &[ElidedCall]) {
        for message in &mut self.conversation.messages {
            let ChatMessage::ToolResults { results, .. } = message else { continue };
            for result in results {
                let Some(elided) = calls.iter().find(|call| call.call_id == result.call_id) else { continue };
                let text = match elided.receipt {
                    Some(receipt) => format!("[elided; haft show {receipt}]"),
                    None => "[elided]".to_owned(),
                };
                result.content = vec![ContentPart::text(text)];
            }
        }
    }

    fn compact(&mut self, summary: &str, kept: usize) {
        let messages = &mut self.conversation.messages;
        let mut newest = messages.split_off(messages.len().saturating_sub(kept));
        let mut content = vec![ContentPart::text(summary)];
        if let Some(ChatMessage::User { content: said }) = newest.first() {
            content.extend_from_slice(said);
            newest.remove(0);
        }
        *messages = vec![ChatMessage::User { content }];
        messages.append(&mut newest);
        self.measured = None;
        // They may have been among the messages that went, and are added again where calls work next.
        self.instruction_files.clear();
    }

    fn add_usage(&mut self, usage: &TokenUsage, cost_usd: Option<f64>) {
        self.totals.add(usage, cost_usd);
        self.turn_totals.add(usage, cost_usd);
    }
}
