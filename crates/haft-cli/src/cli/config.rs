//! `haft config`: what is set, where it comes from, and how to change it.

use std::mem::ManuallyDrop;

use haft_runtime::CallOptions;
use haft_tool::{Call, Cancel, Setting, ToolError, Value, json};

use super::args::{self, ConfigAction};
use super::exit::{Exit, code};
use super::screen::{self, FAINT, NAME, painted};
use super::setup::Setup;
use super::{Done, terminal};
use crate::config::user_file;
use haft::selection::ToolSelection;

/// The tool that changes settings, so that there is one way to change them.
const TOOL: &str = "Config";

pub(super) fn run(args: &args::Config) -> Done {
    match &args.action {
        ConfigAction::Path => {
            let path = user_file()?.ok_or_else(|| {
                ToolError::failed("there is no place for a haft.toml: neither HOME nor HAFT_CONFIG is set")
            })?;
            screen::result(&path.display().to_string());
        }
        ConfigAction::Show { key, json } => {
            let config = Setup::load(&args.workspace)?.config;
            let all = match key {
                Some(key) => config.chosen(key)?,
                None => config.settings()?,
            };
            if *json {
                screen::result(&serde_json::to_string_pretty(&all)?);
            } else {
                screen::out(&shown(&all));
            }
        }
        ConfigAction::Get { key } => {
            let setting = Setup::load(&args.workspace)?.config.setting(key)?;
            match setting.value {
                Value::Null => {}
                Value::String(text) => screen::result(&text),
                value => screen::result(&value.to_string()),
            }
        }
        ConfigAction::Set { key, value } => return set(args, key, value),
    }
    Ok(Exit::Done)
}

fn shown(all: &[Setting]) -> String {
    let line = |setting: &Setting| {
        let value = if setting.value.is_null() { "-".to_owned() } else { setting.value.to_string() };
        let origin = painted(FAINT, &format!("# {}", screen::harmless(&setting.origin)));
        format!("{} = {}  {origin}\n", painted(NAME, &setting.name), screen::harmless(&value))
    };
    all.iter().map(line).collect()
}

fn set(args: &args::Config, key: &str, value: &str) -> Done {
    let setup = Setup::load(&args.workspace)?;
    let choice = ToolSelection::new("claude", Some(&[TOOL.to_owned()]), &setup.config.values.tools)?;
    let builder = choice.into_builder(setup.builder()).allow(format!("{TOOL}({key})"), "haft config set");
    let runtime = ManuallyDrop::new(builder.build()?);
    let cancel = Cancel::new();
    let options = CallOptions { cancel: cancel.clone(), ..CallOptions::default() };
    let call = Call::new("call_1", TOOL, json!({"setting": key, "value": value}));
    let result = terminal::wait(&cancel, runtime.run(call, options))?;
    let text = result.output.as_text();
    match result.output.error_kind {
        None => {
            screen::note(&screen::harmless(&text));
            Ok(Exit::Done)
        }
        Some(kind) => {
            screen::error(&text);
            Ok(code(kind))
        }
    }
}
