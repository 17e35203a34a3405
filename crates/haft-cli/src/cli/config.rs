//! `haft config`: shows and changes settings.

use std::path::Path;

use haft_runtime::{CallOptions, CallResult, Runtime};
use haft_tool::{Call, ErrorKind, Setting, ToolError, Value, json};
use haft_tools::Settings;

use super::CommandResult;
use super::args::{self, ConfigCommand, WorkspaceArgs};
use super::exit::{CliExit, code};
use super::screen::{self, FAINT, NAME, styled};
use super::setup::Setup;
use crate::claude_settings::{ClaudeFiles, SettingsFlags, listing, variable};
use crate::config::{Config, project_key, quoted_key, required_user_file};
use haft::selection::ToolSelection;

/// Settings are changed through the tool, so that the change is recorded.
const TOOL: &str = "Config";

pub(super) fn run(args: &args::ConfigArgs) -> CommandResult {
    match &args.action {
        ConfigCommand::Path => {
            screen::result(&required_user_file()?.display().to_string());
        }
        ConfigCommand::Show { key, origin, json } => {
            let setup = Setup::load(&args.workspace)?;
            let mut all = match key {
                Some(key) if !origin => setup.config.matching(key)?,
                _ => setup.config.settings()?,
            };
            if *origin {
                let files = ClaudeFiles::read(setup.workspace(), &SettingsFlags::default(), &variable)?;
                screen::warnings(&files.warnings);
                all.extend(listing(&files));
                let is_below = |name: &str, key: &str| {
                    name.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
                };
                all.retain(|setting| key.as_ref().is_none_or(|key| is_below(&setting.name, key)));
            }
            if *json {
                screen::result(&serde_json::to_string_pretty(&all)?);
            } else {
                screen::out(&shown(&all));
            }
        }
        ConfigCommand::Get { key } => {
            let setting = Setup::load(&args.workspace)?.config.setting(key)?;
            match setting.value {
                Value::Null => {}
                Value::String(text) => screen::result(&text),
                value => screen::result(&value.to_string()),
            }
        }
        ConfigCommand::Set { key, value } => {
            return Ok(report(&change(&Setup::load(&args.workspace)?, key, value)?, Some(key)));
        }
        ConfigCommand::Add { key, values } => return add(&Setup::load(&args.workspace)?, key, values),
        ConfigCommand::Remove { key, values } => return remove(&Setup::load(&args.workspace)?, key, values),
    }
    Ok(CliExit::Done)
}

/// Adds elements to a list in the user's file.
pub(super) fn add(setup: &Setup, key: &str, values: &[String]) -> CommandResult {
    let mut list = setup.config.own_list(key)?;
    let new: Vec<&String> = values.iter().filter(|value| !list.contains(value)).collect();
    if new.is_empty() {
        screen::note(&format!("nothing was changed: {key} has it already"));
        return Ok(CliExit::Done);
    }
    list.extend(new.into_iter().cloned());
    Ok(report(&change(setup, key, &list_text(&list))?, None))
}

/// Removes elements from a list in the user's file.
pub(super) fn remove(setup: &Setup, key: &str, values: &[String]) -> CommandResult {
    let mut list = setup.config.own_list(key)?;
    if let Some(missing) = values.iter().find(|value| !list.contains(value)) {
        return Err(ToolError::new(
            ErrorKind::TargetNotFound,
            format!("{key} in your file does not have {missing:?}. It has: {}", json!(list)),
        ));
    }
    list.retain(|value| !values.contains(value));
    Ok(report(&change(setup, key, &list_text(&list))?, None))
}

/// Adds an element to a list in the user's file, for a person who is elsewhere.
pub(super) fn add_to_list(setup: &Setup, key: &str, value: &str) -> Result<(), ToolError> {
    let mut list = setup.config.own_list(key)?;
    if list.iter().any(|known| known == value) {
        return Ok(());
    }
    list.push(value.to_owned());
    stored(&change(setup, key, &list_text(&list))?, "").map(drop)
}

/// Removes an element from a list in the user's file, for a person who is elsewhere.
pub(super) fn remove_from_list(setup: &Setup, key: &str, value: &str) -> Result<(), ToolError> {
    let mut list = setup.config.own_list(key)?;
    if !list.iter().any(|known| known == value) {
        let why = format!("{key} in your file does not have {value:?}");
        return Err(ToolError::new(ErrorKind::TargetNotFound, why));
    }
    list.retain(|known| known != value);
    stored(&change(setup, key, &list_text(&list))?, "").map(drop)
}

fn shown(all: &[Setting]) -> String {
    let line = |setting: &Setting| {
        let value = if setting.value.is_null() { "-".to_owned() } else { setting.value.to_string() };
        let origin = styled(FAINT, &format!("# {}", screen::sanitize(&setting.origin)));
        format!("{} = {}  {origin}\n", styled(NAME, &setting.name), screen::sanitize(&value))
    };
    all.iter().map(line).collect()
}

/// Adds a host to the network of a project in the user's file, as an answer to a question; returns what was done.
pub(crate) fn add_to_project_network(workspace: &Path, host: &str) -> Result<String, ToolError> {
    let at = WorkspaceArgs { workspace: Some(workspace.to_owned()) };
    let key = format!("projects.{}.network", quoted_key(&project_key(workspace)));
    let mut list = Config::load(workspace)?.own_list(&key)?;
    if !list.iter().any(|known| known == host) {
        list.push(host.to_owned());
    }
    let choice = ToolSelection::new("claude", Some(&[TOOL.to_owned()]), &Settings::default())?;
    let builder =
        choice.into_builder(at.builder()?).allow(format!("{TOOL}(projects.*)"), "the user's answer");
    let result = configure(&builder.build()?, &key, &list_text(&list));
    stored(&result, &format!("Added {host} to {key}"))
}

/// Adds a rule to `permissions.allow` in the user's file; returns what was done.
pub(super) fn add_allow_rule(workspace: &Path, rule: &str) -> Result<String, ToolError> {
    let setup = Setup::load(&WorkspaceArgs { workspace: Some(workspace.to_owned()) })?;
    let mut rules = setup.config.own_list("permissions.allow")?;
    rules.push(rule.to_owned());
    let result = change(&setup, "permissions.allow", &list_text(&rules))?;
    stored(&result, &format!("Added {rule} to permissions.allow"))
}

/// What was stored by an answer, which already holds for the call that asked.
fn stored(result: &CallResult, what: &str) -> Result<String, ToolError> {
    let id = result.receipt.id;
    match result.output.error_kind {
        None => Ok(format!("{} (call {id}; to undo it: haft undo {id})", screen::escape(what))),
        Some(kind) => Err(ToolError::new(kind, result.output.as_text())),
    }
}

/// Prints what a change did; `set` is the key of a value that was replaced as a whole.
fn report(result: &CallResult, set: Option<&str>) -> CliExit {
    let text = result.output.as_text();
    if let Some(kind) = result.output.error_kind {
        screen::error(&text);
        return code(kind);
    }
    screen::note(&screen::sanitize(&text));
    let facts = result.output.structured.clone().unwrap_or_default();
    let (before, after) = (&facts["previousValue"], &facts["newValue"]);
    let is_lost = |value: &Value| !after.as_array().is_some_and(|after| after.contains(value));
    if let Some(key) = set.filter(|_| before.as_array().into_iter().flatten().any(is_lost)) {
        screen::note(&format!(
            "The old list was replaced. To add to a list instead: haft config add {key} VALUE. To get it back: haft undo {}",
            result.receipt.id
        ));
    }
    CliExit::Done
}

/// The list as the value of a setting.
fn list_text(list: &[String]) -> String {
    list.iter().collect::<toml_edit::Array>().to_string()
}

/// Changes a setting with a recorded call.
fn change(setup: &Setup, key: &str, value: &str) -> Result<CallResult, ToolError> {
    let choice = ToolSelection::new("claude", Some(&[TOOL.to_owned()]), &setup.config.values.tools)?;
    let builder = choice.into_builder(setup.builder_without_rules());
    let builder = builder.allow(format!("{TOOL}({key})"), "the command line");
    Ok(configure(&builder.build()?, key, value))
}

fn configure(runtime: &Runtime, key: &str, value: &str) -> CallResult {
    let call = Call::new("call_1", TOOL, json!({"setting": key, "value": value}));
    runtime.run_blocking(call, CallOptions::default())
}
