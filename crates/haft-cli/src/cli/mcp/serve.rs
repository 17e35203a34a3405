//! `haft mcp`: serves Haft's tools over stdio or HTTP.

use std::sync::Arc;

use crate::service::{RuntimeService, resource_tools};
use haft_ledger::Ledger;
use haft_mcp::serve::{McpServer, serve_stdio, stdio};

use super::super::CommandResult;
use super::super::exit::CliExit;
use super::super::housekeeping;
use super::super::screen;
use super::super::setup::Setup;
use super::super::terminal;
use super::args::ServeArgs;

/// The server's instructions for the model.
const INSTRUCTIONS: &str = "Calls are confined to the workspace by the kernel; each is recorded and can be undone with \
`haft undo`. A refusal names the rule and says how the user can allow the call.";

pub(super) fn run(args: ServeArgs) -> CommandResult {
    let ServeArgs { at, rules, http, servers, ledger_tools, session } = args;
    let setup = Arc::new(Setup::load(&at.workspace)?);
    let entries = setup.entries(&servers)?;
    let host = Arc::clone(&setup.host);
    let create = {
        let setup = Arc::clone(&setup);
        move || {
            let mut builder =
                setup.tool_selection(&at.dialect)?.into_builder(setup.builder()).entry_point("mcp");
            if ledger_tools {
                builder = builder.ledger_tools();
            }
            let builder = session.apply(builder.known_tools(resource_tools()));
            let builder = setup.rules(&rules, setup.scope(&at.scope, builder)?);
            setup.add_servers(entries.clone(), &at.dialect, builder)?.0.build()
        }
    };
    // Errors in the settings are reported now, not at the first call.
    screen::warnings(create()?.warnings());
    let limits = setup.config.values.ledger.clone();
    // It may take a while, and no call waits for it.
    std::thread::spawn(move || {
        housekeeping::run_if_due(Ledger::home_from_env().and_then(Ledger::open), &limits);
    });
    let service = Arc::new(RuntimeService::new(Box::new(create), host, Some(INSTRUCTIONS.to_owned())));
    let server = Arc::new(McpServer::new(Arc::clone(&service) as _));
    if let Some(at) = http.http {
        http.serve(&server, at)?;
    } else {
        let (input, output) = stdio()?;
        serve_stdio(&server, input, output, terminal::readable_on_signal()?);
    }
    service.close();
    Ok(CliExit::Done)
}
