//! The message with which a turn ends.

use haft_agent::{RunState, RunStop, TurnReport, context_window};
use haft_model::TokenUsage;
use haft_tool::{ToolError, Value, json};
use serde_json::Map;

use super::messages;
use super::observer::{ModelTotals, TurnFacts};

/// The result of a turn. What Claude Code's does not have is Haft's own: `provider`, `model`, `cost_usd`, `stop`, `error`.
pub(super) fn message(report: &TurnReport, facts: &TurnFacts, state: &RunState) -> Value {
    let stop = &report.stop;
    let subtype = messages::result_subtype(stop);
    let terminal_reason = messages::terminal_reason(stop);
    let mut errors: Vec<String> = Vec::new();
    if *stop != RunStop::Done {
        errors.extend(stop.explanation());
    }
    let is_error = !errors.is_empty();
    let millis = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let mut result = json!({
        "type": "result", "subtype": subtype, "is_error": is_error,
        "duration_ms": millis(report.elapsed), "duration_api_ms": millis(facts.api_time),
        "num_turns": report.rounds, "result": messages::result_text(report),
        "stop_reason": facts.stop_reason, "terminal_reason": terminal_reason,
        "total_cost_usd": state.totals.cost_usd.unwrap_or(0.0),
        "usage": messages::usage(&report.totals.usage), "modelUsage": model_usage(&facts.models),
        "permission_denials": facts.denials,
        "provider": report.provider, "model": report.model, "cost_usd": report.totals.cost_usd,
        "stop": stop.name(),
    });
    if let Some(value) = &report.structured {
        result["structured_output"] = value.clone();
    }
    if let Some(first) = errors.first() {
        result["error"] = first.as_str().into();
        result["errors"] = json!(errors);
    }
    result
}

fn model_usage(models: &[ModelTotals]) -> Value {
    let entry = |totals: &ModelTotals| {
        let ModelTotals { model, usage, cost_usd } = totals;
        let usage = json!({
            "inputTokens": usage.input, "outputTokens": usage.output,
            "cacheReadInputTokens": usage.cache_read, "cacheCreationInputTokens": usage.cache_write,
            "webSearchRequests": 0, "costUSD": cost_usd.unwrap_or(0.0),
            "contextWindow": context_window(model), "maxOutputTokens": 0,
        });
        (model.clone(), usage)
    };
    Value::Object(models.iter().map(entry).collect::<Map<_, _>>())
}

/// The result of a turn that could not be driven.
pub(super) fn failure(error: &ToolError) -> Value {
    json!({
        "type": "result", "subtype": "error_during_execution", "is_error": true,
        "duration_ms": 0, "duration_api_ms": 0, "num_turns": 0, "stop_reason": null,
        "terminal_reason": "turn_setup_failed", "total_cost_usd": 0.0,
        "usage": messages::usage(&TokenUsage::default()), "modelUsage": {}, "permission_denials": [],
        "error": error.message, "errors": [error.message],
    })
}
