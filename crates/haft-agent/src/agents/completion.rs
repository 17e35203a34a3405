//! One question of a tool to a model, without tools.

use std::sync::Arc;

use haft_model::{
    ChatMessage, ContentPart, Conversation, Model, NamedModel, PartModel, TurnOptions, TurnRequest,
};
use haft_tool::{Cancel, ErrorKind, ModelRequest, ModelRole, ToolError};

use super::AttachedRun;
use crate::reports::Spending;

impl AttachedRun {
    /// The model of a role.
    pub(super) fn model_of(&self, role: ModelRole) -> Option<Arc<dyn Model>> {
        let part = match role {
            ModelRole::Small => "fast",
            _ => "oracle",
        };
        match (self.model.for_part(&[part]), &self.settings.fast_model) {
            (PartModel::Other(model), _) => Some(model),
            (PartModel::Missing, _) => None,
            (PartModel::Same, Some(fast)) if role == ModelRole::Small => {
                Some(Arc::new(NamedModel::new(Arc::clone(&self.model), fast)))
            }
            (PartModel::Same, _) => Some(Arc::clone(&self.model)),
        }
    }

    /// Asks a model once. What it costs counts for the run.
    pub(super) fn complete(&self, request: &ModelRequest, cancel: &Cancel) -> Result<String, ToolError> {
        let Some(model) = self.model_of(request.role) else {
            return Err(ToolError::failed("No model is configured for this."));
        };
        let mut conversation = Conversation::new(request.system.as_deref().unwrap_or_default());
        conversation.messages.push(ChatMessage::User { content: vec![ContentPart::text(&request.prompt)] });
        let options = TurnOptions {
            model: request.model.clone(),
            max_tokens: Some(request.max_tokens),
            stream: self.settings.options.stream,
            ..TurnOptions::default()
        };
        let turn = TurnRequest { conversation: &conversation, tools: &[], options: &options };
        let response = model.respond(&turn, &mut |_| {}, cancel).map_err(|error| {
            let kind =
                if cancel.is_cancelled() { ErrorKind::Interrupted } else { ErrorKind::ExecutionFailed };
            ToolError::new(kind, error.to_string())
        })?;
        let (prices, provider) = (&self.settings.prices, model.provider());
        let cost = prices.cost(provider, &response.message.origin.model, &response.usage);
        let cost_usd = cost.or_else(|| prices.cost(provider, &response.model, &response.usage));
        self.budget.add(cost_usd);
        let on = match request.role {
            ModelRole::Small => "a summary",
            _ => "the oracle",
        };
        self.reports.spend(Spending { on: on.to_owned(), usage: response.usage, cost_usd });
        Ok(response.message.text())
    }
}
