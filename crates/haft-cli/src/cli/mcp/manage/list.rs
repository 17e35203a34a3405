//! `haft mcp list`: the configured servers and their state.

use std::fmt::Write;

use haft_tool::{ToolError, Value, json};

use super::super::super::CommandResult;
use super::super::super::exit::CliExit;
use super::super::super::screen::{self, FAINT, NAME, escape, styled};
use super::super::super::setup::Setup;
use super::super::args;
use super::server::{ServerState, ServerStatus, trust_store};

pub(in super::super) fn list(args: &args::ListArgs) -> CommandResult {
    let setup = Setup::load(&args.workspace)?;
    let found = setup.configured(&args.servers)?;
    let trust = trust_store()?;
    let servers: Vec<ServerStatus> =
        found.all.into_iter().map(|one| ServerStatus::of(one, &trust)).collect::<Result<_, ToolError>>()?;
    if args.json {
        let all: Vec<Value> = servers.iter().map(summary).collect();
        screen::result(&serde_json::to_string_pretty(&all)?);
    } else {
        screen::out(&shown(&servers));
        if servers.is_empty() {
            screen::note("no MCP servers are configured. To add one: haft mcp add NAME -- CMD");
        }
    }
    screen::warnings(&found.warnings);
    Ok(CliExit::Done)
}

fn shown(servers: &[ServerStatus]) -> String {
    let width =
        servers.iter().map(|one| escape(&one.configured.name).chars().count()).max().unwrap_or_default();
    let mut text = String::new();
    for server in servers {
        let name = escape(&server.configured.name);
        let pad = " ".repeat(width - name.chars().count());
        let state = styled(server.state.style(), &format!("{:<14}", server.state.word()));
        let _ = writeln!(text, "{}{pad}  {state}  {}", styled(NAME, &name), server.line());
        let more = format!("{:width$}  {:<14}  {}", "", "", about(server));
        let _ = writeln!(text, "{}", styled(FAINT, &more));
    }
    text
}

/// Permissions, tools and origin of a server.
fn about(server: &ServerStatus) -> String {
    let origin = escape(&server.configured.origin.to_string());
    if let ServerState::Broken(why) = &server.state {
        return escape(why);
    }
    if server.state == ServerState::Off {
        return origin;
    }
    format!("{}; {}; {origin}", server.permissions(), tools(server))
}

pub(super) fn tools(server: &ServerStatus) -> String {
    if server.known.seen {
        screen::count(server.known.tools.len() as u64, "tool")
    } else {
        "tools not listed yet".to_owned()
    }
}

/// A server as JSON.
pub(super) fn summary(server: &ServerStatus) -> Value {
    let mut all = json!({
        "name": server.configured.name,
        "transport": server.transport(),
        "line": server.line(),
        "origin": server.configured.origin.to_string(),
        "state": server.state.word(),
        "grants": server.grants(),
        "tools": server.known.seen.then_some(server.known.tools.len()),
    });
    if let ServerState::Broken(why) = &server.state {
        all["why"] = json!(why);
    }
    all
}
