//! Claude Code's settings files, read as they are: which there are, what of them is in force, and what is not.
//!
//! What a project's files allow, run or pass to commands counts only after the user has trusted it; what they deny or ask about
//! counts at once.

mod effective;
mod files;
mod hook_runner;
mod listing;
mod server_limits;
mod trust;

use std::path::PathBuf;

pub(crate) use effective::{ClaudeRule, Effective, project_content};
pub(crate) use files::{ClaudeFile, ClaudeFiles, SettingsFlags, SettingsLayer};
pub(crate) use hook_runner::{ConfiguredHooks, HostHook, claude_mode};
pub(crate) use listing::listing;
pub(crate) use trust::ProjectTrust;

/// A variable of the environment that is a path.
pub(crate) fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}
