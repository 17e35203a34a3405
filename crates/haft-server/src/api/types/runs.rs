//! Runs: their messages, and new ones.

use haft_tool::JsonSchema;
use serde::{Deserialize, Serialize};

/// A message of a run.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct RunMessage {
    /// The number of its event.
    pub(crate) seq: u64,
    /// When it was written, in milliseconds since 1970.
    pub(crate) at: u64,
    /// `user`, `assistant`, `note` (from the loop or a hook to the model) or `end` (a turn ended).
    pub(crate) role: String,
    /// Its text, as Markdown if the role is `assistant`.
    pub(crate) text: String,
    /// Whether the message is shortened here; `/sessions/ID/messages` has more of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_cut: bool,
    /// The model's reasoning, where its provider shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) thinking: Option<String>,
    /// The calls that the model makes in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) calls: Vec<MessageCall>,
    /// How many images it has.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) images: u64,
    /// The model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    /// Tokens of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) input_tokens: Option<u64>,
    /// Tokens of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) output_tokens: Option<u64>,
    /// What it cost in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cost_usd: Option<f64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A call in a message.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct MessageCall {
    /// The model's id for it: `call_id` of [`CallSummary`].
    pub(crate) call_id: String,
    /// The tool.
    pub(crate) tool: String,
    /// What it is about, on one line.
    pub(crate) about: String,
}

/// A part of a run's messages, oldest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MessageList {
    /// The messages.
    pub(crate) messages: Vec<RunMessage>,
    /// The value of `after` for the next part.
    pub(crate) next: u64,
    /// Whether more messages follow already.
    pub(crate) more: bool,
}

/// A run to start.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewRun {
    /// What the model is asked to do.
    pub prompt: String,
    /// The folder to work in; by default the server's own.
    #[serde(default)]
    pub workspace: Option<String>,
    /// The provider.
    #[serde(default)]
    pub provider: Option<String>,
    /// The model.
    #[serde(default)]
    pub model: Option<String>,
    /// The permission mode, which says who is asked.
    #[serde(default)]
    pub permission_mode: Option<String>,
    /// Files for the model.
    #[serde(default)]
    pub attachments: Vec<Attachment>,
}

/// A message for a run.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewMessage {
    /// What the model is asked to do.
    pub prompt: String,
    /// Another provider, which answers from here on.
    #[serde(default)]
    pub provider: Option<String>,
    /// Another model, which answers from here on.
    #[serde(default)]
    pub model: Option<String>,
    /// Files for the model.
    #[serde(default)]
    pub attachments: Vec<Attachment>,
}

/// A file for the model.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Attachment {
    /// Its name.
    pub name: String,
    /// Its bytes in Base64. Text and images that models can see are accepted; other files are refused.
    pub data: String,
}

/// The session of a run that was started or continued.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct RunSession {
    /// Its id.
    pub(crate) session: String,
}
