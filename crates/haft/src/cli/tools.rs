//! `haft tools`: the tools and their definitions.

use std::fmt::Write;
use std::io::IsTerminal;

use haft_tool::{Definition, ErrorKind, ToolError, Value};

use super::exit::Exit;
use super::screen::{self, BOLD, FAINT, NAME, painted};
use super::setup::Setup;
use super::{Done, args};
use crate::formats;

pub(super) fn run(args: &args::Tools) -> Done {
    let setup = Setup::load(&args.workspace)?;
    let (_servers, _warnings) = setup.servers(&args.servers)?;
    let registry = setup.choice(&args.dialect)?.registry()?;
    let mut definitions = registry.definitions();
    if let Some(name) = &args.tool {
        let Some(tool) = registry.get(name) else {
            let all: Vec<_> = definitions.iter().map(|tool| tool.name.as_str()).collect();
            return Err(ToolError::new(
                ErrorKind::NotFound,
                format!("there is no tool {name:?}; there are: {}", all.join(", ")),
            ));
        };
        definitions.retain(|definition| definition.name == tool.name());
    }
    match args.format {
        Some(format) => {
            let value = formats::definitions(format, &definitions);
            // A person reads it; a program gets it as it is sent, byte for byte.
            let people = std::io::stdout().is_terminal();
            screen::result(&if people { serde_json::to_string_pretty(&value)? } else { value.to_string() });
        }
        None => screen::out(&listed(&definitions)),
    }
    Ok(Exit::Done)
}

fn listed(definitions: &[Definition]) -> String {
    let mut text = String::new();
    for tool in definitions {
        let _ = writeln!(text, "{}  {}", painted(BOLD, &tool.name), tool.description);
        let required: Vec<&str> = tool.input_schema["required"]
            .as_array()
            .map(|names| names.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        for (name, schema) in tool.input_schema["properties"].as_object().into_iter().flatten() {
            let kind = schema["type"].as_str().unwrap_or("any");
            let need = if required.contains(&name.as_str()) { ", required" } else { "" };
            let choices = schema["enum"]
                .as_array()
                .map(|all| format!(" {}", Value::from(all.clone())))
                .unwrap_or_default();
            let about = schema["description"].as_str().unwrap_or_default();
            let _ = writeln!(
                text,
                "    {}{} {} {about}",
                painted(NAME, name),
                " ".repeat(14_usize.saturating_sub(name.len())),
                painted(FAINT, &format!("({kind}{choices}{need})")),
            );
        }
        text.push('\n');
    }
    text
}
