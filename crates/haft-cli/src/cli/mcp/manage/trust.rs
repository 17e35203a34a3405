//! `haft mcp trust` and `haft mcp untrust`.

use crate::servers::ServerGrants;
use haft_tool::{Network, ToolError};

use super::super::super::args::ServerArgs;
use super::super::super::exit::CliExit;
use super::super::super::screen::{self, GOOD, escape, styled};
use super::super::super::setup::Setup;
use super::super::super::{CommandResult, terminal};
use super::super::args::{self, GrantArgs};
use super::get::{changes, head};
use super::server::{ServerState, ServerStatus, trust_store};
use crate::config::NetworkWords;

pub(in super::super) fn trust(args: &args::TrustArgs) -> CommandResult {
    let setup = Setup::load(&args.workspace)?;
    let mut server = ServerStatus::find(&setup, &ServerArgs::default(), &args.name)?;
    let name = escape(&args.name);
    let entry = match (&server.state, server.entry.clone()) {
        (ServerState::Broken(why), _) => return Err(ToolError::failed(escape(why))),
        (_, None) => {
            let origin = escape(&server.configured.origin.to_string());
            return Err(ToolError::failed(format!("{name} is disabled in {origin}. Enable it there first")));
        }
        (_, Some(entry)) => entry,
    };
    let asked = grants(&args.grants)?;
    if asked.is_some() && !entry.needs_consent() {
        return Err(ToolError::invalid_arguments(format!(
            "{name} is in your own settings. Change its permissions in {}",
            escape(&entry.origin.to_string())
        )));
    }
    let grants = asked.unwrap_or_else(|| server.known.grants.clone());
    if server.state == ServerState::Trusted && grants == server.known.grants {
        screen::note(&format!("{name} is already trusted"));
        return Ok(CliExit::Done);
    }
    if entry.needs_consent() {
        server.known.grants = grants.clone();
    }
    screen::out(&head(&server));
    screen::out(&changes(&server));
    if !args.yes && !terminal::confirm_change(&format!("Trust {name}?")) {
        return Ok(CliExit::Denied);
    }
    let trust = trust_store()?;
    if entry.needs_consent() {
        trust.consent(&entry, grants)?;
    }
    if let Some(shown) = server.known.pending {
        trust.accept_tools(&entry, shown)?;
    }
    screen::note(&styled(GOOD, &format!("Trusted {name}. To revoke it: haft mcp untrust {name}")));
    Ok(CliExit::Done)
}

pub(in super::super) fn untrust(args: &args::UntrustArgs) -> CommandResult {
    let setup = Setup::load(&args.workspace)?;
    let server = ServerStatus::find(&setup, &ServerArgs::default(), &args.name)?;
    let name = escape(&args.name);
    let forgotten = match &server.entry {
        Some(entry) => trust_store()?.forget(entry)?,
        None => false,
    };
    screen::note(&if forgotten {
        format!("{name} is no longer trusted")
    } else {
        format!("{name} was not trusted")
    });
    Ok(CliExit::Done)
}

/// The permissions that the flags name; `None` without flags.
pub(super) fn grants(flags: &GrantArgs) -> Result<Option<ServerGrants>, ToolError> {
    if !flags.writes && flags.network.is_empty() {
        return Ok(None);
    }
    let network = match flags.network.as_slice() {
        [] => Network::None,
        words => NetworkWords(words.to_vec()).network()?,
    };
    Ok(Some(ServerGrants { writes: flags.writes, network, unsandboxed: false }))
}
