//! A model that plays a script, for demonstrations and tests without a provider.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use haft_tool::{Cancel, clip_chars, lock};
use regex::Regex;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{
    AssistantMessage, AssistantPart, CallArguments, ChatMessage, Conversation, Model, ModelError,
    ModelErrorKind, ModelEvent, ModelResponse, ModelStop, Origin, PartModel, TokenUsage, ToolCall,
    ToolResult, TurnRequest,
};

/// The provider's name.
const SCRIPT_NAME: &str = "script";
/// Characters of a result that a failed expectation shows.
const MAX_SHOWN_CHARS: usize = 300;

/// One turn of a script: a line of JSON.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ScriptTurn {
    /// Whose turn it is, if not the run's own: the name or kind of a subagent, `fast` for summaries, `oracle`.
    agent: Option<String>,
    /// What the results of the turn before must be like, in the order of the calls.
    expect: Expectations,
    /// An error in place of an answer.
    error: Option<ScriptError>,
    reasoning: String,
    text: String,
    calls: Vec<ScriptCall>,
    usage: TokenUsage,
    stop: Option<ModelStop>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptCall {
    name: String,
    #[serde(default)]
    arguments: Value,
    #[serde(default)]
    id: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptError {
    kind: ModelErrorKind,
    #[serde(default)]
    message: String,
    #[serde(default)]
    status: Option<u16>,
    #[serde(default)]
    retry_after_ms: Option<u64>,
}

/// One expectation, or one per result.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Expectations {
    One(Expectation),
    Each(Vec<Expectation>),
}

impl Default for Expectations {
    fn default() -> Self {
        Self::Each(Vec::new())
    }
}

/// What a result must be like.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Expectation {
    tool: Option<String>,
    contains: Option<String>,
    regex: Option<String>,
    is_error: Option<bool>,
}

/// A model that plays JSON lines: each is one answer, with `text`, `reasoning`, `calls` (`name`, `arguments`), an optional
/// `usage`, an `expect` on the results before it (`contains`, `regex`, `tool`, `is_error`), or an `error` in its place.
///
/// A named group of a `regex`, as `(?<id>\w+)`, is filled into the arguments of this and later calls as `${id}`.
///
/// Lines with `agent` are those of a subagent of that name or kind; each agent plays them from the first on. Empty lines and lines that begin with `//` are skipped. Play begins behind as many answers as the conversation has already,
/// so that a conversation that was interrupted goes on where it was.
pub struct ScriptModel {
    /// Line numbers and turns.
    turns: Vec<(usize, ScriptTurn)>,
    /// The turns of other parts of the run.
    others: Arc<[(usize, ScriptTurn)]>,
    /// The next turn; unknown before the first request.
    position: Mutex<Option<usize>>,
    /// What named groups of expectations have matched.
    captures: Mutex<BTreeMap<String, String>>,
}

impl ScriptModel {
    /// Reads a script.
    pub fn parse(script: &str) -> Result<Self, ModelError> {
        let mut turns = Vec::new();
        for (at, line) in script.lines().enumerate() {
            let (number, line) = (at + 1, line.trim());
            if line.is_empty() || line.starts_with("//") {
                continue;
            }
            let turn: ScriptTurn = serde_json::from_str(line)
                .map_err(|error| script_error(number, format!("is not a turn: {error}")))?;
            for expectation in turn.expect.all() {
                if let Some(Err(error)) = expectation.regex.as_deref().map(Regex::new) {
                    return Err(script_error(number, format!("has an invalid regex: {error}")));
                }
            }
            turns.push((number, turn));
        }
        let (others, turns) = turns.into_iter().partition::<Vec<_>, _>(|(_, turn)| turn.agent.is_some());
        Ok(Self { turns, others: others.into(), position: Mutex::default(), captures: Mutex::default() })
    }

    /// The turns of the part of the run that has this name.
    fn turns_of(&self, name: &str) -> Vec<(usize, ScriptTurn)> {
        let is_its = |(_, turn): &&(usize, ScriptTurn)| turn.agent.as_deref() == Some(name);
        self.others.iter().filter(is_its).cloned().collect()
    }

    /// Takes the next turn.
    fn next_turn(&self, conversation: &Conversation) -> Result<&(usize, ScriptTurn), ModelError> {
        let mut position = lock(&self.position);
        let at = position.unwrap_or_else(|| self.position_in(conversation));
        let Some(turn) = self.turns.get(at) else {
            let message =
                format!("The script has only {} turns, and the model was asked again", self.turns.len());
            return Err(ModelError::new(ModelErrorKind::Script, SCRIPT_NAME, message)
                .with_advice("Add a line for this turn."));
        };
        *position = Some(at + 1);
        Ok(turn)
    }

    /// The turn behind the answers that the conversation has.
    fn position_in(&self, conversation: &Conversation) -> usize {
        let is_answer = |message: &&ChatMessage| matches!(message, ChatMessage::Assistant(_));
        let answers = conversation.messages.iter().filter(is_answer).count();
        let Some(last) = answers.checked_sub(1) else { return 0 };
        let mut turns = self.turns.iter().enumerate().filter(|(_, (_, turn))| turn.error.is_none());
        turns.nth(last).map_or(self.turns.len(), |(at, _)| at + 1)
    }
}

impl Model for ScriptModel {
    fn provider(&self) -> &'static str {
        SCRIPT_NAME
    }

    fn model(&self) -> &'static str {
        SCRIPT_NAME
    }

    fn respond(
        &self,
        request: &TurnRequest<'_>,
        on_event: &mut dyn FnMut(ModelEvent),
        cancel: &Cancel,
    ) -> Result<ModelResponse, ModelError> {
        if cancel.is_cancelled() {
            return Err(ModelError::new(ModelErrorKind::Cancelled, SCRIPT_NAME, "The request was cancelled"));
        }
        let (number, turn) = self.next_turn(request.conversation)?;
        turn.expect.check(*number, request.conversation, &mut lock(&self.captures))?;
        if let Some(simulated) = &turn.error {
            return Err(simulated.to_error(*number));
        }
        let model = request.options.model.clone().unwrap_or_else(|| SCRIPT_NAME.to_owned());
        on_event(ModelEvent::Started { model: Some(model.clone()) });
        let mut parts = Vec::new();
        if !turn.reasoning.is_empty() {
            for delta in words(&turn.reasoning) {
                on_event(ModelEvent::Reasoning { delta });
            }
            parts.push(AssistantPart::Reasoning { text: turn.reasoning.clone(), raw: None });
        }
        if !turn.text.is_empty() {
            for delta in words(&turn.text) {
                on_event(ModelEvent::Text { delta });
            }
            parts.push(AssistantPart::Text { text: turn.text.clone(), raw: None });
        }
        for (at, call) in turn.calls.iter().enumerate() {
            // The line makes it unique within the conversation.
            let id = call.id.clone().unwrap_or_else(|| format!("script_{number}_{}", at + 1));
            on_event(ModelEvent::CallBegun { id: id.clone(), name: call.name.clone() });
            // A string stands for arguments as a model may write them, malformed or not.
            let (arguments, note) = match filled(&call.arguments, &lock(&self.captures)) {
                Value::Null => (CallArguments::Object(Map::new()), None),
                Value::String(text) => CallArguments::parse(&text),
                value => CallArguments::from_value(value),
            };
            let call = ToolCall { id, wire_id: None, name: call.name.clone(), arguments, note, raw: None };
            on_event(ModelEvent::CallComplete(call.clone()));
            parts.push(AssistantPart::ToolCall(call));
        }
        on_event(ModelEvent::Usage(turn.usage));
        let origin =
            Origin { wire: SCRIPT_NAME.to_owned(), provider: SCRIPT_NAME.to_owned(), model: model.clone() };
        Ok(ModelResponse {
            message: AssistantMessage { origin, parts, raw: Map::new() },
            stop: turn.stop.clone().unwrap_or(ModelStop::End),
            usage: turn.usage,
            model,
            response_id: None,
            elapsed: Duration::ZERO,
        })
    }

    fn for_part(&self, names: &[&str]) -> PartModel {
        let mut lines = names.iter().map(|name| self.turns_of(name));
        match lines.find(|turns| !turns.is_empty()) {
            Some(turns) => {
                let others = Arc::clone(&self.others);
                let (position, captures) = (Mutex::default(), Mutex::default());
                PartModel::Other(Arc::new(Self { turns, others, position, captures }))
            }
            None => PartModel::Missing,
        }
    }
}

impl ScriptError {
    fn to_error(&self, line: usize) -> ModelError {
        let message = if self.message.is_empty() {
            format!("Line {line} of the script simulates an error")
        } else {
            self.message.clone()
        };
        let mut error = ModelError::new(self.kind, SCRIPT_NAME, message);
        error.status = self.status;
        error.retry_after = self.retry_after_ms.map(Duration::from_millis);
        error
    }
}

impl Expectations {
    fn all(&self) -> &[Expectation] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Each(each) => each,
        }
    }

    /// Compares the last results with what the script expects.
    fn check(
        &self,
        line: usize,
        conversation: &Conversation,
        captures: &mut BTreeMap<String, String>,
    ) -> Result<(), ModelError> {
        let results = conversation.messages.iter().rev().find_map(|message| match message {
            ChatMessage::ToolResults { results, .. } => Some(results.as_slice()),
            _ => None,
        });
        let results = results.unwrap_or_default();
        for (at, expectation) in self.all().iter().enumerate() {
            let number = at + 1;
            let Some(result) = results.get(at) else {
                let found = results.len();
                return Err(script_error(line, format!("expects result {number}, and there are {found}")));
            };
            if let Some(problem) = expectation.problem(result) {
                let text = result.text();
                let shown = clip_chars(&text, MAX_SHOWN_CHARS, 0);
                return Err(script_error(
                    line,
                    format!("expects result {number} {problem}. It is of {}: {shown:?}", result.name),
                ));
            }
            captures.extend(expectation.captures(&result.text()));
        }
        Ok(())
    }
}

impl Expectation {
    /// What the named groups match.
    fn captures(&self, text: &str) -> Vec<(String, String)> {
        let Some(regex) = self.regex.as_deref().and_then(|regex| Regex::new(regex).ok()) else {
            return Vec::new();
        };
        let Some(found) = regex.captures(text) else { return Vec::new() };
        let names = regex.capture_names().flatten();
        names.filter_map(|name| Some((name.to_owned(), found.name(name)?.as_str().to_owned()))).collect()
    }

    fn problem(&self, result: &ToolResult) -> Option<String> {
        let text = result.text();
        let is_match = |pattern: &str| Regex::new(pattern).is_ok_and(|regex| regex.is_match(&text));
        match self {
            Self { tool: Some(tool), .. } if *tool != result.name => Some(format!("to be of {tool}")),
            Self { is_error: Some(true), .. } if !result.is_error => Some("to be an error".to_owned()),
            Self { is_error: Some(false), .. } if result.is_error => Some("to be no error".to_owned()),
            Self { contains: Some(part), .. } if !text.contains(part) => Some(format!("to contain {part:?}")),
            Self { regex: Some(regex), .. } if !is_match(regex) => Some(format!("to match {regex:?}")),
            _ => None,
        }
    }
}

/// The value with `${name}` replaced by what a group of that name has matched.
fn filled(value: &Value, captures: &BTreeMap<String, String>) -> Value {
    match value {
        Value::String(text) => {
            let fill = |text: String, (name, matched): (&String, &String)| {
                text.replace(&format!("${{{name}}}"), matched)
            };
            Value::String(captures.iter().fold(text.clone(), fill))
        }
        Value::Array(items) => items.iter().map(|item| filled(item, captures)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(name, field)| (name.clone(), filled(field, captures))).collect()
        }
        other => other.clone(),
    }
}

fn script_error(line: usize, what: impl std::fmt::Display) -> ModelError {
    ModelError::new(ModelErrorKind::Script, SCRIPT_NAME, format!("Line {line} of the script {what}"))
}

/// A text in pieces, as a model would send it.
fn words(text: &str) -> impl Iterator<Item = String> {
    text.split_inclusive(char::is_whitespace).map(str::to_owned)
}
