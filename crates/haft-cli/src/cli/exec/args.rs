//! The flags of `haft exec`, which are those of `codex exec`.

use std::path::PathBuf;

use clap::Args;
use haft_compat::exec::ExecSandbox;

/// What every flag without a meaning here says in the help, which does not list it.
const IGNORED: &str = "Accepted, without an effect";

#[derive(Debug, Args)]
#[command(
    override_usage = "haft exec [OPTIONS] [PROMPT]\n       haft exec [OPTIONS] resume [SESSION] [PROMPT]\n       haft exec [OPTIONS] fork SESSION [PROMPT]",
    after_help = "Examples:\n  haft exec 'What does this project do?'\n  haft exec --json --sandbox workspace-write 'Fix the failing test'\n  \
                  haft exec resume --last 'Now add a test for it'\n\n\
                  Exit codes: 0 done; 1 the turn failed; 2 invalid arguments; 4 unknown model or session; 130 interrupted."
)]
pub(in crate::cli) struct ExecArgs {
    /// What the agent is asked to do; without it, or for -, standard input is read. `resume` and `fork` go on with a run or with a copy.
    #[arg(value_name = "PROMPT")]
    pub(super) words: Vec<String>,
    /// Print one JSON object per event.
    #[arg(long, visible_alias = "experimental-json")]
    pub(super) json: bool,
    /// Setting of Codex, for example `model="m"` or `openai_base_url="http://127.0.0.1:8000/v1"`; repeatable.
    #[arg(short, long, value_name = "KEY=TOML")]
    pub(super) config: Vec<String>,
    /// Name of the model.
    #[arg(short, long, value_name = "MODEL")]
    pub(super) model: Option<String>,
    /// What may be written: read-only, workspace-write (the workspace), or danger-full-access (no sandbox) [default: read-only].
    #[arg(short, long, value_name = "MODE", value_parser = sandbox())]
    pub(super) sandbox: Option<ExecSandbox>,
    /// The same as --sandbox workspace-write.
    #[arg(long, conflicts_with = "sandbox")]
    pub(super) full_auto: bool,
    /// The same as --sandbox danger-full-access.
    #[arg(long, visible_alias = "yolo", conflicts_with_all = ["sandbox", "full_auto"])]
    pub(super) dangerously_bypass_approvals_and_sandbox: bool,
    /// Directory that the agent works in.
    #[arg(short = 'C', long = "cd", value_name = "DIR")]
    pub(super) directory: Option<PathBuf>,
    /// Additional directory that may be changed; repeatable.
    #[arg(long = "add-dir", value_name = "DIR")]
    pub(super) directories: Vec<PathBuf>,
    /// JSON Schema that the final answer must fit.
    #[arg(long, value_name = "FILE")]
    pub(super) output_schema: Option<PathBuf>,
    /// Image that belongs to the prompt; repeatable.
    #[arg(short, long = "image", value_name = "FILE", value_delimiter = ',')]
    pub(super) images: Vec<PathBuf>,
    /// Write the final answer to this file, too.
    #[arg(short, long, value_name = "FILE")]
    pub(super) output_last_message: Option<PathBuf>,
    /// With resume: the last run in this workspace.
    #[arg(long)]
    pub(super) last: bool,
    /// Ask a model of this machine: Ollama, or what --local-provider says.
    #[arg(long)]
    pub(super) oss: bool,
    /// Which server of this machine: ollama or lmstudio.
    #[arg(long, value_name = "SERVER", value_parser = ["ollama", "lmstudio"])]
    pub(super) local_provider: Option<String>,
    /// Accepted: every directory can be worked in, because every change can be undone.
    #[arg(long)]
    pub(super) skip_git_repo_check: bool,
    /// Accepted: who starts the thread.
    #[arg(long, value_name = "SOURCE")]
    pub(super) thread_source: Option<String>,
    /// Answers in place of a model, as JSON lines, as for `haft run`.
    #[arg(long, value_name = "FILE", hide = true)]
    pub(super) script: Option<PathBuf>,
    #[command(flatten)]
    pub(super) ignored: IgnoredArgs,
}

// Flags of codex that mean nothing here.
#[derive(Debug, Args)]
pub(super) struct IgnoredArgs {
    #[arg(long, hide = true, help = IGNORED)]
    all: bool,
    #[arg(long, hide = true, help = IGNORED)]
    approve_for_me: bool,
    #[arg(long, hide = true, help = IGNORED)]
    dangerously_bypass_hook_trust: bool,
    #[arg(long, hide = true, help = IGNORED)]
    ephemeral: bool,
    #[arg(long, hide = true, help = IGNORED)]
    ignore_rules: bool,
    #[arg(long, hide = true, help = IGNORED)]
    ignore_user_config: bool,
    #[arg(long, hide = true, help = IGNORED)]
    include_plan_tool: bool,
    #[arg(long, hide = true, help = IGNORED)]
    strict_config: bool,
    #[arg(long, hide = true, help = IGNORED)]
    trust: bool,
    #[arg(long, hide = true, help = IGNORED)]
    color: Option<String>,
    #[arg(long, hide = true, help = IGNORED)]
    cyber_access_program: Option<String>,
    #[arg(long, hide = true, help = IGNORED)]
    disable: Vec<String>,
    #[arg(long, hide = true, help = IGNORED)]
    enable: Vec<String>,
    #[arg(short, long, hide = true, help = IGNORED)]
    profile: Option<String>,
}

impl IgnoredArgs {
    /// Those that were given.
    pub(super) fn given(&self) -> Vec<String> {
        let flags = [
            ("--all", self.all),
            ("--approve-for-me", self.approve_for_me),
            ("--dangerously-bypass-hook-trust", self.dangerously_bypass_hook_trust),
            ("--ephemeral", self.ephemeral),
            ("--ignore-rules", self.ignore_rules),
            ("--ignore-user-config", self.ignore_user_config),
            ("--include-plan-tool", self.include_plan_tool),
            ("--strict-config", self.strict_config),
            ("--trust", self.trust),
            ("--color", self.color.is_some()),
            ("--cyber-access-program", self.cyber_access_program.is_some()),
            ("--disable", !self.disable.is_empty()),
            ("--enable", !self.enable.is_empty()),
            ("--profile", self.profile.is_some()),
        ];
        flags.into_iter().filter(|(_, is_given)| *is_given).map(|(name, _)| name.to_owned()).collect()
    }
}

fn sandbox() -> impl clap::builder::TypedValueParser<Value = ExecSandbox> {
    use clap::builder::TypedValueParser as _;
    clap::builder::PossibleValuesParser::new(ExecSandbox::NAMES.map(|(name, _)| name))
        .try_map(|name| ExecSandbox::from_name(&name).ok_or("there is no such mode"))
}
