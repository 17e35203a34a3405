//! `haft mcp add`, `add-json` and `remove`: edit the servers in the user's haft.toml or the project's `.mcp.json`.

use crate::servers::{PackageRunner, ServerEntry, ServerOrigin};
use clap::Parser;
use haft_files::real_named;
use haft_tool::{ErrorKind, Network, ToolError, Value};
use serde_json::Map;

use super::super::super::args::ServerArgs;
use super::super::super::exit::CliExit;
use super::super::super::screen::{self, escape};
use super::super::super::setup::Setup;
use super::super::super::{CommandResult, terminal};
use super::super::args::{self, ConfirmArgs, TargetFileArgs, TransportName};
use super::super::single_server;
use super::file_edit::{FileEdit, in_project};
use super::server::ServerStatus;
use super::trust::grants;
use crate::config::{PROJECT_SERVERS, required_user_file};
use crate::settings_edit::{json, toml};

/// The table in a `.mcp.json`.
const PROJECT_TABLE: &str = "mcpServers";
/// The table in a haft.toml.
const USER_TABLE: [&str; 2] = ["tools", "mcp_servers"];

pub(in super::super) fn add(args: args::AddArgs) -> CommandResult {
    let args = args.with_flags_after_url()?;
    let mut entry = Map::new();
    let url = args.target.first().filter(|first| is_address(first));
    let over_http = match (args.transport, url) {
        (Some(TransportName::Stdio), _) | (None, None) => false,
        (_, Some(_)) => true,
        (Some(_), None) => return Err(ToolError::invalid_arguments("this transport needs a URL")),
    };
    if over_http {
        let kind = if args.transport == Some(TransportName::Sse) { "sse" } else { "http" };
        entry.insert("type".to_owned(), kind.into());
        entry.insert("url".to_owned(), args.target[0].clone().into());
    } else {
        entry.insert("command".to_owned(), args.target[0].clone().into());
        entry.insert("args".to_owned(), args.target[1..].to_vec().into());
    }
    let needless = if over_http { ("--env", &args.env) } else { ("--header", &args.header) };
    if !needless.1.is_empty() {
        return Err(ToolError::invalid_arguments(format!(
            "{} does not apply to this kind of server",
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
                "a project cannot grant permissions. Each user does: `haft mcp trust {} …`",
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
    let runner = PackageRunner::of(&args.target).filter(|_| !over_http && !entry.contains_key("network"));
    let done = put("mcp/add", &args.name, entry, &args.place)?;
    if let Some(runner) =
        runner.filter(|_| done == CliExit::Done && !args.place.how.dry_run && !args.place.project)
    {
        download(&args, runner);
    }
    Ok(done)
}

/// Downloads a server that npx or uvx runs, if the user agrees: without network it could not start later.
fn download(args: &args::AddArgs, runner: &PackageRunner) {
    let (name, preset) = (escape(&args.name), runner.preset);
    let later = format!("{name} has no network; to download it: haft mcp test {name} --download");
    let question = format!("Download {name} now (network: {preset})? It then runs without network.");
    let is_wanted = args.place.how.yes || (terminal::is_interactive() && terminal::confirm(&question));
    if !is_wanted {
        screen::note(&later);
        return;
    }
    let tested = single_server::test(&args::TestArgs {
        name: args.name.clone(),
        download: true,
        json: false,
        workspace: args.place.workspace.clone(),
        servers: ServerArgs::default(),
    });
    if let Err(error) = tested {
        screen::error(&error.message);
        screen::note(&format!(
            "{name} was added, but it did not start; to try again: haft mcp test {name} --download"
        ));
    }
}

fn is_address(text: &str) -> bool {
    text.starts_with("http://") || text.starts_with("https://")
}

impl args::AddArgs {
    /// After a command all words belong to it; after a URL they are flags of `haft mcp add`.
    fn with_flags_after_url(mut self) -> Result<Self, ToolError> {
        let stdio = self.transport == Some(TransportName::Stdio);
        if stdio || self.target.len() < 2 || !is_address(&self.target[0]) {
            return Ok(self);
        }
        let after = self.target.split_off(1);
        let words = ["haft mcp add"].into_iter().chain(after.iter().map(String::as_str));
        let words = words.chain(["--", &self.name, &self.target[0]]);
        let more =
            args::AddFlagsParser::try_parse_from(words).map_err(|error| usage("after the URL", &error))?.add;
        if more.target.len() > 1 {
            return Err(ToolError::invalid_arguments(format!(
                "only flags may follow the URL, not {:?}",
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
        self.place.how =
            ConfirmArgs { yes: how.yes || place.how.yes, dry_run: how.dry_run || place.how.dry_run };
        self.place.workspace.workspace = place.workspace.workspace.or(self.place.workspace.workspace);
        Ok(self)
    }
}

/// An error for flags that were parsed separately.
pub(super) fn usage(place: &str, error: &clap::Error) -> ToolError {
    let why = error.to_string();
    let first = why.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
    ToolError::invalid_arguments(format!("{place}: {first}"))
}

pub(in super::super) fn add_json(args: &args::AddJsonArgs) -> CommandResult {
    let entry: Value = serde_json::from_str(&args.json)
        .map_err(|error| ToolError::invalid_arguments(format!("the entry is not JSON: {error}")))?;
    let Value::Object(entry) = entry else {
        return Err(ToolError::invalid_arguments("the entry must be a JSON object, as in .mcp.json"));
    };
    put("mcp/add", &args.name, entry, &args.place)
}

/// Adds a server to a file that has none of that name.
fn put(tool: &'static str, name: &str, entry: Map<String, Value>, place: &TargetFileArgs) -> CommandResult {
    check_name(name)?;
    // Validates the entry now. Variables may be set later.
    let known =
        ServerEntry::read(name, &Value::Object(entry.clone()), ServerOrigin::Flag, &|_| Some("x".to_owned()));
    known.map_err(ToolError::invalid_arguments)?;
    let file = file(place)?;
    let done = format!("Added the server {name} to {}", file.display());
    let (project, entry_name) = (place.project, name.to_owned());
    let edit_text = Box::new(move |old: Option<&str>| {
        let old = old.unwrap_or_default();
        let there = ToolError::new(
            ErrorKind::Conflict,
            format!("the server {entry_name} already exists. To remove it: haft mcp remove {entry_name}"),
        );
        let new = if project {
            let path = [PROJECT_TABLE, entry_name.as_str()];
            if json::read(old)
                .map_err(ToolError::failed)?
                .is_some_and(|all| all[path[0]].get(path[1]).is_some())
            {
                return Err(there);
            }
            json::put(old, &path, &Value::Object(entry.clone()))
        } else {
            let path = [USER_TABLE[0], USER_TABLE[1], entry_name.as_str()];
            if toml::remove(old, &path).map_err(ToolError::failed)?.is_some() {
                return Err(there);
            }
            toml::put(old, &path, &Value::Object(entry.clone()))
        };
        new.map(Some).map_err(ToolError::failed)
    });
    let setting = (!project).then(|| format!("{}.{}.{name}", USER_TABLE[0], USER_TABLE[1]));
    let edit =
        FileEdit { tool, file, setting, entry: name.to_owned(), done, directories: Vec::new(), edit_text };
    edit.run(&place.workspace, place.how)
}

pub(in super::super) fn remove(args: &args::RemoveArgs) -> CommandResult {
    let mut place = TargetFileArgs { workspace: args.place.workspace.clone(), ..args.place };
    if !place.project {
        // Removes it from the file that configures it.
        let setup = Setup::load(&place.workspace)?;
        let server = ServerStatus::find(&setup, &ServerArgs::default(), &args.name)?;
        place.project = match &server.configured.origin {
            ServerOrigin::Project(path) if path.ends_with(PROJECT_SERVERS) => true,
            ServerOrigin::Project(skill) => {
                return Err(ToolError::invalid_arguments(format!(
                    "the server {} belongs to the skill {}. It is not used until you trust it",
                    escape(&args.name),
                    skill.display()
                )));
            }
            ServerOrigin::User(_) | ServerOrigin::Flag => false,
        };
    }
    let file = file(&place)?;
    let name = args.name.clone();
    let done = format!("Removed the server {name} from {}", file.display());
    let project = place.project;
    let edit_text = Box::new(move |old: Option<&str>| {
        let old = old.unwrap_or_default();
        let new = if project {
            json::remove(old, &[PROJECT_TABLE, &name])
        } else {
            toml::remove(old, &[USER_TABLE[0], USER_TABLE[1], &name])
        };
        let missing = || ToolError::new(ErrorKind::NotFound, format!("there is no server {}", escape(&name)));
        new.map_err(ToolError::failed)?.map(Some).ok_or_else(missing)
    });
    let setting = (!project).then(|| format!("{}.{}.{}", USER_TABLE[0], USER_TABLE[1], args.name));
    let edit = FileEdit {
        tool: "mcp/remove",
        file,
        setting,
        entry: args.name.clone(),
        done,
        directories: Vec::new(),
        edit_text,
    };
    edit.run(&place.workspace, place.how)
}

/// The file that is changed.
fn file(place: &TargetFileArgs) -> Result<std::path::PathBuf, ToolError> {
    if place.project {
        return in_project(&place.workspace, PROJECT_SERVERS);
    }
    real_named(&required_user_file()?)
}

/// Accepts a name that every settings file and every client accepts.
pub(super) fn check_name(name: &str) -> Result<(), ToolError> {
    let good = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    if !name.is_empty() && name.len() <= 64 && !name.starts_with('-') && name.chars().all(good) {
        return Ok(());
    }
    Err(ToolError::invalid_arguments(format!(
        "{name:?} is not a valid server name. Use 1 to 64 letters, digits, dots, dashes and underscores"
    )))
}

/// Parses `NAME=VALUE`.
pub(in super::super) fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !name.contains(char::is_whitespace) => {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

/// Parses `NAME: VALUE`.
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
