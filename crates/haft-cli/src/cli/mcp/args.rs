//! The shape of `haft mcp`.

use clap::{Args, Parser, Subcommand};

use super::super::args::{At, Rules, Servers, Workspace};
use super::http::Http;
use super::manage;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "Examples:\n  \
haft mcp install claude\n  \
claude mcp add haft -- haft mcp\n  \
haft mcp --workspace ~/project --permission-mode plan\n  \
haft mcp add files -- npx -y @modelcontextprotocol/server-filesystem@2026.8.31 .")]
pub(in super::super) struct Mcp {
    #[command(subcommand)]
    pub(super) action: Option<Action>,
    #[command(flatten)]
    pub(super) serve: Serve,
}

#[derive(Debug, Args)]
pub(super) struct Serve {
    #[command(flatten)]
    pub(super) at: At,
    #[command(flatten)]
    pub(super) rules: Rules,
    #[command(flatten)]
    pub(super) http: Http,
    #[command(flatten)]
    pub(super) servers: Servers,
    /// Offer `haft_log` and `haft_undo` too, so that the client's model can list and undo its calls.
    #[arg(long)]
    pub(super) ledger_tools: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum Action {
    List(List),
    Get(Get),
    Add(Box<Add>),
    AddJson(AddJson),
    Remove(Remove),
    Trust(Trust),
    Untrust(Untrust),
    Test(Test),
    Call(Box<CallTool>),
    /// Log in to an MCP server that wants you to, and keep its tokens for you alone.
    Login(Login),
    /// Forget the tokens for an MCP server.
    Logout(Login),
    Install(Install),
    Uninstall(Uninstall),
}

/// List the MCP servers that Haft may use here, and whether you trust them. None is started.
#[derive(Debug, Args)]
pub(super) struct List {
    /// Print them as JSON.
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) workspace: Workspace,
    #[command(flatten)]
    pub(super) servers: Servers,
}

/// Show one MCP server: how it is reached, what it may do, its tools when they were last seen.
#[derive(Debug, Args)]
pub(super) struct Get {
    /// The server's name, from `haft mcp list`.
    pub(super) name: String,
    /// Print it as JSON.
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) workspace: Workspace,
    #[command(flatten)]
    pub(super) servers: Servers,
}

/// Connect to an MCP server and say what it is: its era, what it offers, its tools, what is wrong with them, how fast it is.
#[derive(Debug, Args)]
pub(super) struct Test {
    /// The server's name, from `haft mcp list`.
    pub(super) name: String,
    /// Print it as JSON.
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) workspace: Workspace,
    #[command(flatten)]
    pub(super) servers: Servers,
}

/// Call one tool of an MCP server, by its own name there.
#[derive(Debug, Args)]
pub(super) struct CallTool {
    /// The server's name, from `haft mcp list`.
    pub(super) server: String,
    /// The tool's name, from `haft mcp get`.
    pub(super) tool: String,
    /// The arguments: a JSON object, @FILE, or - for standard input.
    #[arg(value_name = "JSON|@FILE|-", default_value = "{}", allow_hyphen_values = true)]
    pub(super) arguments: String,
    /// Print the whole result as JSON: content, `is_error`, `error_kind`, structured, receipt.
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) at: At,
    #[command(flatten)]
    pub(super) rules: Rules,
    #[command(flatten)]
    pub(super) servers: Servers,
}

#[derive(Debug, Args)]
pub(super) struct Login {
    /// The server's name, from `haft mcp list`.
    pub(super) name: String,
    #[command(flatten)]
    pub(super) workspace: Workspace,
    #[command(flatten)]
    pub(super) servers: Servers,
}

/// Configure an MCP server, in your own haft.toml.
///
/// A server runs in the sandbox: it reads the workspace, changes nothing and reaches no network, unless you grant it more
/// here. `haft undo` takes the change back.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
haft mcp add git -- uvx mcp-server-git==2026.10.19\n  \
haft mcp add notes --writes --env LEVEL=debug -- node server.js\n  \
haft mcp add docs https://docs.example.org/mcp --header 'Authorization: Bearer ${DOCS_TOKEN}'")]
pub(super) struct Add {
    /// What it is to be called.
    pub(super) name: String,
    /// Its address, or the program and its arguments.
    #[arg(required = true, trailing_var_arg = true, value_name = "URL | CMD")]
    pub(super) target: Vec<String>,
    /// A variable that it gets; may be given several times. `${NAME}` in the value is looked up when it starts.
    #[arg(short, long, value_name = "K=V", value_parser = manage::variable)]
    pub(super) env: Vec<(String, String)>,
    /// A header that goes with every request; may be given several times.
    #[arg(short = 'H', long, value_name = "K: V", value_parser = manage::header)]
    pub(super) header: Vec<(String, String)>,
    /// How it is reached; found out if left out.
    #[arg(short, long, value_name = "HOW")]
    pub(super) transport: Option<Transport>,
    /// Milliseconds that one of its answers may take.
    #[arg(long, value_name = "MS")]
    pub(super) timeout: Option<u64>,
    /// Offer only this tool of it; may be given several times.
    #[arg(long, value_name = "NAME")]
    pub(super) tool: Vec<String>,
    #[command(flatten)]
    pub(super) grants: GrantFlags,
    #[command(flatten)]
    pub(super) place: Place,
}

/// The same, read on its own.
#[derive(Debug, Parser)]
pub(super) struct AddAgain {
    #[command(flatten)]
    pub(super) add: Add,
}

/// The ways to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Transport {
    Stdio,
    Http,
    Sse,
}

/// Configure an MCP server from its JSON, as .mcp.json has it.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
haft mcp add-json time '{\"command\": \"uvx\", \"args\": [\"mcp-server-time==2026.10.19\"]}'")]
pub(super) struct AddJson {
    /// What it is to be called.
    pub(super) name: String,
    /// The entry.
    pub(super) json: String,
    #[command(flatten)]
    pub(super) place: Place,
}

/// Take an MCP server out of the file that configures it.
#[derive(Debug, Args)]
pub(super) struct Remove {
    /// The server's name.
    pub(super) name: String,
    #[command(flatten)]
    pub(super) place: Place,
}

/// Which file is changed, and how.
#[derive(Debug, Args)]
pub(super) struct Place {
    /// In the project's .mcp.json, not in your own haft.toml.
    #[arg(long)]
    pub(super) project: bool,
    #[command(flatten)]
    pub(super) how: Change,
    #[command(flatten)]
    pub(super) workspace: Workspace,
}

/// How a file is changed.
#[derive(Debug, Clone, Copy, Args)]
pub(super) struct Change {
    /// Do not ask.
    #[arg(short, long)]
    pub(super) yes: bool,
    /// Only show what would change.
    #[arg(long, conflicts_with = "yes")]
    pub(super) dry_run: bool,
}

/// What a server may do beyond reading the workspace.
#[derive(Debug, Args)]
pub(super) struct GrantFlags {
    /// It may change the workspace.
    #[arg(long)]
    pub(super) writes: bool,
    /// What it may reach: all, or domains, for example `api.github.com,*.example.org`.
    #[arg(long, value_name = "DOMAINS", value_delimiter = ',')]
    pub(super) network: Vec<String>,
}

/// Say yes to an MCP server that came with a project, or to what has changed in a server's tools.
///
/// Shows what it is and asks. The yes holds for exactly this command, these arguments and variables; the flags say what it may
/// do beyond reading the workspace.
#[derive(Debug, Args)]
pub(super) struct Trust {
    /// The server's name, from `haft mcp list`.
    pub(super) name: String,
    #[command(flatten)]
    pub(super) grants: GrantFlags,
    /// Do not ask.
    #[arg(short, long)]
    pub(super) yes: bool,
    #[command(flatten)]
    pub(super) workspace: Workspace,
}

/// Take back your yes to an MCP server, and forget what its tools looked like.
#[derive(Debug, Args)]
pub(super) struct Untrust {
    /// The server's name.
    pub(super) name: String,
    #[command(flatten)]
    pub(super) workspace: Workspace,
}

/// Write Haft's own entry into the settings of another program, so that its agent has Haft's tools.
///
/// Shows what will change, and asks. Everything else in the file stays as it is; `haft undo` takes the change back.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
haft mcp install claude\n  \
haft mcp install zed --dry-run\n  \
haft mcp install codex -- --permission-mode plan")]
pub(super) struct Install {
    /// The program.
    pub(super) client: manage::Client,
    /// `haft mcp` flags that the entry starts it with.
    #[arg(last = true, value_name = "FLAGS")]
    pub(super) flags: Vec<String>,
    #[command(flatten)]
    pub(super) entry: EntryAt,
}

/// Take Haft's own entry out of the settings of another program.
#[derive(Debug, Args)]
pub(super) struct Uninstall {
    /// The program.
    pub(super) client: manage::Client,
    #[command(flatten)]
    pub(super) entry: EntryAt,
}

/// Haft's entry in another program's file.
#[derive(Debug, Args)]
pub(super) struct EntryAt {
    /// What the entry is called.
    #[arg(long, default_value = "haft")]
    pub(super) name: String,
    /// In the project's file, not in your own.
    #[arg(long)]
    pub(super) project: bool,
    #[command(flatten)]
    pub(super) how: Change,
    #[command(flatten)]
    pub(super) workspace: Workspace,
}
