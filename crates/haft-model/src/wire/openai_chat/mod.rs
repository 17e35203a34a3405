//! OpenAI's Chat Completions, and the variants that other servers speak.

mod pieces;
mod request;
mod response;
mod stream;

use serde::{Deserialize, Serialize};

pub(super) use request::{encode, result, tools};
pub(super) use stream::accumulator;

/// Whose kind of Chat Completions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChatVariant {
    /// OpenAI itself.
    Openai,
    /// OpenRouter.
    Openrouter,
    /// A LiteLLM proxy.
    Litellm,
    /// Any other server.
    #[default]
    Compatible,
}
