//! The span of a call, from its receipt.

use haft_ledger::{Ledger, ReceiptSummary, SessionInfo};
use haft_tool::{ErrorKind, Receipt, ReceiptState, Reversible, ToolError, TraceContext, Value, Verdict};

use crate::content::ContentCapture;
use crate::names;
use crate::span::{AttributeValue, Attributes, ExportedSpan, SpanKind, ms_to_ns};

/// Shown for a tool that is not registered: its name was written by a model and is content.
const UNKNOWN_TOOL: &str = "unknown";
const MAX_CHANGED_PATHS: usize = 100;

/// The span of a call that has ended; `None` while it runs. `turn` is its parent if the receipt names none.
pub(crate) fn call_span(
    summary: &ReceiptSummary,
    session: &SessionInfo,
    turn: Option<&TraceContext>,
    content: Option<(&ContentCapture, &Ledger)>,
) -> Result<Option<ExportedSpan>, ToolError> {
    let receipt = &summary.receipt;
    if receipt.state == ReceiptState::Running {
        return Ok(None);
    }
    let parent = receipt.trace_parent.as_ref().or(turn);
    let context = TraceContext::of_call(parent, &receipt.session, &receipt.call_id, receipt.started_at);
    let is_known = receipt.error_kind != Some(ErrorKind::NotFound);
    let tool = if is_known { receipt.tool.as_str() } else { UNKNOWN_TOOL };
    let error = error_type(receipt);
    let mut attributes = Attributes::default();
    attributes.set(names::OPERATION, names::EXECUTE_TOOL);
    attributes.set(names::TOOL_NAME, tool);
    attributes.set(names::TOOL_TYPE, "function");
    attributes.set(names::TOOL_CALL_ID, receipt.call_id.as_str());
    attributes.set(names::CONVERSATION, receipt.session.as_str());
    attributes.set(names::CALL, receipt.id);
    attributes.set(names::DIALECT, session.dialect.as_str());
    attributes.set_some(names::ERROR_TYPE, error.as_deref());
    add_decision(&mut attributes, receipt);
    attributes.set_some(names::SCOPE_STATUS, receipt.enforcement.as_deref().map(scope_status));
    attributes.set(names::REVERSIBLE, reversible(&receipt.reversible));
    attributes.set(names::CHANGES, summary.change_count);
    attributes.set(names::DENIALS, receipt.denials.len() as u64);
    attributes.set_some(names::EXIT_CODE, receipt.exit_code.map(i64::from));
    if !receipt.undoes.is_empty() {
        attributes.set(names::UNDOES, receipt.undoes.len() as u64);
    }
    if let Some((capture, ledger)) = content {
        add_content(&mut attributes, receipt, ledger.result(receipt.id)?.as_deref(), capture);
    }
    let start_ns = ms_to_ns(receipt.started_at);
    Ok(Some(ExportedSpan {
        parent: parent.map(|parent| parent.span_id),
        context,
        name: format!("{} {tool}", names::EXECUTE_TOOL),
        kind: SpanKind::Internal,
        start_ns,
        end_ns: start_ns.saturating_add(receipt.duration_us.saturating_mul(1_000)),
        attributes,
        error,
    }))
}

/// The kind of a failure, one of a few values.
fn error_type(receipt: &Receipt) -> Option<String> {
    match receipt.state {
        ReceiptState::Denied => Some("denied".to_owned()),
        ReceiptState::Interrupted => Some("interrupted".to_owned()),
        ReceiptState::Failed => Some(receipt.error_kind.unwrap_or(ErrorKind::Internal).name().to_owned()),
        _ => None,
    }
}

fn add_decision(attributes: &mut Attributes, receipt: &Receipt) {
    let Some(decision) = &receipt.decision else { return };
    attributes.set(
        names::DECISION,
        match decision.verdict {
            Verdict::Allow => "allow",
            Verdict::Ask => "ask",
            Verdict::Deny => "deny",
        },
    );
    // What follows the tool's name is content: a path, a command or a host.
    let of_tool = |rule: &String| {
        let end = rule.find(|letter: char| !letter.is_alphanumeric() && letter != '_' && letter != '-');
        rule.get(..end.unwrap_or(rule.len())).unwrap_or_default().to_owned()
    };
    attributes.set_some(names::RULE, decision.rule.as_ref().map(of_tool));
}

/// Whether the scope was enforced: only the first word, because the rest of the text names hosts.
pub(crate) fn scope_status(enforcement: &str) -> &'static str {
    match enforcement.split([':', ',', ';', ' ']).next() {
        Some("off") => "off",
        Some("preview") => "preview",
        _ => "enforced",
    }
}

fn reversible(reversible: &Reversible) -> &'static str {
    match reversible {
        Reversible::Yes => "yes",
        Reversible::Partly { .. } => "partly",
        Reversible::No { .. } => "no",
    }
}

fn add_content(
    attributes: &mut Attributes,
    receipt: &Receipt,
    result: Option<&str>,
    capture: &ContentCapture,
) {
    attributes.set(names::TOOL_ARGUMENTS, capture.json(&receipt.input));
    if let Some(result) = result {
        attributes.set(names::TOOL_RESULT, capture.json(&Value::from(result)));
    }
    attributes.set(names::WORKSPACE, capture.text(&receipt.workspace.display().to_string()));
    let rule = receipt.decision.as_ref().and_then(|decision| decision.rule.as_deref());
    attributes.set_some(names::RULE, rule.map(|rule| capture.text(rule)));
    attributes.set_some(names::ERROR_MESSAGE, receipt.error.as_deref().map(|error| capture.text(error)));
    if !receipt.changes.is_empty() {
        let paths = receipt.changes.iter().take(MAX_CHANGED_PATHS);
        let paths = paths.map(|change| capture.text(&change.path.display().to_string())).collect();
        attributes.set(names::CHANGED_PATHS, AttributeValue::Texts(paths));
    }
}
