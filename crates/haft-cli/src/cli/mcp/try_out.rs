//! `haft mcp test`, `call`, `login` and `logout`: one server, tried from the shell.

use crate::servers::{ServerReport, Servers};
use haft_runtime::Runtime;
use haft_tool::{ToolError, Value, json};

use super::super::args::{self, At, Dialect, Scope};
use super::super::exit::Exit;
use super::super::screen::{self, BOLD, FAINT, GOOD, NAME, NOTE, painted};
use super::super::setup::Setup;
use super::super::{Done, call};
use super::args::{CallTool, Login, Test};

/// A session with all servers, none of them started yet.
fn session(at: &args::Workspace, flags: &args::Servers) -> Result<(Runtime, Servers), ToolError> {
    let setup = Setup::load(at)?;
    let entries = setup.entries(flags)?;
    let none = Dialect { dialect: None, tools: Some(Vec::new()) };
    let builder = setup.choice(&none)?.into_builder(setup.builder());
    let builder = setup.scope(&Scope::default(), builder)?;
    let (builder, servers) = setup.holding(entries, &none, builder)?;
    Ok((builder.build()?, servers))
}

pub(super) fn test(args: &Test) -> Done {
    let (runtime, servers) = session(&args.workspace, &args.servers)?;
    let trial = servers.test_server(&args.name);
    runtime.end();
    let trial = trial?;
    if args.json {
        screen::result(&serde_json::to_string_pretty(&as_json(&args.name, &trial))?);
    } else {
        screen::out(&shown(&args.name, &trial));
    }
    Ok(Exit::Done)
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
    let era = if info.version.is_stateless() { "no handshake" } else { "handshake" };
    let said = format!("{} {}", info.name, info.release);
    let said = screen::harmless(&said);
    let mut text =
        format!("{}  {} {}\n", painted(BOLD, name), said.trim(), painted(FAINT, &info.version.to_string()));
    let mut line = |what: &str, value: &str| {
        text.push_str(&format!(
            "  {}{} {value}\n",
            painted(NAME, what),
            " ".repeat(12_usize.saturating_sub(what.len()))
        ));
    };
    line("protocol", &format!("{} ({era})", info.version));
    let offers: Vec<&str> =
        info.capabilities.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    line("offers", &screen::harmless(&offers.join(", ")));
    line("tools", &screen::harmless(&format!("{}: {}", trial.tools.len(), trial.tools.join(", "))));
    line("resources", &trial.resources.to_string());
    line("prompts", &trial.prompts.to_string());
    let ms = |time: std::time::Duration| format!("{:.1} ms", time.as_secs_f64() * 1e3);
    line("connected in", &ms(trial.connected));
    line("one answer", &ms(trial.round_trip));
    for (tool, what) in &trial.left_out {
        let what = format!("{tool}: {}", what.join("; "));
        let what = screen::harmless(&what);
        text.push_str(&format!("  {} schema of {what}\n", painted(NOTE, "note")));
    }
    for warning in &trial.warnings {
        text.push_str(&format!("  {} {}\n", painted(NOTE, "note"), screen::harmless(warning)));
    }
    text
}

pub(super) fn call(args: CallTool) -> Done {
    let CallTool { server, tool, arguments, json, at, rules, servers } = args;
    let name = {
        let At { workspace, dialect, .. } = &at;
        let setup = Setup::load(workspace)?;
        let builder = setup.choice(dialect)?.into_builder(setup.builder());
        let (builder, held) = setup.holding(setup.entries(&servers)?, dialect, builder)?;
        let runtime = builder.build()?;
        let known = held.name(&server, &tool);
        let name = match known {
            Some(name) => Ok(name),
            None => held.test_server(&server).and_then(|trial| {
                held.name(&server, &tool).ok_or_else(|| {
                    let there = trial.tools.join(", ");
                    ToolError::new(
                        haft_tool::ErrorKind::NotFound,
                        format!("the server {server} has no tool {tool:?}; it has: {there}"),
                    )
                })
            }),
        };
        runtime.end();
        name?
    };
    call::run(args::Call { tool: name, arguments, json, format: None, session: None, at, rules, servers })
}

pub(super) fn login(args: &Login) -> Done {
    let (runtime, servers) = session(&args.workspace, &args.servers)?;
    let done = servers.login(&args.name);
    runtime.end();
    done?;
    screen::note(&painted(GOOD, &format!("Haft may use {} now", args.name)));
    Ok(Exit::Done)
}

pub(super) fn logout(args: &Login) -> Done {
    let (runtime, servers) = session(&args.workspace, &args.servers)?;
    let done = servers.logout(&args.name);
    runtime.end();
    done?;
    screen::note(&format!("forgot the tokens for {}", args.name));
    Ok(Exit::Done)
}
