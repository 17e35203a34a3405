//! `haft mcp get`: one server in full.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use haft_tool::{Value, clip_chars, json};

use super::super::super::CommandResult;
use super::super::super::diff;
use super::super::super::exit::CliExit;
use super::super::super::screen::{self, BOLD, FAINT, NAME, escape, styled};
use super::super::super::setup::Setup;
use super::super::args;
use super::list::{summary, tools};
use super::server::{MASK, ServerState, ServerStatus};

/// How much of a tool's description is shown.
const MAX_DESCRIPTION_CHARS: usize = 80;

pub(in super::super) fn get(args: &args::GetArgs) -> CommandResult {
    let setup = Setup::load(&args.workspace)?;
    let server = ServerStatus::find(&setup, &args.servers, &args.name)?;
    if args.json {
        screen::result(&serde_json::to_string_pretty(&whole(&server))?);
        return Ok(CliExit::Done);
    }
    let mut text = head(&server);
    for (name, tool) in &server.known.tools {
        let words = tool["description"].as_str().unwrap_or_default().lines().next().unwrap_or_default();
        let words = escape(&clip_chars(words, MAX_DESCRIPTION_CHARS, 0));
        let _ = writeln!(text, "  {}  {}", styled(NAME, &escape(name)), styled(FAINT, &words));
    }
    text.push_str(&changes(&server));
    screen::out(&text);
    match &server.state {
        ServerState::Untrusted | ServerState::Changed => {
            screen::note(&format!("to trust it: haft mcp trust {}", escape(&args.name)));
        }
        ServerState::Broken(why) => screen::note(&escape(why)),
        ServerState::Trusted | ServerState::Off => {}
    }
    Ok(CliExit::Done)
}

/// The facts about a server, one row each.
pub(super) fn head(server: &ServerStatus) -> String {
    let written = server.written();
    let mut text = format!(
        "{}  {}\n",
        styled(BOLD, &escape(&server.configured.name)),
        styled(server.state.style(), server.state.word())
    );
    let mut row = |name: &str, value: &str| {
        let _ = writeln!(text, "{} {value}", styled(FAINT, &format!("{name:<10}")));
    };
    row("from", &escape(&server.configured.origin.to_string()));
    row(if server.transport() == "stdio" { "command" } else { "address" }, &server.line());
    if let Some(folder) = written["cwd"].as_str() {
        row("directory", &escape(folder));
    }
    for (what, label, sign) in [("env", "variables", "="), ("headers", "headers", ": ")] {
        let given = server.given(what);
        if !given.is_empty() {
            let masked = |name: &&str| format!("{}{sign}{MASK}", escape(name));
            row(label, &given.iter().map(masked).collect::<Vec<_>>().join(", "));
        }
    }
    if let Some(timeout) = written["timeout"].as_u64() {
        row("timeout", &format!("{timeout} ms"));
    }
    if let Some(entry) = &server.entry {
        if let Some(only) = &entry.only {
            row(
                "offers",
                &format!("only {}", only.iter().map(|name| escape(name)).collect::<Vec<_>>().join(", ")),
            );
        }
        row("access", &server.permissions());
        if let Some(at) = server.known.consent {
            row("trusted", &screen::ago(at));
        }
        row("tools", &if server.known.seen { tools(server) } else { "not listed yet".to_owned() });
    }
    text
}

/// The tools that differ from the trusted ones.
struct Differences<'a> {
    added: Vec<&'a str>,
    changed: Vec<&'a str>,
    gone: Vec<&'a str>,
}

fn differences<'a>(seen: &'a BTreeMap<String, Value>, now: &'a BTreeMap<String, Value>) -> Differences<'a> {
    let names = |of: &'a BTreeMap<String, Value>, keep: &dyn Fn(&str) -> bool| -> Vec<&'a str> {
        of.keys().map(String::as_str).filter(|name| keep(name)).collect()
    };
    Differences {
        added: names(now, &|name| !seen.contains_key(name)),
        changed: names(now, &|name| seen.get(name).is_some_and(|old| now.get(name) != Some(old))),
        gone: names(seen, &|name| !now.contains_key(name)),
    }
}

/// A diff of the tools against the trusted ones.
pub(super) fn changes(server: &ServerStatus) -> String {
    let (seen, Some(now)) = (&server.known.tools, &server.known.pending) else { return String::new() };
    let all: BTreeSet<&String> = seen.keys().chain(now.keys()).collect();
    let mut text = String::new();
    for name in all {
        let (old, new) = (seen.get(name), now.get(name));
        if old == new {
            continue;
        }
        let word = match (old, new) {
            (None, _) => "new",
            (_, None) => "gone",
            _ => "changed",
        };
        let _ = writeln!(text, "{word} {}", styled(NAME, &escape(name)));
        text.push_str(&diff::texts(&definition_text(old), &definition_text(new)));
    }
    text
}

/// A definition as escaped text.
fn definition_text(tool: Option<&Value>) -> String {
    let pretty = tool.and_then(|tool| serde_json::to_string_pretty(tool).ok()).unwrap_or_default();
    pretty.lines().map(|line| escape(line) + "\n").collect()
}

fn whole(server: &ServerStatus) -> Value {
    let mut all = summary(server);
    let mut written = server.written().clone();
    for part in ["env", "headers", "http_headers"] {
        for (_, value) in written.get_mut(part).and_then(Value::as_object_mut).into_iter().flatten() {
            *value = json!(MASK);
        }
    }
    all["written"] = written;
    all["consented_at"] = json!(server.known.consent);
    all["tools"] = json!(server.known.tools.values().collect::<Vec<_>>());
    if let Some(now) = &server.known.pending {
        let Differences { added, changed, gone } = differences(&server.known.tools, now);
        all["pending"] = json!({"new": added, "changed": changed, "gone": gone, "tools": now.values().collect::<Vec<_>>()});
    }
    all
}
