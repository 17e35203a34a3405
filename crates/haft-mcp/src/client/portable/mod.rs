//! What servers say, made fit for models and people: names, schemas and words that every provider takes and that hide
//! nothing.

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

/// How long a tool's description may be.
const MOST_DESCRIPTION: usize = 4000;
/// The longest name that is taken at all; a longer one is shortened for providers, but this far it goes into logs.
const MOST_NAME: usize = 1000;

/// A tool that every provider takes.
#[derive(Debug, Clone, PartialEq)]
pub struct PortableTool {
    /// What its server knows it by; names for models are made with [`ToolNames`].
    pub name: String,
    /// Its name for people, cleaned.
    pub title: Option<String>,
    /// What it does, cleaned and bounded.
    pub description: String,
    /// What it takes, plain: see [`plain_schema`].
    pub input_schema: Value,
    /// What had to be left out, in words.
    pub left_out: Vec<String>,
}

/// The tool as every provider takes it, or why there is none.
pub fn make_portable(tool: &ServerTool) -> Result<PortableTool, String> {
    if tool.name.len() > MOST_NAME {
        return Err(format!("its name has {} bytes", tool.name.len()));
    }
    let (input_schema, left_out) = plain_schema(&tool.input_schema)?;
    Ok(PortableTool {
        name: tool.name.clone(),
        title: tool.title.as_deref().map(|title| clean_line(title, 200)).filter(|title| !title.is_empty()),
        description: clean(&tool.description, MOST_DESCRIPTION),
        input_schema,
        left_out,
    })
}
