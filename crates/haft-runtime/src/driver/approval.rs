//! Asks about a call if policy decided so.

use std::path::Path;
use std::sync::Arc;

use haft_compat::hooks::{HookEvent, HookInput};
use haft_policy::{Decided, Policy};
use haft_tool::{
    AnyTool, Decision, Effect, Reach, ReadOnlyRecord, Record as _, Scope, ToolError, Value,
    WORKING_DIRECTORY_NOTE, lock,
};

use super::{CallDriver, DecodedCall};
use crate::grants;
use crate::hooks::permission_answer;
use crate::shared_questions::ask_about_call;
use crate::steps::ask::{PermissionAnswer, Question, allowed, narrowest_rule, refused};
use crate::steps::perform::catch_panic;
use crate::steps::preview::{ProposedChange, proposed_changes};
use crate::world::LocalWorld;

/// A call after its question, if there was one.
pub(super) enum Approved {
    /// It runs in this scope, or not at all if there is none.
    Decided(Option<Arc<Scope>>, Decision),
    /// It runs with other arguments, if these are allowed.
    OtherInput {
        /// The origin of the answer.
        by: String,
        input: Value,
    },
}

impl CallDriver {
    /// The reason for a question, with the directory in which a command would run, unless that is the workspace.
    fn reason_with_directory(&self, reason: &str, effects: &[Effect]) -> String {
        let runs = effects.iter().any(|effect| matches!(effect, Effect::Run { .. }));
        let note = if runs { self.state.record.note(WORKING_DIRECTORY_NOTE).ok().flatten() } else { None };
        match note.as_ref().and_then(Value::as_str) {
            Some(directory) if Path::new(directory) != self.inner.env.planning.workspace => {
                format!("the shell is in {directory}; {reason}")
            }
            _ => reason.to_owned(),
        }
    }

    /// Asks the user, if policy decided so.
    pub(super) fn ask(
        &self,
        decided: Decided,
        effects: Vec<Effect>,
        call: &DecodedCall,
        policy: &Policy,
    ) -> Approved {
        let (scope, decision) = match decided {
            Decided::Allow(scope, decision) => return Approved::Decided(Some(scope), decision),
            Decided::Deny(decision) => return Approved::Decided(None, decision),
            Decided::Ask(scope, decision) => (scope, decision),
        };
        let DecodedCall { entry, arguments, .. } = call;
        if self.is_of_hook() {
            return Approved::Decided(Some(scope), allowed(decision, "the settings"));
        }
        let asked = || HookInput::PermissionRequest {
            tool_name: self.call.tool.clone(),
            tool_input: arguments.clone(),
            permission_suggestions: Vec::new(),
        };
        match self.run_hooks(&HookEvent::PermissionRequest, asked).and_then(permission_answer) {
            Some(Ok(Some(input))) => return Approved::OtherInput { by: "a hook".to_owned(), input },
            Some(Ok(None)) => return Approved::Decided(Some(scope), allowed(decision, "a hook")),
            Some(Err(why)) => return Approved::Decided(None, refused(decision, &why)),
            None => {}
        }
        let changes = catch_panic(|| self.proposed_changes(&entry.tool, arguments, &effects, &scope));
        let rule = narrowest_rule(&self.call.tool, &effects, policy, &self.inner.env.grants);
        let agent = self.inner.agent.as_ref().map(|agent| agent.name.clone());
        let question = Question {
            call_id: self.call.id.clone(),
            tool: self.call.tool.clone(),
            input: arguments.clone(),
            reason: self.reason_with_directory(&decision.reason, &effects),
            effects,
            asked_by: decision.rule.clone(),
            changes,
            rule,
            agent,
        };
        let _one_at_a_time = lock(&self.inner.env.asking);
        let _ = self.run_hooks(&HookEvent::Notification, || HookInput::Notification {
            message: format!("Haft asks for permission to use {}", self.call.tool),
            title: None,
            notification_type: "permission_prompt".to_owned(),
        });
        let asker = self.options.asker.as_ref().unwrap_or(&self.inner.asker);
        let answer = ask_about_call(&self.inner.ledger, asker.as_ref(), &question, &self.options.cancel);
        let is_as_shown =
            matches!(answer, PermissionAnswer::Deny { .. } | PermissionAnswer::AllowInput { .. })
                || self.is_as_shown(&question, &entry.tool, &scope);
        if !is_as_shown {
            let why =
                "It was allowed, but what it would change is no longer what was shown. Make the call again.";
            return Approved::Decided(None, refused(decision, why));
        }
        match answer {
            PermissionAnswer::Allow { by } => Approved::Decided(Some(scope), allowed(decision, &by)),
            PermissionAnswer::AllowRule { by, rule } => {
                if let Ok(note) = self.inner.env.grants.add_rule(&rule, &by) {
                    self.state.record.set_note(grants::NOTE, note);
                }
                Approved::Decided(Some(scope), allowed(decision, &by))
            }
            PermissionAnswer::AllowInput { by, input } => Approved::OtherInput { by, input },
            PermissionAnswer::Deny { why } => Approved::Decided(None, refused(decision, &why)),
        }
    }

    /// Whether the call would still do what the question showed: while it waited, other calls may have changed files of the
    /// workspace.
    fn is_as_shown(&self, question: &Question, tool: &Arc<dyn AnyTool>, scope: &Scope) -> bool {
        let effects = &question.effects;
        let leads_elsewhere =
            self.inner.with_resolved_paths(effects).iter().any(|effect| !effects.contains(effect));
        let Ok(shown) = &question.changes else { return !leads_elsewhere };
        let now = catch_panic(|| self.proposed_changes(tool, &question.input, effects, scope));
        !leads_elsewhere && now.is_ok_and(|now| now == *shown)
    }

    /// What the call would change in files and settings, if it ran in `scope`.
    fn proposed_changes(
        &self,
        tool: &Arc<dyn AnyTool>,
        input: &Value,
        effects: &[Effect],
        scope: &Scope,
    ) -> Result<Vec<ProposedChange>, ToolError> {
        let host = self.options.host.as_ref().unwrap_or(&self.inner.host);
        if let [Effect::Configure { setting, value: Some(value) }] = effects {
            let configuration =
                host.configuration().ok_or_else(|| ToolError::failed("there are no settings"))?;
            let (name, before) = (setting.clone(), configuration.get(setting)?.value);
            return Ok(vec![ProposedChange::Setting { name, before, after: value.clone() }]);
        }
        let only_files =
            effects.iter().all(|effect| matches!(effect, Effect::Read { .. } | Effect::Write { .. }));
        if !tool.has_preview() || !only_files {
            return Ok(Vec::new());
        }
        let scope = Scope { writes: false, runs: false, reach: Reach::default(), ..scope.clone() };
        let (record, cancel) = (Arc::new(ReadOnlyRecord), self.options.cancel.clone());
        let world = LocalWorld::new(&self.inner.env, Arc::new(scope), record, Arc::clone(host), cancel, None);
        let planned = Arc::clone(tool).plan(input.clone(), &self.inner.env.planning)?;
        proposed_changes(planned.plan, &world)
    }
}
