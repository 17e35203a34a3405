//! The command line's shape and its help texts.

use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand};
use haft_policy::{Mode, Preset};

use haft::formats::ProviderFormat;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Yellow.on_default().bold())
    .usage(AnsiColor::Yellow.on_default().bold())
    .literal(AnsiColor::Green.on_default())
    .placeholder(AnsiColor::Cyan.on_default());

/// A tool runtime for AI agents: every tool call is scoped, recorded and reversible.
#[derive(Debug, Parser)]
#[command(name = "haft", version, styles = STYLES, max_term_width = 100, arg_required_else_help = true)]
#[command(
    after_help = "Exit codes: 0 done; 1 the tool or run failed; 2 usage or invalid arguments; 3 denied; \
4 unknown tool or session; 124 timeout; 130 interrupted.\n\
The ledger is in $HAFT_HOME, else in the user's state directory."
)]
pub(super) struct Haft {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
// Only the flags of the typed command are built; building all of them would slow down every start.
#[command(defer = true)]
pub(super) enum Command {
    /// Make one tool call, without a model.
    ///
    /// The result goes to standard output, everything else to standard error. Naming a tool here allows it, as
    /// --allowedTools would. It does not widen the scope: paths outside the workspace still need a rule
    /// (`--allowedTools 'Write(//etc/hosts)'`), a directory (`--add-dir`), or your approval on a terminal.
    Call(Call),
    /// Serve Haft's tools over MCP, on standard input and output or over HTTP; or manage the MCP servers that Haft itself uses.
    ///
    /// Every call is scoped, recorded and reversible. A call that needs approval asks the client's user if the client supports
    /// elicitation; otherwise it is denied with a message that says how to allow it.
    Mcp(super::mcp::Mcp),
    /// Run any command in the sandbox: confined by the kernel, recorded, reversible.
    ///
    /// It may write the workspace and its own temporary files, read everything except secrets, and has no network unless you
    /// allow it. Streams, terminal and exit code pass through. `haft undo` reverts what it changed.
    Sandbox(Sandbox),
    /// Print the tools and their definitions.
    Tools(Tools),
    /// List what was done, newest first.
    Log(Log),
    /// Show one call: what it was, why it was allowed, what it changed, what its caller saw.
    Show(Show),
    /// Undo the last call, a chosen call or a whole session.
    ///
    /// Shows what will change and asks. Refuses if a file has changed since. An undo is a call with its own receipt:
    /// `haft redo` or `haft undo ID` reverts it.
    Undo(Undo),
    /// Undo the last undo.
    Redo(Redo),
    /// Shrink the ledger: delete the oldest calls and the previous contents they kept.
    Gc(Gc),
    /// Show and change settings, with their origin.
    Config(Config),
    /// Check what Haft needs on this machine and say how to fix what is missing.
    Doctor(Doctor),
    /// Run real calls on a sample project, then undo them. Needs no key and no network.
    Demo,
    /// Print a completion script for your shell.
    Completion(Completion),
    /// Print the manual page, for `haft man | man -l -`.
    Man,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
haft call Read '{\"file_path\": \"/etc/hostname\"}'\n  \
haft call Grep '{\"pattern\": \"fn main\", \"output_mode\": \"content\"}'\n  \
haft call Write @arguments.json\n  \
echo '{\"command\": \"ls\"}' | haft call Bash -")]
pub(super) struct Call {
    /// The tool's name; `haft tools` lists them.
    pub(super) tool: String,
    /// The arguments: a JSON object, @FILE, or - for standard input.
    #[arg(value_name = "JSON|@FILE|-", default_value = "{}", allow_hyphen_values = true)]
    pub(super) arguments: String,
    /// Print the whole result as JSON: content, `is_error`, `error_kind`, structured, receipt.
    #[arg(long)]
    pub(super) json: bool,
    /// Print the result as it goes back to a model of this provider.
    #[arg(value_parser = formats(), long, conflicts_with = "json")]
    pub(super) format: Option<ProviderFormat>,
    /// Continue an earlier session instead of starting a new one.
    #[arg(long, value_name = "ID")]
    pub(super) session: Option<String>,
    #[command(flatten)]
    pub(super) at: At,
    #[command(flatten)]
    pub(super) rules: Rules,
    #[command(flatten)]
    pub(super) servers: Servers,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
haft sandbox -- npm install\n  \
haft sandbox --network crates.io,static.crates.io,index.crates.io -- cargo fetch\n  \
haft sandbox --sandbox read-only -- ./suspicious.sh")]
pub(super) struct Sandbox {
    /// The program and its arguments.
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(super) command: Vec<String>,
    /// Timeout in milliseconds.
    #[arg(long, value_name = "MS")]
    pub(super) timeout: Option<u64>,
    /// Return at once and keep the command running, also when the terminal is closed; its output goes to a file.
    #[arg(long)]
    pub(super) detach: bool,
    #[command(flatten)]
    pub(super) workspace: Workspace,
    #[command(flatten)]
    pub(super) scope: Scope,
}

// No doc comment, because clap would show it instead of the command's own help.
#[derive(Debug, Default, Args)]
pub(super) struct Scope {
    /// An additional directory that may be changed; repeatable.
    #[arg(long = "add-dir", value_name = "DIR")]
    pub(super) directories: Vec<PathBuf>,
    /// What may be written: workspace, read-only, sandbox, rx, rwx, or off for no sandbox at all [default: workspace].
    #[arg(long, value_name = "PRESET")]
    pub(super) sandbox: Option<Preset>,
    /// What may be reached: none, all, or domains, for example `crates.io,*.npmjs.org` [default: none].
    #[arg(long, value_name = "DOMAINS", value_delimiter = ',')]
    pub(super) network: Option<Vec<String>>,
    /// A path that may be written although it is guarded or outside the scope; repeatable.
    #[arg(long, value_name = "PATH")]
    pub(super) allow_write: Vec<PathBuf>,
    /// An entry of the list of secrets that commands may read, for example .env; repeatable.
    #[arg(long, value_name = "SECRET")]
    pub(super) allow_read: Vec<String>,
}

#[derive(Debug, Args)]
pub(super) struct Tools {
    /// Print the definitions as JSON in this provider's format.
    #[arg(value_parser = formats(), long, )]
    pub(super) format: Option<ProviderFormat>,
    /// Only this tool, with its parameters.
    pub(super) tool: Option<String>,
    #[command(flatten)]
    pub(super) dialect: Dialect,
    #[command(flatten)]
    pub(super) workspace: Workspace,
    #[command(flatten)]
    pub(super) servers: Servers,
}

#[derive(Debug, Args)]
pub(super) struct Log {
    /// The number of calls to list.
    #[arg(short = 'n', long, default_value_t = 20)]
    pub(super) limit: usize,
    /// In every workspace, not only this one.
    #[arg(long)]
    pub(super) all: bool,
    /// Only calls of this session.
    #[arg(long, value_name = "ID")]
    pub(super) session: Option<String>,
    /// Only calls that changed something.
    #[arg(long)]
    pub(super) changes: bool,
    /// One receipt per line, as JSON.
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) workspace: Workspace,
}

#[derive(Debug, Args)]
pub(super) struct Show {
    /// The call's number, from `haft log`.
    pub(super) id: i64,
    /// Print only the full output, also where the caller saw a part of it.
    #[arg(long)]
    pub(super) output: bool,
    /// List every change, however many there are.
    #[arg(long)]
    pub(super) all: bool,
    /// Print the receipt as JSON.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct Undo {
    /// The call's number, from `haft log`; the last one that changed something if left out.
    pub(super) id: Option<i64>,
    /// All calls of this session.
    #[arg(long, value_name = "ID", conflicts_with = "id")]
    pub(super) session: Option<String>,
    #[command(flatten)]
    pub(super) how: How,
}

#[derive(Debug, Args)]
pub(super) struct Redo {
    #[command(flatten)]
    pub(super) how: How,
}

#[derive(Debug, Args)]
pub(super) struct How {
    /// Do not ask.
    #[arg(short, long)]
    pub(super) yes: bool,
    /// Only show what would change.
    #[arg(long, conflicts_with = "yes")]
    pub(super) dry_run: bool,
    /// Overwrite files that have changed since.
    #[arg(long)]
    pub(super) force: bool,
    #[command(flatten)]
    pub(super) workspace: Workspace,
}

#[derive(Debug, Args)]
pub(super) struct Gc {
    /// The largest size of the ledger, for example 500M or 2G.
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = super::gc::size)]
    pub(super) max_size: u64,
    /// Delete calls older than this, for example 30d or 12h.
    #[arg(long, value_name = "AGE", value_parser = super::gc::age)]
    pub(super) older_than: Option<u64>,
    /// Only report what would be deleted.
    #[arg(long)]
    pub(super) dry_run: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Your own file is $HAFT_CONFIG, else haft/haft.toml in $XDG_CONFIG_HOME or ~/.config. A project may \
have a haft.toml too; it chooses what yours leaves open (dialect, offer) and may ask and deny more (permissions.ask, \
permissions.deny), and nothing else.\n\
Variables count more than files: HAFT_DIALECT, HAFT_OFFER, HAFT_PERMISSION_MODE, HAFT_SANDBOX, HAFT_NETWORK. Flags count \
most."
)]
pub(super) struct Config {
    #[command(subcommand)]
    pub(super) action: ConfigAction,
    #[command(flatten)]
    pub(super) workspace: Workspace,
}

#[derive(Debug, Subcommand)]
pub(super) enum ConfigAction {
    /// Print every setting, or those below KEY, with value and origin.
    Show {
        /// A setting or a table, for example `tools.web_search`.
        key: Option<String>,
        /// Print them as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print one value.
    Get {
        /// The setting.
        key: String,
    },
    /// Set one value in your own file. The change is recorded; `haft undo` reverts it.
    Set {
        /// The setting.
        key: String,
        /// The value: a word, a number, true, false, or a list with commas.
        #[arg(allow_hyphen_values = true)]
        value: String,
    },
    /// Print the path of your own file.
    Path,
}

#[derive(Debug, Args)]
pub(super) struct Doctor {
    /// Print the checks as JSON.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct Completion {
    pub(super) shell: clap_complete::Shell,
}

#[derive(Debug, Clone, Args)]
pub(super) struct Workspace {
    /// The directory that calls work in [default: the current one].
    #[arg(long, value_name = "DIR")]
    pub(super) workspace: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct Dialect {
    /// The vocabulary of the tools [default: claude].
    #[arg(long, value_name = "D", value_parser = clap::builder::PossibleValuesParser::new(haft_tools::dialects::NAMES.iter().copied()))]
    pub(super) dialect: Option<String>,
    /// Only these tools, also of other dialects: `Read,loom:bash,omega:*`.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(super) tools: Option<Vec<String>>,
}

#[derive(Debug, Args)]
pub(super) struct At {
    #[command(flatten)]
    pub(super) workspace: Workspace,
    #[command(flatten)]
    pub(super) scope: Scope,
    #[command(flatten)]
    pub(super) dialect: Dialect,
}

// Additional MCP servers.
#[derive(Debug, Default, Args)]
pub(super) struct Servers {
    /// Additional MCP servers: a file like .mcp.json, or its JSON; repeatable.
    #[arg(long, value_name = "FILE|JSON")]
    pub(super) mcp_config: Vec<String>,
    /// Only the servers of --mcp-config, none of haft.toml and .mcp.json.
    #[arg(long)]
    pub(super) strict_mcp_config: bool,
}

#[derive(Debug, Args)]
pub(super) struct Rules {
    /// What runs without asking: scoped (the default), default, acceptEdits, plan, dontAsk, bypassPermissions.
    #[arg(long, value_name = "MODE")]
    pub(super) permission_mode: Option<Mode>,
    /// Allow rules, for example 'Bash(git *)' or 'Write(//etc/hosts)'; repeatable.
    #[arg(
        long = "allowedTools",
        visible_alias = "allowed-tools",
        value_name = "RULE",
        value_delimiter = ','
    )]
    pub(super) allowed: Vec<String>,
    /// Deny rules; they win over everything else.
    #[arg(
        long = "disallowedTools",
        visible_alias = "disallowed-tools",
        value_name = "RULE",
        value_delimiter = ','
    )]
    pub(super) disallowed: Vec<String>,
}

/// Accepts the names of the provider formats.
fn formats() -> impl clap::builder::TypedValueParser<Value = ProviderFormat> {
    use clap::builder::TypedValueParser as _;
    clap::builder::PossibleValuesParser::new(ProviderFormat::NAMES)
        .try_map(|name| name.parse::<ProviderFormat>())
}
