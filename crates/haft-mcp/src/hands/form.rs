//! Tools and results as the wire has them.

use haft_runtime::CallResult;
use haft_tool::{Content, Definition, Output, SideEffect};
use serde_json::{Map, Value, json};

use crate::wire::Version;

/// A tool as clients see it.
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

/// The result of a call, and where the rest of it is if it was cut.
pub fn result(done: CallResult, version: Version) -> Value {
    let CallResult { output: given, receipt, .. } = done;
    let mut all = Pieces::of(given, version);
    let id = receipt.id;
    if receipt.full_output.is_some() && version >= Version::V2025_06_18 {
        all.content.push(json!({
            "type": "resource_link", "uri": super::resources::output_uri(id), "name": format!("output of call {id}"),
            "description": "All of the output, of which the text shows a part", "mimeType": "text/plain",
        }));
    }
    if id > 0 {
        all.meta.insert("haft/call".to_owned(), json!(id));
    }
    all.into_value()
}

/// A result's pieces.
pub fn output(output: Output, version: Version) -> Value {
    Pieces::of(output, version).into_value()
}

struct Pieces {
    content: Vec<Value>,
    failed: bool,
    structured: Option<Value>,
    meta: Map<String, Value>,
}

impl Pieces {
    fn of(output: Output, version: Version) -> Self {
        let failed = output.is_error();
        let block = |piece: Content| match piece {
            Content::Text { text } => part("text", [("text", text.head + &text.tail)]),
            Content::Block { block, .. } => block,
            Content::Image { media_type, data } => part("image", [("mimeType", media_type), ("data", data)]),
        };
        let content = output.content.into_iter().map(block).collect();
        let (mut structured, mut meta) = (None, Map::new());
        match output.structured {
            Some(value) if output.whole && (value.is_object() || version.is_modern()) => {
                structured = Some(value);
            }
            // Some clients show a model the structured content alone, and facts are no result.
            Some(facts) => drop(meta.insert("haft/facts".to_owned(), facts)),
            None => {}
        }
        Self { content, failed, structured, meta }
    }

    fn into_value(self) -> Value {
        let mut all = Map::with_capacity(4);
        all.insert("content".to_owned(), Value::Array(self.content));
        all.insert("isError".to_owned(), Value::Bool(self.failed));
        if let Some(structured) = self.structured {
            all.insert("structuredContent".to_owned(), structured);
        }
        if !self.meta.is_empty() {
            all.insert("_meta".to_owned(), Value::Object(self.meta));
        }
        Value::Object(all)
    }
}

/// A piece of that type. Its words move in: `json!` would copy them, and they may be long.
fn part<const N: usize>(kind: &str, words: [(&str, String); N]) -> Value {
    let words = words.into_iter().map(|(name, word)| (name.to_owned(), Value::String(word)));
    Value::Object([("type".to_owned(), Value::from(kind))].into_iter().chain(words).collect())
}
