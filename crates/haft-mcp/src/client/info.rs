//! What a server says about itself.

use serde_json::{Map, Value};

use super::portable::{clean, clean_line};
use crate::wire::{ProtocolVersion, meta};

const MAX_INSTRUCTION_CHARS: usize = 16_000;
const MAX_NAME_CHARS: usize = 200;

/// What a server says about itself. None of it is verified.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerInfo {
    /// The negotiated protocol version.
    pub version: ProtocolVersion,
    /// The name; empty if it has none.
    pub name: String,
    /// The name for people.
    pub title: Option<String>,
    /// The server's own version.
    pub release: String,
    /// The declared capabilities, an object.
    pub capabilities: Value,
    /// Instructions for models, cleaned and bounded.
    pub instructions: Option<String>,
}

impl ServerInfo {
    /// Reads a result of `server/discover` or `initialize`.
    pub(super) fn read(version: ProtocolVersion, result: &Value) -> Self {
        let server = meta::get(result, meta::SERVER).or_else(|| result.get("serverInfo"));
        let text = |field: &str| {
            let value = server?.get(field)?.as_str()?;
            Some(clean_line(value, MAX_NAME_CHARS))
        };
        let capabilities = result.get("capabilities").filter(|declared| declared.is_object());
        let instructions = result.get("instructions").and_then(Value::as_str);
        Self {
            version,
            name: text("name").unwrap_or_default(),
            title: text("title").filter(|title| !title.is_empty()),
            release: text("version").unwrap_or_default(),
            capabilities: capabilities.cloned().unwrap_or_else(|| Value::Object(Map::new())),
            instructions: instructions
                .map(|text| clean(text, MAX_INSTRUCTION_CHARS))
                .filter(|text| !text.trim().is_empty()),
        }
    }

    /// Whether the server declares a capability, for example `resources`.
    pub fn has_capability(&self, name: &str) -> bool {
        self.capabilities.get(name).is_some_and(|declared| !declared.is_null() && declared != false)
    }

    /// Whether the server sets a flag of a capability, for example `listChanged` of `tools`.
    pub fn has_flag(&self, capability: &str, flag: &str) -> bool {
        let declared = self.capabilities.get(capability);
        declared.and_then(|declared| declared.get(flag)).is_some_and(|value| value == true)
    }
}
