//! `haft config`: shows and changes settings.

use std::mem::ManuallyDrop;

use haft_runtime::CallOptions;
use haft_tool::{Call, Cancel, Setting, Value, json};

use super::args::{self, ConfigCommand};
use super::exit::{CliExit, code};
use super::screen::{self, FAINT, NAME, styled};
use super::setup::Setup;
use super::{CommandResult, terminal};
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

fn set(args: &args::ConfigArgs, key: &str, value: &str) -> CommandResult {
    let setup = Setup::load(&args.workspace)?;
    let choice = ToolSelection::new("claude", Some(&[TOOL.to_owned()]), &setup.config.values.tools)?;
    let builder = choice.into_builder(setup.builder_without_rules());
    let builder = builder.allow(format!("{TOOL}({key})"), "haft config set");
    let runtime = ManuallyDrop::new(builder.build()?);
    let cancel = Cancel::new();
    let options = CallOptions { cancel: cancel.clone(), ..CallOptions::default() };
    let call = Call::new("call_1", TOOL, json!({"setting": key, "value": value}));
    let result = terminal::wait(&cancel, runtime.run(call, options))?;
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
