//! `haft mcp trust` and `haft mcp untrust`: the user's yes to a server, and taking it back.

use crate::servers::ServerGrants;
use haft_tool::{Network, ToolError};

use super::super::super::args::Servers;
use super::super::super::exit::Exit;
use super::super::super::screen::{self, GOOD, painted, visible};
use super::super::super::setup::Setup;
use super::super::super::{Done, terminal};
use super::super::args::{self, GrantFlags};
use super::get::{Values, changes, head};
use super::server::{Server, State, consents};
use crate::config::NetworkWords;

pub(in super::super) fn trust(args: &args::Trust) -> Done {
    let setup = Setup::load(&args.workspace)?;
    let mut server = Server::find(&setup, &Servers::default(), &args.name)?;
    let name = visible(&args.name);
    let entry = match (&server.state, server.entry.clone()) {
        (State::Broken(why), _) => return Err(ToolError::failed(visible(why))),
        (_, None) => {
            let origin = visible(&server.configured.origin.to_string());
            return Err(ToolError::failed(format!(
                "{name} is switched off in {origin}; switch it on there first"
            )));
        }
        (_, Some(entry)) => entry,
    };
    let asked = grants(&args.grants)?;
    if asked.is_some() && !entry.needs_consent() {
        return Err(ToolError::invalid_arguments(format!(
            "{name} is your own; what it may do stands in {}",
            visible(&entry.origin.to_string())
        )));
    }
    let grants = asked.unwrap_or_else(|| server.known.grants.clone());
    if server.state == State::Trusted && grants == server.known.grants {
        screen::note(&format!("{name} is trusted already"));
        return Ok(Exit::Done);
    }
    if entry.needs_consent() {
        server.known.grants = grants.clone();
    }
    screen::out(&head(&server, Values::Named));
    screen::out(&changes(&server));
    let question = format!("Trust {name}?");
    if !args.yes && !terminal::is_there() {
        screen::error(&format!("{question} Nobody is here to be asked; --yes says yes"));
        return Ok(Exit::Denied);
    }
    if !args.yes && !terminal::confirm(&question) {
        screen::note("nothing was changed");
        return Ok(Exit::Denied);
    }
    let trust = consents()?;
    if entry.needs_consent() {
        trust.consent(&entry, grants)?;
    }
    if let Some(shown) = server.known.pending {
        trust.accept_tools(&entry, shown)?;
    }
    screen::note(&painted(GOOD, &format!("{name} is trusted; haft mcp untrust {name} takes this back")));
    Ok(Exit::Done)
}

pub(in super::super) fn untrust(args: &args::Untrust) -> Done {
    let setup = Setup::load(&args.workspace)?;
    let server = Server::find(&setup, &Servers::default(), &args.name)?;
    let name = visible(&args.name);
    let forgotten = match &server.entry {
        Some(entry) => consents()?.forget(entry)?,
        None => false,
    };
    screen::note(&if forgotten {
        format!("{name} is forgotten; it will be asked about and looked at anew")
    } else {
        format!("nothing was known of {name}")
    });
    Ok(Exit::Done)
}

/// What the flags grant; nothing if none was given.
pub(super) fn grants(flags: &GrantFlags) -> Result<Option<ServerGrants>, ToolError> {
    if !flags.writes && flags.network.is_empty() {
        return Ok(None);
    }
    let network = match flags.network.as_slice() {
        [] => Network::None,
        words => NetworkWords(words.to_vec()).network()?,
    };
    if let Network::Domains(list) = &network {
        haft_tool::net::Domains::parse(list)?;
    }
    Ok(Some(ServerGrants { writes: flags.writes, network, unsandboxed: false }))
}
