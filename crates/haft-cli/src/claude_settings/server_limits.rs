//! Which MCP servers the settings let run.

use haft_compat::settings::{Located, McpServerPattern};
use haft_policy::wildcard;

use super::{ClaudeFile, SettingsLayer};
use crate::servers::{ServerEntry, ServerLocation, ServerOrigin};

/// What the files say about servers: each list of allowed ones must have a server, and none may deny it.
#[derive(Debug, Default)]
pub(crate) struct ServerLimits {
    allowed: Vec<(String, Vec<Located<McpServerPattern>>)>,
    denied: Vec<(String, Located<McpServerPattern>)>,
    /// Names of servers of `.mcp.json` that are turned off.
    disabled: Vec<(String, Located<String>)>,
}

impl ServerLimits {
    /// Adds what a file says. A project's list of allowed servers does not take away the user's.
    pub(super) fn add(&mut self, file: &ClaudeFile) {
        let (settings, origin) = (&file.settings, || file.origin.clone());
        if file.layer != SettingsLayer::Project {
            self.allowed.extend(settings.allowed_mcp_servers.clone().map(|list| (origin(), list)));
        }
        self.denied.extend(settings.denied_mcp_servers.iter().map(|entry| (origin(), entry.clone())));
        self.disabled.extend(settings.disabled_mcpjson_servers.iter().map(|name| (origin(), name.clone())));
    }

    /// Why a server is not used, if it is not.
    pub(crate) fn refusal(&self, entry: &ServerEntry) -> Option<String> {
        let matches = |pattern: &McpServerPattern| matches(pattern, entry);
        if let Some((file, denied)) = self.denied.iter().find(|(_, pattern)| matches(&pattern.value)) {
            return Some(format!("the server {} is not used: {file}:{} denies it", entry.name, denied.line));
        }
        if let Some((file, name)) = self.disabled.iter().find(|(_, name)| name.value == entry.name)
            && matches!(entry.origin, ServerOrigin::Project(_))
        {
            return Some(format!("the server {} is not used: {file}:{} turns it off", entry.name, name.line));
        }
        let lacks = |(_, list): &&(String, Vec<Located<McpServerPattern>>)| {
            !list.iter().any(|pattern| matches(&pattern.value))
        };
        let (file, _) = self.allowed.iter().find(lacks)?;
        Some(format!("the server {} is not used: allowedMcpServers in {file} does not have it", entry.name))
    }
}

fn matches(pattern: &McpServerPattern, entry: &ServerEntry) -> bool {
    match (pattern, &entry.location) {
        (McpServerPattern::Name(name), _) => *name == entry.name,
        (McpServerPattern::Command(words), ServerLocation::Process { argv, .. }) => words == argv,
        (McpServerPattern::Url(pattern), ServerLocation::Http { url, .. }) => wildcard(pattern, url),
        _ => false,
    }
}
