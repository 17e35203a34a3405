//! One request in progress, as its service sees it.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use haft_tool::{Cancel, CancelGuard, TraceContext};
use serde_json::{Value, json};

use super::client_requests::{ClientRequest, ClientRequestError, Suspension, USER_TIMEOUT};
use super::peer::{ClientPeer, MessageSink, lock};
use super::tasks::{CallTask, CallTaskTable, missing_extension};
use crate::wire::{ProtocolVersion, RequestId, RpcError, RpcMessage, meta};

/// The largest integer that progress writes without a decimal point.
const MAX_WHOLE_NUMBER: f64 = 9e15;

/// The severity of a log message, as in syslog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the levels of syslog")]
pub enum LogLevel {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

impl LogLevel {
    const NAMES: [(&'static str, Self); 8] = [
        ("debug", Self::Debug),
        ("info", Self::Info),
        ("notice", Self::Notice),
        ("warning", Self::Warning),
        ("error", Self::Error),
        ("critical", Self::Critical),
        ("alert", Self::Alert),
        ("emergency", Self::Emergency),
    ];

    /// The level with that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::NAMES.into_iter().find(|(known, _)| *known == name).map(|(_, level)| level)
    }

    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        Self::NAMES.iter().find(|(_, level)| *level == self).map_or("info", |(name, _)| name)
    }
}

/// Where the messages about a request go. A request that is retried with input gets a new one.
pub(super) struct ReplyRoute {
    pub(super) id: RequestId,
    pub(super) sink: Arc<dyn MessageSink>,
    pub(super) progress_token: Option<Value>,
    /// Whether the response was sent; one that requires input counts until the client retries.
    pub(super) is_answered: bool,
}

/// One request in progress.
pub struct RequestContext {
    pub(super) peer: Arc<ClientPeer>,
    pub(super) version: ProtocolVersion,
    pub(super) client_info: Arc<Value>,
    pub(super) capabilities: Arc<Value>,
    /// The log level of a stateless request.
    pub(super) log_level: Option<LogLevel>,
    pub(super) cancel: Cancel,
    pub(super) route: Mutex<ReplyRoute>,
    /// Cancels this request when a retry that brought input is cancelled.
    pub(super) retry_guards: Mutex<Vec<CancelGuard>>,
    /// How a stateless request asks its client for input, if its method allows that.
    pub(super) suspension: Option<Suspension>,
    /// The span that the client asks from.
    pub(super) trace: Option<TraceContext>,
    /// `inputResponses` that came with the first request.
    pub(super) initial_input: Value,
    /// Where a task can be created for this call, if the client understands tasks.
    pub(super) tasks: Option<CallTaskTable>,
    /// The task that the call was answered with.
    pub(super) task: OnceLock<Arc<CallTask>>,
}

impl RequestContext {
    /// The protocol version of the request.
    pub fn version(&self) -> ProtocolVersion {
        self.version
    }

    /// The client's name and version, as it declares them.
    pub fn client_info(&self) -> &Value {
        &self.client_info
    }

    /// Who the client is, as the transport has authenticated it.
    pub fn principal(&self) -> &str {
        &self.peer.principal
    }

    /// The id of the request.
    pub fn id(&self) -> String {
        lock(&self.route).id.to_string()
    }

    /// A name that all requests of one client share: of its connection or session, or its principal and name.
    pub fn session(&self) -> Cow<'_, str> {
        if !self.version.is_stateless() || self.peer.is_persistent() {
            return Cow::Borrowed(&self.peer.name);
        }
        let name = self.client_info.get("name").and_then(Value::as_str).unwrap_or_default();
        Cow::Owned(format!("{}/{name}", self.peer.principal))
    }

    /// The span that the client asks from, if it names one.
    pub fn trace(&self) -> Option<&TraceContext> {
        self.trace.as_ref()
    }

    /// Cancelled when the client cancels the request or is gone.
    pub fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// The declared capabilities of the client.
    pub fn client_capabilities(&self) -> &Value {
        &self.capabilities
    }

    /// Whether the client declares this capability: `elicitation`, `sampling`, `roots`.
    pub fn has_client_capability(&self, name: &str) -> bool {
        self.client_capability(name).is_some_and(Value::is_object)
    }

    /// A declared capability of the client.
    pub fn client_capability(&self, name: &str) -> Option<&Value> {
        self.capabilities.get(name)
    }

    /// Whether the call can be answered with a task.
    pub fn accepts_task(&self) -> bool {
        self.tasks.is_some()
    }

    /// Answers the call with a task, which then gets its result. Does nothing if the client does not understand tasks, or
    /// has an answer already. Returns whether there is a task.
    pub fn become_task(&self) -> bool {
        let mut route = lock(&self.route);
        if let Some(tasks) = &self.tasks
            && self.is_open(&route)
            && let Some(task) = tasks.create(&self.peer.principal, &self.cancel)
        {
            self.peer.finish(&route.id);
            let task = self.task.get_or_init(|| task);
            route.sink.send(&RpcMessage::response(route.id.clone(), Ok(task.created())));
            route.is_answered = true;
        }
        self.task.get().is_some()
    }

    /// Fails if the call cannot be answered with a task.
    pub fn require_task(&self) -> Result<(), RpcError> {
        if self.accepts_task() { Ok(()) } else { Err(missing_extension()) }
    }

    /// Whether the client has asked for progress notifications.
    pub fn wants_progress(&self) -> bool {
        lock(&self.route).progress_token.is_some()
    }

    /// Sends a progress notification, if the client wants it.
    pub fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        if let (Some(task), Some(message)) = (self.task.get(), message) {
            task.set_message(message);
        }
        let route = lock(&self.route);
        let Some(token) = route.progress_token.as_ref().filter(|_| self.is_open(&route)) else { return };
        let mut params = json!({"progressToken": token, "progress": to_number(progress)});
        if let Some(total) = total {
            params["total"] = to_number(total);
        }
        if let Some(message) = message {
            params["message"] = json!(message);
        }
        route.sink.send(&RpcMessage::notification("notifications/progress", params));
    }

    /// Sends a log message, if the client wants this level.
    pub fn log(&self, level: LogLevel, logger: &str, data: &Value) {
        let minimum = if self.version.is_stateless() {
            self.log_level
        } else {
            Some(self.peer.state().log_level.unwrap_or(LogLevel::Info))
        };
        let route = lock(&self.route);
        if minimum.is_some_and(|minimum| level >= minimum) && self.is_open(&route) {
            let params = json!({"level": level.as_str(), "logger": logger, "data": data});
            route.sink.send(&RpcMessage::notification("notifications/message", params));
        }
    }

    /// Sends requests to the client and waits for the results, one for each request, in order. The client's user may take
    /// their time.
    pub fn request_client(&self, requests: &[ClientRequest]) -> Result<Vec<Value>, ClientRequestError> {
        self.request_client_until(requests, &self.cancel)
    }

    /// The same, unless `stop` fires first. A stateless client has got its answer then, so it is waited for.
    pub fn request_client_until(
        &self,
        requests: &[ClientRequest],
        stop: &Cancel,
    ) -> Result<Vec<Value>, ClientRequestError> {
        self.request(requests, USER_TIMEOUT, stop)
    }

    /// The same, with a limit for the time until each result.
    pub fn request_client_within(
        &self,
        requests: &[ClientRequest],
        timeout: Duration,
    ) -> Result<Vec<Value>, ClientRequestError> {
        self.request(requests, timeout, &self.cancel)
    }

    fn request(
        &self,
        requests: &[ClientRequest],
        timeout: Duration,
        stop: &Cancel,
    ) -> Result<Vec<Value>, ClientRequestError> {
        if let Some(missing) = requests.iter().find(|one| !self.has_client_capability(one.capability())) {
            return Err(ClientRequestError::Unsupported(missing.capability()));
        }
        if let Some(task) = self.task.get() {
            return task.request_input(requests, timeout, stop);
        }
        match &self.suspension {
            Some(suspension) => suspension.request_input(self, requests, timeout),
            None if self.version.is_stateless() => {
                Err(ClientRequestError::Unsupported("input for this method"))
            }
            None => requests.iter().map(|request| self.send_request(request, timeout, stop)).collect(),
        }
    }

    /// Ends the connection so that the client reconnects for the response, where the transport supports that.
    pub fn disconnect_client(&self) {
        lock(&self.route).sink.disconnect();
    }

    pub(super) fn reply(&self, outcome: Result<Value, RpcError>) {
        let mut route = lock(&self.route);
        if let Some(task) = self.task.get() {
            return task.finish(outcome);
        }
        self.peer.finish(&route.id);
        if self.is_open(&route) {
            route.sink.send(&RpcMessage::response(route.id.clone(), outcome));
        }
        route.is_answered = true;
    }

    /// Whether messages about the request may be sent: not after its response or its cancellation.
    fn is_open(&self, route: &ReplyRoute) -> bool {
        !route.is_answered && !self.cancel.is_cancelled()
    }
}

/// Writes whole numbers without a decimal point.
fn to_number(value: f64) -> Value {
    #[expect(clippy::cast_possible_truncation, reason = "only whole numbers within the range get here")]
    if value.fract() == 0.0 && value.abs() < MAX_WHOLE_NUMBER { json!(value as i64) } else { json!(value) }
}

/// The token for progress notifications of a request.
pub(super) fn progress_token(params: &Value) -> Option<Value> {
    meta::get(params, "progressToken").filter(|token| token.is_string() || token.is_number()).cloned()
}
