//! Tool definitions and results as MCP has them.

use haft_tool::{Content, Definition, EffectKind, Output};
use serde_json::{Map, Value, json};

/// A tool as `tools/list` shows it.
pub fn definition(tool: &Definition) -> Value {
    let mut all = json!({
        "name": tool.name,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "annotations": annotations(&tool.effects),
        // Claude Code otherwise shows the model only the names of tools until it searches for them.
        "_meta": {"anthropic/alwaysLoad": true},
    });
    if let Some(schema) = &tool.output_schema {
        all["outputSchema"] = schema.clone();
    }
    all
}

/// What clients may assume about a tool. Each hint is given, because the protocol's defaults assume the worst. What undo
/// restores is not destructive; commands count as confined, as they are by default.
fn annotations(effects: &[EffectKind]) -> Value {
    use EffectKind::{Ask, Inspect, Reach, Read, Send, Serve, Spawn};
    let any_of = |kinds: &[EffectKind]| effects.iter().any(|kind| kinds.contains(kind));
    let read_only = effects.iter().all(|kind| matches!(kind, Read | Inspect | Ask | Reach));
    json!({
        "readOnlyHint": read_only,
        "destructiveHint": any_of(&[Send, Serve, Spawn]),
        "openWorldHint": any_of(&[Reach, Send, Serve, Spawn]),
    })
}

/// Marks commands in a definition as what they are outside the sandbox or with network access.
pub fn mark_unconfined(tool: &Definition, definition: &mut Value) {
    if tool.effects.contains(&EffectKind::Run) {
        definition["annotations"]["destructiveHint"] = json!(true);
        definition["annotations"]["openWorldHint"] = json!(true);
    }
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
