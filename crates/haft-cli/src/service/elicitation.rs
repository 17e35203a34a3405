//! Asks the client's user through elicitation: approval of calls, questions of tools.

use std::sync::Arc;

use haft_runtime::{Asker, DenyAll, PermissionAnswer, Question, how_to_allow};
use haft_tool::{
    Audience, Cancel, Host, HostAnswer, HostRequest, NoHost, PlanReady, ToolError, UserQuestion,
};
use serde_json::{Map, Value, json};

use haft_mcp::serve::{ClientRequest, ClientRequestError, RequestContext};
use haft_mcp::wire::ProtocolVersion;

use crate::host::{ProjectSettings, question_text, reach_question};

/// Asks the client's user to approve calls.
pub(super) struct ClientAsker(pub(super) Arc<RequestContext>);

impl Asker for ClientAsker {
    fn ask(&self, question: &Question, cancel: &Cancel) -> PermissionAnswer {
        if !elicits(&self.0) {
            return DenyAll.ask(question, cancel);
        }
        let answer = form(
            &self.0,
            "allow",
            &format!("{} Run it?", question_text(question)),
            &json!({
                "type": "object",
                "properties": {"run": {"type": "boolean", "title": "Run it", "default": false}},
                "required": ["run"],
            }),
            cancel,
        );
        match answer {
            Ok(Some(content)) if content.get("run").and_then(Value::as_bool) == Some(true) => {
                PermissionAnswer::Allow { by: "the client's user".to_owned() }
            }
            // Some clients decline by themselves, so the rule is of use here as well.
            Ok(_) => {
                let why = format!("The client's user declined. {}", how_to_allow(question));
                PermissionAnswer::Deny { why }
            }
            Err(why) => {
                let why = format!("{}. {}", unanswered(&why), how_to_allow(question));
                PermissionAnswer::Deny { why }
            }
        }
    }

    fn audience(&self) -> Audience {
        if elicits(&self.0) { Audience::Person } else { Audience::PagesOnly }
    }
}

/// Answers tools through the client; `host` does what the client cannot.
pub(super) struct ClientHost {
    pub(super) context: Arc<RequestContext>,
    pub(super) host: Arc<dyn Host>,
    pub(super) project: ProjectSettings,
}

impl Host for ClientHost {
    fn fallback(&self) -> Option<&dyn Host> {
        Some(self.host.as_ref())
    }

    fn audience(&self) -> Audience {
        if elicits(&self.context) { Audience::Person } else { self.host.audience() }
    }

    fn ask(&self, questions: &[UserQuestion], cancel: &Cancel) -> Result<Vec<Vec<String>>, ToolError> {
        if !elicits(&self.context) {
            return NoHost.ask(questions, cancel);
        }
        let words: Vec<&str> = questions.iter().map(|question| question.question.as_str()).collect();
        let schema = questions_schema(questions, self.context.version());
        let content = form(&self.context, "questions", &words.join("\n"), &schema, cancel);
        let content = content.map_err(|why| ToolError::failed(unanswered(&why)))?;
        let content = content.ok_or_else(|| {
            ToolError::denied(
                "The user declined to answer. Continue with your best judgement and say what you assumed.",
            )
        })?;
        Ok((0..questions.len()).map(|at| chosen(content.get(&field(at)))).collect())
    }

    fn may_reach(&self, request: &HostRequest, cancel: &Cancel) -> Option<HostAnswer> {
        if !elicits(&self.context) {
            return None;
        }
        let choices = self.project.choices();
        let names: Vec<&str> = choices.iter().map(|choice| choice.name).collect();
        let means: Vec<String> =
            choices.iter().map(|choice| format!("{}: {}", choice.name, choice.means)).collect();
        let schema = json!({
            "type": "object",
            "properties": {"allow": {
                "type": "string", "title": "Allow it", "description": means.join("\n"), "enum": names, "default": "no",
            }},
            "required": ["allow"],
        });
        let message = format!("{} Allow it?", reach_question(request));
        let content =
            form(&self.context, &format!("reach {}", request.entry), &message, &schema, cancel).ok()??;
        let answer = self.project.answer(content.get("allow").and_then(Value::as_str).unwrap_or_default());
        if answer == HostAnswer::Project {
            let (level, facts) = match self.project.remember(request) {
                Ok(done) => (haft_mcp::serve::LogLevel::Info, done),
                Err(error) => (haft_mcp::serve::LogLevel::Error, error.message),
            };
            self.context.log(level, "haft", &json!(facts));
        }
        Some(answer)
    }

    fn plan_ready(&self, plan: &PlanReady, cancel: &Cancel) -> Result<String, ToolError> {
        if !elicits(&self.context) {
            return NoHost.plan_ready(plan, cancel);
        }
        let words = plan.plan.as_deref().unwrap_or("The plan is ready. Go on with it?");
        let schema = json!({
            "type": "object",
            "properties": {"go": {"type": "boolean", "title": "Go on with this plan", "default": false}},
            "required": ["go"],
        });
        match form(&self.context, "plan", words, &schema, cancel) {
            Ok(Some(content)) if content.get("go").and_then(Value::as_bool) == Some(true) => {
                Ok("The user has approved the plan".to_owned())
            }
            Ok(_) => Err(ToolError::denied("The user did not approve the plan.")),
            Err(why) => Err(ToolError::failed(unanswered(&why))),
        }
    }

    fn notify(&self, topic: &str, facts: &Value) {
        self.context.log(haft_mcp::serve::LogLevel::Info, topic, facts);
        self.host.notify(topic, facts);
    }
}

/// Whether the client can show a form. A client that declares no kinds supports forms.
pub(super) fn elicits(context: &RequestContext) -> bool {
    context
        .client_capability("elicitation")
        .is_some_and(|ability| ability.get("url").is_none() || ability.get("form").is_some())
}

/// Shows a form; returns its content, or `None` if the user declined.
fn form(
    context: &RequestContext,
    key: &str,
    message: &str,
    schema: &Value,
    cancel: &Cancel,
) -> Result<Option<Map<String, Value>>, ClientRequestError> {
    let mut params = json!({"message": message, "requestedSchema": schema});
    if context.version() >= ProtocolVersion::V2025_11_25 {
        params["mode"] = json!("form");
    }
    let ask = ClientRequest { key: key.to_owned(), method: "elicitation/create", params };
    let answer = context.request_client_until(&[ask], cancel)?.pop().unwrap_or_default();
    let accepted = answer.get("action").and_then(Value::as_str) == Some("accept");
    let content = || answer.get("content").and_then(Value::as_object).cloned().unwrap_or_default();
    Ok(accepted.then(content))
}

fn unanswered(why: &ClientRequestError) -> String {
    match why {
        ClientRequestError::Unsupported(what) => format!("The client cannot do this: {what}"),
        ClientRequestError::Cancelled => "The client disconnected or cancelled the call".to_owned(),
        ClientRequestError::TimedOut => "The user took too long to answer".to_owned(),
        ClientRequestError::Rejected(error) => {
            format!("The client could not ask its user: {}", error.message)
        }
    }
}

fn field(at: usize) -> String {
    format!("answer_{}", at + 1)
}

/// A form schema with one field per question.
fn questions_schema(questions: &[UserQuestion], version: ProtocolVersion) -> Value {
    let mut properties = Map::new();
    for (at, question) in questions.iter().enumerate() {
        let labels: Vec<&str> = question.choices.iter().map(|choice| choice.label.as_str()).collect();
        let explained: Vec<String> = question
            .choices
            .iter()
            .map(|choice| format!("{}: {}", choice.label, choice.description))
            .collect();
        let mut shape = match question.several {
            true if version >= ProtocolVersion::V2025_11_25 => {
                json!({"type": "array", "items": {"type": "string", "enum": labels}})
            }
            true => json!({"type": "string"}),
            false => json!({"type": "string", "enum": labels}),
        };
        shape["title"] = json!(question.header);
        shape["description"] = json!(format!("{}\n{}", question.question, explained.join("\n")));
        properties.insert(field(at), shape);
    }
    let required: Vec<String> = (0..questions.len()).map(field).collect();
    json!({"type": "object", "properties": properties, "required": required})
}

/// The chosen labels.
fn chosen(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Some(Value::String(one)) => vec![one.clone()],
        _ => Vec::new(),
    }
}
