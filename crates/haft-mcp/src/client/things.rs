//! What servers have: tools, resources, prompts, as they describe them.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::listing::shown;

/// A tool as its server describes it. None of it is believed: see [`super::portable`] for what becomes of it.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerTool {
    /// What it is called with.
    pub name: String,
    /// Its name for people, if it has one.
    pub title: Option<String>,
    /// What it does.
    pub description: String,
    /// What it takes; null if the server does not say.
    pub input_schema: Value,
    /// What it gives as structured content, if the server says.
    pub output_schema: Option<Value>,
    /// Hints about it; an object or null. Never permissions.
    pub annotations: Value,
}

impl ServerTool {
    pub(super) fn read(item: Value) -> Result<Self, String> {
        let Value::Object(mut item) = item else {
            return Err("a tool that is no object is left out".to_owned());
        };
        let name = match item.remove("name") {
            Some(Value::String(name)) if !name.trim().is_empty() => name,
            other => {
                let other = shown(&other.unwrap_or_default());
                return Err(format!("a tool is left out: its name is {other}"));
            }
        };
        let mut word = |field: &str| match item.remove(field) {
            Some(Value::String(word)) => Some(word),
            _ => None,
        };
        Ok(Self {
            name,
            title: word("title"),
            description: word("description").unwrap_or_default(),
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
    /// Its address.
    pub uri: String,
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// Its name for people.
    pub title: Option<String>,
    /// What it is.
    pub description: Option<String>,
    /// Of which kind it is.
    pub mime_type: Option<String>,
    /// How many bytes it has.
    pub size: Option<u64>,
}

/// Resources that an address can be made for.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceTemplate {
    /// How their addresses are made (RFC 6570).
    pub uri_template: String,
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// Its name for people.
    pub title: Option<String>,
    /// What they are.
    pub description: Option<String>,
    /// Of which kind they are.
    pub mime_type: Option<String>,
}

/// A prompt.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ServerPrompt {
    /// What it is asked for with.
    pub name: String,
    /// Its name for people.
    pub title: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// What it takes.
    #[serde(default)]
    pub arguments: Vec<PromptArgument>,
}

/// What a prompt takes.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct PromptArgument {
    /// Its name.
    pub name: String,
    /// What it is.
    pub description: Option<String>,
    /// Whether it must be given.
    #[serde(default)]
    pub required: bool,
}

/// Reads one entry of a list.
pub(super) fn read<T: for<'de> Deserialize<'de>>(what: &str, item: Value) -> Result<T, String> {
    let name = ["uri", "uriTemplate", "name"].iter().find_map(|field| item.get(field)).map(shown);
    serde_json::from_value(item).map_err(|error| {
        let name = name.unwrap_or_else(|| "without a name".to_owned());
        format!("the {what} {name} is left out: {}", super::portable::clean_line(&error.to_string(), 200))
    })
}

/// The shape of a tool's result: an object whose content, if it has any, is a list.
pub(super) fn is_tool_result(result: &Value) -> bool {
    let has_shape = |fields: &Map<String, Value>| fields.get("content").is_none_or(Value::is_array);
    result.as_object().is_some_and(has_shape)
}
