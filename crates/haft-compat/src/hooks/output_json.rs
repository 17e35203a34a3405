//! The JSON that a hook prints.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::outcome::clipped;
use super::{
    HookBehavior, HookDecision, HookEvent, HookOutcome, HookPermissionAnswer, HookStop, PermissionUpdate,
};

/// Members that are not listed are ignored.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct HookJson {
    #[serde(rename = "async")]
    is_async: bool,
    #[serde(rename = "continue")]
    goes_on: Option<bool>,
    stop_reason: Option<String>,
    suppress_output: Option<bool>,
    system_message: Option<String>,
    decision: Option<BlockWord>,
    reason: Option<String>,
    hook_specific_output: Option<EventOutput>,
}

/// The decision in its older form, which all events but `PreToolUse` and `PermissionRequest` still use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
enum BlockWord {
    Approve,
    Block,
}

/// What only some events have.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct EventOutput {
    hook_event_name: Option<String>,
    permission_decision: Option<DecisionWord>,
    permission_decision_reason: Option<String>,
    updated_input: Option<Map<String, Value>>,
    additional_context: Option<String>,
    updated_tool_output: Option<Value>,
    #[serde(rename = "updatedMCPToolOutput")]
    updated_mcp_tool_output: Option<Value>,
    decision: Option<AnswerJson>,
    retry: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
enum DecisionWord {
    Allow,
    Deny,
    Ask,
    Defer,
}

/// The answer to a permission request.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AnswerJson {
    behavior: AnswerWord,
    updated_input: Option<Map<String, Value>>,
    #[serde(default)]
    updated_permissions: Option<Vec<PermissionUpdate>>,
    message: Option<String>,
    interrupt: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
enum AnswerWord {
    Allow,
    Deny,
}

impl HookJson {
    /// Its meaning for `event`; an error says why it has none.
    pub(super) fn into_outcome(self, event: &HookEvent) -> Result<HookOutcome, String> {
        if self.is_async {
            return Ok(HookOutcome { is_detached: true, ..HookOutcome::default() });
        }
        let output = self.hook_specific_output.unwrap_or_default();
        if let Some(name) = output.hook_event_name.as_deref().filter(|name| *name != event.name()) {
            return Err(format!("the hook answered to the event {name:?} instead of {}", event.name()));
        }
        let reason = self.reason.as_deref().map(clipped);
        let is_pre_tool_use = *event == HookEvent::PreToolUse;
        let word = output.permission_decision.filter(|_| is_pre_tool_use);
        let decision = match (word, self.decision) {
            // The stricter one of two.
            (Some(word), old) if word == DecisionWord::Deny || old != Some(BlockWord::Block) => {
                let own = output.permission_decision_reason.as_deref().map(clipped);
                Some(HookDecision { behavior: word.behavior(), reason: own.or(reason) })
            }
            (_, Some(BlockWord::Block)) if event.can_block() => {
                Some(HookDecision { behavior: HookBehavior::Deny, reason })
            }
            (_, Some(BlockWord::Approve)) if is_pre_tool_use => {
                Some(HookDecision { behavior: HookBehavior::Allow, reason })
            }
            _ => None,
        };
        let is_permission_request = *event == HookEvent::PermissionRequest;
        let mut answer = output.decision.filter(|_| is_permission_request).map(AnswerJson::into_answer);
        // The older form of a refusal holds here as well.
        if is_permission_request && let (None, Some(decision)) = (&answer, &decision) {
            answer = Some(HookPermissionAnswer::Deny { message: decision.reason.clone(), interrupt: false });
        }
        let stop = (self.goes_on == Some(false))
            .then(|| HookStop { reason: self.stop_reason.as_deref().map(clipped) });
        let is_post_tool_use = *event == HookEvent::PostToolUse;
        let tool_output = output.updated_tool_output.or(output.updated_mcp_tool_output);
        let texts = |text: Option<String>| text.filter(|text| !text.is_empty()).map(|text| clipped(&text));
        Ok(HookOutcome {
            decision: decision.filter(|_| !is_permission_request),
            updated_input: output.updated_input.filter(|_| is_pre_tool_use),
            additional_context: texts(output.additional_context).into_iter().collect(),
            updated_tool_output: tool_output.filter(|_| is_post_tool_use),
            system_messages: texts(self.system_message).into_iter().collect(),
            stop,
            suppress_output: self.suppress_output.unwrap_or(false),
            permission_answer: answer,
            retry: *event == HookEvent::PermissionDenied && output.retry.unwrap_or(false),
            ..HookOutcome::default()
        })
    }
}

impl DecisionWord {
    const fn behavior(self) -> HookBehavior {
        match self {
            Self::Allow => HookBehavior::Allow,
            Self::Deny => HookBehavior::Deny,
            Self::Ask => HookBehavior::Ask,
            Self::Defer => HookBehavior::Defer,
        }
    }
}

impl AnswerJson {
    fn into_answer(self) -> HookPermissionAnswer {
        match self.behavior {
            AnswerWord::Allow => HookPermissionAnswer::Allow {
                updated_input: self.updated_input,
                updated_permissions: self.updated_permissions.unwrap_or_default(),
            },
            AnswerWord::Deny => HookPermissionAnswer::Deny {
                message: self.message.as_deref().map(clipped),
                interrupt: self.interrupt.unwrap_or(false),
            },
        }
    }
}
