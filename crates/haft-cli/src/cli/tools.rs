//! `haft tools`: the tools and their definitions.

use std::fmt::Write;
use std::io::IsTerminal;
use std::time::Duration;

use crate::servers::ServerEntry;
use haft_tool::{Definition, ErrorKind, ToolError, Value};

use super::exit::CliExit;
use super::screen::{self, BOLD, FAINT, NAME, styled};
use super::setup::Setup;
use super::{CommandResult, args};
use haft::formats;

pub(super) fn run(args: &args::ToolsArgs) -> CommandResult {
    let setup = Setup::load(&args.workspace)?;
    let entries = setup.entries(&args.servers)?;
    let (mut definitions, missing) = if entries.is_empty() {
        (setup.tool_selection(&args.dialect)?.registry()?.definitions(), None)
    } else {
        with_servers(&setup, entries, args)?
    };
    if let Some(name) = &args.tool {
        let known = setup.tool_selection(&args.dialect)?.registry()?;
        let wire = known.get(name).map_or(name.as_str(), |tool| tool.name()).to_owned();
        let all: Vec<String> = definitions.iter().map(|tool| tool.name.clone()).collect();
        definitions.retain(|definition| definition.name == wire);
        if definitions.is_empty() {
            return Err(missing.unwrap_or_else(|| {
                ToolError::new(
                    ErrorKind::NotFound,
                    format!("there is no tool {name:?}. Tools: {}", all.join(", ")),
                )
            }));
        }
    }
    match args.format {
        Some(format) => {
            let value = formats::definitions(format, &definitions);
            // Indented on a terminal; otherwise the bytes that a provider receives.
            let is_terminal = std::io::stdout().is_terminal();
            screen::result(&if is_terminal {
                serde_json::to_string_pretty(&value)?
            } else {
                value.to_string()
            });
        }
        None => screen::out(&listed(&definitions)),
    }
    Ok(CliExit::Done)
}

/// The tools of the dialect and of the servers, after connecting to servers whose tools are unknown; and why the named tool is
/// missing, if a server would have it.
fn with_servers(
    setup: &Setup,
    entries: Vec<ServerEntry>,
    args: &args::ToolsArgs,
) -> Result<(Vec<Definition>, Option<ToolError>), ToolError> {
    let builder = setup.tool_selection(&args.dialect)?.into_builder(setup.builder());
    let (builder, servers) = setup.add_servers(entries, &args.dialect, builder)?;
    let runtime = builder.build()?;
    servers.connect_all(CONNECT_TIMEOUT);
    let definitions = runtime.definitions();
    let missing = args.tool.as_deref().and_then(|name| runtime.why_missing(name));
    runtime.end();
    Ok((definitions, missing))
}

/// How long to wait for servers whose tools are unknown. Those that are slower are named in a warning.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

fn listed(definitions: &[Definition]) -> String {
    let mut text = String::new();
    for tool in definitions {
        let _ = writeln!(text, "{}  {}", styled(BOLD, &tool.name), tool.description);
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
                styled(NAME, name),
                " ".repeat(14_usize.saturating_sub(name.len())),
                styled(FAINT, &format!("({kind}{choices}{need})")),
            );
        }
        text.push('\n');
    }
    text
}
