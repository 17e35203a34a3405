//! `haft config`: shows and changes settings.

use std::mem::ManuallyDrop;
use std::path::Path;

use haft_runtime::{CallOptions, CallResult};
use haft_tool::{Call, Setting, ToolError, Value, json};
use haft_tools::Settings;

use super::CommandResult;
use super::args::{self, ConfigCommand, WorkspaceArgs};
use super::exit::{CliExit, code};
use super::screen::{self, FAINT, NAME, styled};
use super::setup::Setup;
use crate::config::required_user_file;
use haft::selection::ToolSelection;

/// Settings are changed through the tool, so that the change is recorded.
const TOOL: &str = "Config";

pub(super) fn run(args: &args::ConfigArgs) -> CommandResult {
    match &args.action {
        ConfigCommand::Path => {
            screen::result(&required_user_file()?.display().to_string());
        }
        ConfigCommand::Show { key, json } => {
            let config = Setup::load(&args.workspace)?.config;
            let all = match key {
                Some(key) => config.matching(key)?,
                None => config.settings()?,
            };
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
        ConfigCommand::Set { key, value } => return set(args, key, value),
    }
    Ok(CliExit::Done)
}

fn shown(all: &[Setting]) -> String {
    let line = |setting: &Setting| {
        let value = if setting.value.is_null() { "-".to_owned() } else { setting.value.to_string() };
        let origin = styled(FAINT, &format!("# {}", screen::sanitize(&setting.origin)));
        format!("{} = {}  {origin}\n", styled(NAME, &setting.name), screen::sanitize(&value))
    };
    all.iter().map(line).collect()
}

/// Changes a setting of a project in the user's file, as an answer to a question; returns what was done.
pub(crate) fn set_for_project(workspace: &Path, key: &str, value: &str) -> Result<String, ToolError> {
    let at = WorkspaceArgs { workspace: Some(workspace.to_owned()) };
    let choice = ToolSelection::new("claude", Some(&[TOOL.to_owned()]), &Settings::default())?;
    let builder =
        choice.into_builder(at.builder()?).allow(format!("{TOOL}(projects.*)"), "the user's answer");
    let runtime = builder.build()?;
    let call = Call::new("call_1", TOOL, json!({"setting": key, "value": value}));
    let result = runtime.run_blocking(call, CallOptions::default());
    let (text, id) = (result.output.as_text(), result.receipt.id);
    match result.output.error_kind {
        None => Ok(format!("{text} (call {id}; to undo it: haft undo {id})")),
        Some(kind) => Err(ToolError::new(kind, text)),
    }
}

fn set(args: &args::ConfigArgs, key: &str, value: &str) -> CommandResult {
    let result = change(&Setup::load(&args.workspace)?, key, value)?;
    let text = result.output.as_text();
    match result.output.error_kind {
        None => {
            screen::note(&screen::sanitize(&text));
            Ok(CliExit::Done)
        }
        Some(kind) => {
            screen::error(&text);
            Ok(code(kind))
        }
    }
}

/// Adds a rule to `permissions.allow` in the user's file; returns what was done.
pub(super) fn add_allow_rule(workspace: &Path, rule: &str) -> Result<String, ToolError> {
    let setup = Setup::load(&WorkspaceArgs { workspace: Some(workspace.to_owned()) })?;
    let mut rules = setup.config.values.permissions.allow.clone();
    rules.push(rule.to_owned());
    let list: toml_edit::Array = rules.iter().collect();
    let result = change(&setup, "permissions.allow", &list.to_string())?;
    let text = result.output.as_text();
    match result.output.error_kind {
        None => {
            Ok(format!("{} (call {1}; to undo it: haft undo {1})", screen::escape(&text), result.receipt.id))
        }
        Some(kind) => Err(ToolError::new(kind, text)),
    }
}

/// Changes a setting with a recorded call.
fn change(setup: &Setup, key: &str, value: &str) -> Result<CallResult, ToolError> {
    let choice = ToolSelection::new("claude", Some(&[TOOL.to_owned()]), &setup.config.values.tools)?;
    let builder = choice.into_builder(setup.builder_without_rules());
    let builder = builder.allow(format!("{TOOL}({key})"), "the command line");
    let runtime = ManuallyDrop::new(builder.build()?);
    let call = Call::new("call_1", TOOL, json!({"setting": key, "value": value}));
    Ok(runtime.run_blocking(call, CallOptions::default()))
}
