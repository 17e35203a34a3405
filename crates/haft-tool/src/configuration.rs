//! The user's settings, as far as tools may read and change them.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ToolError;

/// One setting and its value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// Its name, with dots between tables and keys.
    pub name: String,
    /// Its value; null if nothing is set. Secrets are replaced.
    pub value: Value,
    /// Where the value comes from: a file and line, a variable, a flag, or the default.
    pub origin: String,
}

/// The user's settings.
///
/// Nothing here writes: a change is the new text of the file, which the tool passes to the World, so that it is recorded
/// and can be undone.
pub trait Configuration: Send + Sync {
    /// The file that changes go to.
    fn file(&self) -> &Path;
    /// Every setting.
    fn list(&self) -> Result<Vec<Setting>, ToolError>;
    /// One setting.
    fn get(&self, name: &str) -> Result<Setting, ToolError>;
    /// The file's new bytes, with everything else as it was. A value that does not fit the setting is an error.
    fn changed(&self, file: Option<&[u8]>, name: &str, value: &Value) -> Result<Vec<u8>, ToolError>;
}
