//! The arguments of `haft mcp` and its subcommands, and their help.

use clap::{Args, Parser, Subcommand};

use super::super::args::{RuleArgs, ServerArgs, SessionArgs, WorkspaceArgs};
use super::super::sessions::SessionNameArgs;
use super::http::HttpArgs;
use super::manage;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "Examples:\n  \
haft mcp install claude\n  \
claude mcp add haft -- haft mcp\n  \
haft mcp --workspace ~/project --permission-mode plan\n  \
haft mcp add files -- npx -y @modelcontextprotocol/server-filesystem@2026.8.31 .")]
pub(in super::super) struct McpArgs {
    #[command(subcommand)]
    pub(super) action: Option<McpCommand>,
    #[command(flatten)]
    pub(super) serve: ServeArgs,
}

#[derive(Debug, Args)]
pub(in super::super) struct ServeArgs {
    #[command(flatten)]
    pub(super) at: SessionArgs,
    #[command(flatten)]
    pub(super) rules: RuleArgs,
    #[command(flatten)]
    pub(super) http: HttpArgs,
    #[command(flatten)]
    pub(super) servers: ServerArgs,
    /// Also offer `haft_log` and `haft_undo`, so that the client's model can list and undo its calls.
    #[arg(long)]
    pub(super) ledger_tools: bool,
    #[command(flatten)]
    pub(super) session: SessionNameArgs,
}

#[derive(Debug, Subcommand)]
pub(super) enum McpCommand {
    List(ListArgs),
    Get(GetArgs),
    Add(Box<AddArgs>),
    AddJson(AddJsonArgs),
    Remove(RemoveArgs),
    Trust(TrustArgs),
    Untrust(UntrustArgs),
    Test(TestArgs),
    Call(Box<CallToolArgs>),
    /// Log in to an MCP server with OAuth and store its tokens.
    Login(LoginArgs),
    /// Delete the stored tokens of an MCP server.
    Logout(LoginArgs),
    Install(InstallArgs),
    Uninstall(UninstallArgs),
}

/// List the configured MCP servers and whether they are trusted. Starts none of them.
#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) workspace: WorkspaceArgs,
    #[command(flatten)]
    pub(super) servers: ServerArgs,
}

/// Show one MCP server: its command or address, its permissions, and the tools it last offered.
#[derive(Debug, Args)]
pub(super) struct GetArgs {
    /// Name of the server, from `haft mcp list`.
    pub(super) name: String,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) workspace: WorkspaceArgs,
    #[command(flatten)]
    pub(super) servers: ServerArgs,
}

/// Connect to an MCP server and report its protocol version, capabilities, tools and latency.
#[derive(Debug, Args)]
pub(super) struct TestArgs {
    /// Name of the server, from `haft mcp list`.
    pub(super) name: String,
    /// Let npx or uvx download the server first; afterwards it runs without network.
    #[arg(long)]
    pub(super) download: bool,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) workspace: WorkspaceArgs,
    #[command(flatten)]
    pub(super) servers: ServerArgs,
}

/// Call one tool of an MCP server.
#[derive(Debug, Args)]
pub(super) struct CallToolArgs {
    /// Name of the server, from `haft mcp list`.
    pub(super) server: String,
    /// Name of the tool on the server, from `haft mcp get`.
    pub(super) tool: String,
    /// Arguments of the tool: NAME=VALUE words, or one JSON object, @FILE with one, or - for standard input.
    #[arg(value_name = "NAME=VALUE|JSON|@FILE|-")]
    pub(super) arguments: Vec<std::ffi::OsString>,
    /// Print the result as JSON, with the receipt.
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) at: SessionArgs,
    #[command(flatten)]
    pub(super) rules: RuleArgs,
    #[command(flatten)]
    pub(super) servers: ServerArgs,
}

#[derive(Debug, Args)]
pub(super) struct LoginArgs {
    /// Name of the server, from `haft mcp list`.
    pub(super) name: String,
    #[command(flatten)]
    pub(super) workspace: WorkspaceArgs,
    #[command(flatten)]
    pub(super) servers: ServerArgs,
}

/// Add an MCP server to your haft.toml.
///
/// The server runs in the sandbox. It can read the workspace, but not change it or use the network unless you allow it here.
/// `haft undo` reverts the change.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
haft mcp add git -- uvx mcp-server-git==2026.10.19\n  \
haft mcp add notes --writes --env LEVEL=debug -- node server.js\n  \
haft mcp add docs https://docs.example.org/mcp --header 'Authorization: Bearer ${DOCS_TOKEN}'")]
pub(super) struct AddArgs {
    /// Name of the server.
    pub(super) name: String,
    /// URL of the server, or a command and its arguments.
    #[arg(required = true, trailing_var_arg = true, value_name = "URL|CMD")]
    pub(super) target: Vec<String>,
    /// Environment variable for the server; `${NAME}` is expanded at start; repeatable.
    #[arg(short, long, value_name = "NAME=VALUE", value_parser = manage::variable)]
    pub(super) env: Vec<(String, String)>,
    /// HTTP header for every request; repeatable.
    #[arg(short = 'H', long, value_name = "NAME: VALUE", value_parser = manage::header)]
    pub(super) header: Vec<(String, String)>,
    /// Transport of the server [default: http for a URL, else stdio].
    #[arg(short, long, value_name = "TRANSPORT")]
    pub(super) transport: Option<TransportName>,
    /// Timeout of a response, for example 30s or 5m; a plain number is milliseconds.
    #[arg(long, value_name = "DURATION", value_parser = super::super::duration::milliseconds)]
    pub(super) timeout: Option<u64>,
    /// Offer only this tool of the server; repeatable.
    #[arg(long, value_name = "NAME")]
    pub(super) tool: Vec<String>,
    #[command(flatten)]
    pub(super) grants: GrantArgs,
    #[command(flatten)]
    pub(super) place: TargetFileArgs,
}

/// Parses the flags after a URL.
#[derive(Debug, Parser)]
pub(super) struct AddFlagsParser {
    #[command(flatten)]
    pub(super) add: AddArgs,
}

/// The transports that `--transport` names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum TransportName {
    Stdio,
    Http,
    Sse,
}

/// Add an MCP server, given as the JSON of a .mcp.json entry.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
haft mcp add-json time '{\"command\": \"uvx\", \"args\": [\"mcp-server-time==2026.10.19\"]}'")]
pub(super) struct AddJsonArgs {
    /// Name of the server.
    pub(super) name: String,
    /// JSON object of the entry.
    pub(super) json: String,
    #[command(flatten)]
    pub(super) place: TargetFileArgs,
}

/// Remove an MCP server from the file that configures it.
#[derive(Debug, Args)]
pub(super) struct RemoveArgs {
    /// Name of the server.
    pub(super) name: String,
    #[command(flatten)]
    pub(super) place: TargetFileArgs,
}

/// Which file is changed.
#[derive(Debug, Args)]
pub(super) struct TargetFileArgs {
    /// Change .mcp.json of the project instead of your haft.toml.
    #[arg(long)]
    pub(super) project: bool,
    #[command(flatten)]
    pub(super) how: ConfirmArgs,
    #[command(flatten)]
    pub(super) workspace: WorkspaceArgs,
}

/// Whether a change is confirmed.
#[derive(Debug, Clone, Copy, Args)]
pub(super) struct ConfirmArgs {
    /// Do not ask for confirmation.
    #[arg(short, long)]
    pub(super) yes: bool,
    /// Only show what would change.
    #[arg(long, conflicts_with = "yes")]
    pub(super) dry_run: bool,
}

/// Permissions of a server beyond reading the workspace.
#[derive(Debug, Args)]
pub(super) struct GrantArgs {
    /// Let the server change the workspace.
    #[arg(long)]
    pub(super) writes: bool,
    /// Let the server use the network: all, or domains such as `api.github.com,*.example.org`.
    #[arg(long, value_name = "DOMAINS", value_delimiter = ',')]
    pub(super) network: Vec<String>,
}

/// Trust an MCP server of the project, or changed tools of a server.
///
/// Shows the server and asks. Trust holds for exactly this command, these arguments and these variables; a change needs it
/// again.
#[derive(Debug, Args)]
pub(super) struct TrustArgs {
    /// Name of the server, from `haft mcp list`.
    pub(super) name: String,
    #[command(flatten)]
    pub(super) grants: GrantArgs,
    /// Do not ask for confirmation.
    #[arg(short, long)]
    pub(super) yes: bool,
    #[command(flatten)]
    pub(super) workspace: WorkspaceArgs,
}

/// Stop trusting an MCP server and forget its tools.
#[derive(Debug, Args)]
pub(super) struct UntrustArgs {
    /// Name of the server.
    pub(super) name: String,
    #[command(flatten)]
    pub(super) workspace: WorkspaceArgs,
}

/// Add Haft to the MCP servers of another program.
///
/// Shows the change of its settings file and asks. The rest of the file stays as it is; `haft undo` reverts the change.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
haft mcp install claude --replace-builtin\n  \
haft mcp install zed --dry-run\n  \
haft mcp install codex -- --permission-mode plan")]
pub(super) struct InstallArgs {
    /// Program to add Haft to.
    pub(super) client: manage::Client,
    /// Turn off the program's own file and shell tools, and let it call Haft's without asking.
    #[arg(long)]
    pub(super) replace_builtin: bool,
    /// Flags for `haft mcp`.
    #[arg(last = true, value_name = "FLAGS")]
    pub(super) flags: Vec<String>,
    #[command(flatten)]
    pub(super) entry: EntryArgs,
}

/// Remove Haft from the MCP servers of another program, and restore its settings.
#[derive(Debug, Args)]
pub(super) struct UninstallArgs {
    /// Program to remove Haft from.
    pub(super) client: manage::Client,
    #[command(flatten)]
    pub(super) entry: EntryArgs,
}

/// Haft's entry in another program's settings.
#[derive(Debug, Args)]
pub(super) struct EntryArgs {
    /// Name of the entry.
    #[arg(long, default_value = "haft")]
    pub(super) name: String,
    /// Change the settings of the project instead of yours.
    #[arg(long)]
    pub(super) project: bool,
    #[command(flatten)]
    pub(super) how: ConfirmArgs,
    #[command(flatten)]
    pub(super) workspace: WorkspaceArgs,
}
