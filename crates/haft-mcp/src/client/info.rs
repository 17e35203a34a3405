//! Who a server says it is.

use serde_json::Value;

use super::portable::{clean, clean_line};
use crate::wire::{ProtocolVersion, meta};

/// How much of a server's instructions is kept.
const MOST_INSTRUCTIONS: usize = 16_000;
/// How long a name may be.
const MOST_NAME: usize = 200;

/// Who a server says it is. None of it is proof of anything.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerInfo {
    /// The revision that is spoken with it.
    pub version: ProtocolVersion,
    /// Its name; empty if it gave none.
    pub name: String,
    /// Its name for people, if it gave one.
    pub title: Option<String>,
    /// Its own version, as it writes it.
    pub release: String,
    /// What it declares: an object, as the wire has it.
    pub capabilities: Value,
    /// What it would have a model know; a stranger's words, cleaned and bounded.
    pub instructions: Option<String>,
}

impl ServerInfo {
    /// What a result of `server/discover` or `initialize` says of its server.
    pub(super) fn read(version: ProtocolVersion, result: &Value) -> Self {
        let server =
            meta::get(result, meta::SERVER).or_else(|| result.get("serverInfo")).unwrap_or(&Value::Null);
        let word =
            |field: &str| server.get(field).and_then(Value::as_str).map(|word| clean_line(word, MOST_NAME));
        let capabilities = result.get("capabilities").filter(|declared| declared.is_object());
        let instructions = result.get("instructions").and_then(Value::as_str);
        Self {
            version,
            name: word("name").unwrap_or_default(),
            title: word("title").filter(|title| !title.is_empty()),
            release: word("version").unwrap_or_default(),
            capabilities: capabilities.cloned().unwrap_or_else(|| Value::Object(serde_json::Map::new())),
            instructions: instructions
                .map(|words| clean(words, MOST_INSTRUCTIONS))
                .filter(|words| !words.trim().is_empty()),
        }
    }

    /// Whether it declares this, for example `resources`.
    pub fn declares(&self, capability: &str) -> bool {
        self.capabilities.get(capability).is_some_and(|declared| !declared.is_null() && declared != false)
    }

    /// Whether it declares this switch, for example `tools` and `listChanged`.
    pub fn declares_that(&self, capability: &str, switch: &str) -> bool {
        self.capabilities
            .get(capability)
            .and_then(|declared| declared.get(switch))
            .is_some_and(|on| on == true)
    }
}
