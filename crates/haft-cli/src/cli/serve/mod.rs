//! `haft serve`: the web page and the HTTP API.

mod backend;
mod detached_runs;
mod rotating_log;
mod running;
mod tokens;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use haft_files::real_named;
use haft_ledger::Ledger;
use haft_server::{Role, ServerOptions};
use haft_tool::{Cancel, ErrorKind, ToolError};

use super::args::WorkspaceArgs;
use super::exit::CliExit;
use super::screen::{self, FAINT, styled};
use super::setup::Setup;
use super::{CommandResult, mcp, terminal};
use crate::config::ConfiguredProxies;
use backend::ServeBackend;
use rotating_log::RotatingLog;
use running::RunningServerFile;

/// The directory in Haft's home where servers note how to reach them.
const DIRECTORY: &str = "serve";
/// A longer access log is renamed, and a new one is begun.
const MAX_LOG_BYTES: u64 = 16 << 20;
/// How long each wait for a signal lasts; any length works.
const WAIT_INTERVAL: Duration = Duration::from_hours(1);

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
haft serve --open\n  \
haft serve --listen 7878\n  \
haft serve --url --role view         # of the running server: for a page that can only look\n  \
env $(haft serve --url --role proxy) loom      # an agent that uses the proxies\n  \
haft serve --listen 0.0.0.0:7878 --token-file FILE --allow-host 192.168.1.7:7878\n  \
haft serve --url --role approve      # then, for a phone that may answer questions, but not undo\n\n\
A token file, for example ~/.local/state/haft/serve/tokens, has a line `ROLE TOKEN` for each token: view, approve (also answers questions), act (everything) or proxy (only Loom's \
proxies, for agents). It is in Haft's home, which no tool and no command can read. \
Requests are logged in serve/access.log in $HAFT_HOME.")]
pub(super) struct WebServerArgs {
    /// Where to listen: a port on localhost, or ADDRESS:PORT [default: a free port on localhost].
    #[arg(long, value_name = "ADDR", value_parser = mcp::address)]
    listen: Option<SocketAddr>,
    /// Open the page in the browser.
    #[arg(long)]
    open: bool,
    /// File with the tokens [default: new ones at each start]. Required where other machines can connect.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Additional `Host` header to accept, for example this machine's address in the network or the name of a proxy with TLS; the URL has
    /// the first one; repeatable.
    #[arg(long, value_name = "HOST")]
    allow_host: Vec<String>,
    /// Accept only tokens with the role view.
    #[arg(long)]
    read_only: bool,
    /// Print the URL of the running server and exit.
    #[arg(long, conflicts_with_all = ["listen", "token_file", "allow_host", "read_only"])]
    url: bool,
    /// What the printed URL allows.
    #[arg(long, value_enum, value_name = "ROLE", default_value = "act")]
    role: RoleArg,
    #[command(flatten)]
    workspace: WorkspaceArgs,
}

/// What a URL allows.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum RoleArg {
    /// To use Loom's proxies: prints the variables that agents need.
    Proxy,
    /// To look.
    View,
    /// Also to answer questions.
    Approve,
    /// Everything.
    Act,
}

impl From<RoleArg> for Role {
    fn from(role: RoleArg) -> Self {
        match role {
            RoleArg::Proxy => Self::Proxy,
            RoleArg::View => Self::View,
            RoleArg::Approve => Self::Approve,
            RoleArg::Act => Self::Act,
        }
    }
}

pub(super) fn run(args: &WebServerArgs) -> CommandResult {
    let home = Ledger::home_from_env()?;
    let directory = home.join(DIRECTORY);
    if args.url {
        let server = running::newest(&directory)?.ok_or_else(|| {
            let why = "no server is running. Start one: haft serve";
            ToolError::new(ErrorKind::NotFound, why)
        })?;
        return show_url(args, &server, &directory);
    }
    terminal::never_ask();
    let setup = Setup::load(&args.workspace)?;
    // Problems in the settings are reported once, here, and not again for each request.
    let runtime = setup.builder().build()?;
    let workspace = real_named(setup.workspace()).unwrap_or_else(|_| setup.workspace().to_owned());
    let address = args.listen.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 0)));
    let tokens = tokens::tokens(args.token_file.as_deref(), address, args.read_only)?;
    let ledger = Ledger::open(&home)?;
    let ConfiguredProxies { proxies, warnings } =
        setup.config.proxies(runtime.http_service(), ledger.clone());
    screen::warnings(&warnings);
    screen::silence_warnings();
    let locked_file = running::begin(&directory)?;
    let log = RotatingLog::open(directory.join("access.log"), MAX_LOG_BYTES)?;

    let cancel = Cancel::new();
    terminal::cancel_on_signal(&cancel, false)?;
    // A server that listens on every address can also be opened on this machine.
    let is_local = address.ip().is_loopback() || address.ip().is_unspecified();
    let own_name = is_local.then(|| tokens::host_name(&tokens));
    let options = ServerOptions {
        address,
        tokens: tokens.clone(),
        hosts: args.allow_host.clone(),
        own_name: own_name.clone(),
        workspace: workspace.clone(),
        proxies,
        access_log: Some(Box::new(log)),
    };
    let backend = Arc::new(ServeBackend::new(ledger.clone(), workspace));
    let server = haft_server::serve(options, ledger, backend)?;
    let contents = RunningServerFile::new(server.address(), own_name.as_deref(), &args.allow_host, &tokens);
    locked_file.write(&contents)?;
    show_url(args, &contents, &directory)?;
    if args.token_file.is_none() {
        let others = "Other roles: haft serve --url --role view|approve. Ctrl-C stops the server; agents keep running.";
        screen::note(&styled(FAINT, others));
    }
    if own_name.is_some() && args.allow_host.is_empty() {
        let name = "If the browser cannot find this name, replace it with 127.0.0.1 and keep the rest.";
        screen::note(&styled(FAINT, name));
    }
    while !cancel.wait(WAIT_INTERVAL) {}
    drop(server);
    locked_file.end();
    Ok(CliExit::Done)
}

/// Prints the URL, and opens it if requested.
fn show_url(args: &WebServerArgs, server: &RunningServerFile, directory: &std::path::Path) -> CommandResult {
    let url = server.url(args.role.into()).ok_or_else(|| {
        let role = Role::from(args.role).name();
        let why = format!("the server has no token with the role {role}. Choose another one with --role.");
        ToolError::invalid_arguments(why)
    })?;
    if matches!(args.role, RoleArg::Proxy) {
        // In the form that env(1) takes.
        let (base, token) = url.split_once("/#token=").unwrap_or((&url, ""));
        screen::result(&format!("LOOM_SERVER_URL={base}\nLOOM_SERVER_TOKEN={token}"));
        return Ok(CliExit::Done);
    }
    screen::result(&url);
    if args.open {
        // As an argument, the token would be visible in the list of processes, so the browser gets it from a file.
        let opened = running::write_link(directory, &url).and_then(|file| {
            haft_sandbox::open_for_user(&file).map_err(|error| ToolError::io("open the browser", &error))
        });
        if let Err(error) = opened {
            screen::warnings(&[format!("{}; open the URL yourself", error.message)]);
        }
    }
    Ok(CliExit::Done)
}
