//! The extension `io.modelcontextprotocol/tasks`: a call that takes long is answered with a task, whose state and result the
//! client then asks for.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use haft_tool::{Cancel, now_ms};
use serde_json::{Map, Value, json};

use super::client_requests::{ClientRequest, ClientRequestError};
use super::peer::lock;
use crate::wire::RpcError;

/// The name of the extension.
pub(super) const EXTENSION: &str = "io.modelcontextprotocol/tasks";
/// How long a task is kept after it was created; one that runs is kept longer.
const TIME_TO_LIVE: Duration = Duration::from_hours(1);
/// How often clients should ask.
const POLL_INTERVAL_MS: u64 = 1_000;
/// Tasks that are kept at once. Further calls are answered when they have ended.
const MAX_TASKS: usize = 256;
/// Random bytes of a task's id.
const ID_BYTES: usize = 16;
/// How often a waiting thread checks for cancellation.
const CANCEL_INTERVAL: Duration = Duration::from_millis(100);

/// The tasks of all clients. Clones share them.
#[derive(Clone, Default)]
pub(super) struct CallTaskTable(Arc<Mutex<HashMap<String, Arc<CallTask>>>>);

/// A call that was answered with a task.
pub(super) struct CallTask {
    id: String,
    principal: String,
    created_ms: u64,
    cancel: Cancel,
    state: Mutex<CallTaskState>,
}

struct CallTaskState {
    status: CallTaskStatus,
    updated_ms: u64,
    /// What the call has last reported.
    message: Option<String>,
    /// Keys of input requests must not repeat while the task exists.
    input_rounds: u32,
}

enum CallTaskStatus {
    Working,
    InputRequired { requests: Map<String, Value>, answers: Sender<(String, Value)> },
    Completed(Value),
    Failed(RpcError),
    Cancelled,
}

impl CallTaskStatus {
    fn name(&self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::InputRequired { .. } => "input_required",
            Self::Completed(_) => "completed",
            Self::Failed(_) => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    fn is_terminal(&self) -> bool {
        matches!(self, Self::Completed(_) | Self::Failed(_) | Self::Cancelled)
    }
}

/// Whether a client with these capabilities understands tasks.
pub(super) fn is_declared(client_capabilities: &Value) -> bool {
    client_capabilities.get("extensions").and_then(|all| all.get(EXTENSION)).is_some_and(Value::is_object)
}

/// The error for a client that does not understand tasks but has to.
pub(super) fn missing_extension() -> RpcError {
    RpcError::missing_capability(EXTENSION, &json!({"extensions": {EXTENSION: {}}}))
}

impl CallTaskTable {
    /// Creates a task for a call; `None` if there are too many.
    pub(super) fn create(&self, principal: &str, cancel: &Cancel) -> Option<Arc<CallTask>> {
        let mut bytes = [0; ID_BYTES];
        getrandom::fill(&mut bytes).ok()?;
        let id: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let now = now_ms();
        let mut all = lock(&self.0);
        all.retain(|_, task| !task.has_expired(now));
        if all.len() >= MAX_TASKS {
            return None;
        }
        let status = CallTaskStatus::Working;
        let task = Arc::new(CallTask {
            id: id.clone(),
            principal: principal.to_owned(),
            created_ms: now,
            cancel: cancel.clone(),
            state: Mutex::new(CallTaskState { status, updated_ms: now, message: None, input_rounds: 0 }),
        });
        all.insert(id, Arc::clone(&task));
        Some(task)
    }

    /// Handles `tasks/get`, `tasks/update` and `tasks/cancel`.
    pub(super) fn respond(&self, method: &str, params: &Value, principal: &str) -> Result<Value, RpcError> {
        let id = params.get("taskId").and_then(Value::as_str);
        let id = id.ok_or_else(|| RpcError::invalid_params("taskId is required and must be a string"))?;
        let found = lock(&self.0).get(id).map(Arc::clone);
        let found = found.filter(|task| task.principal == principal && !task.has_expired(now_ms()));
        let task = found.ok_or_else(|| RpcError::invalid_params(format!("There is no task {id:?}")))?;
        match method {
            "tasks/get" => return Ok(task.detailed()),
            "tasks/update" => {
                let responses = params.get("inputResponses").and_then(Value::as_object);
                task.deliver(
                    responses.ok_or_else(|| RpcError::invalid_params("inputResponses must be an object"))?,
                );
            }
            _ => task.cancel(),
        }
        Ok(json!({}))
    }

    /// Cancels every task, because the server ends.
    pub(super) fn cancel_all(&self) {
        let all: Vec<_> = lock(&self.0).drain().collect();
        for (_, task) in &*all {
            task.cancel();
        }
    }
}

impl CallTask {
    fn has_expired(&self, now: u64) -> bool {
        let age = Duration::from_millis(now.saturating_sub(self.created_ms));
        age > TIME_TO_LIVE && lock(&self.state).status.is_terminal()
    }

    /// The result that says that there is a task.
    pub(super) fn created(&self) -> Value {
        let mut result = self.envelope(&lock(&self.state));
        result["resultType"] = json!("task");
        result
    }

    fn envelope(&self, state: &CallTaskState) -> Value {
        let mut all = json!({
            "taskId": self.id,
            "status": state.status.name(),
            "createdAt": timestamp(self.created_ms),
            "lastUpdatedAt": timestamp(state.updated_ms),
            "ttlMs": u64::try_from(TIME_TO_LIVE.as_millis()).unwrap_or(u64::MAX),
            "pollIntervalMs": POLL_INTERVAL_MS,
        });
        if let Some(message) = &state.message {
            all["statusMessage"] = json!(message);
        }
        all
    }

    /// The state, with what belongs to it.
    fn detailed(&self) -> Value {
        let state = lock(&self.state);
        let mut all = self.envelope(&state);
        match &state.status {
            CallTaskStatus::Working | CallTaskStatus::Cancelled => {}
            CallTaskStatus::InputRequired { requests, .. } => all["inputRequests"] = json!(requests),
            CallTaskStatus::Completed(result) => all["result"] = result.clone(),
            CallTaskStatus::Failed(error) => all["error"] = json!(error),
        }
        all
    }

    fn update(&self, change: impl FnOnce(&mut CallTaskState)) {
        let mut state = lock(&self.state);
        if !state.status.is_terminal() {
            change(&mut state);
            state.updated_ms = now_ms();
        }
    }

    /// Stores how the call has ended, unless it was cancelled.
    pub(super) fn finish(&self, outcome: Result<Value, RpcError>) {
        self.update(|state| {
            state.status = match outcome {
                _ if self.cancel.is_cancelled() => CallTaskStatus::Cancelled,
                Ok(result) => CallTaskStatus::Completed(result),
                Err(error) => CallTaskStatus::Failed(error),
            };
        });
    }

    fn cancel(&self) {
        self.update(|state| state.status = CallTaskStatus::Cancelled);
        self.cancel.cancel();
    }

    /// Shows what the call reports about its progress.
    pub(super) fn set_message(&self, message: &str) {
        self.update(|state| state.message = Some(message.to_owned()));
    }

    /// Takes answers to input requests; others are ignored.
    fn deliver(&self, responses: &Map<String, Value>) {
        self.update(|state| {
            if let CallTaskStatus::InputRequired { requests, answers } = &mut state.status {
                for (key, response) in responses {
                    if response.is_object() && requests.remove(key).is_some() {
                        // The call may have stopped waiting.
                        let _ = answers.send((key.clone(), response.clone()));
                    }
                }
                if requests.is_empty() {
                    state.status = CallTaskStatus::Working;
                }
            }
        });
    }

    /// Requests input and waits until the client has sent all of it.
    pub(super) fn request_input(
        &self,
        requests: &[ClientRequest],
        timeout: Duration,
        stop: &Cancel,
    ) -> Result<Vec<Value>, ClientRequestError> {
        let (answers, received) = channel();
        let mut keys = Vec::new();
        self.update(|state| {
            state.input_rounds += 1;
            let mut open = Map::new();
            for request in requests {
                let key = format!("{}-{}", request.key, state.input_rounds);
                open.insert(key.clone(), json!({"method": request.method, "params": request.params}));
                keys.push(key);
            }
            state.status = CallTaskStatus::InputRequired { requests: open, answers };
        });
        if keys.is_empty() {
            return Err(ClientRequestError::Cancelled);
        }
        let results = self.wait_for_input(&keys, &received, Instant::now() + timeout, stop);
        if results.is_err() {
            self.update(|state| state.status = CallTaskStatus::Working);
        }
        results
    }

    fn wait_for_input(
        &self,
        keys: &[String],
        received: &Receiver<(String, Value)>,
        deadline: Instant,
        stop: &Cancel,
    ) -> Result<Vec<Value>, ClientRequestError> {
        let mut results: HashMap<String, Value> = HashMap::new();
        while results.len() < keys.len() {
            match received.recv_timeout(CANCEL_INTERVAL) {
                Ok((key, response)) => drop(results.insert(key, response)),
                Err(RecvTimeoutError::Timeout) if Instant::now() >= deadline => {
                    return Err(ClientRequestError::TimedOut);
                }
                Err(RecvTimeoutError::Timeout) if !self.cancel.is_cancelled() && !stop.is_cancelled() => {}
                // A cancelled task drops the sender.
                Err(_) => return Err(ClientRequestError::Cancelled),
            }
        }
        Ok(keys.iter().filter_map(|key| results.remove(key)).collect())
    }
}

/// The time as ISO 8601 has it, in UTC.
fn timestamp(ms: u64) -> String {
    let (seconds, ms) = (ms / 1000, ms % 1000);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Days are counted in eras of 400 years that begin on the first of March, so that leap days come last.
    let shifted = days + 719_468;
    let (era, day) = (shifted / 146_097, shifted % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{date:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_dates() {
        for (ms, shown) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_001, "2000-02-29T00:00:00.001Z"),
            (1_583_020_799_999, "2020-02-29T23:59:59.999Z"),
            (1_794_960_000_000, "2026-11-18T00:00:00.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(timestamp(ms), shown);
        }
    }
}
