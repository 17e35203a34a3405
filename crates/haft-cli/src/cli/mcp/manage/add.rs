//! `haft mcp add`, `add-json` and `remove`: servers in the user's haft.toml, or in the project's `.mcp.json`.

use crate::servers::{ServerEntry, ServerOrigin};
use clap::Parser;
use haft_files::real_named;
use haft_tool::{ErrorKind, Network, ToolError, Value};
use serde_json::Map;

use super::super::super::Done;
use super::super::super::args::Servers;
use super::super::super::screen::visible;
use super::super::super::setup::Setup;
use super::super::args::{self, Change, Place, Transport};
use super::rewrite::{Rewrite, in_project};
use super::server::Server;
use super::trust::grants;
use crate::config::{PROJECT_SERVERS, user_file};
use crate::settings_edit::{json, toml};

/// The table of a `.mcp.json` and of many others.
const SERVERS: &str = "mcpServers";
/// The table of a haft.toml.
const OWN: [&str; 2] = ["tools", "mcp_servers"];

pub(in super::super) fn add(args: args::Add) -> Done {
    let args = args.with_flags_behind_the_address()?;
    let mut entry = Map::new();
    let url = args.target.first().filter(|first| is_address(first));
    let over_http = match (args.transport, url) {
        (Some(Transport::Stdio), _) | (None, None) => false,
        (_, Some(_)) => true,
        (Some(_), None) => return Err(ToolError::invalid_arguments("an address is needed: https://…")),
    };
    if over_http {
        let kind = if args.transport == Some(Transport::Sse) { "sse" } else { "http" };
        entry.insert("type".to_owned(), kind.into());
        entry.insert("url".to_owned(), args.target[0].clone().into());
    } else {
        entry.insert("command".to_owned(), args.target[0].clone().into());
        entry.insert("args".to_owned(), args.target[1..].to_vec().into());
    }
    let needless = if over_http { ("--env", &args.env) } else { ("--header", &args.header) };
    if !needless.1.is_empty() {
        return Err(ToolError::invalid_arguments(format!(
            "{} means nothing for this kind of server",
            needless.0
        )));
    }
    for (name, pairs) in [("env", &args.env), ("headers", &args.header)] {
        let pairs: Map<_, _> =
            pairs.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect();
        if !pairs.is_empty() {
            entry.insert(name.to_owned(), Value::Object(pairs));
        }
    }
    if let Some(timeout) = args.timeout {
        entry.insert("timeout".to_owned(), timeout.into());
    }
    if !args.tool.is_empty() {
        entry.insert("tools".to_owned(), args.tool.clone().into());
    }
    if let Some(grants) = grants(&args.grants)? {
        if args.place.project {
            return Err(ToolError::invalid_arguments(format!(
                "a project grants nothing; say it with `haft mcp trust {} …`, each for themselves",
                args.name
            )));
        }
        if grants.writes {
            entry.insert("writes".to_owned(), true.into());
        }
        match grants.network {
            Network::None => {}
            Network::All => drop(entry.insert("network".to_owned(), "all".into())),
            Network::Domains(list) => drop(entry.insert("network".to_owned(), list.into())),
        }
    }
    put("mcp/add", &args.name, entry, &args.place)
}

fn is_address(text: &str) -> bool {
    text.starts_with("http://") || text.starts_with("https://")
}

impl args::Add {
    /// Behind a program all words are its own; behind an address they can only be flags of ours.
    fn with_flags_behind_the_address(mut self) -> Result<Self, ToolError> {
        let stdio = self.transport == Some(Transport::Stdio);
        if stdio || self.target.len() < 2 || !is_address(&self.target[0]) {
            return Ok(self);
        }
        let behind = self.target.split_off(1);
        let words = ["haft mcp add"].into_iter().chain(behind.iter().map(String::as_str));
        let words = words.chain(["--", &self.name, &self.target[0]]);
        let more =
            args::AddAgain::try_parse_from(words).map_err(|error| usage("behind the address", &error))?.add;
        if more.target.len() > 1 {
            return Err(ToolError::invalid_arguments(format!(
                "nothing but flags is expected behind the address, not {:?}",
                more.name
            )));
        }
        let (place, how) = (more.place, self.place.how);
        self.env.extend(more.env);
        self.header.extend(more.header);
        self.tool.extend(more.tool);
        self.transport = more.transport.or(self.transport);
        self.timeout = more.timeout.or(self.timeout);
        self.grants.writes |= more.grants.writes;
        self.grants.network.extend(more.grants.network);
        self.place.project |= place.project;
        self.place.how = Change { yes: how.yes || place.how.yes, dry_run: how.dry_run || place.how.dry_run };
        self.place.workspace.workspace = place.workspace.workspace.or(self.place.workspace.workspace);
        Ok(self)
    }
}

/// What is wrong with flags that were read apart from the others.
pub(super) fn usage(place: &str, error: &clap::Error) -> ToolError {
    let why = error.to_string();
    let first = why.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
    ToolError::invalid_arguments(format!("{place}: {first}"))
}

pub(in super::super) fn add_json(args: &args::AddJson) -> Done {
    let entry: Value = serde_json::from_str(&args.json)
        .map_err(|error| ToolError::invalid_arguments(format!("the entry is no JSON: {error}")))?;
    let Value::Object(entry) = entry else {
        return Err(ToolError::invalid_arguments("the entry must be an object, as .mcp.json has it"));
    };
    put("mcp/add", &args.name, entry, &args.place)
}

/// Puts a server into a file that has none of that name.
fn put(tool: &'static str, name: &str, entry: Map<String, Value>, place: &Place) -> Done {
    named(name)?;
    // Whether it could be used is found out now and not when it is; variables may be set later.
    let known =
        ServerEntry::read(name, &Value::Object(entry.clone()), ServerOrigin::Flag, &|_| Some("x".to_owned()));
    known.map_err(ToolError::invalid_arguments)?;
    let file = file(place)?;
    let done = format!("Added the server {name} to {}", file.display());
    let (project, entry_name) = (place.project, name.to_owned());
    let splice = Box::new(move |old: Option<&str>| {
        let old = old.unwrap_or_default();
        let there = ToolError::new(
            ErrorKind::Conflict,
            format!("there is a server {entry_name} already; `haft mcp remove {entry_name}` takes it out"),
        );
        let new = if project {
            let path = [SERVERS, entry_name.as_str()];
            if json::read(old)
                .map_err(ToolError::failed)?
                .is_some_and(|all| all[path[0]].get(path[1]).is_some())
            {
                return Err(there);
            }
            json::put(old, &path, &Value::Object(entry.clone()))
        } else {
            let path = [OWN[0], OWN[1], entry_name.as_str()];
            if toml::remove(old, &path).map_err(ToolError::failed)?.is_some() {
                return Err(there);
            }
            toml::put(old, &path, &entry)
        };
        new.map(Some).map_err(ToolError::failed)
    });
    let setting = (!project).then(|| format!("{}.{}.{name}", OWN[0], OWN[1]));
    Rewrite { tool, file, setting, entry: name.to_owned(), done, splice }.run(&place.workspace, place.how)
}

pub(in super::super) fn remove(args: &args::Remove) -> Done {
    let mut place = Place { workspace: args.place.workspace.clone(), ..args.place };
    if !place.project {
        // It is taken out where it stands.
        let setup = Setup::load(&place.workspace)?;
        let server = Server::find(&setup, &Servers::default(), &args.name)?;
        place.project = match &server.configured.origin {
            ServerOrigin::Project(path) if path.ends_with(PROJECT_SERVERS) => true,
            ServerOrigin::Project(skill) => {
                return Err(ToolError::invalid_arguments(format!(
                    "the server {} comes with the skill {}, and goes with it; it is not used before you trust it",
                    visible(&args.name),
                    skill.display()
                )));
            }
            ServerOrigin::User(_) | ServerOrigin::Flag => false,
        };
    }
    let file = file(&place)?;
    let name = args.name.clone();
    let done = format!("Took the server {name} out of {}", file.display());
    let project = place.project;
    let splice = Box::new(move |old: Option<&str>| {
        let old = old.unwrap_or_default();
        let new = if project {
            json::remove(old, &[SERVERS, &name])
        } else {
            toml::remove(old, &[OWN[0], OWN[1], &name])
        };
        let missing =
            || ToolError::new(ErrorKind::NotFound, format!("there is no server {}", visible(&name)));
        new.map_err(ToolError::failed)?.map(Some).ok_or_else(missing)
    });
    let setting = (!project).then(|| format!("{}.{}.{}", OWN[0], OWN[1], args.name));
    let rewrite = Rewrite { tool: "mcp/remove", file, setting, entry: args.name.clone(), done, splice };
    rewrite.run(&place.workspace, place.how)
}

/// The file that is changed.
fn file(place: &Place) -> Result<std::path::PathBuf, ToolError> {
    if place.project {
        return in_project(&place.workspace, PROJECT_SERVERS);
    }
    let path = user_file()?.ok_or_else(|| {
        ToolError::failed("there is no place for a haft.toml: neither HOME nor HAFT_CONFIG is set")
    })?;
    real_named(&path)
}

/// A name that every file and every client takes.
pub(super) fn named(name: &str) -> Result<(), ToolError> {
    let good = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    if !name.is_empty() && name.len() <= 64 && !name.starts_with('-') && name.chars().all(good) {
        return Ok(());
    }
    Err(ToolError::invalid_arguments(format!(
        "{name:?} is no name for a server; it has 1 to 64 letters, digits, dots, dashes and underscores"
    )))
}

/// `K=V`.
pub(in super::super) fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !name.contains(char::is_whitespace) => {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

/// `K: V`.
pub(in super::super) fn header(text: &str) -> Result<(String, String), String> {
    let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    match text.split_once(':') {
        Some((name, value))
            if !name.is_empty() && name.chars().all(token) && !value.contains(['\r', '\n']) =>
        {
            Ok((name.to_owned(), value.trim().to_owned()))
        }
        _ => Err("expected 'NAME: VALUE'".to_owned()),
    }
}
