//! The flags with which programs drive Haft, by the names that Claude Code has for them.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use haft_agent::AnswerSchema;
use haft_model::ReasoningEffort;
use haft_policy::Mode;
use haft_tool::{ToolError, Value};

use super::super::super::screen;
use super::super::args::RunArgs;

/// Largest file with a system prompt.
const MAX_PROMPT_FILE_BYTES: u64 = 1 << 20;

#[derive(Debug, Clone, Default, Args)]
pub(in crate::cli) struct StreamArgs {
    /// Form of the input. With stream-json, a program sends messages and answers questions as JSON lines.
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(in crate::cli::run) input_format: RunInputFormat,
    /// With stream-json: also print each piece of an answer as it arrives.
    #[arg(long)]
    pub(in crate::cli::run) include_partial_messages: bool,
    /// With stream-json: repeat each message of the user on standard output.
    #[arg(long)]
    pub(in crate::cli::run) replay_user_messages: bool,
    /// JSON Schema that the answer must fit.
    #[arg(long, value_name = "SCHEMA")]
    pub(in crate::cli::run) json_schema: Option<String>,
    /// Name of a new session, a UUID.
    #[arg(long, value_name = "UUID", conflicts_with = "resume")]
    pub(in crate::cli::run) session_id: Option<String>,
    /// File with the system prompt.
    #[arg(long, value_name = "FILE", conflicts_with = "system_prompt")]
    system_prompt_file: Option<PathBuf>,
    /// File with text behind the system prompt.
    #[arg(long, value_name = "FILE", conflicts_with = "append_system_prompt")]
    append_system_prompt_file: Option<PathBuf>,
    /// Who answers questions about calls: stdio, the program that sends stream-json.
    #[arg(long, value_name = "WHO", hide_short_help = true)]
    permission_prompt_tool: Option<String>,
    /// Whether that program is asked: host or none.
    #[arg(long, value_name = "WHO", hide_short_help = true)]
    permission_prompts: Option<String>,
    /// Ask no one: the same as --permission-mode bypassPermissions.
    #[arg(long, conflicts_with = "permission_mode")]
    dangerously_skip_permissions: bool,
    /// Further settings in Claude Code's form that only restrict.
    #[arg(long, value_name = "FILE|JSON", hide = true)]
    managed_settings: Option<String>,
    #[command(flatten)]
    known: KnownFlags,
}

// Flags that Claude Code has, and that change nothing here. No doc comment, because clap would show it instead of the command's own
// help.
#[derive(Debug, Clone, Default, Args)]
struct KnownFlags {
    #[arg(long, hide = true)]
    await_initialize: bool,
    #[arg(long, hide = true)]
    managed_settings_in_initialize: bool,
    #[arg(long, hide = true)]
    allow_dangerously_skip_permissions: bool,
    #[arg(long, hide = true)]
    debug_to_stderr: bool,
    #[arg(long, hide = true)]
    include_hook_events: bool,
    #[arg(long, hide = true)]
    session_mirror: bool,
    #[arg(long, hide = true)]
    no_session_persistence: bool,
    #[arg(long, hide = true)]
    thinking: Option<String>,
    #[arg(long, hide = true)]
    thinking_display: Option<String>,
    #[arg(long, hide = true)]
    max_thinking_tokens: Option<String>,
    #[arg(long, hide = true)]
    betas: Vec<String>,
    #[arg(long, hide = true)]
    task_budget: Option<String>,
    #[arg(long, hide = true)]
    plugin_dir: Vec<String>,
    #[arg(long, hide = true)]
    plugin_dir_no_mcp: Vec<String>,
    #[arg(long, hide = true)]
    resume_session_at: Option<String>,
    #[arg(long, hide = true)]
    resume_drops_turn: Option<String>,
    #[arg(long, hide = true)]
    agent: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "")]
    debug: Option<String>,
    #[arg(long, hide = true)]
    debug_file: Option<String>,
    #[arg(long, hide = true)]
    channels: Vec<String>,
    #[arg(long, hide = true)]
    project_config_root: Option<String>,
    #[arg(long, hide = true)]
    chrome: bool,
    #[arg(long, hide = true)]
    no_chrome: bool,
    #[arg(long, hide = true)]
    ide: bool,
}

/// The form of the input of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(in crate::cli::run) enum RunInputFormat {
    /// The prompt.
    #[default]
    Text,
    /// JSON lines of the program that drives the run.
    StreamJson,
}

impl StreamArgs {
    /// Whether a program drives the run.
    pub(in crate::cli::run) fn has_host(&self) -> bool {
        self.input_format == RunInputFormat::StreamJson
    }

    /// Whether that program answers questions about calls.
    pub(in crate::cli::run) fn asks_host(&self) -> bool {
        self.has_host()
            && self.permission_prompt_tool.as_deref() == Some("stdio")
            && self.permission_prompts.as_deref() != Some("none")
    }

    /// The schema of the answer.
    pub(in crate::cli::run) fn schema(&self) -> Result<Option<AnswerSchema>, ToolError> {
        let Some(text) = self.json_schema.as_deref() else { return Ok(None) };
        let schema: Value = serde_json::from_str(text)
            .map_err(|error| ToolError::invalid_arguments(format!("--json-schema is not JSON: {error}")))?;
        AnswerSchema::new(schema).map(Some)
    }

    fn warn(&self, asks_host: bool) {
        for (name, is_given, why) in self.known.given() {
            if is_given {
                screen::warnings(&[format!("--{name} has no effect: {why}")]);
            }
        }
        if let Some(who) = self.permission_prompt_tool.as_deref().filter(|_| !asks_host) {
            screen::warnings(&[format!(
                "--permission-prompt-tool {who} has no effect: only `stdio` is asked, with --input-format stream-json; calls that \
                 need an answer are denied"
            )]);
        }
    }
}

impl KnownFlags {
    /// Each flag that is worth a warning, whether it is given, and why it has no effect.
    fn given(&self) -> [(&'static str, bool, &'static str); 17] {
        let thinking = "how much the model thinks is set with --effort";
        let browser = "there is no browser or editor to connect to";
        [
            ("max-thinking-tokens", self.max_thinking_tokens.is_some(), thinking),
            ("thinking-display", self.thinking_display.is_some(), thinking),
            ("betas", !self.betas.is_empty(), "betas belong to one vendor's API"),
            ("task-budget", self.task_budget.is_some(), "the limit of a turn is --max-budget-usd"),
            ("plugin-dir", !self.plugin_dir.is_empty(), "there are no plugins"),
            ("plugin-dir-no-mcp", !self.plugin_dir_no_mcp.is_empty(), "there are no plugins"),
            ("include-hook-events", self.include_hook_events, "hooks are in the ledger: haft log"),
            ("session-mirror", self.session_mirror, "the run is in the ledger only"),
            ("no-session-persistence", self.no_session_persistence, "every run is in the ledger, for undo"),
            (
                "resume-session-at",
                self.resume_session_at.is_some(),
                "the whole run is continued; haft undo --run takes one back to a turn",
            ),
            ("resume-drops-turn", self.resume_drops_turn.is_some(), "the whole run is continued"),
            (
                "agent",
                self.agent.is_some(),
                "the main agent is Haft's own; --append-system-prompt changes it",
            ),
            ("channels", !self.channels.is_empty(), "messages come through haft gateway"),
            (
                "project-config-root",
                self.project_config_root.is_some(),
                "the workspace is set with --workspace",
            ),
            ("chrome", self.chrome, browser),
            ("ide", self.ide, browser),
            ("debug-file", self.debug_file.is_some(), "HAFT_LOG=debug writes diagnostics to standard error"),
        ]
    }
}

impl RunArgs {
    /// Puts what Claude Code's flags mean into Haft's own, and says which have no effect.
    pub(in crate::cli::run) fn apply_stream_flags(&mut self) -> Result<(), ToolError> {
        let asks_host = self.stream.asks_host();
        self.stream.warn(asks_host);
        let read = |path: &PathBuf| -> Result<String, ToolError> {
            let bytes = haft_files::read_named(path, MAX_PROMPT_FILE_BYTES)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        if let Some(path) = &self.stream.system_prompt_file {
            self.system_prompt = Some(read(path)?);
        }
        if let Some(path) = &self.stream.append_system_prompt_file {
            self.append_system_prompt = Some(read(path)?);
        }
        if self.stream.dangerously_skip_permissions {
            self.rules.permission_mode = Some(Mode::BypassPermissions);
        }
        if self.stream.known.thinking.as_deref() == Some("disabled") {
            self.model.effort.get_or_insert(ReasoningEffort::None);
        }
        if matches!(self.at.dialect.tools.as_deref(), Some([one]) if one == "default") {
            self.at.dialect.tools = None;
        }
        self.rules.managed_settings = self.stream.managed_settings.take();
        Ok(())
    }

    /// The settings of the administrator that the program sends instead of passing them on the command line.
    pub(in crate::cli::run) fn set_managed_settings(&mut self, settings: &Value) {
        self.rules.managed_settings = Some(settings.to_string());
    }
}
