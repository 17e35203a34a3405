//! Tool definitions in the envelope of each provider, as they are sent.

use haft_tool::{Definition, SideEffect, Value, json};

/// Whose envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Haft's own.
    Haft,
    /// `OpenAI`'s chat completions; also `OpenRouter` and `LiteLLM`.
    Openai,
    /// Anthropic's messages.
    Anthropic,
    /// Gemini's function declarations.
    Gemini,
    /// Ollama's chat.
    Ollama,
    /// MCP's tools/list.
    Mcp,
}

/// The definitions in that envelope.
pub fn definitions(format: Format, definitions: &[Definition]) -> Value {
    let each = |wrap: fn(&Definition) -> Value| Value::Array(definitions.iter().map(wrap).collect());
    match format {
        Format::Haft => each(|tool| json!(tool)),
        Format::Openai | Format::Ollama => each(|tool| {
            json!({"type": "function", "function": {
                "name": tool.name, "description": tool.description, "parameters": tool.input_schema,
            }})
        }),
        Format::Anthropic => each(
            |tool| json!({"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}),
        ),
        Format::Gemini => json!([{"functionDeclarations": each(|tool| {
            json!({"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.input_schema})
        })}]),
        Format::Mcp => json!({"tools": each(|tool| {
            let read_only = matches!(tool.side_effect, SideEffect::None | SideEffect::ReadOnly);
            json!({
                "name": tool.name, "description": tool.description, "inputSchema": tool.input_schema,
                "annotations": {"readOnlyHint": read_only, "openWorldHint": tool.side_effect == SideEffect::Network},
            })
        })}),
    }
}
