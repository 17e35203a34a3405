//! The events that hooks are run for.

/// When a hook runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the names are Claude Code's; HookInput has what each tells")]
pub enum HookEvent {
    PreToolUse,
    PostToolUse,
    PostToolUseFailure,
    PermissionRequest,
    PermissionDenied,
    PostToolBatch,
    UserPromptSubmit,
    SessionStart,
    SessionEnd,
    Stop,
    StopFailure,
    SubagentStart,
    SubagentStop,
    PreCompact,
    PostCompact,
    Notification,
    /// An event that Haft does not have.
    Other(String),
}

/// Events of Claude Code that Haft does not have.
const OTHER_EVENTS: [&str; 17] = [
    "ConfigChange",
    "CwdChanged",
    "DirectoryAdded",
    "Elicitation",
    "ElicitationResult",
    "FileChanged",
    "InstructionsLoaded",
    "MessageDisplay",
    "PostModelSwitch",
    "PreModelSwitch",
    "Setup",
    "TaskCompleted",
    "TaskCreated",
    "TeammateIdle",
    "UserPromptExpansion",
    "WorktreeCreate",
    "WorktreeRemove",
];

impl HookEvent {
    /// The names of the events that Haft has.
    pub const NAMES: [&'static str; 16] = [
        "PreToolUse",
        "PostToolUse",
        "PostToolUseFailure",
        "PermissionRequest",
        "PermissionDenied",
        "PostToolBatch",
        "UserPromptSubmit",
        "SessionStart",
        "SessionEnd",
        "Stop",
        "StopFailure",
        "SubagentStart",
        "SubagentStop",
        "PreCompact",
        "PostCompact",
        "Notification",
    ];

    /// The event of this name.
    pub fn from_name(name: &str) -> Self {
        match name {
            "PreToolUse" => Self::PreToolUse,
            "PostToolUse" => Self::PostToolUse,
            "PostToolUseFailure" => Self::PostToolUseFailure,
            "PermissionRequest" => Self::PermissionRequest,
            "PermissionDenied" => Self::PermissionDenied,
            "PostToolBatch" => Self::PostToolBatch,
            "UserPromptSubmit" => Self::UserPromptSubmit,
            "SessionStart" => Self::SessionStart,
            "SessionEnd" => Self::SessionEnd,
            "Stop" => Self::Stop,
            "StopFailure" => Self::StopFailure,
            "SubagentStart" => Self::SubagentStart,
            "SubagentStop" => Self::SubagentStop,
            "PreCompact" => Self::PreCompact,
            "PostCompact" => Self::PostCompact,
            "Notification" => Self::Notification,
            _ => Self::Other(name.to_owned()),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Self::PreToolUse => "PreToolUse",
            Self::PostToolUse => "PostToolUse",
            Self::PostToolUseFailure => "PostToolUseFailure",
            Self::PermissionRequest => "PermissionRequest",
            Self::PermissionDenied => "PermissionDenied",
            Self::PostToolBatch => "PostToolBatch",
            Self::UserPromptSubmit => "UserPromptSubmit",
            Self::SessionStart => "SessionStart",
            Self::SessionEnd => "SessionEnd",
            Self::Stop => "Stop",
            Self::StopFailure => "StopFailure",
            Self::SubagentStart => "SubagentStart",
            Self::SubagentStop => "SubagentStop",
            Self::PreCompact => "PreCompact",
            Self::PostCompact => "PostCompact",
            Self::Notification => "Notification",
            Self::Other(name) => name,
        }
    }

    /// Whether Claude Code has this event, too.
    pub fn is_known_to_claude(&self) -> bool {
        match self {
            Self::Other(name) => OTHER_EVENTS.contains(&name.as_str()),
            _ => true,
        }
    }

    /// Whether a block prevents something that would happen next: a call, its permission, a prompt, a compaction.
    pub const fn guards(&self) -> bool {
        matches!(self, Self::PreToolUse | Self::PermissionRequest | Self::UserPromptSubmit | Self::PreCompact)
    }

    /// Whether a block has any effect: also its reason reaching the model, or the agent going on instead of stopping.
    pub const fn can_block(&self) -> bool {
        self.guards()
            || matches!(
                self,
                Self::PostToolUse
                    | Self::PostToolUseFailure
                    | Self::PostToolBatch
                    | Self::Stop
                    | Self::SubagentStop
            )
    }

    /// Whether text that a hook prints is context for the model. Otherwise it is for the transcript only.
    pub const fn text_is_context(&self) -> bool {
        matches!(self, Self::UserPromptSubmit | Self::SessionStart)
    }

    /// Whether Claude Code takes commas, blanks and hyphens in a matcher as parts of a list of names.
    pub(super) const fn has_long_lists(&self) -> bool {
        !matches!(
            self,
            Self::PostToolBatch | Self::UserPromptSubmit | Self::Stop | Self::StopFailure | Self::Other(_)
        )
    }
}
