//! Tool definitions and results as MCP has them.

use haft_tool::{Content, Definition, Output, SideEffect};
use serde_json::{Map, Value, json};

/// A tool as `tools/list` shows it.
pub fn definition(tool: &Definition) -> Value {
    let read_only = matches!(tool.side_effect, SideEffect::None | SideEffect::ReadOnly);
    let mut annotations = json!({
        "readOnlyHint": read_only,
        "openWorldHint": tool.side_effect == SideEffect::Network,
    });
    if !read_only {
        annotations["destructiveHint"] = json!(tool.side_effect == SideEffect::Mutating);
    }
    let mut all = json!({
        "name": tool.name,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "annotations": annotations,
    });
    if let Some(schema) = &tool.output_schema {
        all["outputSchema"] = schema.clone();
    }
    all
}

/// The parts of a `tools/call` result.
pub struct McpResult {
    /// The content blocks.
    pub content: Vec<Value>,
    is_error: bool,
    structured: Option<Value>,
    /// The members of `_meta`.
    pub meta: Map<String, Value>,
}

impl McpResult {
    /// The result for an output. Structured content that is no object needs a client that allows `any_structured`.
    pub fn new(output: Output, any_structured: bool) -> Self {
        let is_error = output.is_error();
        let block = |piece: Content| match piece {
            Content::Text { text } => part("text", [("text", text.head + &text.tail)]),
            Content::Block { block, .. } => block,
            Content::Image { media_type, data } => part("image", [("mimeType", media_type), ("data", data)]),
        };
        let content = output.content.into_iter().map(block).collect();
        let (mut structured, mut meta) = (None, Map::new());
        match output.structured {
            Some(value) if output.whole && (value.is_object() || any_structured) => {
                structured = Some(value);
            }
            // Some clients show the model only structured content, so additional facts go to `_meta`.
            Some(facts) => drop(meta.insert("haft/facts".to_owned(), facts)),
            None => {}
        }
        Self { content, is_error, structured, meta }
    }

    /// The result as JSON.
    pub fn into_value(self) -> Value {
        let mut all = Map::with_capacity(4);
        all.insert("content".to_owned(), Value::Array(self.content));
        all.insert("isError".to_owned(), Value::Bool(self.is_error));
        if let Some(structured) = self.structured {
            all.insert("structuredContent".to_owned(), structured);
        }
        if !self.meta.is_empty() {
            all.insert("_meta".to_owned(), Value::Object(self.meta));
        }
        Value::Object(all)
    }
}

/// A content block. Moves the strings, which may be long; `json!` would copy them.
fn part<const N: usize>(kind: &str, words: [(&str, String); N]) -> Value {
    let words = words.into_iter().map(|(name, word)| (name.to_owned(), Value::String(word)));
    Value::Object([("type".to_owned(), Value::from(kind))].into_iter().chain(words).collect())
}
