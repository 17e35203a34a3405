//! `haft mcp`: Haft's tools for any client, and any server's tools for Haft.

mod args;
mod http;
mod serve;

use super::Done;
pub(super) use args::Mcp;

pub(super) fn run(args: Mcp) -> Done {
    serve::run(args.serve)
}
