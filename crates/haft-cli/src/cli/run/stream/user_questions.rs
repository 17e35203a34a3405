//! Questions of tools to the user, answered by the program that drives the run.

use std::sync::Arc;

use haft_compat::stream::PermissionReply;
use haft_tool::{
    Audience, Cancel, ErrorKind, Host, HostAnswer, HostRequest, PlanReady, ToolError, UserQuestion, Value,
    json,
};

use super::host_link::{NoReply, QuestionLimits};
use super::session::HostSession;

/// By these names the program knows the questions.
const ASK: &str = "AskUserQuestion";
const PLAN: &str = "ExitPlanMode";
const REACH: &str = "SandboxNetworkAccess";

/// The host of tools in a run that a program drives.
pub(super) struct ProgramHost {
    session: Arc<HostSession>,
    /// Whether the program answers questions.
    answers: bool,
    /// Whether it is asked about hosts that commands want to reach.
    opens_network: bool,
    base: Arc<dyn Host>,
}

impl ProgramHost {
    pub(super) fn new(
        session: &Arc<HostSession>,
        answers: bool,
        opens_network: bool,
        base: Arc<dyn Host>,
    ) -> Self {
        Self { session: Arc::clone(session), answers, opens_network, base }
    }

    /// Asks the program; returns the input with its answers, or why it said no.
    fn ask_program(&self, tool: &str, input: Value, cancel: &Cancel) -> Result<Value, ToolError> {
        if !self.answers {
            let why = "No one can answer questions here. Continue with your best judgement and say what you assumed.";
            return Err(ToolError::failed(why));
        }
        let call_id = self.session.call_of(tool);
        let request = json!({
            "subtype": "can_use_tool", "tool_name": tool, "display_name": tool, "input": input,
            "tool_use_id": call_id.clone().unwrap_or_default(), "permission_suggestions": [],
        });
        let limits = QuestionLimits { call_id: call_id.as_deref(), timeout: None };
        let answer = self.session.link.ask(&request, &limits, cancel).map_err(|failure| match failure {
            NoReply::Cancelled => ToolError::new(ErrorKind::Interrupted, failure.message()),
            failure => ToolError::denied(format!("There is no answer: {}.", failure.message())),
        })?;
        match PermissionReply::read(&answer) {
            PermissionReply::Allow { updated_input, .. } => Ok(updated_input.map_or(input, Value::Object)),
            PermissionReply::Deny { message, interrupt } => {
                if interrupt {
                    self.session.interrupt_turn();
                }
                let said = message.trim();
                Err(ToolError::denied(if said.is_empty() { "The user did not answer." } else { said }))
            }
        }
    }
}

impl Host for ProgramHost {
    fn fallback(&self) -> Option<&dyn Host> {
        Some(self.base.as_ref())
    }

    fn audience(&self) -> Audience {
        if self.answers { Audience::Person } else { self.base.audience() }
    }

    fn ask(&self, questions: &[UserQuestion], cancel: &Cancel) -> Result<Vec<Vec<String>>, ToolError> {
        let asked: Vec<Value> = questions
            .iter()
            .map(|question| {
                let options: Vec<Value> = question
                    .choices
                    .iter()
                    .map(|choice| json!({"label": choice.label, "description": choice.description}))
                    .collect();
                json!({
                    "question": question.question, "header": question.header, "options": options,
                    "multiSelect": question.several,
                })
            })
            .collect();
        let input = self.ask_program(ASK, json!({ "questions": asked }), cancel)?;
        let answer = |question: &UserQuestion| match &input["answers"][&question.question] {
            Value::String(text) => vec![text.clone()],
            Value::Array(texts) => texts.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            _ => Vec::new(),
        };
        let answers: Vec<Vec<String>> = questions.iter().map(answer).collect();
        if answers.iter().all(Vec::is_empty) {
            return Err(ToolError::failed(
                "The program that drives Haft allowed the questions without answering them. Continue with your best judgement and \
                 say what you assumed.",
            ));
        }
        Ok(answers)
    }

    fn may_reach(&self, request: &HostRequest, cancel: &Cancel) -> Option<HostAnswer> {
        if !self.opens_network {
            return None;
        }
        let HostRequest { command, host, port, .. } = request;
        let input = json!({"host": host, "port": port, "command": command});
        let is_allowed = self.ask_program(REACH, input, cancel).is_ok();
        Some(if is_allowed { HostAnswer::Once } else { HostAnswer::Refuse })
    }

    fn plan_ready(&self, plan: &PlanReady, cancel: &Cancel) -> Result<String, ToolError> {
        let prompts: Vec<Value> =
            plan.allow.iter().map(|(tool, prompt)| json!({"tool": tool, "prompt": prompt})).collect();
        let input = json!({"plan": plan.plan, "allowedPrompts": prompts});
        self.ask_program(PLAN, input, cancel)?;
        Ok("The user has approved the plan. Start with it.".to_owned())
    }
}
