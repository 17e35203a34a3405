//! What the user chose for the commands of a session.

use std::path::PathBuf;

use crate::limits::CommandLimits;

/// The options of a session's commands.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SandboxOptions {
    /// Whether commands get namespaces of their own, where the kernel grants them.
    pub namespaces: bool,
    /// What a command may use.
    pub limits: CommandLimits,
    /// Entries of the home directory, relative to it, that commands see besides toolchains.
    pub home_entries: Vec<PathBuf>,
    /// Entries of the home directory, relative to it, that commands get a copy of.
    pub home_copies: Vec<PathBuf>,
    /// Those of them that hold a login: what commands renew is written back.
    pub home_logins: Vec<PathBuf>,
    /// TCP ports of commands that the loopback interface of the machine leads to.
    pub served_ports: Vec<u16>,
    /// Hosts that the user's own settings name: their names may lead to addresses that are not public.
    pub own_hosts: Vec<String>,
    /// Whether commands are only tried: they change nothing, and what they would change is listed.
    pub preview: bool,
    /// Whether commands see only the workspace, system directories and toolchains.
    pub workspace_reads: bool,
}

impl Default for SandboxOptions {
    fn default() -> Self {
        Self {
            namespaces: true,
            limits: CommandLimits::default(),
            home_entries: Vec::new(),
            home_copies: Vec::new(),
            home_logins: Vec::new(),
            served_ports: Vec::new(),
            own_hosts: Vec::new(),
            preview: false,
            workspace_reads: false,
        }
    }
}
