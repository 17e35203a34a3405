//! What a call may touch: the answer of policy, enforced by the World.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Where a call may read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reads {
    /// Anywhere but the protected paths.
    Everywhere,
    /// Only inside the roots.
    Roots,
}

/// What a call may reach over the network.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// Nothing but what it serves itself on this machine.
    #[default]
    None,
    /// Only these domains; `*.` before one means all names below it.
    Domains(Vec<String>),
    /// Everything.
    All,
}

/// What a call itself may reach; its commands are held to [`Network`]. Hosts are written as [`net`](crate::net) reads them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reach {
    /// Hosts that were allowed. A name among them may lead only to public addresses; an address may be any.
    pub hosts: Vec<String>,
    /// Hosts whose names may lead to any address, because the user's own configuration names them.
    pub inner: Vec<String>,
    /// Whether every other public host may be reached too.
    pub public: bool,
    /// Hosts that are never reached, whatever else allows them.
    pub never: Vec<String>,
}

/// What enforces the scope of a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sandbox {
    /// The kernel; a command that it cannot hold is not started.
    #[default]
    On,
    /// Nothing: the user explicitly turned the sandbox off.
    Off,
}

/// What a call may touch.
///
/// Paths are absolute and lexically normal. Whether a path lies in a root is decided by components, never by string prefix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    /// The folder the call works in; also the first root.
    pub workspace: PathBuf,
    /// Directories whose whole contents may be read and written.
    pub roots: Vec<PathBuf>,
    /// Single paths outside the roots that may be touched because a rule or the user said so.
    pub grants: Vec<PathBuf>,
    /// Where the call may read.
    pub reads: Reads,
    /// Paths that nothing may read or write, whatever else allows it: the ledger, the configuration.
    pub protected: Vec<PathBuf>,
    /// The file of the user's settings. It is one of the protected paths; only a call that declared it may change it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<PathBuf>,
    /// Whether the call may write at all.
    pub writes: bool,
    /// Whether the call may start processes.
    pub runs: bool,
    /// Paths that are not written, inside the roots or outside, unless a rule names them.
    pub blocked: Vec<PathBuf>,
    /// Guarded places that may be written because a rule or the user said so.
    pub unguarded: Vec<PathBuf>,
    /// Files that hold secrets. A glob without a directory matches that name anywhere; `~/` is the user's home. Commands may
    /// not read them, and tools only where [`Scope::readable`] says so.
    pub secrets: Vec<String>,
    /// The user's home directory, as written and with links resolved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub homes: Vec<PathBuf>,
    /// Secrets that the call may read because a rule or the user said so, and those that it declared to write.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub readable: Vec<PathBuf>,
    /// Globs of absolute paths that a rule keeps the call from reading, with everything below.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<String>,
    /// Globs of absolute paths that a rule keeps the call from writing, with everything below.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unwritable: Vec<String>,
    /// What commands may reach.
    pub network: Network,
    /// Hosts that the user's own configuration names, as `host` or `host:port`: tools reach them without a question.
    pub endpoints: Vec<String>,
    /// What the call itself may reach.
    pub reach: Reach,
    /// What enforces this for commands.
    pub sandbox: Sandbox,
}

/// Whether `path` is `folder` or lies in it; both are absolute and lexically normal. Compares bytes instead of components,
/// because every call asks this about many folders.
pub fn lies_in(path: &Path, folder: &Path) -> bool {
    let (path, folder) = (path.as_os_str().as_bytes(), folder.as_os_str().as_bytes());
    let folder = folder.strip_suffix(b"/").unwrap_or(folder);
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}

impl Scope {
    /// A scope that reads everything and may change nothing but the workspace.
    pub fn of(workspace: impl Into<PathBuf>) -> Self {
        let workspace = workspace.into();
        Self {
            roots: vec![workspace.clone()],
            workspace,
            grants: Vec::new(),
            reads: Reads::Everywhere,
            protected: Vec::new(),
            config: None,
            writes: false,
            runs: false,
            blocked: Vec::new(),
            unguarded: Vec::new(),
            secrets: Vec::new(),
            homes: Vec::new(),
            readable: Vec::new(),
            unreadable: Vec::new(),
            unwritable: Vec::new(),
            network: Network::None,
            endpoints: Vec::new(),
            reach: Reach::default(),
            sandbox: Sandbox::On,
        }
    }

    /// The root that `path` lies in.
    pub fn root_of(&self, path: &Path) -> Option<&Path> {
        self.roots.iter().map(PathBuf::as_path).find(|root| lies_in(path, root))
    }

    /// Whether `path` is never written: it is or lies in a blocked or a protected path.
    pub fn is_write_blocked(&self, path: &Path) -> bool {
        self.is_protected(path) || self.blocked.iter().any(|blocked| lies_in(path, blocked))
    }

    /// Whether `path` is or lies in a protected path.
    pub fn is_protected(&self, path: &Path) -> bool {
        self.protected.iter().any(|protected| lies_in(path, protected))
    }
}
