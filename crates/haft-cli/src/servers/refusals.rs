//! What the sandbox refused to a server, for the results of its calls.

use std::path::Path;
use std::sync::Arc;

use haft_mcp::client::portable::clean;
use haft_sandbox::ServerControl;
use haft_tool::net::{Peer, entry_for, split_port};
use haft_tool::{Denial, Network};

use super::entry::{ServerEntry, ServerGrants};

/// More refusals of one call are only counted.
const MAX_LISTED_REFUSALS: usize = 10;
/// The longest line. It has paths in it that the server chose.
const MAX_LINE_CHARS: usize = 2_000;

/// How a server's user grants what was refused to it. It has grants of its own: flags for commands do not hold for it.
#[derive(Clone)]
pub(super) struct ServerRemedies {
    entry: ServerEntry,
    grants: ServerGrants,
    workspace: Arc<Path>,
}

impl ServerRemedies {
    pub(super) fn new(entry: &ServerEntry, grants: &ServerGrants, workspace: &Path) -> Self {
        Self { entry: entry.clone(), grants: grants.clone(), workspace: workspace.into() }
    }

    /// The refusal in one line, with the narrowest grant that would allow it.
    pub(super) fn line(&self, denial: &Denial) -> String {
        let allow = self.remedy(denial).or_else(|| denial.allow.clone());
        clean(&Denial { allow, ..denial.clone() }.line(), MAX_LINE_CHARS)
    }

    fn remedy(&self, denial: &Denial) -> Option<String> {
        let is_network = denial.what == "connect" && denial.allow.is_some();
        if is_network && self.grants.network != Network::All {
            let (host, port) = split_port(denial.place.as_bytes())?;
            let entry = entry_for(&Peer::parse(host).ok()?, port?);
            return Some(self.grant(&format!("--network {entry}"), &format!("network = [\"{entry}\"]")));
        }
        let is_read = matches!(denial.what.as_str(), "read" | "connect" | "signal");
        let is_write = !is_read && Path::new(&denial.place).starts_with(&self.workspace);
        (is_write && !self.grants.writes).then(|| self.grant("--writes", "writes = true"))
    }

    fn grant(&self, flag: &str, setting: &str) -> String {
        let ServerEntry { name, origin, .. } = &self.entry;
        if self.entry.needs_consent() {
            format!("haft mcp trust {name} {flag}")
        } else {
            format!("{setting} for the server {name} in {origin}")
        }
    }
}

/// The refusals of a running server.
#[derive(Clone)]
pub(super) struct ServerRefusals {
    pub(super) control: Arc<ServerControl>,
    pub(super) remedies: ServerRemedies,
}

impl ServerRefusals {
    /// What was refused since a position of [`ServerControl::refusal_position`], a line each.
    pub(super) fn since(&self, position: u64) -> Option<String> {
        let refused = self.control.refusals_since(position);
        let more = refused.len().saturating_sub(MAX_LISTED_REFUSALS);
        let listed = refused.iter().take(MAX_LISTED_REFUSALS).map(|denial| self.remedies.line(denial));
        let more = (more > 0).then(|| format!("Refused: {more} more"));
        let lines: Vec<String> = listed.chain(more).collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}
