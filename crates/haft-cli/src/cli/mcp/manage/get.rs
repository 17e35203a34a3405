//! `haft mcp get`: one server, whole.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use haft_tool::{Value, clip_chars, json};

use super::super::super::Done;
use super::super::super::diff;
use super::super::super::exit::Exit;
use super::super::super::screen::{self, BOLD, FAINT, NAME, painted, visible};
use super::super::super::setup::Setup;
use super::super::args;
use super::list::{summary, tools};
use super::server::{COVERED, Server, State};

/// The most characters of a tool's description in a list.
const MOST_WORDS: usize = 80;

pub(in super::super) fn get(args: &args::Get) -> Done {
    let setup = Setup::load(&args.workspace)?;
    let server = Server::find(&setup, &args.servers, &args.name)?;
    if args.json {
        screen::result(&serde_json::to_string_pretty(&whole(&server))?);
        return Ok(Exit::Done);
    }
    let mut text = head(&server, Values::Covered);
    for (name, tool) in &server.known.tools {
        let words = tool["description"].as_str().unwrap_or_default().lines().next().unwrap_or_default();
        let words = visible(&clip_chars(words, MOST_WORDS, 0));
        let _ = writeln!(text, "  {}  {}", painted(NAME, &visible(name)), painted(FAINT, &words));
    }
    text.push_str(&changes(&server));
    screen::out(&text);
    match &server.state {
        State::Asks | State::Changed => {
            screen::note(&format!("to say yes: haft mcp trust {}", visible(&args.name)));
        }
        State::Broken(why) => screen::note(&visible(why)),
        State::Trusted | State::Off => {}
    }
    Ok(Exit::Done)
}

/// Whether the names of what a server is given stand alone.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Values {
    Covered,
    Named,
}

/// What a server is, row by row.
pub(super) fn head(server: &Server, values: Values) -> String {
    let written = server.written();
    let mut text = format!(
        "{}  {}\n",
        painted(BOLD, &visible(&server.configured.name)),
        painted(server.state.style(), server.state.word())
    );
    let mut row = |name: &str, value: &str| {
        let _ = writeln!(text, "{} {value}", painted(FAINT, &format!("{name:<10}")));
    };
    row("from", &visible(&server.configured.origin.to_string()));
    row(if server.transport() == "stdio" { "command" } else { "address" }, &server.line());
    if let Some(folder) = written["cwd"].as_str() {
        row("folder", &visible(folder));
    }
    for (what, label, sign) in [("env", "variables", "="), ("headers", "headers", ": ")] {
        let given = server.given(what);
        if !given.is_empty() {
            let one = |name: &&str| match values {
                Values::Covered => format!("{}{sign}{COVERED}", visible(name)),
                Values::Named => visible(name),
            };
            row(label, &given.iter().map(one).collect::<Vec<_>>().join(", "));
        }
    }
    if let Some(timeout) = written["timeout"].as_u64() {
        row("timeout", &format!("{timeout} ms"));
    }
    if let Some(entry) = &server.entry {
        if let Some(only) = &entry.only {
            row(
                "offers",
                &format!("only {}", only.iter().map(|name| visible(name)).collect::<Vec<_>>().join(", ")),
            );
        }
        row("may do", &server.may_do());
        if let Some(at) = server.known.consent {
            row("your yes", &screen::ago(at));
        }
        row("tools", &if server.known.seen { tools(server) } else { "not seen yet".to_owned() });
    }
    text
}

/// The names of the tools that are not as the user has seen them.
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

/// What differs from what was approved, tool by tool.
pub(super) fn changes(server: &Server) -> String {
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
        let _ = writeln!(text, "{word} {}", painted(NAME, &visible(name)));
        text.push_str(&diff::texts(&words_of(old), &words_of(new)));
    }
    text
}

/// A definition as text in which nothing hides.
fn words_of(tool: Option<&Value>) -> String {
    let pretty = tool.and_then(|tool| serde_json::to_string_pretty(tool).ok()).unwrap_or_default();
    pretty.lines().map(|line| visible(line) + "\n").collect()
}

fn whole(server: &Server) -> Value {
    let mut all = summary(server);
    let mut written = server.written().clone();
    for part in ["env", "headers", "http_headers"] {
        for (_, value) in written.get_mut(part).and_then(Value::as_object_mut).into_iter().flatten() {
            *value = json!(COVERED);
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
