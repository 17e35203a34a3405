//! `haft mcp list`: the servers, and how they stand.

use std::fmt::Write;

use haft_tool::{ToolError, Value, json};

use super::super::super::Done;
use super::super::super::exit::Exit;
use super::super::super::screen::{self, FAINT, NAME, NOTE, painted, visible};
use super::super::super::setup::Setup;
use super::super::args;
use super::server::{Server, State, consents};

pub(in super::super) fn list(args: &args::List) -> Done {
    let setup = Setup::load(&args.workspace)?;
    let found = setup.configured(&args.servers)?;
    let trust = consents()?;
    let servers: Vec<Server> =
        found.all.into_iter().map(|one| Server::of(one, &trust)).collect::<Result<_, ToolError>>()?;
    if args.json {
        let all: Vec<Value> = servers.iter().map(summary).collect();
        screen::result(&serde_json::to_string_pretty(&all)?);
    } else {
        screen::out(&shown(&servers));
        if servers.is_empty() {
            screen::note("no MCP server is configured here; `haft mcp add NAME -- CMD` adds one");
        }
    }
    for warning in &found.warnings {
        screen::note(&format!("{}: {}", painted(NOTE, "note"), visible(warning)));
    }
    Ok(Exit::Done)
}

fn shown(servers: &[Server]) -> String {
    let width =
        servers.iter().map(|one| visible(&one.configured.name).chars().count()).max().unwrap_or_default();
    let mut text = String::new();
    for server in servers {
        let name = visible(&server.configured.name);
        let pad = " ".repeat(width - name.chars().count());
        let state = painted(server.state.style(), &format!("{:<14}", server.state.word()));
        let _ = writeln!(text, "{}{pad}  {state}  {}", painted(NAME, &name), server.line());
        let more = format!("{:width$}  {:<14}  {}", "", "", about(server));
        let _ = writeln!(text, "{}", painted(FAINT, &more));
    }
    text
}

/// The second line of a server.
fn about(server: &Server) -> String {
    let origin = visible(&server.configured.origin.to_string());
    if let State::Broken(why) = &server.state {
        return visible(why);
    }
    if server.state == State::Off {
        return origin;
    }
    format!("{}; {}; {origin}", server.may_do(), tools(server))
}

pub(super) fn tools(server: &Server) -> String {
    match (server.known.seen, server.known.tools.len()) {
        (false, _) => "tools not seen yet".to_owned(),
        (true, 1) => "1 tool".to_owned(),
        (true, count) => format!("{count} tools"),
    }
}

/// A server for programs.
pub(super) fn summary(server: &Server) -> Value {
    let mut all = json!({
        "name": server.configured.name,
        "transport": server.transport(),
        "line": server.line(),
        "origin": server.configured.origin.to_string(),
        "state": server.state.word(),
        "grants": server.grants(),
        "tools": server.known.seen.then_some(server.known.tools.len()),
    });
    if let State::Broken(why) = &server.state {
        all["why"] = json!(why);
    }
    all
}
