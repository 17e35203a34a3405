//! Answers the requests of the program that drives the run, on a thread of its own: also while a turn is under way.

use std::sync::{Arc, Mutex};

use haft_agent::{context_window, read_run};
use haft_compat::stream::ControlRequest;
use haft_model::Model;
use haft_policy::Mode;
use haft_tool::{Call, ToolError, Value, clip_chars, json, lock};
use serde_json::Map;

use super::init::SessionFacts;
use super::rewind::rewind;
use super::session::HostSession;
use crate::claude_settings::claude_mode;
use haft_runtime::CallOptions;

/// How much of a mode's name is repeated.
const MAX_NAME_CHARS: usize = 100;

/// Makes the model of a name, or the default one.
pub(super) type ModelChooser = Box<dyn Fn(Option<&str>) -> Result<NewModel, ToolError> + Send>;

/// A model that answers from the next turn on.
pub(super) struct NewModel {
    pub(super) model: Arc<dyn Model>,
    pub(super) fast: Option<String>,
}

/// What the requests need.
pub(super) struct ControlContext {
    pub(super) session: Arc<HostSession>,
    pub(super) facts: SessionFacts,
    /// The session's id in the ledger.
    pub(super) ledger_session: String,
    pub(super) allows_bypass: bool,
    pub(super) choose_model: ModelChooser,
    /// The model from the next turn on, if another was chosen.
    pub(super) next_model: Arc<Mutex<Option<NewModel>>>,
}

/// Starts the thread, which ends with the run.
pub(super) fn start(context: ControlContext) -> Result<std::thread::JoinHandle<()>, ToolError> {
    let work = move || {
        while let Some((id, request)) = context.session.inbox.next_request() {
            context.handle(&id, &request);
        }
    };
    let started = std::thread::Builder::new().name("haft-stream-control".to_owned()).spawn(work);
    started.map_err(|error| ToolError::io("start a thread that answers requests", &error))
}

impl ControlContext {
    fn handle(&self, id: &str, request: &Map<String, Value>) {
        let session = &self.session;
        let read = match ControlRequest::read(request) {
            Ok(Some(read)) => read,
            Ok(None) => return session.refuse_unknown(id, request),
            Err(why) => return session.answer(id, Err(why)),
        };
        let runtime = &self.facts.runtime;
        let answer = match read {
            ControlRequest::Initialize(_) => Err("Already initialized".to_owned()),
            ControlRequest::SetPermissionMode { mode } => {
                let set = self.set_mode(&mode);
                let is_set = set.is_ok();
                session.answer(id, set);
                if is_set {
                    let mode = claude_mode(runtime.mode());
                    session.send_system("status", json!({"status": null, "permissionMode": mode}));
                }
                return;
            }
            ControlRequest::SetModel { model } => match (self.choose_model)(model.as_deref()) {
                Ok(model) => {
                    *lock(&self.next_model) = Some(model);
                    Ok(json!({}))
                }
                Err(error) => Err(error.message),
            },
            ControlRequest::RewindFiles { user_message_id, dry_run } => {
                Ok(match session.inbox.begin_rewind() {
                    Some(_open) => rewind(runtime, &self.ledger_session, &user_message_id, dry_run),
                    None => json!({
                        "canRewind": false, "error": "A turn is under way. Interrupt it, or wait for its end.",
                    }),
                })
            }
            ControlRequest::StopTask { task_id } => self.stop_task(&task_id),
            ControlRequest::McpStatus {} => Ok(json!({"mcpServers": self.facts.server_states(true)})),
            ControlRequest::ListPermissionRules {} => Ok(self.rules()),
            ControlRequest::GetSessionCost {} => self.cost(),
            ControlRequest::GetContextUsage {} => self.context_usage(),
            ControlRequest::SetMaxThinkingTokens {} | ControlRequest::McpMessage {} => Ok(json!({})),
            _ => return session.refuse_unknown(id, request),
        };
        session.answer(id, answer);
    }

    fn set_mode(&self, name: &str) -> Result<Value, String> {
        let mode: Mode = name
            .parse()
            .map_err(|_| format!("{} is not a permission mode", clip_chars(name, MAX_NAME_CHARS, 0)))?;
        if mode == Mode::BypassPermissions && !self.allows_bypass {
            return Err("The settings forbid bypassPermissions".to_owned());
        }
        self.facts.runtime.set_mode(mode).map_err(|error| error.message)?;
        Ok(json!({"mode": claude_mode(mode)}))
    }

    fn stop_task(&self, task: &str) -> Result<Value, String> {
        let call = Call::new("stop_task", "TaskStop", json!({ "task_id": task }));
        let result = self.facts.runtime.run_blocking(call, CallOptions::default());
        if result.output.error_kind.is_some() {
            return Err(result.output.as_text());
        }
        self.session.send_system(
            "task_notification",
            json!({"task_id": task, "status": "stopped", "output_file": "", "summary": result.output.as_text()}),
        );
        Ok(json!({}))
    }

    fn rules(&self) -> Value {
        let runtime = &self.facts.runtime;
        let rules: Vec<Value> = runtime
            .rules()
            .iter()
            .filter(|rule| !rule.is_of_dialect())
            .map(|rule| json!({"behavior": rule.behavior().name(), "rule": rule.text(), "source": rule.origin()}))
            .collect();
        let workspace = runtime.workspace().display().to_string();
        json!({"state": {
            "rules": rules, "workspaceDirectories": self.facts.directories, "originalCwd": workspace,
            "managedOnly": false,
        }})
    }

    fn cost(&self) -> Result<Value, String> {
        let cost = self.state()?.totals.cost_usd;
        let text = cost.map_or_else(|| "cost unknown".to_owned(), |cost| format!("${cost:.4}"));
        Ok(json!({ "text": text }))
    }

    fn context_usage(&self) -> Result<Value, String> {
        let state = self.state()?;
        let used = state.context_tokens();
        let window = context_window(&state.model);
        let percentage = used.saturating_mul(100).checked_div(window).unwrap_or_default();
        Ok(json!({
            "categories": [{"name": "Messages", "tokens": used, "color": "blue"}],
            "totalTokens": used, "maxTokens": window, "rawMaxTokens": window, "percentage": percentage,
            "model": state.model, "memoryFiles": [], "mcpTools": [], "agents": [], "gridRows": [],
            "isAutoCompactEnabled": true,
        }))
    }

    fn state(&self) -> Result<haft_agent::RunState, String> {
        let ledger = self.facts.runtime.ledger().map_err(|error| error.message)?;
        let state = read_run(&ledger, &self.ledger_session).map_err(|error| error.message)?;
        state.ok_or_else(|| "The session has no run yet".to_owned())
    }
}
