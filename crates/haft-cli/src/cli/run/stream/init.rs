//! What the program that drives the run is told at the beginning: the answer to `initialize`, and the first message of each turn.

use haft_runtime::Runtime;
use haft_tool::{Value, json};

use super::messages::CLAUDE_VERSION;
use super::session::HostSession;
use crate::claude_settings::claude_mode;
use crate::servers::{ServerConnectionState, Servers};

/// What programs may rely on, by Claude Code's names.
const CAPABILITIES: [&str; 2] = ["interrupt_receipt_v1", "interrupt_cancel_queued_v1"];

/// What both messages tell.
#[derive(Clone)]
pub(super) struct SessionFacts {
    pub(super) runtime: Runtime,
    pub(super) servers: Servers,
    pub(super) skills: Vec<String>,
    pub(super) agents: Vec<(String, String)>,
    pub(super) directories: Vec<String>,
    /// Whether the model is offered tools.
    pub(super) has_tools: bool,
}

impl SessionFacts {
    /// The answer to `initialize`.
    pub(super) fn initialized(&self, model: &str, host_servers: &[String]) -> Value {
        let commands: Vec<Value> = self
            .skills
            .iter()
            .map(|name| json!({"name": name, "description": "", "argumentHint": ""}))
            .collect();
        let agents: Vec<Value> = self
            .agents
            .iter()
            .map(|(name, description)| json!({"name": name, "description": description}))
            .collect();
        let mut answer = json!({
            "commands": commands, "agents": agents,
            "output_style": "default", "available_output_styles": ["default"],
            "models": [{"value": model, "displayName": model, "description": ""}],
            "account": {"tokenSource": "none", "apiKeySource": "none", "apiProvider": "haft"},
            "pid": std::process::id(), "claude_code_version": CLAUDE_VERSION,
            "haft_version": env!("CARGO_PKG_VERSION"),
            "current_permission_mode": claude_mode(self.runtime.mode()),
            "hooks_applied": true, "hook_on_failure_supported": true, "managed_settings_applied": true,
            "session_state": "idle", "capabilities": CAPABILITIES,
        });
        if !host_servers.is_empty() {
            // Their tools are listed over the stream, whatever was sent ahead.
            answer["sdk_mcp_servers"] = json!(host_servers);
        }
        answer
    }

    /// The message with which a turn begins.
    pub(super) fn send_init(&self, session: &HostSession, model: &str, message: Option<&str>) {
        let tools: Vec<String> = if self.has_tools {
            let name = |name: String| if name == "Agent" { "Task".to_owned() } else { name };
            self.runtime.definitions().into_iter().map(|definition| name(definition.name)).collect()
        } else {
            Vec::new()
        };
        let cwd = std::env::current_dir().unwrap_or_else(|_| self.runtime.workspace().to_owned());
        let cwd = cwd.display().to_string();
        let agents: Vec<&str> = self.agents.iter().map(|(name, _)| name.as_str()).collect();
        session.send_system(
            "init",
            json!({
                "cwd": cwd, "original_cwd": cwd, "additional_directories": self.directories,
                "tools": tools, "mcp_servers": self.server_states(false), "model": model,
                "permissionMode": claude_mode(self.runtime.mode()), "slash_commands": self.skills,
                "apiKeySource": "none", "claude_code_version": CLAUDE_VERSION,
                "haft_version": env!("CARGO_PKG_VERSION"), "output_style": "default",
                "agents": agents, "skills": self.skills, "plugins": [], "capabilities": CAPABILITIES,
                "user_message_uuids": message.into_iter().collect::<Vec<_>>(),
            }),
        );
    }

    /// The states of the MCP servers.
    pub(super) fn server_states(&self, with_tools: bool) -> Value {
        let state = |state: crate::servers::ServerSnapshot| {
            let word = match state.connection {
                ServerConnectionState::Ready => "connected",
                ServerConnectionState::Connecting => "pending",
                ServerConnectionState::Failed => "failed",
                ServerConnectionState::Untrusted => "needs-auth",
            };
            let mut server = json!({"name": state.name, "status": word});
            if with_tools {
                server["tools"] = state.tools.iter().map(|name| json!({ "name": name })).collect();
                if let Some(failure) = state.failure {
                    server["error"] = failure.into();
                }
            }
            server
        };
        self.servers.states().into_iter().map(state).collect()
    }
}
