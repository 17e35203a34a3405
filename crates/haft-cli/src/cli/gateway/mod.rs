//! `haft gateway`: messages from channels start and continue runs.
//!
//! A message is stored in the ledger before it is acknowledged (`endpoint`), waits in a bounded queue (`queue`), and is handled by the
//! run of its chat (`conversation`). What was accepted and not finished is handled at the next start.

mod conversation;
mod endpoint;
mod queue;

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use clap::Args;
use haft_files::real_named;
use haft_ledger::Ledger;
use haft_net::server::{ConnectionLimits, serve_requests};
use haft_tool::{Cancel, ToolError};

use super::exit::CliExit;
use super::run::RunArgs;
use super::screen::{self, FAINT, styled};
use super::setup::Setup;
use super::{CommandResult, housekeeping, mcp, run, terminal};
use conversation::Conversations;
use endpoint::MessageEndpoint;
use queue::MessageQueue;

/// The address if none is given.
const DEFAULT_ADDRESS: &str = "127.0.0.1:8484";
/// How long turns may go on after a signal. Those that take longer are continued at the next start.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(8);
/// How long one wait for a signal takes; the length does not matter.
const WAIT_INTERVAL: Duration = Duration::from_hours(1);
/// The entry point of conversations, by which the ledger knows their sessions.
const ENTRY_POINT: &str = "gateway";
/// Limits of the HTTP server. The largest messages of chat services have 40,000 characters.
const LIMITS: ConnectionLimits = ConnectionLimits {
    max_connections: 128,
    max_body_bytes: 256 << 10,
    header_timeout: Duration::from_secs(10),
    body_timeout: Duration::from_secs(10),
    blocking_threads: 16,
};

#[derive(Debug, Args)]
#[command(
    mut_arg("prompt", |arg| arg.hide(true)),
    mut_arg("print", |arg| arg.hide(true)),
    mut_arg("resume", |arg| arg.hide(true)),
    mut_arg("continue_last", |arg| arg.hide(true)),
    mut_arg("fork_session", |arg| arg.hide(true)),
    mut_arg("output_format", |arg| arg.hide(true)),
    after_help = "Examples:\n  \
haft gateway --http 8484 --workspace ~/project\n  \
haft gateway --dialect clawft --allowedTools message\n\n\
A channel NAME of haft.toml that has a secret for incoming messages receives them by POST at /channels/NAME; see docs/gateway.md. \
Calls that would ask are denied."
)]
pub(super) struct GatewayArgs {
    /// Where to listen: a port on localhost, or ADDRESS:PORT.
    #[arg(long, value_name = "ADDR", default_value = DEFAULT_ADDRESS, value_parser = mcp::address)]
    http: SocketAddr,
    /// How many chats are answered at once.
    #[arg(long, value_name = "N", default_value = "4", value_parser = clap::value_parser!(u16).range(1..=256))]
    workers: u16,
    #[command(flatten)]
    run: RunArgs,
}

pub(super) fn run(args: GatewayArgs) -> CommandResult {
    terminal::never_ask();
    args.run.refuse_prompt("haft gateway")?;
    let setup = Setup::load(&args.run.at.workspace)?;
    let endpoint = MessageEndpoint::new(&setup.config.values.channels, args.http)?;
    run::check_model(&args.run, &setup)?;
    let ledger = Ledger::open(Ledger::home_from_env()?)?;
    let workspace = real_named(setup.workspace()).unwrap_or_else(|_| setup.workspace().to_owned());
    let dialect = setup.dialect(&args.run.at.dialect).to_owned();
    let queue = Arc::new(MessageQueue::open(ledger.inbox(&workspace)?)?);

    let cancel = Cancel::new();
    terminal::cancel_on_signal(&cancel, false)?;
    let names = endpoint.names();
    let open = queue.waiting();
    let server = {
        let queue = Arc::clone(&queue);
        serve_requests(args.http, LIMITS, move |request| endpoint.answer(request, &queue))?
    };
    for name in names {
        screen::note(&format!("listening on http://{}/channels/{}", server.address(), screen::escape(&name)));
    }
    if open > 0 {
        screen::note(&format!("{} from before", screen::count(open as u64, "message")));
    }
    let conversations = Arc::new(Conversations::new(args.run, ledger.clone(), workspace, dialect));
    let workers = start_workers(args.workers, &queue, &conversations)?;

    while !cancel.wait(WAIT_INTERVAL) {}
    drop(server);
    queue.close();
    if queue.wait_until_idle(SHUTDOWN_TIMEOUT) {
        for worker in workers {
            // Panics are caught in the worker.
            let _ = worker.join();
        }
        housekeeping::run_if_due(Ok(ledger), &setup.config.values.ledger);
    } else {
        screen::note(&styled(FAINT, "turns that have not ended are continued at the next start"));
    }
    Ok(CliExit::Done)
}

fn start_workers(
    count: u16,
    queue: &Arc<MessageQueue>,
    conversations: &Arc<Conversations>,
) -> Result<Vec<JoinHandle<()>>, ToolError> {
    let start = |number| {
        let (queue, conversations) = (Arc::clone(queue), Arc::clone(conversations));
        std::thread::Builder::new()
            .name(format!("haft-gateway {number}"))
            .spawn(move || queue.work(|message| conversations.handle(message, queue.inbox())))
            .map_err(|error| ToolError::io("start a thread", &error))
    };
    (1..=count).map(start).collect()
}
