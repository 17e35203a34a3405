//! Tool definitions and results in the envelope of each provider, as they are sent.

use std::str::FromStr;

use haft_model::wire::{self, Wire, WireOptions};
use haft_tool::{Definition, Output, ToolError, Value, json};

#[cfg(feature = "mcp")]
use crate::mcp_form;

/// Whose envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProviderFormat {
    /// Haft's own.
    Haft,
    /// OpenAI's chat completions; also OpenRouter and LiteLLM.
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

impl ProviderFormat {
    /// The wire format with this envelope, if a model is spoken to in it.
    fn wire(self) -> Option<Wire> {
        match self {
            Self::Openai => Some(Wire::OpenaiChat),
            Self::Anthropic => Some(Wire::Anthropic),
            Self::Gemini => Some(Wire::Gemini),
            Self::Ollama => Some(Wire::Ollama),
            Self::Haft => None,
            #[cfg(feature = "mcp")]
            Self::Mcp => None,
        }
    }
}

/// The definitions in that envelope.
pub fn definitions(format: ProviderFormat, definitions: &[Definition]) -> Value {
    if let Some(wire) = format.wire() {
        return wire::definitions(wire, definitions, &WireOptions::default());
    }
    #[cfg(feature = "mcp")]
    if format == ProviderFormat::Mcp {
        return json!({"tools": definitions.iter().map(mcp_form::definition).collect::<Vec<_>>()});
    }
    json!(definitions)
}

/// One result as it goes back to a model, in that provider's message or block. Where a wire knows no failure, the text
/// begins with `Error: `.
pub fn result(format: ProviderFormat, call_id: &str, tool: &str, output: &Output) -> Value {
    if let Some(wire) = format.wire() {
        return wire::result(wire, call_id, tool, output);
    }
    #[cfg(feature = "mcp")]
    if format == ProviderFormat::Mcp {
        return mcp_form::McpResult::new(output.clone(), false).into_value();
    }
    json!(output)
}
