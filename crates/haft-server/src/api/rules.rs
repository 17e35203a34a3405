//! Rules: the list with what they decided, changes, and what they would decide.

use std::collections::HashMap;
use std::path::PathBuf;

use haft_ledger::ReceiptQuery;
use haft_runtime::effect_line;
use haft_tool::{Call, path_to_text};

use super::error::ApiError;
use super::query::Query;
use super::types::{
    ExplainRequest, Explained, ListedRules, RuleChange, RuleChanged, RuleInfo, ToolDefinition, ToolList,
};
use super::{Api, ApiRequest};

/// How many of the newest calls are examined for the rules that decided them.
const EXAMINED_CALLS: usize = 1_000;

fn workspace(api: &Api, query: &Query) -> Result<PathBuf, ApiError> {
    Ok(query.path("workspace")?.unwrap_or_else(|| api.workspace.clone()))
}

/// The rules in force in a workspace.
pub(super) fn list(api: &Api, query: &Query) -> Result<ListedRules, ApiError> {
    let workspace = workspace(api, query)?;
    let runtime = api.backend.runtime(&workspace, None)?;
    let mut matched: HashMap<String, (u64, i64)> = HashMap::new();
    let newest = ReceiptQuery {
        workspace: Some(runtime.workspace().to_owned()),
        limit: EXAMINED_CALLS,
        ..ReceiptQuery::default()
    };
    for summary in api.ledger.summaries(&newest)? {
        let id = summary.receipt.id;
        if let Some(rule) = summary.receipt.decision.and_then(|decision| decision.rule) {
            let (count, last) = matched.entry(rule).or_default();
            *count += 1;
            *last = (*last).max(id);
        }
    }
    let rules = runtime.rules().iter().filter(|rule| !rule.is_of_dialect()).map(|rule| {
        let (count, last) =
            matched.get(&rule.cite()).map_or((0, None), |(count, last)| (*count, Some(*last)));
        RuleInfo {
            verdict: rule.behavior().name().to_owned(),
            text: rule.text().to_owned(),
            origin: rule.origin().to_owned(),
            is_removable: api.backend.can_remove(rule.origin()),
            matched: count,
            last_matched: last,
        }
    });
    Ok(ListedRules {
        workspace: path_to_text(runtime.workspace()).into_owned(),
        mode: runtime.mode().name().to_owned(),
        rules: rules.collect(),
        warnings: runtime.warnings().to_vec(),
    })
}

pub(super) fn add(api: &Api, request: &ApiRequest<'_>) -> Result<RuleChanged, ApiError> {
    let change: RuleChange = request.json()?;
    Ok(api.backend.add_rule(&change)?)
}

pub(super) fn remove(api: &Api, request: &ApiRequest<'_>) -> Result<RuleChanged, ApiError> {
    let change: RuleChange = request.json()?;
    Ok(api.backend.remove_rule(&change)?)
}

/// What would be decided about a call.
pub(super) fn explain(api: &Api, request: &ApiRequest<'_>) -> Result<Explained, ApiError> {
    let ExplainRequest { workspace, tool, input } = request.json()?;
    let runtime = api.backend.runtime(&haft_tool::path_from_text(&workspace), None)?;
    let explanation = runtime.explain(&Call::new("explained", &tool, input))?;
    Ok(Explained {
        verdict: explanation.decision.verdict.word().to_owned(),
        reason: explanation.decision.reason,
        rule: explanation.decision.rule,
        effects: explanation.effects.iter().map(effect_line).collect(),
    })
}

/// The tools of a dialect.
pub(super) fn tools(api: &Api, query: &Query) -> Result<ToolList, ApiError> {
    let runtime = api.backend.runtime(&workspace(api, query)?, query.get("dialect"))?;
    let tools = runtime.definitions().into_iter().map(|definition| ToolDefinition {
        name: definition.name,
        description: definition.description,
        input_schema: definition.input_schema,
    });
    Ok(ToolList { dialect: runtime.dialect().to_owned(), tools: tools.collect() })
}
