//! What a call will touch, declared before it runs.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// One thing a call will touch.
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
    },
    /// Runs its command without the sandbox.
    Unsandboxed,
}

/// The kind of an [`Effect`], without what it touches.
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
            Self::Unsandboxed => EffectKind::Unsandboxed,
        }
    }

    /// Whether this effect can change anything besides the session's own notes and tasks.
    pub const fn mutates(&self) -> bool {
        use EffectKind::{Ask, Inspect, Note, Reach, Read, StopTask};
        !matches!(self.kind(), Read | Inspect | Reach | Ask | Note | StopTask)
    }

    /// Whether it may touch any file.
    fn touches_any(&self) -> bool {
        matches!(self, Self::Run { .. } | Self::Spawn { .. } | Self::Serve { writes: true, .. })
    }

    /// Whether it touches no file at all.
    fn touches_none(&self) -> bool {
        use EffectKind::{Ask, Inspect, Note, Reach, StopTask};
        matches!(self.kind(), Reach | Inspect | Ask | Note | StopTask)
            || matches!(self, Self::Serve { writes: false, .. })
    }

    /// Whether the order of the two effects could matter.
    fn conflicts_with(&self, other: &Self) -> bool {
        match (self, other) {
            // A command or an agent may touch any file, so only what touches none may run beside it.
            (a, b) if a.touches_any() && b.touches_none() || a.touches_none() && b.touches_any() => false,
            (a, b) if a.touches_any() || b.touches_any() => true,
            (Self::Write { path: a }, Self::Write { path: b } | Self::Read { path: b })
            | (Self::Read { path: a }, Self::Write { path: b }) => overlap(a, b),
            // Two questions at once would talk over each other, and what is told in two messages has an order.
            (Self::Ask, Self::Ask)
            | (Self::Send { .. }, Self::Send { .. })
            | (Self::Configure { .. }, Self::Configure { .. }) => true,
            _ => false,
        }
    }
}

/// Whether one path lies within the other.
fn overlap(a: &Path, b: &Path) -> bool {
    a.starts_with(b) || b.starts_with(a)
}

/// Whether two calls with these effects must keep their order.
pub fn conflicts(a: &[Effect], b: &[Effect]) -> bool {
    a.iter().any(|a| b.iter().any(|b| a.conflicts_with(b)))
}

/// The class of a tool's side effects, as callers see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
    /// The class of a tool with these kinds of effects: the gravest of them counts.
    pub fn of(effects: &[EffectKind]) -> Self {
        let class = |kind: &EffectKind| match kind {
            EffectKind::Spawn => Self::Spawns,
            EffectKind::Write
            | EffectKind::Run
            | EffectKind::Serve
            | EffectKind::Note
            | EffectKind::StopTask
            | EffectKind::Configure
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

    fn read(path: &str) -> Vec<Effect> {
        vec![Effect::Read { path: path.into() }]
    }
    fn write(path: &str) -> Vec<Effect> {
        vec![Effect::Write { path: path.into() }]
    }
    fn run() -> Vec<Effect> {
        vec![Effect::Run { command: "true".into() }]
    }

    #[test]
    fn only_what_could_change_the_other_conflicts() {
        assert!(!conflicts(&read("/w/a"), &read("/w/a")));
        assert!(!conflicts(&write("/w/a"), &write("/w/ab")), "a name prefix is not a parent");
        assert!(conflicts(&write("/w/a"), &write("/w/a")));
        assert!(conflicts(&write("/w/a/b"), &read("/w")), "a search of the folder sees the write");
        assert!(conflicts(&run(), &read("/w")));
        assert!(conflicts(&run(), &run()));
        assert!(!conflicts(&run(), &[Effect::Reach { host: "example.org".into() }]));
        assert!(!conflicts(&[], &run()), "what touches nothing conflicts with nothing");
    }
}
