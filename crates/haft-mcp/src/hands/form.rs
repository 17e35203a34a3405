//! Tools and results as the wire has them.

use haft_runtime::CallResult;
use haft_tool::{Content, Definition, Output, SideEffect};
use serde_json::{Value, json};

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
pub fn result(done: &CallResult, version: Version) -> Value {
    let mut all = output(&done.output, version);
    let id = done.receipt.id;
    if done.receipt.full_output.is_some()
        && version >= Version::V2025_06_18
        && let Some(content) = all["content"].as_array_mut()
    {
        content.push(json!({
            "type": "resource_link", "uri": super::resources::output_uri(id), "name": format!("output of call {id}"),
            "description": "All of the output, of which the text shows a part", "mimeType": "text/plain",
        }));
    }
    if id > 0 {
        all["_meta"]["haft/call"] = json!(id);
    }
    all
}

/// A result's pieces.
pub fn output(output: &Output, version: Version) -> Value {
    let block = |piece: &Content| match piece {
        Content::Text { text } => json!({"type": "text", "text": format!("{}{}", text.head, text.tail)}),
        Content::Block { block, .. } => block.clone(),
        Content::Image { media_type, data } => json!({"type": "image", "mimeType": media_type, "data": data}),
    };
    let content: Vec<Value> = output.content.iter().map(block).collect();
    let mut all = json!({"content": content, "isError": output.is_error()});
    match &output.structured {
        Some(value) if output.whole && (value.is_object() || version.is_modern()) => {
            all["structuredContent"] = value.clone();
        }
        // Some clients show a model the structured content alone, and facts are no result.
        Some(facts) => all["_meta"]["haft/facts"] = facts.clone(),
        None => {}
    }
    all
}
