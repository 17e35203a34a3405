//! The command line's shape and its help texts.

use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand};
use haft_policy::{Mode, Preset};

use haft::formats::Format;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Yellow.on_default().bold())
    .usage(AnsiColor::Yellow.on_default().bold())
    .literal(AnsiColor::Green.on_default())
    .placeholder(AnsiColor::Cyan.on_default());

/// Safe hands for any AI agent: every tool call is scoped, recorded and reversible.
#[derive(Debug, Parser)]
#[command(name = "haft", version, styles = STYLES, max_term_width = 100, arg_required_else_help = true)]
#[command(
    after_help = "Exit codes: 0 done; 1 the tool or run failed; 2 usage or invalid arguments; 3 denied; \
4 unknown tool or session; 124 timeout; 130 interrupted.\n\
The ledger lies in $HAFT_HOME, else in the user's state directory."
)]
pub(super) struct Haft {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
// The flags of one command are made when it is the one that was typed; its words here are for the list of all.
#[command(defer = true)]
pub(super) enum Command {
    /// Make one tool call, without a model.
    ///
    /// The result goes to standard output, everything else to standard error. Naming a tool here allows it, as
    /// --allowedTools would; it does not widen what the call may touch: paths outside the workspace still need a rule
    /// (`--allowedTools 'Write(//etc/hosts)'`), a folder (`--add-dir`), or your yes on a terminal.
    Call(Call),
    /// Serve Haft's tools over MCP, on standard input and output or over HTTP; or manage the MCP servers that Haft itself uses.
    ///
    /// Every call is scoped, recorded and reversible, whoever makes it. Where a call needs a yes, the client's user is asked if
    /// the client can ask; if it cannot, the answer is no, with how to allow it beforehand.
    Mcp(super::mcp::Mcp),
    /// Run any command inside the scope: held by the kernel, recorded, to be taken back.
    ///
    /// It may write the workspace and its own temporary files, reads everything but secrets, and reaches no network
    /// unless you say so. Streams and terminal pass through, and so does the exit code. `haft undo` takes back what it
    /// changed.
    Sandbox(Sandbox),
    /// Print the tools and their definitions.
    Tools(Tools),
    /// List what was done, newest first.
    Log(Log),
    /// Show one call: what it was, why it was allowed, what it changed, what its caller saw.
    Show(Show),
    /// Take back the last call, a chosen call or a whole session.
    ///
    /// Shows first what will change, and asks. Refuses where something else has changed since. An undo is a call like any
    /// other: `haft redo` or `haft undo ID` takes it back too.
    Undo(Undo),
    /// Take back the last undo.
    Redo(Redo),
    /// Make the ledger smaller: forget the oldest calls and their before-images.
    Gc(Gc),
    /// See and change what is set: `haft.toml`, and what counts more.
    Config(Config),
    /// Check what Haft needs on this machine, and say what to do about what is missing.
    Doctor(Doctor),
    /// See what Haft does: real calls on a sample project, then undo. Needs no key and no network.
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
    pub(super) format: Option<Format>,
    /// Go on with an earlier session instead of starting one.
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
    /// Milliseconds until it is ended.
    #[arg(long, value_name = "MS")]
    pub(super) timeout: Option<u64>,
    /// Return at once and leave it running, also when the terminal is closed; what it writes goes to a file.
    #[arg(long)]
    pub(super) detach: bool,
    #[command(flatten)]
    pub(super) workspace: Workspace,
    #[command(flatten)]
    pub(super) scope: Scope,
}

// What may be touched. (No words for the help: they would take the place of the command's.)
#[derive(Debug, Default, Args)]
pub(super) struct Scope {
    /// One more folder that may be changed; may be given several times.
    #[arg(long = "add-dir", value_name = "DIR")]
    pub(super) directories: Vec<PathBuf>,
    /// What may be written: workspace, read-only, sandbox, rx, rwx, or off for no sandbox at all [default: workspace].
    #[arg(long, value_name = "PRESET")]
    pub(super) sandbox: Option<Preset>,
    /// What may be reached: none, all, or domains, for example `crates.io,*.npmjs.org` [default: none].
    #[arg(long, value_name = "DOMAINS", value_delimiter = ',')]
    pub(super) network: Option<Vec<String>>,
    /// One path that may be written although it is guarded or outside; may be given several times.
    #[arg(long, value_name = "PATH")]
    pub(super) allow_write: Vec<PathBuf>,
    /// One entry of the list of secrets that commands may read, for example .env; may be given several times.
    #[arg(long, value_name = "SECRET")]
    pub(super) allow_read: Vec<String>,
}

#[derive(Debug, Args)]
pub(super) struct Tools {
    /// Print the definitions as JSON, in the envelope of this provider, as they are sent.
    #[arg(value_parser = formats(), long, )]
    pub(super) format: Option<Format>,
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
    /// How many calls to list.
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
    /// Overwrite what has changed since.
    #[arg(long)]
    pub(super) force: bool,
    #[command(flatten)]
    pub(super) workspace: Workspace,
}

#[derive(Debug, Args)]
pub(super) struct Gc {
    /// The most it may take, for example 500M or 2G.
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = super::gc::size)]
    pub(super) max_size: u64,
    /// Forget calls older than this, for example 30d or 12h.
    #[arg(long, value_name = "AGE", value_parser = super::gc::age)]
    pub(super) older_than: Option<u64>,
    /// Only say what would be forgotten.
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
    /// Print every setting with its value and where that comes from, or those below KEY.
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
    /// Set one value in your own file. The change is recorded; `haft undo` takes it back.
    Set {
        /// The setting.
        key: String,
        /// The value: a word, a number, true, false, or a list with commas.
        #[arg(allow_hyphen_values = true)]
        value: String,
    },
    /// Print where your own file is, whether it exists or not.
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
    /// The folder that calls work in [default: the current one].
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

// Whose tools there are beside Haft's own.
#[derive(Debug, Default, Args)]
pub(super) struct Servers {
    /// More MCP servers: a file like .mcp.json, or its JSON; may be given several times.
    #[arg(long, value_name = "FILE|JSON")]
    pub(super) mcp_config: Vec<String>,
    /// Only the servers of --mcp-config, none of haft.toml and .mcp.json.
    #[arg(long)]
    pub(super) strict_mcp_config: bool,
}

#[derive(Debug, Args)]
pub(super) struct Rules {
    /// How much runs without a question: scoped (the default), default, acceptEdits, plan, dontAsk, bypassPermissions.
    #[arg(long, value_name = "MODE")]
    pub(super) permission_mode: Option<Mode>,
    /// Rules that allow, for example 'Bash(git *)' or 'Write(//etc/hosts)'; may be given several times.
    #[arg(
        long = "allowedTools",
        visible_alias = "allowed-tools",
        value_name = "RULE",
        value_delimiter = ','
    )]
    pub(super) allowed: Vec<String>,
    /// Rules that deny; they win over everything else.
    #[arg(
        long = "disallowedTools",
        visible_alias = "disallowed-tools",
        value_name = "RULE",
        value_delimiter = ','
    )]
    pub(super) disallowed: Vec<String>,
}

/// Accepts the names of the provider formats.
fn formats() -> impl clap::builder::TypedValueParser<Value = Format> {
    use clap::builder::TypedValueParser as _;
    clap::builder::PossibleValuesParser::new(Format::NAMES).try_map(|name| name.parse::<Format>())
}
