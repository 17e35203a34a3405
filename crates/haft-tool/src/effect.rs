//! What a call will touch, declared before it runs.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One thing a call will touch.
///
/// Exhaustive on purpose: policy matches on effects without a wildcard, so a new effect does not compile until the decision
/// about it is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "effect", rename_all = "snake_case")]
pub enum Effect {
    /// Reads a file, or anything below a directory.
    Read {
        /// The absolute path.
        #[serde(with = "crate::path_text")]
        path: PathBuf,
    },
    /// Reads state of the session that is not a file: a task's output, the ledger, the resources of a server.
    Inspect {
        /// What is read, for people.
        what: String,
    },
    /// Creates, changes or removes a file, or anything below a directory.
    Write {
        /// The absolute path.
        #[serde(with = "crate::path_text")]
        path: PathBuf,
    },
    /// Runs a command.
    Run {
        /// The command line, as a shell would read it.
        command: String,
    },
    /// Reaches a host over the network.
    Reach {
        /// The host's name or address, with its port unless that is 80 or 443: `example.com`, `10.0.0.5:8080`.
        host: String,
    },
    /// Sends a message to people elsewhere, which cannot be undone.
    Send {
        /// The channel.
        channel: String,
    },
    /// Starts an agent.
    Spawn {
        /// Which kind of agent.
        agent: String,
    },
    /// Calls a tool of an MCP server.
    Serve {
        /// The server.
        server: String,
        /// Whether what it does can leave this machine, or its scope.
        reaches: bool,
        /// Whether it may change files of the workspace.
        writes: bool,
    },
    /// Waits for the user.
    Ask,
    /// Stores a value that later calls of the session read.
    Note {
        /// The note's name.
        name: String,
    },
    /// Ends a background task of the session.
    StopTask {
        /// The task's id.
        task: String,
    },
    /// Changes one of the user's settings.
    Configure {
        /// Its name.
        setting: String,
        /// The new value, if it is a single one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        value: Option<Value>,
    },
    /// Undoes a recorded call; what that writes is declared beside it.
    Undo {
        /// The number of the call in the ledger.
        call: i64,
        /// Whether it was made in the session of the call that undoes it.
        own_session: bool,
        /// Whether only some of the paths that it changed are restored.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        partial: bool,
    },
    /// Runs its command without the sandbox.
    Unsandboxed,
}

/// The kind of an [`Effect`], without what it touches. Exhaustive for the same reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "each kind is documented at the effect of the same name")]
pub enum EffectKind {
    Read,
    Inspect,
    Write,
    Run,
    Reach,
    Send,
    Spawn,
    Serve,
    Ask,
    Note,
    StopTask,
    Configure,
    Undo,
    Unsandboxed,
}

impl Effect {
    /// Its kind.
    pub const fn kind(&self) -> EffectKind {
        match self {
            Self::Read { .. } => EffectKind::Read,
            Self::Inspect { .. } => EffectKind::Inspect,
            Self::Write { .. } => EffectKind::Write,
            Self::Run { .. } => EffectKind::Run,
            Self::Reach { .. } => EffectKind::Reach,
            Self::Send { .. } => EffectKind::Send,
            Self::Spawn { .. } => EffectKind::Spawn,
            Self::Serve { .. } => EffectKind::Serve,
            Self::Ask => EffectKind::Ask,
            Self::Note { .. } => EffectKind::Note,
            Self::StopTask { .. } => EffectKind::StopTask,
            Self::Configure { .. } => EffectKind::Configure,
            Self::Undo { .. } => EffectKind::Undo,
            Self::Unsandboxed => EffectKind::Unsandboxed,
        }
    }

    /// Whether this effect can change anything besides the session's own notes and tasks.
    pub const fn mutates(&self) -> bool {
        use EffectKind::{Ask, Inspect, Note, Reach, Read, StopTask};
        !matches!(self.kind(), Read | Inspect | Reach | Ask | Note | StopTask)
    }
}

/// The class of a tool's side effects, as callers see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SideEffect {
    /// Touches nothing.
    None,
    /// Reads, but changes nothing.
    ReadOnly,
    /// Changes files or state.
    Mutating,
    /// Reaches the network.
    Network,
    /// Waits for a person.
    Blocking,
    /// Starts an agent.
    Spawns,
}

impl SideEffect {
    /// The class of a tool with these kinds of effects: that of the gravest one.
    pub fn of(effects: &[EffectKind]) -> Self {
        let class = |kind: &EffectKind| match kind {
            EffectKind::Spawn => Self::Spawns,
            EffectKind::Write
            | EffectKind::Run
            | EffectKind::Serve
            | EffectKind::Note
            | EffectKind::StopTask
            | EffectKind::Configure
            | EffectKind::Undo
            | EffectKind::Unsandboxed => Self::Mutating,
            EffectKind::Reach | EffectKind::Send => Self::Network,
            EffectKind::Ask => Self::Blocking,
            EffectKind::Read | EffectKind::Inspect => Self::ReadOnly,
        };
        let gravest = [Self::Spawns, Self::Mutating, Self::Network, Self::Blocking, Self::ReadOnly];
        gravest.into_iter().find(|one| effects.iter().any(|kind| class(kind) == *one)).unwrap_or(Self::None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn side_effect_is_the_gravest_of_the_declared_effects() {
        use EffectKind::{Ask, Inspect, Reach, Read, Run, Spawn, Write};
        for (effects, class) in [
            (&[][..], SideEffect::None),
            (&[Inspect, Read], SideEffect::ReadOnly),
            (&[Read, Ask], SideEffect::Blocking),
            (&[Ask, Reach], SideEffect::Network),
            (&[Reach, Run], SideEffect::Mutating),
            (&[Write, Spawn], SideEffect::Spawns),
        ] {
            assert_eq!(SideEffect::of(effects), class, "{effects:?}");
        }
    }
}
