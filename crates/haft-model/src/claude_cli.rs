//! The `claude` program as a model: its arguments, its answer, and when it is resumed.
//!
//! The program runs its own loop with its own tools. Starting it is left to a [`ClaudeProgram`].

use std::time::Instant;

use haft_tool::{Cancel, ErrorKind, ToolError, Value};
use serde_json::{Map, json};

use crate::usage::count;
use crate::{
    AssistantMessage, AssistantPart, ChatMessage, ContentPart, Conversation, Model, ModelError,
    ModelErrorKind, ModelEvent, ModelResponse, ModelStop, Origin, TokenUsage, ToolResult, TurnRequest,
};

/// The provider's name.
const CLI_NAME: &str = "claude-cli";
/// How often a run that reached its limit of turns is resumed.
const MAX_RESUMES_COUNT: u32 = 5;
/// Turns of one run of the program.
const DEFAULT_MAX_TURNS: u32 = 50;

/// Starts the `claude` program.
pub trait ClaudeProgram: Send + Sync {
    /// Runs the program with these arguments and this standard input; returns its standard output, whatever its exit code. Ends it
    /// when cancelled.
    fn run(&self, arguments: &[String], input: &str, cancel: &Cancel) -> Result<String, ToolError>;
}

/// How the program is started.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClaudeCliSettings {
    /// The model, for example `sonnet` or `opus`; the program's default if there is none.
    pub model: Option<String>,
    /// Turns of one run.
    pub max_turns: Option<u32>,
    /// MCP servers that it gets, as in `--mcp-config`.
    pub mcp_config: Option<Value>,
    /// Whether the program may use its own tools besides those of the MCP servers.
    pub own_tools: bool,
}

impl ClaudeCliSettings {
    /// The arguments of one run. The prompt is passed on standard input.
    pub fn arguments(
        &self,
        model: Option<&str>,
        system: &str,
        resume: Option<&str>,
        tools: bool,
    ) -> Vec<String> {
        let max_turns = self.max_turns.unwrap_or(DEFAULT_MAX_TURNS).to_string();
        let mut arguments = vec!["-p", "--output-format", "json", "--max-turns", &max_turns];
        let config = self.mcp_config.as_ref().map(Value::to_string);
        for (flag, value) in [
            ("--model", model.or(self.model.as_deref())),
            ("--append-system-prompt", Some(system).filter(|system| !system.is_empty())),
            ("--resume", resume),
            ("--mcp-config", config.as_deref().filter(|_| tools)),
        ] {
            arguments.extend(value.into_iter().flat_map(|value| [flag, value]));
        }
        // A project's settings could start programs, and its servers are not Haft's.
        arguments.extend(["--strict-mcp-config", "--setting-sources", "user"]);
        let servers = self.mcp_config.as_ref().and_then(|config| config.get("mcpServers")?.as_object());
        let allowed = servers.filter(|_| tools).into_iter().flatten().map(|(name, _)| format!("mcp__{name}"));
        let allowed = allowed.collect::<Vec<_>>().join(",");
        if !tools || !self.own_tools {
            arguments.extend(["--allowedTools", &allowed]);
        }
        if !tools || !self.own_tools {
            arguments.extend(["--tools", ""]);
        }
        arguments.into_iter().map(str::to_owned).collect()
    }
}

/// What the program printed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClaudeCliResult {
    /// The answer.
    pub text: String,
    /// The session, to go on with it.
    pub session_id: Option<String>,
    /// `success`, `error_max_turns`, ….
    pub subtype: String,
    /// Whether the run failed.
    pub is_error: bool,
    /// The tokens.
    pub usage: TokenUsage,
    /// What the program says that the run cost, in US dollars.
    pub cost_usd: Option<f64>,
}

impl ClaudeCliResult {
    /// Reads the JSON that the program printed: one object, or a list whose last object of type `result` counts.
    pub fn parse(output: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(output.trim()).ok()?;
        let is_result = |value: &&Value| value.get("type").is_some_and(|kind| kind == "result");
        let result = match &value {
            Value::Array(messages) => messages.iter().rev().find(is_result)?,
            value => Some(value).filter(is_result)?,
        };
        let text = |field: &str| result.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let number = |pointer: &str| count(result, pointer).unwrap_or(0);
        Some(Self {
            text: text("result"),
            session_id: Some(text("session_id")).filter(|id| !id.is_empty()),
            subtype: text("subtype"),
            is_error: result.get("is_error") == Some(&Value::Bool(true)),
            usage: TokenUsage {
                input: number("/usage/input_tokens"),
                output: number("/usage/output_tokens"),
                cache_read: number("/usage/cache_read_input_tokens"),
                cache_write: number("/usage/cache_creation_input_tokens"),
                reasoning: 0,
            },
            cost_usd: result.get("total_cost_usd").and_then(Value::as_f64),
        })
    }

    /// The session to resume, if the run ended only because of its limit of turns and was not resumed too often.
    pub fn resume(&self, resumes: u32) -> Option<&str> {
        let is_limit = self.subtype == "error_max_turns" && resumes < MAX_RESUMES_COUNT;
        self.session_id.as_deref().filter(|_| is_limit)
    }
}

/// The `claude` program as a model.
pub struct ClaudeCliModel<P> {
    program: P,
    settings: ClaudeCliSettings,
}

impl<P: ClaudeProgram> ClaudeCliModel<P> {
    /// The program with these settings.
    pub fn new(program: P, settings: ClaudeCliSettings) -> Self {
        Self { program, settings }
    }

    fn run(&self, arguments: &[String], input: &str, cancel: &Cancel) -> Result<ClaudeCliResult, ModelError> {
        let output = self.program.run(arguments, input, cancel).map_err(|error| match error.kind {
            _ if cancel.is_cancelled() => fail(ModelErrorKind::Cancelled, "The request was cancelled"),
            ErrorKind::FileNotFound => fail(ModelErrorKind::Settings, "The program `claude` was not found")
                .with_advice("Install Claude Code, or choose another provider with --provider."),
            _ => fail(ModelErrorKind::Network, format!("The program `claude` failed: {}", error.message)),
        })?;
        ClaudeCliResult::parse(&output).ok_or_else(|| {
            fail(ModelErrorKind::Protocol, "The program `claude` did not print a result in JSON")
                .with_advice("Run `claude -p hello --output-format json` to see what it prints.")
        })
    }
}

impl<P: ClaudeProgram> Model for ClaudeCliModel<P> {
    fn provider(&self) -> &'static str {
        CLI_NAME
    }

    fn model(&self) -> &str {
        self.settings.model.as_deref().unwrap_or("default")
    }

    fn respond(
        &self,
        request: &TurnRequest<'_>,
        on_event: &mut dyn FnMut(ModelEvent),
        cancel: &Cancel,
    ) -> Result<ModelResponse, ModelError> {
        let start = Instant::now();
        let model = request.options.model.as_deref();
        let system = request.conversation.system.join("\n\n");
        let (session, mut prompt) = prompt(request.conversation);
        let mut session = session.map(str::to_owned);
        let mut usage = TokenUsage::default();
        let mut resumes = 0;
        let result = loop {
            let arguments =
                self.settings.arguments(model, &system, session.as_deref(), !request.tools.is_empty());
            let result = self.run(&arguments, &prompt, cancel)?;
            usage.add(&result.usage);
            let Some(next) = result.resume(resumes) else { break result };
            session = Some(next.to_owned());
            "Continue.".clone_into(&mut prompt);
            resumes += 1;
            let text = format!("The run of `claude` reached its limit of turns and is resumed ({resumes}).");
            on_event(ModelEvent::Notice { text });
        };
        if result.is_error && result.subtype != "error_max_turns" {
            return Err(fail(ModelErrorKind::BadRequest, format!("`claude` reported: {}", result.text)));
        }
        on_event(ModelEvent::Started { model: model.map(str::to_owned) });
        on_event(ModelEvent::Text { delta: result.text.clone() });
        on_event(ModelEvent::Usage(usage));
        let model = model.unwrap_or(self.model()).to_owned();
        let mut raw = Map::new();
        raw.extend(result.session_id.map(|id| ("session_id".to_owned(), json!(id))));
        let origin =
            Origin { wire: CLI_NAME.to_owned(), provider: CLI_NAME.to_owned(), model: model.clone() };
        Ok(ModelResponse {
            message: AssistantMessage {
                origin,
                parts: vec![AssistantPart::Text { text: result.text, raw: None }],
                raw,
            },
            stop: match result.subtype.as_str() {
                "" | "success" => ModelStop::End,
                other => ModelStop::Other { name: other.to_owned() },
            },
            usage,
            model,
            response_id: None,
            elapsed: start.elapsed(),
        })
    }
}

fn fail(kind: ModelErrorKind, message: impl Into<String>) -> ModelError {
    ModelError::new(kind, CLI_NAME, message)
}

/// The session of the last answer and what was said since; without a session, the whole conversation as text.
fn prompt(conversation: &Conversation) -> (Option<&str>, String) {
    let messages = &conversation.messages;
    let answer = messages.iter().enumerate().rev().find_map(|(at, message)| match message {
        ChatMessage::Assistant(answer) => Some((at, answer)),
        _ => None,
    });
    let session = answer.and_then(|(at, answer)| {
        let is_own = answer.origin.wire == CLI_NAME;
        Some((at, answer.raw.get("session_id").filter(|_| is_own)?.as_str()?))
    });
    let from = session.map_or(0, |(at, _)| at + 1);
    let mut texts = Vec::new();
    let has_answers = messages.iter().skip(from).any(|message| matches!(message, ChatMessage::Assistant(_)));
    for message in messages.iter().skip(from) {
        let (role, text) = match message {
            ChatMessage::User { content } => ("User", plain_text(content)),
            ChatMessage::Assistant(answer) => ("Assistant", answer.text()),
            ChatMessage::ToolResults { results, content } => {
                let results: Vec<String> = results.iter().map(ToolResult::text).collect();
                ("Results", format!("{}\n{}", results.join("\n"), plain_text(content)))
            }
        };
        texts.push(if has_answers { format!("{role}: {text}") } else { text });
    }
    (session.map(|(_, id)| id), texts.join("\n\n"))
}

fn plain_text(content: &[ContentPart]) -> String {
    let text = |part: &ContentPart| match part {
        ContentPart::Text { text } => Some(text.clone()),
        ContentPart::Image { .. } => None,
    };
    content.iter().filter_map(text).collect::<Vec<_>>().join("\n")
}
