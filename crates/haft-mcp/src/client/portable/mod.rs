//! Makes a server's tools usable with every model provider: valid names, plain schemas, and text without hidden characters.

mod choice;
mod names;
mod reference;
mod schema;
#[cfg(test)]
mod tests;
mod text;

pub use names::ToolNames;
pub use schema::plain_schema;
pub use text::{clean, clean_line};

use serde_json::Value;

use super::ServerTool;

/// Characters of a tool's description.
const MAX_DESCRIPTION_CHARS: usize = 4000;
/// Characters of a tool's title.
const MAX_TITLE_CHARS: usize = 200;
/// Tools with longer names are refused.
const MAX_NAME_BYTES: usize = 1000;

/// A tool that every provider accepts.
#[derive(Debug, Clone, PartialEq)]
pub struct PortableTool {
    /// The server's name for it; [`ToolNames`] makes names for models.
    pub name: String,
    /// The name for people, cleaned.
    pub title: Option<String>,
    /// The description, cleaned and bounded.
    pub description: String,
    /// The schema of its arguments: see [`plain_schema`].
    pub input_schema: Value,
    /// The schema of its arguments as the server has it.
    pub server_schema: Value,
    /// What was left out.
    pub left_out: Vec<String>,
}

/// Converts a tool. An error says why it cannot be used.
pub fn make_portable(tool: &ServerTool) -> Result<PortableTool, String> {
    if tool.name.len() > MAX_NAME_BYTES {
        return Err(format!("its name has {} bytes, more than {MAX_NAME_BYTES}", tool.name.len()));
    }
    let (input_schema, left_out) = plain_schema(&tool.input_schema)?;
    Ok(PortableTool {
        name: tool.name.clone(),
        title: tool
            .title
            .as_deref()
            .map(|title| clean_line(title, MAX_TITLE_CHARS))
            .filter(|title| !title.is_empty()),
        description: clean(&tool.description, MAX_DESCRIPTION_CHARS),
        input_schema,
        server_schema: tool.input_schema.clone(),
        left_out,
    })
}
