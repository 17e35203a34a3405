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
        /// The host's name or address, with its port unless that is one of the web's: `example.com`, `10.0.0.5:8080`.
        host: String,
    },
    /// Sends a message to people elsewhere, which nothing takes back.
    Send {
        /// The channel.
        channel: String,
    },
    /// Starts an agent.
    Spawn {
        /// Which kind of agent.
        agent: String,
    },
    /// Has a server of somebody else's do something.
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
    /// Changes one of the user's settings.
    Configure {
        /// Its name.
        setting: String,
    },
    /// Runs its command with nobody holding it to the scope.
    Unsandboxed,
}

impl Effect {
    /// Whether this effect can change anything.
    pub fn mutates(&self) -> bool {
        !matches!(self, Self::Read { .. } | Self::Reach { .. } | Self::Ask)
    }

    /// Whether it may touch any file.
    fn touches_any(&self) -> bool {
        matches!(self, Self::Run { .. } | Self::Spawn { .. } | Self::Serve { writes: true, .. })
    }

    /// Whether it touches no file at all.
    fn touches_none(&self) -> bool {
        matches!(self, Self::Reach { .. } | Self::Ask | Self::Serve { writes: false, .. })
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

/// The class of a tool's side effects, told to callers before any call is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SideEffect {
    /// Touches nothing and answers at once: it is performed where its caller is, so it must not block.
    None,
    /// Looks, but changes nothing.
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
