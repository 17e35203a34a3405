//! `haft mcp`: serves Haft's tools over stdio or HTTP.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use haft_ledger::Ledger;
use haft_mcp::serve::{McpServer, serve_stdio, stdio};
use haft_tool::{ToolError, ToolNeed, lock};

use super::super::CommandResult;
use super::super::args::{RuleArgs, ServerArgs, SessionArgs, WorkspaceArgs};
use super::super::exit::CliExit;
use super::super::housekeeping;
use super::super::screen;
use super::super::sessions::SessionNameArgs;
use super::super::setup::Setup;
use super::super::terminal;
use super::args::ServeArgs;
use crate::config::{LedgerSection, user_file};
use crate::service::{ClientRuntime, ClientWorkspace, RuntimeService, WorkspaceChoice, resource_tools};

pub(super) fn run(args: ServeArgs) -> CommandResult {
    return_large_blocks();
    let ServeArgs { at, rules, http, servers, ledger_tools, session } = args;
    let choice = workspace_choice(&at.workspace, http.http.is_none())?;
    let flags = RuntimeFlags { at, rules, servers, ledger_tools, session, current: choice.current.clone() };
    // Errors in the settings are reported now, not at the first call.
    let start = choice.at_start();
    let (first, limits) = flags.create_with_limits(start.as_ref())?;
    screen::warnings(first.runtime.warnings());
    // It may take a while, and no call waits for it.
    std::thread::spawn(move || {
        housekeeping::run_if_due(Ledger::home_from_env().and_then(Ledger::open), &limits);
    });
    let prepared = Mutex::new(Some((start, first)));
    let create = move |workspace: Option<&ClientWorkspace>| {
        let first = lock(&prepared).take_if(|(start, _)| start.as_ref() == workspace);
        first.map_or_else(|| flags.create(workspace), |(_, runtime)| Ok(runtime))
    };
    let service = Arc::new(RuntimeService::new(Box::new(create), choice));
    let server = Arc::new(McpServer::new(Arc::clone(&service) as _));
    if let Some(at) = http.http {
        http.serve(&server, at)?;
    } else {
        let (input, output) = stdio()?;
        serve_stdio(&server, input, output, terminal::readable_on_signal()?)?;
    }
    service.close();
    Ok(CliExit::Done)
}

/// Makes the allocator give large blocks back when they are freed. glibc otherwise raises its limit with every large block and
/// keeps up to 64 MiB of them per thread: after results of 10 MB, this server would stay at three times its size.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "there is no safe interface to the allocator")]
fn return_large_blocks() {
    const MMAP_THRESHOLD_BYTES: libc::c_int = 64 << 10;
    // SAFETY: mallopt takes two integers and may be called at any time.
    unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES) };
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn return_large_blocks() {}

fn workspace_choice(at: &WorkspaceArgs, roots_are_local: bool) -> Result<WorkspaceChoice, ToolError> {
    let directory = at.folder()?;
    let given = at.workspace.is_some().then(|| directory.clone());
    let outside: Vec<PathBuf> =
        std::env::home_dir().into_iter().chain([Ledger::home_from_env()?]).chain(user_file()?).collect();
    Ok(WorkspaceChoice { given, current: directory, roots_are_local, outside })
}

/// What the command line says about the runtimes of clients.
struct RuntimeFlags {
    at: SessionArgs,
    rules: RuleArgs,
    servers: ServerArgs,
    ledger_tools: bool,
    session: SessionNameArgs,
    current: PathBuf,
}

impl RuntimeFlags {
    /// A runtime in this workspace, with its settings; without one it can only list its tools.
    fn create(&self, workspace: Option<&ClientWorkspace>) -> Result<ClientRuntime, ToolError> {
        self.create_with_limits(workspace).map(|(runtime, _)| runtime)
    }

    /// The same, with the limits of the ledger.
    fn create_with_limits(
        &self,
        workspace: Option<&ClientWorkspace>,
    ) -> Result<(ClientRuntime, LedgerSection), ToolError> {
        let directory = workspace.map_or(&self.current, |workspace| &workspace.directory);
        let at = WorkspaceArgs { workspace: Some(directory.clone()) };
        let mut setup = Setup::load_for_calls(&at, &self.rules)?;
        setup.claude.drop_rules_of_client();
        let entries = setup.entries(&self.servers)?;
        let dialect = &self.at.dialect;
        let mut selection = setup.tool_selection(dialect)?;
        if !setup.names_tools(dialect) {
            let has_search = setup.config.values.tools.has_search_engine();
            selection = selection.where_needs_are_met(|need| match need {
                ToolNeed::SearchEngine => has_search,
                ToolNeed::McpServers => !entries.is_empty(),
                // Depends on the client.
                ToolNeed::UserAnswers => true,
                _ => false,
            });
        }
        let mut builder = selection.into_builder(setup.builder()).entry_point("mcp").relative_paths();
        if self.ledger_tools {
            builder = builder.ledger_tools();
        }
        builder = match workspace {
            Some(workspace) => workspace.more.iter().fold(builder, haft::Builder::add_directory),
            None => builder.any_workspace(),
        };
        let builder = self.session.apply(builder.known_tools(resource_tools()));
        let builder = setup.rules(&self.rules, setup.scope(&self.at.scope, builder)?);
        let runtime = setup.add_servers(entries, dialect, builder)?.0.build()?;
        let limits = setup.config.values.ledger.clone();
        Ok((ClientRuntime { runtime, host: Arc::clone(&setup.host) }, limits))
    }
}
