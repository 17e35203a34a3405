//! What a hook reads on stdin.

use serde::Serialize;
use serde_json::{Map, Value};

use super::{HookEvent, PermissionUpdate};

/// What every event tells. Borrowed: the same context serves all hooks of a session.
#[derive(Debug, Clone, Default, Serialize)]
pub struct HookContext<'a> {
    /// The session's id.
    pub session_id: &'a str,
    /// The transcript's path.
    pub transcript_path: &'a str,
    /// The working directory.
    pub cwd: &'a str,
    /// The id of the user's message that led to the event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_id: Option<&'a str>,
    /// The permission mode, by Claude Code's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_mode: Option<&'a str>,
    /// The subagent's id, within one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<&'a str>,
    /// The agent's type, unless it is the default one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_type: Option<&'a str>,
}

/// An event with what it tells besides the [`HookContext`].
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "hook_event_name")]
#[non_exhaustive]
pub enum HookInput {
    /// Before a call is decided.
    PreToolUse {
        /// The tool.
        tool_name: String,
        /// Its arguments.
        tool_input: Value,
        /// The call's id.
        tool_use_id: String,
    },
    /// After a call succeeded.
    PostToolUse {
        /// The tool.
        tool_name: String,
        /// Its arguments.
        tool_input: Value,
        /// Its result, structured.
        tool_response: Value,
        /// The call's id.
        tool_use_id: String,
        /// How long it took.
        #[serde(skip_serializing_if = "Option::is_none")]
        duration_ms: Option<u64>,
    },
    /// After a call failed.
    PostToolUseFailure {
        /// The tool.
        tool_name: String,
        /// Its arguments.
        tool_input: Value,
        /// The call's id.
        tool_use_id: String,
        /// Why it failed.
        error: String,
        /// Whether the user interrupted it.
        #[serde(skip_serializing_if = "Option::is_none")]
        is_interrupt: Option<bool>,
        /// How long it took.
        #[serde(skip_serializing_if = "Option::is_none")]
        duration_ms: Option<u64>,
    },
    /// Before the user is asked for permission.
    PermissionRequest {
        /// The tool.
        tool_name: String,
        /// Its arguments.
        tool_input: Value,
        /// What the user could allow for good.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        permission_suggestions: Vec<PermissionUpdate>,
    },
    /// After a call was denied.
    PermissionDenied {
        /// The tool.
        tool_name: String,
        /// Its arguments.
        tool_input: Value,
        /// The call's id.
        tool_use_id: String,
        /// Why.
        reason: String,
    },
    /// After all calls of one answer.
    PostToolBatch {
        /// The calls.
        tool_calls: Vec<BatchCall>,
    },
    /// Before a prompt is sent.
    UserPromptSubmit {
        /// The prompt.
        prompt: String,
        /// Where it comes from: `user`, `sdk`, `system`.
        #[serde(skip_serializing_if = "Option::is_none")]
        source: Option<String>,
    },
    /// When a session begins.
    SessionStart {
        /// How: `startup`, `resume`, `clear`, `compact`, `fork`.
        source: String,
        /// The model.
        #[serde(skip_serializing_if = "Option::is_none")]
        model: Option<String>,
    },
    /// When a session ends.
    SessionEnd {
        /// Why: `clear`, `resume`, `logout`, `prompt_input_exit`, `other`.
        reason: String,
    },
    /// Before the agent stops.
    Stop {
        /// Whether it goes on only because a hook said so before.
        stop_hook_active: bool,
        /// What it said last.
        #[serde(skip_serializing_if = "Option::is_none")]
        last_assistant_message: Option<String>,
    },
    /// After an error ended the turn.
    StopFailure {
        /// Its kind.
        error: String,
        /// Its message.
        #[serde(skip_serializing_if = "Option::is_none")]
        error_details: Option<String>,
    },
    /// When a subagent begins.
    SubagentStart {
        /// Its id.
        agent_id: String,
        /// Its type.
        agent_type: String,
    },
    /// Before a subagent stops.
    SubagentStop {
        /// Whether it goes on only because a hook said so before.
        stop_hook_active: bool,
        /// Its id.
        agent_id: String,
        /// Its type.
        agent_type: String,
        /// The path of its transcript.
        agent_transcript_path: String,
        /// What it said last.
        #[serde(skip_serializing_if = "Option::is_none")]
        last_assistant_message: Option<String>,
    },
    /// Before the conversation is compacted.
    PreCompact {
        /// `manual` or `auto`.
        trigger: String,
        /// What the user asked to keep; `null` if nothing.
        custom_instructions: Option<String>,
    },
    /// After the conversation was compacted.
    PostCompact {
        /// `manual` or `auto`.
        trigger: String,
        /// What is left of it.
        compact_summary: String,
    },
    /// When the user is told something.
    Notification {
        /// The text.
        message: String,
        /// Its title.
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// Its kind, such as `permission_prompt` or `idle_prompt`.
        notification_type: String,
    },
}

/// One call of a [`HookInput::PostToolBatch`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BatchCall {
    /// The tool.
    pub tool_name: String,
    /// Its arguments.
    pub tool_input: Value,
    /// The call's id.
    pub tool_use_id: String,
    /// Its result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_response: Option<Value>,
}

impl HookInput {
    /// The object that a hook reads.
    pub fn to_json(&self, context: &HookContext<'_>) -> Map<String, Value> {
        let mut object = Map::new();
        let parts = [serde_json::to_value(context), serde_json::to_value(self)];
        for part in parts.into_iter().flatten() {
            // A member of the event, such as a subagent's id, replaces that of the context.
            object.extend(part.as_object().cloned().unwrap_or_default());
        }
        object
    }

    /// Its event.
    pub const fn event(&self) -> HookEvent {
        match self {
            Self::PreToolUse { .. } => HookEvent::PreToolUse,
            Self::PostToolUse { .. } => HookEvent::PostToolUse,
            Self::PostToolUseFailure { .. } => HookEvent::PostToolUseFailure,
            Self::PermissionRequest { .. } => HookEvent::PermissionRequest,
            Self::PermissionDenied { .. } => HookEvent::PermissionDenied,
            Self::PostToolBatch { .. } => HookEvent::PostToolBatch,
            Self::UserPromptSubmit { .. } => HookEvent::UserPromptSubmit,
            Self::SessionStart { .. } => HookEvent::SessionStart,
            Self::SessionEnd { .. } => HookEvent::SessionEnd,
            Self::Stop { .. } => HookEvent::Stop,
            Self::StopFailure { .. } => HookEvent::StopFailure,
            Self::SubagentStart { .. } => HookEvent::SubagentStart,
            Self::SubagentStop { .. } => HookEvent::SubagentStop,
            Self::PreCompact { .. } => HookEvent::PreCompact,
            Self::PostCompact { .. } => HookEvent::PostCompact,
            Self::Notification { .. } => HookEvent::Notification,
        }
    }

    /// What matchers are compared with; `None` if the event has no subject.
    pub fn subject(&self) -> Option<&str> {
        match self {
            Self::PreToolUse { tool_name, .. }
            | Self::PostToolUse { tool_name, .. }
            | Self::PostToolUseFailure { tool_name, .. }
            | Self::PermissionRequest { tool_name, .. }
            | Self::PermissionDenied { tool_name, .. } => Some(tool_name),
            Self::SessionStart { source, .. } => Some(source),
            Self::SessionEnd { reason } => Some(reason),
            Self::StopFailure { error, .. } => Some(error),
            Self::SubagentStart { agent_type, .. } | Self::SubagentStop { agent_type, .. } => {
                Some(agent_type)
            }
            Self::PreCompact { trigger, .. } | Self::PostCompact { trigger, .. } => Some(trigger),
            Self::Notification { notification_type, .. } => Some(notification_type),
            Self::PostToolBatch { .. } | Self::UserPromptSubmit { .. } | Self::Stop { .. } => None,
        }
    }
}
