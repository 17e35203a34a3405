//! Changes of permissions that a hook, a host or the user's answer asks for.

use serde::{Deserialize, Serialize};

/// A change of the session's or the settings' permissions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
#[non_exhaustive]
pub enum PermissionUpdate {
    /// Adds rules.
    AddRules {
        /// The rules.
        rules: Vec<PermissionUpdateRule>,
        /// What they say.
        behavior: PermissionUpdateBehavior,
        /// Where they are kept.
        destination: PermissionUpdateDestination,
    },
    /// Replaces all rules of a behavior.
    ReplaceRules {
        /// The rules.
        rules: Vec<PermissionUpdateRule>,
        /// What they say.
        behavior: PermissionUpdateBehavior,
        /// Where they are kept.
        destination: PermissionUpdateDestination,
    },
    /// Removes rules.
    RemoveRules {
        /// The rules.
        rules: Vec<PermissionUpdateRule>,
        /// What they say.
        behavior: PermissionUpdateBehavior,
        /// Where they are kept.
        destination: PermissionUpdateDestination,
    },
    /// Changes the permission mode.
    SetMode {
        /// Its name.
        mode: String,
        /// Where it is kept.
        destination: PermissionUpdateDestination,
    },
    /// Adds directories.
    AddDirectories {
        /// Their paths.
        directories: Vec<String>,
        /// Where they are kept.
        destination: PermissionUpdateDestination,
    },
    /// Removes directories.
    RemoveDirectories {
        /// Their paths.
        directories: Vec<String>,
        /// Where they are kept.
        destination: PermissionUpdateDestination,
    },
}

/// A rule of a [`PermissionUpdate`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionUpdateRule {
    /// The tool.
    pub tool_name: String,
    /// The specifier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule_content: Option<String>,
}

/// What rules say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "they say what they are")]
pub enum PermissionUpdateBehavior {
    Allow,
    Deny,
    Ask,
}

/// Where a [`PermissionUpdate`] is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PermissionUpdateDestination {
    /// The user's settings file.
    UserSettings,
    /// The project's settings file.
    ProjectSettings,
    /// The project's settings file that is not shared.
    LocalSettings,
    /// The session.
    Session,
    /// The command line of this process.
    CliArg,
}
