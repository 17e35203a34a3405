//! The shape of `haft mcp`.

use clap::Args;

use super::super::args::{At, Rules};
use super::http::Http;

/// Serve Haft's tools over MCP: on standard input and output, or over HTTP.
///
/// Every call is scoped, recorded and reversible, whoever makes it. Where a call needs a yes, the client's user is asked if
/// the client can ask; if it cannot, the answer is no, with how to allow it beforehand.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
claude mcp add haft -- haft mcp\n  \
haft mcp --workspace ~/project --permission-mode plan")]
pub(in super::super) struct Mcp {
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
    /// Offer `haft_log` and `haft_undo` too, so that the client's model can see and take back what was done.
    #[arg(long)]
    pub(super) ledger_tools: bool,
}
