//! Claude Code's settings files: `settings.json`, `settings.local.json`, `managed-settings.json` and what `--settings` takes.
//!
//! [`ClaudeSettings::parse`] reads one file. It does not know whose file it is: merging files, trust and the order of
//! precedence are the caller's. What is wrong with single values is in [`ClaudeSettings::problems`], what Haft does not
//! apply in [`ClaudeSettings::other_keys`].
//!
//! Differences from Claude Code: comments and trailing commas are accepted, because nothing is lost with them, and reported
//! ([`ClaudeSettings::not_strict_json`]). A key that occurs twice in one object is an error, because a JSON parser keeps only
//! one of the two. A rule may be an object with examples ([`SettingsRule`]).

mod document;
mod error;
mod file;
mod hook_settings;
mod key_table;
mod keys;
mod mcp_servers;
mod object;
mod permissions;
mod sandbox;

pub use document::{Located, MAX_SETTINGS_BYTES};
pub use error::{SettingsError, SettingsProblem};
pub use file::{ClaudeSettings, EnvSetting, SkillOverride, SkillVisibility};
pub use hook_settings::{EventHooks, HookAction, HookGroup, HookHandler, HookSettings, MAX_HOOK_TIMEOUT};
pub use keys::{KeyMeaning, KeyStatus, OtherKey, is_command_key, key_meaning, known_keys};
pub use mcp_servers::McpServerPattern;
pub use permissions::{DefaultMode, PermissionSettings, SettingsRule};
pub use sandbox::{
    ClaudeSandbox, CredentialAccess, CredentialFile, CredentialSettings, CredentialVariable,
    FilesystemSettings, NetworkSettings,
};
