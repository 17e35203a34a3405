//! The arguments of the commands, and their help.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::claude_settings::SettingsFlags;
use crate::config::{ByteSize, ReadScope};
use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand};
use haft_policy::{AGENTS, AgentProfile, Mode, Preset};

use super::sessions::SessionNameArgs;
use haft::formats::ProviderFormat;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Yellow.on_default().bold())
    .usage(AnsiColor::Yellow.on_default().bold())
    .literal(AnsiColor::Green.on_default())
    .placeholder(AnsiColor::Cyan.on_default());

/// A tool runtime for AI agents: every tool call is scoped, recorded and reversible.
#[derive(Debug, Parser)]
#[command(name = "haft", version, styles = STYLES, max_term_width = 100, arg_required_else_help = true)]
#[command(after_help = "Examples:\n  \
haft                          # an interactive session in this folder\n  \
haft demo\n  \
haft -p 'What does this project do?'\n  \
haft sandbox make test\n  \
haft call Edit file_path=notes.txt old_string=tea new_string=coffee\n  \
haft log\n  \
haft undo --yes\n\n\
Exit codes: 0 success; 1 the call failed; 2 invalid arguments; 3 denied; \
4 unknown tool, model or session; 124 timeout; 130 interrupted.\n\
The ledger is in $HAFT_HOME, else in the user's state directory.")]
pub(super) struct Haft {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
// Only the flags of the typed command are built; building all of them would slow down every start.
#[command(defer = true)]
pub(super) enum Command {
    /// Ask a model to do something with Haft's tools; `haft -p PROMPT` is short for it.
    ///
    /// The answer goes to standard output, everything else to standard error. Every call of the model is confined, recorded and
    /// reversible; one that needs approval asks at the terminal, and is denied where there is none. The run is kept in the ledger, so that it can be
    /// continued, also after it was killed.
    Run(Box<super::run::RunArgs>),
    /// The same in the form of `codex exec`, for programs that drive Codex, such as its SDK.
    ///
    /// Flags, events and settings are those of `codex exec`; nothing may be written unless --sandbox says so. The run is in the ledger, as every run.
    Exec(Box<super::exec::ExecArgs>),
    /// Let messages from channels start and continue runs: webhooks, Telegram, Slack and Discord.
    ///
    /// Each chat has one run, which a restart continues. An accepted message is in the ledger before it is acknowledged, and handled
    /// once. Calls that need approval are denied.
    Gateway(Box<super::gateway::GatewayArgs>),
    /// Call one tool, without a model.
    ///
    /// The result goes to standard output, everything else to standard error. Naming a tool here allows it, as
    /// --allowedTools would. It does not widen the scope: paths outside the workspace still need a rule
    /// (`--allowedTools 'Write(//etc/hosts)'`), a directory (`--add-dir`), or your approval on a terminal.
    Call(Box<CallArgs>),
    /// Serve Haft's tools over MCP, or manage the MCP servers that Haft uses.
    ///
    /// Without a subcommand, serves over standard input and output, or over HTTP with --http. A call that needs approval asks
    /// the client's user if the client supports elicitation; otherwise it is denied with a message that says how to allow it.
    Mcp(Box<super::mcp::McpArgs>),
    /// Serve a web page: watch agents, approve or deny their calls, look at what they changed, undo it.
    ///
    /// The page shows all sessions of this ledger, live, whichever program started them. It needs the token in the URL that is printed; nothing
    /// is asked of other machines. The same server has the HTTP API of the page (docs/serve.md) and the proxies of Loom.
    Serve(super::serve::WebServerArgs),
    /// Run a command in the sandbox: confined by the kernel, recorded, reversible.
    ///
    /// It may write the workspace and its own temporary files, read everything except secrets, and has no network unless you
    /// allow it. Streams, terminal and exit code pass through. `haft undo` reverts what it changed.
    Sandbox(SandboxArgs),
    /// List the tools and their parameters, or print their definitions.
    Tools(ToolsArgs),
    /// List calls, newest first.
    Log(super::log::LogArgs),
    /// Show one call: input, decision, changes and what the caller saw.
    Show(super::show::ShowArgs),
    /// Show what calls changed together: of a session, a range or one call.
    Diff(super::diff_command::DiffArgs),
    /// Show which call wrote which lines of a file.
    Blame(super::blame::BlameArgs),
    /// List sessions, the one with the newest call first.
    Sessions(super::sessions::SessionsArgs),
    /// List the calls that run now, commands in the background included.
    Ps(super::ps::PsArgs),
    /// Undo calls: the last one, given ones, a session, or everything since a point in time.
    ///
    /// Shows what will change and asks. Refuses if a file has changed since the call, unless it can be merged (--merge) or is
    /// overwritten (--force). An undo is a call with its own receipt:
    /// `haft redo` or `haft undo ID` reverts it.
    Undo(super::undo::UndoArgs),
    /// Undo the last undo.
    Redo(super::undo::RedoArgs),
    /// Delete the oldest calls from the ledger, with the file contents that only they need.
    Gc(GcArgs),
    /// List, explain, check and change the rules that allow, ask about and deny calls.
    Rules(Box<super::rules::RulesArgs>),
    /// Trust what this project's .claude/settings.json allows, runs and sets.
    ///
    /// What it denies or asks about holds without that. The consent is bound to exactly what is shown; when that changes, it is
    /// asked for again.
    Trust(super::trust::ProjectTrustArgs),
    /// Show or change settings.
    Config(ConfigArgs),
    /// Check that calls work here: the machine, the ledger, the settings, the workspace.
    Doctor(DoctorArgs),
    /// Watch an agent work on a sample project, do harm, and be undone. Needs no API key and no network.
    Demo,
    /// Print a shell completion script; it completes tools, calls, sessions and servers too.
    Completion(CompletionArgs),
    /// Print the manual page of Haft or of one command; view it with `haft man call | man -l -`.
    Man(ManArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
haft call Read file_path=src/main.rs limit=20\n  \
haft call Edit file_path=notes.txt old_string=tea new_string=coffee\n  \
haft call Bash command='make test' timeout=5m\n  \
haft call Write file_path=copy.txt content=@notes.txt\n  \
haft call Grep '{\"pattern\": \"fn main\", \"output_mode\": \"content\"}'\n  \
echo '{\"command\": \"ls\"}' | haft call Bash -")]
pub(super) struct CallArgs {
    /// Name of the tool; `haft tools` lists them.
    pub(super) tool: String,
    /// Arguments of the tool: NAME=VALUE words, or one JSON object, @FILE with one, or - for standard input.
    ///
    /// The tool's schema says what a VALUE is: text, a number, true or false, JSON for lists and objects. A path is relative to
    /// the current directory, a duration may have a unit (30s, 5m). @FILE in place of a VALUE is the content of that file, @- standard input.
    /// The dash of a NAME such as -C is left out: C=2.
    #[arg(value_name = "NAME=VALUE|JSON|@FILE|-")]
    pub(super) arguments: Vec<OsString>,
    /// Print the result as JSON, with the receipt.
    #[arg(long)]
    pub(super) json: bool,
    /// Print the result in the format of this provider.
    #[arg(value_parser = formats(), long, conflicts_with = "json")]
    pub(super) format: Option<ProviderFormat>,
    #[command(flatten)]
    pub(super) session: SessionNameArgs,
    #[command(flatten)]
    pub(super) at: SessionArgs,
    #[command(flatten)]
    pub(super) rules: RuleArgs,
    #[command(flatten)]
    pub(super) servers: ServerArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
haft sandbox make test\n  \
haft sandbox --timeout 5m ./migrate.sh --verbose\n  \
haft sandbox --preview ./migrate.sh\n  \
haft sandbox --preview=discard ./migrate.sh\n  \
haft sandbox --sandbox read-only ./suspicious.sh\n  \
haft sandbox --network crates cargo fetch\n  \
haft sandbox --agent claude\n\n\
Exit codes: the command's own; 124 timeout; 125 Haft itself failed; 126 the command cannot be executed; 127 it was not found; \
128 plus the number of a signal that ended it.")]
pub(super) struct SandboxArgs {
    /// Program and its arguments; Haft's own flags come before it.
    #[arg(required_unless_present = "agent", trailing_var_arg = true, value_name = "CMD")]
    pub(super) command: Vec<OsString>,
    /// Run this agent, or CMD with what this agent needs: a copy of its settings and login, its keys and the hosts of its
    /// service.
    #[arg(long, value_name = "AGENT", value_parser = agents())]
    pub(super) agent: Option<&'static AgentProfile>,
    /// End the command after this time, for example 30s or 5m; a plain number is milliseconds.
    #[arg(long, value_name = "DURATION", value_parser = super::duration::timeout)]
    pub(super) timeout: Option<u64>,
    /// Print the exit code, the output and the receipt as JSON when the command has ended.
    ///
    /// The output is captured instead of passed through, and there is no standard input.
    #[arg(long, conflicts_with_all = ["detach", "preview"])]
    pub(super) json: bool,
    /// Show what the command changes, then keep or discard it: ask (on a terminal; without one, discard), keep or discard.
    #[arg(long, value_enum, value_name = "THEN", num_args = 0..=1, require_equals = true, default_missing_value = "ask", conflicts_with = "detach")]
    pub(super) preview: Option<super::kept_preview::PreviewThen>,
    /// Run the command in the background; its output goes to a file and it survives the terminal.
    #[arg(long)]
    pub(super) detach: bool,
    #[command(flatten)]
    pub(super) session: SessionNameArgs,
    #[command(flatten)]
    pub(super) workspace: WorkspaceArgs,
    #[command(flatten)]
    pub(super) scope: ScopeArgs,
}

// No doc comment, because clap would show it instead of the command's own help.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct ScopeArgs {
    /// Additional directory that may be changed; repeatable.
    #[arg(long = "add-dir", value_name = "DIR")]
    pub(super) directories: Vec<PathBuf>,
    /// What may be written: workspace, read-only, sandbox, rx, rwx, or off for no sandbox [default: workspace].
    #[arg(long, value_name = "PRESET")]
    pub(super) sandbox: Option<Preset>,
    /// Network access: none, all, or domains and presets such as `npm,*.example.com` [default: none]. Presets: npm, pypi,
    /// crates, go, debian, ubuntu, github, and those of your haft.toml.
    #[arg(long, value_name = "DOMAINS", value_delimiter = ',')]
    pub(super) network: Option<Vec<String>>,
    /// Path that may be written although it is guarded or outside the scope; repeatable.
    #[arg(long, value_name = "PATH")]
    pub(super) allow_write: Vec<PathBuf>,
    /// Variable that commands get, with a value or from the environment; repeatable.
    #[arg(long = "env", value_name = "NAME[=VALUE]")]
    pub(super) variables: Vec<String>,
    /// TCP port of commands that can be reached from outside, on the loopback interface; repeatable.
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) serve: Vec<u16>,
    /// Entry of the home directory that commands see, for example .config/gh; repeatable.
    #[arg(long, value_name = "ENTRY")]
    pub(super) show_home: Vec<PathBuf>,
    /// What may be read: all, or workspace [default: all].
    #[arg(long, value_name = "SCOPE")]
    pub(super) read: Option<ReadScope>,
    /// Memory of a command, for example 4G [default: three quarters of the machine's].
    #[arg(long, value_name = "SIZE")]
    pub(super) max_memory: Option<ByteSize>,
    /// Processes and threads of a command [default: 2000].
    #[arg(long, value_name = "N")]
    pub(super) max_processes: Option<usize>,
    /// Size of a file that a command writes [default: 32G].
    #[arg(long, value_name = "SIZE")]
    pub(super) max_file_size: Option<ByteSize>,
    /// Secret that commands and tools may read, as named in the list of secrets, for example .env; repeatable.
    #[arg(long, value_name = "SECRET")]
    pub(super) allow_read: Vec<String>,
}

#[derive(Debug, Args)]
pub(super) struct ToolsArgs {
    /// Print JSON definitions in the format of this provider.
    #[arg(value_parser = formats(), long)]
    pub(super) format: Option<ProviderFormat>,
    /// Only this tool.
    pub(super) tool: Option<String>,
    #[command(flatten)]
    pub(super) dialect: DialectArgs,
    #[command(flatten)]
    pub(super) workspace: WorkspaceArgs,
    #[command(flatten)]
    pub(super) servers: ServerArgs,
}

#[derive(Debug, Args)]
pub(super) struct GcArgs {
    /// Largest size of the ledger, for example 500M or 2G.
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = super::gc::size)]
    pub(super) max_size: u64,
    /// Delete calls older than this, for example 30d or 12h.
    #[arg(long, value_name = "AGE", value_parser = super::age)]
    pub(super) older_than: Option<u64>,
    /// Only report what would be deleted.
    #[arg(long)]
    pub(super) dry_run: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Your settings are in $HAFT_CONFIG, else in haft/haft.toml below $XDG_CONFIG_HOME or ~/.config. A project's \
haft.toml may set dialect and offer where yours does not, and may add rules to permissions.ask and permissions.deny; \
everything else in it is ignored.\n\
Environment variables override both files: HAFT_DIALECT, HAFT_OFFER, HAFT_PERMISSION_MODE, HAFT_SANDBOX, HAFT_NETWORK. \
Flags override everything."
)]
pub(super) struct ConfigArgs {
    #[command(subcommand)]
    pub(super) action: ConfigCommand,
    #[command(flatten)]
    pub(super) workspace: WorkspaceArgs,
}

#[derive(Debug, Subcommand)]
pub(super) enum ConfigCommand {
    /// Print all settings, or those below KEY, with their origin.
    Show {
        /// Setting or table, for example `tools.web_search`.
        key: Option<String>,
        /// Also print the values of Claude Code's settings files.
        #[arg(long)]
        origin: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print the value of one setting.
    Get {
        /// Name of the setting.
        key: String,
    },
    /// Change one setting in your file. `haft undo` reverts it.
    Set {
        /// Name of the setting.
        key: String,
        /// Value: a word, a number, true, false, or a comma-separated list, which replaces the old one.
        #[arg(allow_hyphen_values = true)]
        value: String,
    },
    /// Add elements to a list in your file, for example to permissions.deny or network. `haft undo` reverts it.
    Add {
        /// Name of the setting.
        key: String,
        /// Element to add; repeatable.
        #[arg(required = true, value_name = "VALUE")]
        values: Vec<String>,
    },
    /// Remove elements from a list in your file. `haft undo` reverts it.
    Remove {
        /// Name of the setting.
        key: String,
        /// Element to remove; repeatable.
        #[arg(required = true, value_name = "VALUE")]
        values: Vec<String>,
    },
    /// Print the path of your file.
    Path,
}

#[derive(Debug, Args)]
pub(super) struct DoctorArgs {
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) workspace: WorkspaceArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "To use it, add one of these to the start file of your shell:\n  \
source <(haft completion bash)\n  \
source <(haft completion zsh)\n  \
haft completion fish | source")]
pub(super) struct CompletionArgs {
    /// Name of the shell.
    pub(super) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(super) struct ManArgs {
    /// Name of the command, for example `call` or `mcp add`.
    #[arg(value_name = "COMMAND")]
    pub(super) command: Vec<String>,
}

#[derive(Debug, Clone, Args)]
pub(super) struct WorkspaceArgs {
    /// Directory that calls work in [default: the nearest one above with a haft.toml, else with a .git, else the current one].
    #[arg(long, value_name = "DIR")]
    pub(super) workspace: Option<PathBuf>,
}

#[derive(Debug, Clone, Args)]
pub(super) struct DialectArgs {
    /// Set of tools to offer [default: claude].
    #[arg(long, value_name = "DIALECT", value_parser = clap::builder::PossibleValuesParser::new(haft_tools::dialects::NAMES.iter().copied()))]
    pub(super) dialect: Option<String>,
    /// Offer only these tools; other dialects by prefix: `Read,loom:bash,omega:*`.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(super) tools: Option<Vec<String>>,
}

#[derive(Debug, Clone, Args)]
pub(super) struct SessionArgs {
    #[command(flatten)]
    pub(super) workspace: WorkspaceArgs,
    #[command(flatten)]
    pub(super) scope: ScopeArgs,
    #[command(flatten)]
    pub(super) dialect: DialectArgs,
}

// Additional MCP servers.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct ServerArgs {
    /// Additional MCP servers: a file like .mcp.json, or its content; repeatable.
    #[arg(long, value_name = "FILE|JSON")]
    pub(super) mcp_config: Vec<String>,
    /// Use only the servers of --mcp-config.
    #[arg(long)]
    pub(super) strict_mcp_config: bool,
}

#[derive(Debug, Clone, Default, Args)]
pub(super) struct RuleArgs {
    /// Which calls ask: scoped (the default), default, acceptEdits, plan, dontAsk or bypassPermissions.
    #[arg(long, value_name = "MODE")]
    pub(super) permission_mode: Option<Mode>,
    /// Allow calls that match, for example 'Bash(git *)' or 'Write(//etc/hosts)'; repeatable.
    #[arg(
        long = "allowedTools",
        visible_alias = "allowed-tools",
        value_name = "RULE",
        value_delimiter = ','
    )]
    pub(super) allowed: Vec<String>,
    /// Deny calls that match; overrides every other rule; repeatable.
    #[arg(
        long = "disallowedTools",
        visible_alias = "disallowed-tools",
        value_name = "RULE",
        value_delimiter = ','
    )]
    pub(super) disallowed: Vec<String>,
    /// Settings in Claude Code's form: a file, or JSON; they come before those of the project and of the user.
    #[arg(long, value_name = "FILE|JSON")]
    pub(super) settings: Option<String>,
    /// Which of Claude Code's settings files are read: user, project and local, separated by commas [default: all].
    #[arg(long, value_name = "SOURCES", value_delimiter = ',', num_args = 0..)]
    pub(super) setting_sources: Option<Vec<String>>,
    /// Settings of the administrator that the program which drives a run has passed: a file, or JSON.
    #[arg(skip)]
    pub(super) managed_settings: Option<String>,
}

impl RuleArgs {
    /// Which of Claude Code's settings are read.
    pub(super) fn claude_settings(&self) -> SettingsFlags {
        SettingsFlags {
            settings: self.settings.clone(),
            managed: self.managed_settings.clone(),
            sources: self.setting_sources.clone(),
        }
    }
}

/// Accepts the names of the agents.
fn agents() -> impl clap::builder::TypedValueParser<Value = &'static AgentProfile> {
    use clap::builder::TypedValueParser as _;
    clap::builder::PossibleValuesParser::new(AGENTS.iter().map(|agent| agent.name))
        .try_map(|name| AGENTS.iter().find(|agent| agent.name == name).ok_or("there is no such agent"))
}

/// Accepts the names of the provider formats.
fn formats() -> impl clap::builder::TypedValueParser<Value = ProviderFormat> {
    use clap::builder::TypedValueParser as _;
    clap::builder::PossibleValuesParser::new(ProviderFormat::NAMES)
        .try_map(|name| name.parse::<ProviderFormat>())
}
