//! `haft mcp test`, `call`, `login` and `logout`: use one server from the shell.

use crate::servers::{ServerReport, Servers};
use haft_runtime::Runtime;
use haft_tool::{ToolError, Value, json};

use super::super::args::{self, DialectArgs, ScopeArgs, SessionArgs};
use super::super::exit::CliExit;
use super::super::screen::{self, BOLD, FAINT, GOOD, NAME, NOTE, styled};
use super::super::sessions::SessionNameArgs;
use super::super::setup::Setup;
use super::super::{CommandResult, call};
use super::args::{CallToolArgs, LoginArgs, TestArgs};

/// A session with all servers, none of them started yet. `download` names one that may be downloaded.
fn session(
    at: &args::WorkspaceArgs,
    flags: &args::ServerArgs,
    download: Option<&str>,
) -> Result<(Runtime, Servers), ToolError> {
    let setup = Setup::load(at)?;
    let mut entries = setup.entries(flags)?;
    for entry in &mut entries {
        entry.downloads = Some(entry.name.as_str()) == download;
    }
    let none = DialectArgs { dialect: None, tools: Some(Vec::new()) };
    let builder = setup.tool_selection(&none)?.into_builder(setup.builder());
    let builder = setup.scope(&ScopeArgs::default(), builder)?;
    let (builder, servers) = setup.add_servers(entries, &none, builder)?;
    Ok((builder.build()?, servers))
}

pub(super) fn test(args: &TestArgs) -> CommandResult {
    let download = args.download.then_some(args.name.as_str());
    let (runtime, servers) = session(&args.workspace, &args.servers, download)?;
    let trial = servers.test_server(&args.name);
    runtime.end();
    let trial = trial?;
    if args.json {
        screen::result(&serde_json::to_string_pretty(&as_json(&args.name, &trial))?);
    } else {
        screen::out(&shown(&args.name, &trial));
    }
    Ok(CliExit::Done)
}

fn as_json(name: &str, trial: &ServerReport) -> Value {
    let left_out = trial.left_out.iter().map(|(tool, what)| (tool.clone(), json!(what)));
    json!({
        "server": name,
        "protocol": trial.info.version.as_str(),
        "name": trial.info.name,
        "version": trial.info.release,
        "capabilities": trial.info.capabilities,
        "tools": trial.tools,
        "resources": trial.resources,
        "prompts": trial.prompts,
        "schema_problems": left_out.collect::<serde_json::Map<_, _>>(),
        "warnings": trial.warnings,
        "connect_ms": trial.connected.as_secs_f64() * 1e3,
        "round_trip_ms": trial.round_trip.as_secs_f64() * 1e3,
    })
}

fn shown(name: &str, trial: &ServerReport) -> String {
    let info = &trial.info;
    let family = if info.version.is_stateless() { "no handshake" } else { "handshake" };
    let said = format!("{} {}", info.name, info.release);
    let said = screen::sanitize(&said);
    let mut text =
        format!("{}  {} {}\n", styled(BOLD, name), said.trim(), styled(FAINT, &info.version.to_string()));
    let mut line = |what: &str, value: &str| {
        text.push_str(&format!(
            "  {}{} {value}\n",
            styled(NAME, what),
            " ".repeat(12_usize.saturating_sub(what.len()))
        ));
    };
    line("protocol", &format!("{} ({family})", info.version));
    let offers: Vec<&str> =
        info.capabilities.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    line("offers", &screen::sanitize(&offers.join(", ")));
    line("tools", &screen::sanitize(&format!("{}: {}", trial.tools.len(), trial.tools.join(", "))));
    line("resources", &trial.resources.to_string());
    line("prompts", &trial.prompts.to_string());
    let ms = |time: std::time::Duration| format!("{:.1} ms", time.as_secs_f64() * 1e3);
    line("connected in", &ms(trial.connected));
    line("round trip", &ms(trial.round_trip));
    for (tool, what) in &trial.left_out {
        let what = format!("{tool}: {}", what.join("; "));
        let what = screen::sanitize(&what);
        text.push_str(&format!("  {} schema of {what}\n", styled(NOTE, "note")));
    }
    for warning in &trial.warnings {
        text.push_str(&format!("  {} {}\n", styled(NOTE, "note"), screen::sanitize(warning)));
    }
    text
}

pub(super) fn call(args: CallToolArgs) -> CommandResult {
    let CallToolArgs { server, tool, arguments, json, at, rules, servers } = args;
    let name = {
        let SessionArgs { workspace, dialect, .. } = &at;
        let setup = Setup::load(workspace)?;
        let builder = setup.tool_selection(dialect)?.into_builder(setup.builder());
        let (builder, held) = setup.add_servers(setup.entries(&servers)?, dialect, builder)?;
        let runtime = builder.build()?;
        let known = held.name(&server, &tool);
        let name = match known {
            Some(name) => Ok(name),
            None => held.test_server(&server).and_then(|trial| {
                held.name(&server, &tool).ok_or_else(|| {
                    let there = trial.tools.join(", ");
                    ToolError::new(
                        haft_tool::ErrorKind::NotFound,
                        format!("the server {server} has no tool {tool:?}. Its tools: {there}"),
                    )
                })
            }),
        };
        runtime.end();
        name?
    };
    call::run(args::CallArgs {
        tool: name,
        arguments,
        json,
        format: None,
        session: SessionNameArgs::default(),
        at,
        rules,
        servers,
    })
}

pub(super) fn login(args: &LoginArgs) -> CommandResult {
    let (runtime, servers) = session(&args.workspace, &args.servers, None)?;
    let done = servers.login(&args.name);
    runtime.end();
    done?;
    screen::note(&styled(GOOD, &format!("Logged in to {}.", args.name)));
    Ok(CliExit::Done)
}

pub(super) fn logout(args: &LoginArgs) -> CommandResult {
    let (runtime, servers) = session(&args.workspace, &args.servers, None)?;
    let done = servers.logout(&args.name);
    runtime.end();
    done?;
    screen::note(&format!("Deleted the tokens of {}.", args.name));
    Ok(CliExit::Done)
}
