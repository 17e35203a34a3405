//! The wire formats: a conversation becomes the body of a request, and the bytes of a response become events and a message.
//!
//! Nothing here waits or sends. Events, items, blocks and fields that are not known are kept or skipped, because all vendors add
//! kinds within a version.

mod anthropic;
mod decoder;
mod failure;
mod gemini;
mod history;
mod message;
mod ollama;
mod openai_chat;
mod openai_responses;

use std::fmt;
use std::str::FromStr;

use haft_tool::{Definition, Output, Value};
use serde::{Deserialize, Serialize};

pub use anthropic::{ANTHROPIC_VERSION, OLD_ANTHROPIC_VERSION};
pub use decoder::ResponseDecoder;
pub use failure::WireError;
pub use openai_chat::ChatVariant;

use crate::{Origin, ToolResult, TurnRequest};
use history::ProviderHistory;
use message::MessageBuilder;

/// A wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Wire {
    /// OpenAI's Responses.
    OpenaiResponses,
    /// OpenAI's Chat Completions, which most compatible servers speak.
    OpenaiChat,
    /// Anthropic's Messages.
    Anthropic,
    /// Gemini's generateContent.
    Gemini,
    /// Ollama's `/api/chat`.
    Ollama,
}

impl Wire {
    /// All of them.
    pub const ALL: &[Self] =
        &[Self::OpenaiResponses, Self::OpenaiChat, Self::Anthropic, Self::Gemini, Self::Ollama];

    /// The name in settings and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenaiResponses => "openai-responses",
            Self::OpenaiChat => "openai-chat",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
        }
    }
}

impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Wire {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        // The short names say the same where only OpenAI's formats can be meant.
        let name = match name {
            "responses" => "openai-responses",
            "chat" | "openai" => "openai-chat",
            name => name,
        };
        Self::ALL.iter().copied().find(|wire| wire.name() == name).ok_or_else(|| {
            let known: Vec<&str> = Self::ALL.iter().map(|wire| wire.name()).collect();
            format!("Unknown wire format {name:?}. Use one of: {}", known.join(", "))
        })
    }
}

/// What differs between servers of one wire format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireOptions {
    /// Whose kind of Chat Completions.
    pub chat: ChatVariant,
    /// The value of `anthropic-version`.
    pub anthropic_version: String,
    /// Whether Gemini's tools are described in its subset of OpenAPI instead of JSON Schema.
    pub gemini_openapi: bool,
    /// Whether OpenAI makes sure that arguments fit the schema, where a schema allows that.
    pub strict_tools: bool,
}

impl Default for WireOptions {
    fn default() -> Self {
        Self {
            chat: ChatVariant::Compatible,
            anthropic_version: ANTHROPIC_VERSION.to_owned(),
            gemini_openapi: false,
            strict_tools: false,
        }
    }
}

/// Turns conversations into requests and responses into messages, for one provider.
#[derive(Debug, Clone)]
pub struct Codec {
    /// The wire format.
    pub wire: Wire,
    /// The provider's name, as in [`Origin::provider`].
    pub provider: String,
    /// What differs between servers.
    pub options: WireOptions,
}

impl Codec {
    /// Whether requests in this format may say how freely the model answers.
    pub fn accepts_temperature(&self) -> bool {
        self.wire != Wire::Anthropic || anthropic::refused_fields(&self.options).is_empty()
    }

    /// The body of the request.
    pub fn encode(&self, request: &TurnRequest<'_>, model: &str) -> Value {
        let history = ProviderHistory::new(request.conversation, self);
        let mut body = match self.wire {
            Wire::OpenaiResponses => openai_responses::encode(request, &history, &self.options, model),
            Wire::OpenaiChat => openai_chat::encode(request, &history, &self.options, model),
            Wire::Anthropic => anthropic::encode(request, &history, &self.options, model),
            Wire::Gemini => gemini::encode(request, &history, &self.options),
            Wire::Ollama => ollama::encode(request, &history, model),
        };
        let refused: &[&str] = match self.wire {
            Wire::Anthropic => anthropic::refused_fields(&self.options),
            _ => &[],
        };
        for (name, value) in &request.options.extra {
            if !refused.contains(&name.as_str()) {
                message::set_field(&mut body, name, value.clone());
            }
        }
        body
    }

    /// A decoder for the response to that request.
    pub fn decoder(&self, request: &TurnRequest<'_>, model: &str) -> ResponseDecoder {
        let origin = Origin {
            wire: self.wire.name().to_owned(),
            provider: self.provider.clone(),
            model: model.to_owned(),
        };
        let builder = MessageBuilder::new(origin, request);
        match self.wire {
            Wire::OpenaiResponses => ResponseDecoder::events(openai_responses::accumulator(builder)),
            Wire::OpenaiChat => ResponseDecoder::events(openai_chat::accumulator(builder)),
            Wire::Anthropic => ResponseDecoder::events(anthropic::accumulator(builder)),
            Wire::Gemini => ResponseDecoder::events(gemini::accumulator(builder)),
            Wire::Ollama => ResponseDecoder::lines(ollama::accumulator(builder)),
        }
    }
}

/// The definitions of tools as they are sent in this format.
pub fn definitions(wire: Wire, definitions: &[Definition], options: &WireOptions) -> Value {
    match wire {
        Wire::OpenaiResponses => openai_responses::tools(definitions, options),
        Wire::OpenaiChat => openai_chat::tools(definitions, options),
        Wire::Anthropic => anthropic::tools(definitions),
        Wire::Gemini => gemini::tools(definitions, options),
        Wire::Ollama => ollama::tools(definitions),
    }
}

/// One result as it goes back to a model, in this format's message, item, block or part. Where a format knows no failure, the
/// text begins with `Error: `; where it cannot hold an image, a placeholder is in its place.
pub fn result(wire: Wire, call_id: &str, tool: &str, output: &Output) -> Value {
    let result = ToolResult::new(call_id, tool, output);
    match wire {
        Wire::OpenaiResponses => openai_responses::result(&result, call_id, None),
        Wire::OpenaiChat => openai_chat::result(&result, call_id),
        Wire::Anthropic => anthropic::result(&result, call_id),
        Wire::Gemini => gemini::result(&result, Some(call_id)),
        Wire::Ollama => ollama::result(&result, Some(call_id)),
    }
}
