//! The first request of the program that drives the agent.

use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::hooks::OnFailure;

/// What the program says about the session before it begins. Members that are not listed are ignored.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InitializeRequest {
    /// The hooks of the program, by event.
    #[serde(deserialize_with = "or_default")]
    pub hooks: BTreeMap<String, Vec<HostHookMatcher>>,
    /// The MCP servers inside the program.
    #[serde(deserialize_with = "or_default")]
    pub sdk_mcp_servers: Vec<String>,
    /// The sections of the system prompt; an empty text means that there is none.
    #[serde(deserialize_with = "texts")]
    pub system_prompt: Option<Vec<String>>,
    /// Text behind the system prompt.
    pub append_system_prompt: Option<String>,
    /// The form of the answer.
    pub json_schema: Option<Value>,
    /// Kinds of subagents, by name.
    #[serde(deserialize_with = "or_default")]
    pub agents: BTreeMap<String, HostAgent>,
    /// Settings of the administrator, if they are not passed on the command line.
    pub managed_settings: Option<Value>,
}

/// The hooks of one matcher.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HostHookMatcher {
    /// What they are for.
    pub matcher: Option<String>,
    /// The ids by which the program knows them.
    pub hook_callback_ids: Vec<String>,
    /// How long they may take, in seconds.
    pub timeout: Option<f64>,
    /// What a failure means. A word that is not known blocks.
    #[serde(deserialize_with = "on_failure")]
    pub on_failure: Option<OnFailure>,
}

/// A kind of subagent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HostAgent {
    /// When to use it.
    pub description: String,
    /// Its part of the system prompt.
    pub prompt: String,
    /// The tools it may call; all if there is no list.
    pub tools: Option<Vec<String>>,
    /// The tools it may not call.
    pub disallowed_tools: Vec<String>,
    /// Its model.
    pub model: Option<String>,
    /// How many rounds it may take.
    pub max_turns: Option<u32>,
}

impl InitializeRequest {
    /// Whether it names hooks.
    pub fn has_hooks(&self) -> bool {
        self.hooks.values().any(|matchers| !matchers.is_empty())
    }
}

fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(from: D) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(from)?.unwrap_or_default())
}

fn texts<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<String>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Texts {
        One(String),
        Many(Vec<String>),
        Other(IgnoredAny),
    }
    Ok(match Option::<Texts>::deserialize(from)? {
        Some(Texts::One(text)) => Some(vec![text]),
        Some(Texts::Many(texts)) => Some(texts),
        Some(Texts::Other(_)) | None => None,
    })
}

fn on_failure<'de, D: Deserializer<'de>>(from: D) -> Result<Option<OnFailure>, D::Error> {
    let word = Option::<String>::deserialize(from)?;
    Ok(word.map(|word| if word == "continue" { OnFailure::Continue } else { OnFailure::Block }))
}
