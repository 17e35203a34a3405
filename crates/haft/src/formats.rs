//! Tool definitions and results in the envelope of each provider, as they are sent.

use std::str::FromStr;

use haft_tool::{Content, Definition, Output, ToolError, Value, json};

#[cfg(feature = "mcp")]
use crate::mcp_form;

/// Whose envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProviderFormat {
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
    #[cfg(feature = "mcp")]
    Mcp,
}

impl ProviderFormat {
    /// The names of all formats, as `--format` takes them.
    pub const NAMES: &[&str] = &[
        "haft",
        "openai",
        "anthropic",
        "gemini",
        "ollama",
        #[cfg(feature = "mcp")]
        "mcp",
    ];
}

impl FromStr for ProviderFormat {
    type Err = ToolError;

    fn from_str(name: &str) -> Result<Self, ToolError> {
        Ok(match name {
            "haft" => Self::Haft,
            "openai" => Self::Openai,
            "anthropic" => Self::Anthropic,
            "gemini" => Self::Gemini,
            "ollama" => Self::Ollama,
            #[cfg(feature = "mcp")]
            "mcp" => Self::Mcp,
            _ => {
                let known = Self::NAMES.join(", ");
                return Err(ToolError::invalid_arguments(format!(
                    "Unknown format {name:?}. Use one of: {known}"
                )));
            }
        })
    }
}

/// The definitions in that envelope.
pub fn definitions(format: ProviderFormat, definitions: &[Definition]) -> Value {
    let each = |wrap: fn(&Definition) -> Value| Value::Array(definitions.iter().map(wrap).collect());
    match format {
        ProviderFormat::Haft => each(|tool| json!(tool)),
        ProviderFormat::Openai | ProviderFormat::Ollama => each(|tool| {
            json!({"type": "function", "function": {
                "name": tool.name, "description": tool.description, "parameters": tool.input_schema,
            }})
        }),
        ProviderFormat::Anthropic => each(
            |tool| json!({"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}),
        ),
        ProviderFormat::Gemini => json!([{"functionDeclarations": each(|tool| {
            json!({"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.input_schema})
        })}]),
        #[cfg(feature = "mcp")]
        ProviderFormat::Mcp => json!({"tools": each(mcp_form::definition)}),
    }
}

/// One result as it goes back to a model, in that provider's message or block. Where a wire knows no failure, the text
/// begins with `Error: `.
pub fn result(format: ProviderFormat, call_id: &str, tool: &str, output: &Output) -> Value {
    let text = output.as_text();
    let flagged = if output.is_error() && !text.starts_with("Error: ") {
        format!("Error: {text}")
    } else {
        text.clone()
    };
    match format {
        ProviderFormat::Haft => json!(output),
        ProviderFormat::Openai => json!({"role": "tool", "tool_call_id": call_id, "content": flagged}),
        ProviderFormat::Ollama => {
            json!({"role": "tool", "tool_call_id": call_id, "tool_name": tool, "content": flagged})
        }
        ProviderFormat::Anthropic => {
            let block = |piece: &Content| match piece {
                Content::Text { text } => {
                    json!({"type": "text", "text": format!("{}{}", text.head, text.tail)})
                }
                Content::Block { instead, .. } => json!({"type": "text", "text": instead}),
                Content::Image { media_type, data } => json!({
                    "type": "image", "source": {"type": "base64", "media_type": media_type, "data": data},
                }),
            };
            let content: Vec<Value> = output.content.iter().map(block).collect();
            json!({"type": "tool_result", "tool_use_id": call_id, "content": content, "is_error": output.is_error()})
        }
        ProviderFormat::Gemini => {
            let key = if output.is_error() { "error" } else { "output" };
            json!({"functionResponse": {"id": call_id, "name": tool, "response": {key: text}}})
        }
        #[cfg(feature = "mcp")]
        ProviderFormat::Mcp => mcp_form::McpResult::new(output.clone(), false).into_value(),
    }
}
