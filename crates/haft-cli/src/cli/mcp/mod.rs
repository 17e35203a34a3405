//! `haft mcp`: serves Haft's tools, and manages the servers that Haft uses.

mod args;
mod http;
mod manage;
mod serve;
mod single_server;

use super::CommandResult;
use args::McpCommand;
pub(super) use args::{McpArgs, ServeArgs};
pub(super) use http::address;

pub(super) fn run(args: McpArgs) -> CommandResult {
    match args.action {
        None => serve::run(args.serve),
        Some(McpCommand::List(args)) => manage::list(&args),
        Some(McpCommand::Get(args)) => manage::get(&args),
        Some(McpCommand::Add(args)) => manage::add(*args),
        Some(McpCommand::AddJson(args)) => manage::add_json(&args),
        Some(McpCommand::Remove(args)) => manage::remove(&args),
        Some(McpCommand::Trust(args)) => manage::trust(&args),
        Some(McpCommand::Untrust(args)) => manage::untrust(&args),
        Some(McpCommand::Test(args)) => single_server::test(&args),
        Some(McpCommand::Call(args)) => single_server::call(*args),
        Some(McpCommand::Login(args)) => single_server::login(&args),
        Some(McpCommand::Logout(args)) => single_server::logout(&args),
        Some(McpCommand::Install(args)) => manage::install(&args),
        Some(McpCommand::Uninstall(args)) => manage::uninstall(&args),
    }
}
