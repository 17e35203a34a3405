//! Serving: one client over standard input and output.

use std::sync::Arc;

use crate::service::Hands;
use haft_mcp::serve::{McpServer, serve_stdio, stdio};
use haft_tool::Host;

use super::super::Done;
use super::super::exit::Exit;
use super::super::setup::Setup;
use super::args::Serve;

/// What a model should know about the whole of Haft.
const INSTRUCTIONS: &str = "Calls work inside the workspace and are held to it by the kernel; each is recorded and can be \
taken back with `haft undo`. A refusal says which rule refused and how the user can allow it.";

pub(super) fn run(args: Serve) -> Done {
    let Serve { at, rules, http, servers, ledger_tools } = args;
    let setup = Arc::new(Setup::load(&at.workspace)?);
    let entries = setup.entries(&servers)?;
    let host: Arc<dyn Host> = Arc::clone(&setup.host) as _;
    let make = {
        let setup = Arc::clone(&setup);
        move || {
            let mut builder = setup.choice(&at.dialect)?.into_builder(setup.builder()).entry_point("mcp");
            if ledger_tools {
                builder = builder.also(haft_tools::dialects::ledger::dialect());
            }
            let builder = setup.rules(&rules, setup.scope(&at.scope, builder)?);
            setup.holding(entries.clone(), &at.dialect, builder)?.0.build()
        }
    };
    // What is wrong with the settings is said now, and not to the first who calls.
    make()?;
    let hands = Arc::new(Hands::new(Box::new(make), host, Some(INSTRUCTIONS.to_owned())));
    let server = Arc::new(McpServer::new(Arc::clone(&hands) as _));
    if let Some(at) = http.http {
        http.serve(&server, at)?;
    } else {
        let (input, output) = stdio()?;
        serve_stdio(&server, input, output);
    }
    hands.close();
    Ok(Exit::Done)
}
