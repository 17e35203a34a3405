//! A provider with a fast model and one for complex tasks, and the choice between them.

use std::sync::Arc;

use haft_tool::{Cancel, HttpStreams};

use crate::{
    Conversation, HttpModel, Model, ModelError, ModelEvent, ProviderSettings, TurnOptions, TurnRequest,
};

/// The fast model of the `claude` program.
const CLAUDE_FAST_MODEL: &str = "sonnet";
/// Its model for complex tasks.
pub const CLAUDE_COMPLEX_MODEL: &str = "opus";

/// How a prompt is judged.
const CLASSIFICATION: &str = "Judge the request of a user to an assistant that can use tools. Answer with one word: \
    SIMPLE if it needs at most one short step, COMPLEX if it needs several steps, planning or code.";
/// The most tokens of the judgement. Models that think need more than the word.
const CLASSIFICATION_MAX_TOKENS: u32 = 1_000;

/// A provider with a fast model and one for complex tasks. A request may name any other one.
pub struct ModelSet {
    /// The provider.
    pub model: Arc<dyn Model>,
    /// For classification, summaries and simple tasks.
    pub fast: String,
    /// For everything else.
    pub complex: String,
}

/// Makes the model of a provider that is reached over HTTP. Without a model for simple tasks, the one model does both.
pub fn build_provider(
    settings: &ProviderSettings,
    model: &str,
    fast_model: Option<&str>,
    variable: &dyn Fn(&str) -> Option<String>,
    http: Arc<dyn HttpStreams>,
) -> Result<ModelSet, ModelError> {
    let endpoint = settings.resolve(variable)?;
    Ok(ModelSet {
        model: Arc::new(HttpModel::new(endpoint, model, http)),
        fast: fast_model.unwrap_or(model).to_owned(),
        complex: model.to_owned(),
    })
}

impl ModelSet {
    /// A set for the `claude` program, whose models have names that do not change.
    pub fn claude_cli(model: Arc<dyn Model>) -> Self {
        Self { model, fast: CLAUDE_FAST_MODEL.to_owned(), complex: CLAUDE_COMPLEX_MODEL.to_owned() }
    }

    /// The model for a prompt: asks the fast model, without tools, unless there is only one. A judgement that fails or is unclear
    /// means the complex one.
    pub fn route(
        &self,
        prompt: &str,
        on_event: &mut dyn FnMut(ModelEvent),
        cancel: &Cancel,
    ) -> Result<&str, ModelError> {
        if self.fast == self.complex {
            return Ok(&self.complex);
        }
        let mut conversation = Conversation::new(CLASSIFICATION);
        conversation.say(prompt);
        let options = TurnOptions {
            model: Some(self.fast.clone()),
            max_tokens: Some(CLASSIFICATION_MAX_TOKENS),
            ..TurnOptions::default()
        };
        let request = TurnRequest { conversation: &conversation, tools: &[], options: &options };
        // The judgement is no part of the answer, so its text is not reported.
        let mut report = |event| {
            if matches!(event, ModelEvent::Retrying(_) | ModelEvent::Usage(_) | ModelEvent::Notice { .. }) {
                on_event(event);
            }
        };
        match self.model.respond(&request, &mut report, cancel) {
            Ok(answer) if answer.message.text().trim().eq_ignore_ascii_case("simple") => Ok(&self.fast),
            Err(error) if cancel.is_cancelled() => Err(error),
            _ => Ok(&self.complex),
        }
    }
}
