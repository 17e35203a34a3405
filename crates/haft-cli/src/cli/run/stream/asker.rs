//! Questions about calls, answered by the program that drives the run.

use std::sync::{Arc, Mutex};

use haft_compat::hooks::{PermissionUpdate, PermissionUpdateBehavior};
use haft_compat::stream::PermissionReply;
use haft_policy::Mode;
use haft_runtime::{Asker, PermissionAnswer, Question, WeakRuntime, how_to_allow};
use haft_tool::{Cancel, Effect, Value, json, lock};
use serde_json::Map;

use super::super::super::screen;
use super::host_link::{NoReply, QuestionLimits};
use super::session::{CallAnswer, HostSession};

/// Who answered, on receipts.
const HOST: &str = "the host program";

/// Asks the program that drives the run.
pub(super) struct ProgramAsker {
    session: Arc<HostSession>,
    /// The runtime whose mode and rules an answer may change.
    runtime: Mutex<Option<WeakRuntime>>,
}

impl ProgramAsker {
    pub(super) fn new(session: &Arc<HostSession>) -> Self {
        Self { session: Arc::clone(session), runtime: Mutex::default() }
    }

    pub(super) fn attach(&self, runtime: WeakRuntime) {
        *lock(&self.runtime) = Some(runtime);
    }

    /// Applies what is allowed from now on.
    fn apply(&self, updates: &[PermissionUpdate], unread_count: usize) {
        let runtime = lock(&self.runtime).as_ref().and_then(WeakRuntime::upgrade);
        let Some(runtime) = runtime else { return };
        let mut ignored = unread_count;
        for update in updates {
            match update {
                PermissionUpdate::AddRules { rules, behavior: PermissionUpdateBehavior::Allow, .. } => {
                    for rule in rules {
                        let text = match &rule.rule_content {
                            Some(content) => format!("{}({content})", rule.tool_name),
                            None => rule.tool_name.clone(),
                        };
                        if let Err(error) = runtime.allow_rule(&text, HOST) {
                            screen::warnings(&[format!("a rule of the host is not used: {}", error.message)]);
                        }
                    }
                }
                PermissionUpdate::SetMode { mode, .. } => match mode.parse::<Mode>() {
                    Ok(mode) => ignored += usize::from(runtime.set_mode(mode).is_err()),
                    Err(_) => ignored += 1,
                },
                _ => ignored += 1,
            }
        }
        if ignored > 0 {
            screen::warnings(&[format!(
                "{} of the host's answer has no effect: only rules that allow and modes are taken over, until the session ends",
                screen::count(ignored as u64, "change of permissions")
            )]);
        }
    }
}

impl Asker for ProgramAsker {
    fn ask(&self, question: &Question, cancel: &Cancel) -> PermissionAnswer {
        let request = request(question);
        let limits = QuestionLimits { call_id: Some(&question.call_id), timeout: None };
        let answer = match self.session.link.ask(&request, &limits, cancel) {
            Ok(answer) => PermissionReply::read(&answer),
            Err(failure) => {
                let hint = if failure == NoReply::Gone {
                    format!(" {}", how_to_allow(question))
                } else {
                    String::new()
                };
                PermissionReply::Deny {
                    message: format!("There is no answer: {}.{hint}", failure.message()),
                    interrupt: false,
                }
            }
        };
        let is_allowed = matches!(answer, PermissionReply::Allow { .. });
        let noted = if is_allowed { CallAnswer::Accepted } else { CallAnswer::Rejected };
        self.session.note_answer(&question.call_id, noted);
        match answer {
            PermissionReply::Allow { updated_input, updates, unread_count } => {
                self.apply(&updates, unread_count);
                let input = updated_input.map(Value::Object).filter(|input| *input != question.input);
                match input {
                    Some(input) => PermissionAnswer::AllowInput { by: HOST.to_owned(), input },
                    None => PermissionAnswer::Allow { by: HOST.to_owned() },
                }
            }
            PermissionReply::Deny { message, interrupt } => {
                if interrupt {
                    self.session.interrupt_turn();
                }
                let said = message.trim();
                let why = if said.is_empty() { "The host program denied it." } else { said };
                PermissionAnswer::Deny { why: why.to_owned() }
            }
        }
    }
}

fn request(question: &Question) -> Value {
    let Question { tool, input, effects, reason, asked_by, rule, agent, call_id, .. } = question;
    let mut request = Map::new();
    let mut set = |name: &str, value: Value| {
        request.insert(name.to_owned(), value);
    };
    set("subtype", "can_use_tool".into());
    set("tool_name", tool.as_str().into());
    set("display_name", tool.as_str().into());
    set("input", input.clone());
    set("tool_use_id", call_id.as_str().into());
    set("permission_suggestions", suggestions(tool, effects, rule.as_deref()));
    set("decision_reason", reason.as_str().into());
    set("decision_reason_type", if asked_by.is_some() { "rule" } else { "mode" }.into());
    if let Some(description) = input.get("description").and_then(Value::as_str) {
        set("description", description.into());
    }
    if let Some(asked_by) = asked_by {
        let (rule, source) = asked_by.rsplit_once(" (").unwrap_or((asked_by, ""));
        let source = source.trim_end_matches(')');
        let content = rule.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
        let mut asking = json!({"source": source, "tool_name": tool});
        if let Some(content) = content {
            asking["rule_content"] = content.into();
        }
        set("matched_ask_rule", asking);
    }
    if let Some(path) = effects.iter().rev().find_map(path_of) {
        set("blocked_path", path.into());
    }
    if let Some(agent) = agent {
        set("agent_id", agent.as_str().into());
    }
    Value::Object(request)
}

fn path_of(effect: &Effect) -> Option<String> {
    match effect {
        Effect::Read { path } | Effect::Write { path } => Some(path.display().to_string()),
        _ => None,
    }
}

/// What the host may allow from now on.
fn suggestions(tool: &str, effects: &[Effect], rule: Option<&str>) -> Value {
    let mut all = Vec::new();
    if let Some(rule) = rule {
        let content = rule.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
        let mut suggested = json!({"toolName": tool});
        if let Some(content) = content {
            suggested["ruleContent"] = content.into();
        }
        all.push(
            json!({"type": "addRules", "rules": [suggested], "behavior": "allow", "destination": "session"}),
        );
    }
    let only_files =
        effects.iter().all(|effect| matches!(effect, Effect::Read { .. } | Effect::Write { .. }));
    if only_files && effects.iter().any(|effect| matches!(effect, Effect::Write { .. })) {
        all.push(json!({"type": "setMode", "mode": "acceptEdits", "destination": "session"}));
    }
    Value::Array(all)
}
