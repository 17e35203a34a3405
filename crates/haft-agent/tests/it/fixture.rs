//! A workspace, a ledger, and models that play a script.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use haft_agent::{AgentRun, LoopEvent, RunParts, RunSettings, TurnReport};
use haft_ledger::{EventLog, Expected, Ledger, StoredEvent};
use haft_model::{
    AssistantMessage, AssistantPart, CallArguments, ChatMessage, ContentPart, Conversation, Model,
    ModelError, ModelEvent, ModelResponse, ModelStop, Origin, ScriptModel, TokenUsage, ToolCall, ToolResult,
    TurnRequest,
};
use haft_runtime::Runtime;
use haft_tool::{Cancel, ErrorKind, ToolError, Value, json};
use tempfile::TempDir;

pub(crate) struct Workbench {
    folder: TempDir,
    home: TempDir,
}

impl Workbench {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), home: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn root(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// A runtime with a session of its own, or the one that is named.
    pub(crate) fn runtime(&self, session: Option<&str>) -> Runtime {
        let dialect = haft_tools::dialects::by_name("claude", &haft_tools::Settings::default()).unwrap();
        let builder = Runtime::builder().workspace(self.root()).home(self.home.path()).dialect(dialect);
        let builder = match session {
            Some(session) => builder.session(session),
            None => builder,
        };
        builder.build().unwrap()
    }

    /// A runtime with a session of its own, which shares an open ledger.
    pub(crate) fn runtime_with(&self, ledger: Ledger, dialect: &str) -> Runtime {
        let dialect = haft_tools::dialects::by_name(dialect, &haft_tools::Settings::default()).unwrap();
        Runtime::builder().workspace(self.root()).ledger(ledger).dialect(dialect).build().unwrap()
    }

    pub(crate) fn parts(&self, model: impl Model + 'static) -> RunParts {
        RunParts::new(self.runtime(None), Arc::new(model)).unwrap()
    }

    /// A run that plays this script.
    pub(crate) fn run(&self, script: &str) -> AgentRun {
        self.run_with(ScriptModel::parse(script).unwrap(), RunSettings::default())
    }

    pub(crate) fn run_with(&self, model: impl Model + 'static, settings: RunSettings) -> AgentRun {
        AgentRun::start(self.parts(model), settings, vec!["Be brief.".to_owned()]).unwrap()
    }

    /// A script line that calls tools with these arguments, in which `@/` is the workspace.
    pub(crate) fn calls(&self, calls: &[(&str, Value)]) -> String {
        let calls: Vec<Value> =
            calls.iter().map(|(name, arguments)| json!({"name": name, "arguments": arguments})).collect();
        let line = json!({ "calls": calls }).to_string();
        line.replace("@/", &format!("{}/", self.root().display()))
    }
}

pub(crate) fn text(text: &str) -> Vec<ContentPart> {
    vec![ContentPart::text(text)]
}

/// Says something and drives the turn to its end.
pub(crate) fn say(run: &mut AgentRun, words: &str) -> TurnReport {
    say_and_watch(run, words).0
}

/// The same, with everything that was reported.
pub(crate) fn say_and_watch(run: &mut AgentRun, words: &str) -> (TurnReport, Vec<LoopEvent>) {
    let mut events = Vec::new();
    let mut observer = |event: &LoopEvent| events.push(event.clone());
    let report = run.say(text(words), &mut observer, &Cancel::new()).unwrap();
    (report, events)
}

/// The results of all calls, in the order of the conversation.
pub(crate) fn results(conversation: &Conversation) -> Vec<ToolResult> {
    let results = conversation.messages.iter().filter_map(|message| match message {
        ChatMessage::ToolResults { results, .. } => Some(results.clone()),
        _ => None,
    });
    results.flatten().collect()
}

/// Every call has exactly one result, in the message after it, and no two messages in a row have the same role.
pub(crate) fn assert_valid(conversation: &Conversation) {
    let messages = &conversation.messages;
    for (at, message) in messages.iter().enumerate() {
        let next = messages.get(at + 1);
        match message {
            ChatMessage::Assistant(answer) => {
                let calls: Vec<_> = answer.calls().map(|call| call.id.as_str()).collect();
                let results: Vec<_> = match next {
                    Some(ChatMessage::ToolResults { results, .. }) => {
                        results.iter().map(|result| result.call_id.as_str()).collect()
                    }
                    _ => Vec::new(),
                };
                assert_eq!(calls, results);
                assert!(!answer.parts.is_empty());
                assert!(!matches!(next, Some(ChatMessage::Assistant(_))));
            }
            _ => assert!(matches!(next, None | Some(ChatMessage::Assistant(_)))),
        }
    }
}

/// A model that answers as a function says: of the conversation and of how often it was asked before.
pub(crate) struct FnModel<F> {
    answer: F,
    asked: AtomicUsize,
}

/// Reports what arrives, and the cancellation of the request.
pub(crate) type Stream<'a> = (&'a mut dyn FnMut(ModelEvent), &'a Cancel);

impl<F> FnModel<F>
where
    F: Fn(usize, &TurnRequest<'_>, Stream<'_>) -> Result<ModelResponse, ModelError> + Send + Sync,
{
    pub(crate) fn new(answer: F) -> Self {
        Self { answer, asked: AtomicUsize::new(0) }
    }
}

impl<F> Model for FnModel<F>
where
    F: Fn(usize, &TurnRequest<'_>, Stream<'_>) -> Result<ModelResponse, ModelError> + Send + Sync,
{
    fn provider(&self) -> &'static str {
        "script"
    }

    fn model(&self) -> &'static str {
        "script"
    }

    fn respond(
        &self,
        request: &TurnRequest<'_>,
        on_event: &mut dyn FnMut(ModelEvent),
        cancel: &Cancel,
    ) -> Result<ModelResponse, ModelError> {
        (self.answer)(self.asked.fetch_add(1, Ordering::SeqCst), request, (on_event, cancel))
    }
}

/// An answer of one text and these calls.
pub(crate) fn response(text: &str, calls: &[ToolCall]) -> ModelResponse {
    let mut parts = Vec::new();
    if !text.is_empty() {
        parts.push(AssistantPart::Text { text: text.to_owned(), raw: None });
    }
    parts.extend(calls.iter().cloned().map(AssistantPart::ToolCall));
    let name = || "script".to_owned();
    ModelResponse {
        message: AssistantMessage {
            origin: Origin { wire: name(), provider: name(), model: name() },
            parts,
            raw: serde_json::Map::new(),
        },
        stop: ModelStop::End,
        usage: TokenUsage::default(),
        model: name(),
        response_id: None,
        elapsed: Duration::ZERO,
    }
}

pub(crate) fn tool_call(id: &str, name: &str, arguments: Value) -> ToolCall {
    let (arguments, note) = CallArguments::from_value(arguments);
    ToolCall { id: id.to_owned(), wire_id: None, name: name.to_owned(), arguments, note, raw: None }
}

/// A log that fails after some events, as if the process had been killed there.
pub(crate) struct CutLog {
    ledger: Ledger,
    left: Mutex<usize>,
}

impl CutLog {
    pub(crate) fn new(ledger: Ledger, events: usize) -> Self {
        Self { ledger, left: Mutex::new(events) }
    }
}

impl EventLog for CutLog {
    fn append(&self, session: &str, expected: Expected, body: &Value) -> Result<u64, ToolError> {
        let mut left = self.left.lock().unwrap();
        if *left == 0 {
            return Err(ToolError::new(ErrorKind::Io, "killed"));
        }
        *left -= 1;
        self.ledger.append(session, expected, body)
    }

    fn read(&self, session: &str, from: u64, limit: usize) -> Result<Vec<StoredEvent>, ToolError> {
        self.ledger.read(session, from, limit)
    }
}
