//! What the user has set, as far as tools may see and change it.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ToolError;

/// One setting, as it stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// Its name, with dots between tables and keys.
    pub name: String,
    /// Its value; null if nothing is set. What is secret is not told.
    pub value: Value,
    /// Where the value comes from: a file and its line, a variable, a flag, or that nobody has set it.
    pub origin: String,
}

/// The settings of whoever runs the tools.
///
/// Nothing here writes: a change is the new text of the file, which the tool hands to the World, so that it is recorded
/// and can be taken back like any other.
pub trait Configuration: Send + Sync {
    /// The file that changes go to.
    fn file(&self) -> &Path;
    /// Every setting.
    fn list(&self) -> Result<Vec<Setting>, ToolError>;
    /// One setting.
    fn get(&self, name: &str) -> Result<Setting, ToolError>;
    /// The file's new bytes, everything else in it as it was. A value that does not fit the setting is an error.
    fn changed(&self, file: Option<&[u8]>, name: &str, value: &Value) -> Result<Vec<u8>, ToolError>;
}
