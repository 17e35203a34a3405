//! The flags of `haft run` and `haft -p`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use haft_agent::AnswerSchema;
use haft_model::{PROVIDERS, ReasoningEffort, Wire};
use haft_tool::{Secret, ToolError};

use super::super::args::{RuleArgs, ServerArgs, SessionArgs};
use super::super::duration;
use super::claude_program::CLAUDE_CLI;
use super::stream::StreamArgs;

/// Providers that are not reached over HTTP.
pub(super) const SCRIPT: &str = "script";

#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
haft -p 'What does this project do?'\n  \
haft run --model gpt-6.1-sol 'Fix the failing test'\n  \
git diff | haft -p 'Review this change:' -\n  \
haft -p --continue 'Now add a test for it'\n\n\
Keys come from ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY and OPENROUTER_API_KEY. Without a key, a local server is looked for: \
Ollama, LM Studio, llama.cpp, vLLM.\n\
Exit codes: 0 done; 1 the run failed or reached a limit; 2 invalid arguments; 4 unknown model or session; 124 timeout; \
130 interrupted.")]
pub(in crate::cli) struct RunArgs {
    /// What the agent is asked to do; - stands for standard input, which is also read if there is no prompt.
    #[arg(value_name = "PROMPT")]
    pub(super) prompt: Vec<String>,
    /// Print the answer and exit. This is what `haft run` does; `haft -p` is short for it.
    #[arg(short, long)]
    pub(super) print: bool,
    #[command(flatten)]
    pub(super) model: ModelArgs,
    /// How often the model is asked for one prompt [default: 50; 20 for clawft].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) max_turns: Option<u32>,
    /// What one prompt may cost, in US dollars.
    #[arg(long, value_name = "DOLLARS", value_parser = dollars)]
    pub(super) max_budget_usd: Option<f64>,
    /// How long one prompt may take, for example 30s or 5m; a plain number is milliseconds.
    #[arg(long, value_name = "DURATION", value_parser = duration::milliseconds)]
    pub(super) timeout: Option<u64>,
    /// Continue this run, with a prompt or where it was interrupted.
    #[arg(short, long, value_name = "SESSION", conflicts_with = "continue_last")]
    pub(super) resume: Option<String>,
    /// Continue the last run in this workspace.
    #[arg(short = 'c', long = "continue")]
    pub(super) continue_last: bool,
    /// Continue a copy of the run instead of the run itself.
    #[arg(long)]
    pub(super) fork_session: bool,
    /// System prompt in place of Haft's own and of the project's instructions.
    #[arg(long, value_name = "TEXT")]
    pub(super) system_prompt: Option<String>,
    /// Text behind the system prompt.
    #[arg(long, value_name = "TEXT")]
    pub(super) append_system_prompt: Option<String>,
    /// Form of the output.
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(super) output_format: RunOutputFormat,
    /// Print each call, the tokens and the cost on standard error, also where that is no terminal.
    #[arg(long)]
    pub(in crate::cli) verbose: bool,
    /// In a session: no colours and no lines that change, for screen readers and logs.
    #[arg(long)]
    pub(super) plain: bool,
    /// What the final answer must fit; set by flags of other commands.
    #[arg(skip)]
    pub(in crate::cli) output_schema: Option<AnswerSchema>,
    #[command(flatten)]
    pub(in crate::cli) at: SessionArgs,
    #[command(flatten)]
    pub(super) rules: RuleArgs,
    #[command(flatten)]
    pub(super) servers: ServerArgs,
    #[command(flatten)]
    pub(super) stream: StreamArgs,
}

impl RunArgs {
    /// Refuses what belongs to one prompt, for a command that gets its prompts elsewhere.
    pub(in crate::cli) fn refuse_prompt(&self, command: &str) -> Result<(), ToolError> {
        let is_given = !self.prompt.is_empty()
            || self.print
            || self.resume.is_some()
            || self.continue_last
            || self.fork_session
            || self.stream.has_host()
            || self.output_format != RunOutputFormat::Text;
        if !is_given {
            return Ok(());
        }
        Err(ToolError::invalid_arguments(format!(
            "{command} takes no prompt, and no --print, --resume, --continue, --fork-session or --output-format"
        )))
    }

    /// Uses this key in place of those in the environment.
    pub(in crate::cli) fn set_api_key(&mut self, key: Option<Secret>) {
        self.model.api_key = key;
    }

    /// Adds a section behind the system prompt.
    pub(in crate::cli) fn append_to_system_prompt(&mut self, section: &str) {
        let before = self.append_system_prompt.take().map(|text| format!("{text}\n\n")).unwrap_or_default();
        self.append_system_prompt = Some(format!("{before}{section}"));
    }
}

#[derive(Debug, Clone, Default, Args)]
pub(super) struct ModelArgs {
    /// Who runs the model [default: the setting, else by the keys in the environment, else a local server].
    #[arg(long, value_name = "PROVIDER", value_parser = clap::builder::PossibleValuesParser::new(providers()))]
    pub(super) provider: Option<String>,
    /// Name of the model [default: the setting, else one that suits the provider].
    #[arg(long, value_name = "MODEL")]
    pub(super) model: Option<String>,
    /// Model for summaries and, with --route, for simple prompts.
    #[arg(long, value_name = "MODEL")]
    pub(super) fast_model: Option<String>,
    /// Let the fast model judge the prompt, and answer it if it is simple.
    #[arg(long)]
    pub(super) route: bool,
    /// Model to go on with when the provider stays overloaded.
    #[arg(long, value_name = "MODEL")]
    pub(super) fallback_model: Option<String>,
    /// URL of the provider, or of any compatible server.
    #[arg(long, value_name = "URL")]
    pub(super) base_url: Option<String>,
    /// Wire format: openai-responses, openai-chat, anthropic, gemini or ollama [default: the provider's].
    #[arg(long, value_name = "FORMAT")]
    pub(super) wire: Option<Wire>,
    /// How much the model thinks: none, minimal, low, medium, high, xhigh or max [default: the model's].
    #[arg(long, value_name = "LEVEL", value_parser = effort)]
    pub(super) effort: Option<ReasoningEffort>,
    /// The provider's key, if it is not to be looked for in the environment; set by other commands.
    #[arg(skip)]
    pub(super) api_key: Option<Secret>,
    /// Ask for whole answers instead of streams.
    #[arg(long)]
    pub(super) no_stream: bool,
    /// Answers for `--provider script`, as JSON lines.
    #[arg(long, value_name = "FILE")]
    pub(super) script: Option<PathBuf>,
    /// Write what the provider is sent and answers to this file, without keys.
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub(super) record: Option<PathBuf>,
    /// Answer from a file that --record wrote, without a provider.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["provider", "base_url", "script"])]
    pub(super) replay: Option<PathBuf>,
}

/// The form of the output of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum RunOutputFormat {
    /// The answer.
    Text,
    /// One JSON object with the answer, tokens, cost and the session.
    Json,
    /// A JSON object per line for everything that happens, in the form of Claude Code.
    StreamJson,
}

pub(super) fn providers() -> Vec<&'static str> {
    PROVIDERS.iter().map(|provider| provider.name).chain([CLAUDE_CLI, SCRIPT]).collect()
}

fn effort(name: &str) -> Result<ReasoningEffort, String> {
    serde_json::from_value(name.into())
        .map_err(|_| format!("{name:?} is not a level: none, minimal, low, medium, high, xhigh or max"))
}

fn dollars(text: &str) -> Result<f64, String> {
    let amount: Option<f64> = text.trim_start_matches('$').parse().ok();
    amount
        .filter(|dollars| dollars.is_finite() && *dollars > 0.0)
        .ok_or_else(|| format!("{text:?} is not an amount of dollars"))
}
