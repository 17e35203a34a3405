//! Tools, resources and prompts as servers describe them.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::list::excerpt;
use super::portable::clean_line;

/// Characters of an error that a warning repeats.
const MAX_ERROR_CHARS: usize = 200;

/// A tool as its server describes it. See [`super::portable`] for what is made of it.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerTool {
    /// The name.
    pub name: String,
    /// The name for people.
    pub title: Option<String>,
    /// The description.
    pub description: String,
    /// The schema of the arguments; null if there is none.
    pub input_schema: Value,
    /// The schema of the structured result.
    pub output_schema: Option<Value>,
    /// Hints, an object or null. They grant nothing.
    pub annotations: Value,
}

impl ServerTool {
    pub(super) fn read(item: Value) -> Result<Self, String> {
        let Value::Object(mut item) = item else {
            return Err("a tool that is not an object is left out".to_owned());
        };
        let name = match item.remove("name") {
            Some(Value::String(name)) if !name.trim().is_empty() => name,
            other => {
                let other = excerpt(&other.unwrap_or_default());
                return Err(format!("a tool with the invalid name {other} is left out"));
            }
        };
        let mut text = |field: &str| match item.remove(field) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        Ok(Self {
            name,
            title: text("title"),
            description: text("description").unwrap_or_default(),
            input_schema: item.remove("inputSchema").unwrap_or_default(),
            output_schema: item.remove("outputSchema").filter(|schema| !schema.is_null()),
            annotations: item.remove("annotations").filter(Value::is_object).unwrap_or_default(),
        })
    }
}

/// A resource.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerResource {
    /// The URI.
    pub uri: String,
    /// The name.
    #[serde(default)]
    pub name: String,
    /// The name for people.
    pub title: Option<String>,
    /// The description.
    pub description: Option<String>,
    /// The MIME type.
    pub mime_type: Option<String>,
    /// The size in bytes.
    pub size: Option<u64>,
}

/// A template of resource URIs.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceTemplate {
    /// The template (RFC 6570).
    pub uri_template: String,
    /// The name.
    #[serde(default)]
    pub name: String,
    /// The name for people.
    pub title: Option<String>,
    /// The description.
    pub description: Option<String>,
    /// The MIME type.
    pub mime_type: Option<String>,
}

/// A prompt.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ServerPrompt {
    /// The name.
    pub name: String,
    /// The name for people.
    pub title: Option<String>,
    /// The description.
    pub description: Option<String>,
    /// The arguments.
    #[serde(default)]
    pub arguments: Vec<PromptArgument>,
}

/// An argument of a prompt.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct PromptArgument {
    /// The name.
    pub name: String,
    /// The description.
    pub description: Option<String>,
    /// Whether it is required.
    #[serde(default)]
    pub required: bool,
}

/// Reads an item of a list; `item_name` is for the warning.
pub(super) fn read<T: DeserializeOwned>(item_name: &str, item: Value) -> Result<T, String> {
    let name = ["uri", "uriTemplate", "name"].iter().find_map(|field| item.get(field)).map(excerpt);
    serde_json::from_value(item).map_err(|error| {
        let name = name.unwrap_or_else(|| "without a name".to_owned());
        format!("the {item_name} {name} is left out: {}", clean_line(&error.to_string(), MAX_ERROR_CHARS))
    })
}

/// Whether a tool's result is an object whose `content`, if present, is an array.
pub(super) fn is_tool_result(result: &Value) -> bool {
    let is_valid = |fields: &Map<String, Value>| fields.get("content").is_none_or(Value::is_array);
    result.as_object().is_some_and(is_valid)
}
