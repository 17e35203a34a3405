//! The entry point for messages from clients.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, OnceLock};

use haft_tool::Cancel;
use serde_json::{Value, json};

use super::client_requests::SuspendedRequests;
use super::context::{LogLevel, ReplyRoute, RequestContext, progress_token};
use super::methods;
use super::notifier::{ChangeNotifier, Listener};
use super::peer::{ClientPeer, MessageSink};
use super::service::McpService;
use super::tasks::{self, CallTaskTable};
use crate::wire::{INVALID_REQUEST, ProtocolVersion, RequestId, RpcError, RpcMessage, meta};

/// Answers clients with what a service offers.
pub struct McpServer {
    pub(super) service: Arc<dyn McpService>,
    pub(super) notifier: ChangeNotifier,
    /// The service's identity in the protocol's form.
    pub(super) info: Value,
    suspended: SuspendedRequests,
    pub(super) tasks: CallTaskTable,
}

impl McpServer {
    /// Serves `service`.
    pub fn new(service: Arc<dyn McpService>) -> Self {
        let notifier = ChangeNotifier::default();
        service.set_notifier(&notifier);
        let info = methods::server_info(&service.identity());
        Self {
            service,
            notifier,
            info,
            suspended: SuspendedRequests::default(),
            tasks: CallTaskTable::default(),
        }
    }

    /// The service.
    pub fn service(&self) -> &Arc<dyn McpService> {
        &self.service
    }

    /// Cancels all tasks.
    pub(super) fn cancel_tasks(&self) {
        self.tasks.cancel_all();
    }

    /// Ends all subscriptions, all tasks, and all requests that wait for input.
    pub fn close(&self) {
        self.notifier.close();
        self.cancel_tasks();
        self.suspended.drop_requests(None);
    }

    /// Fails what waits for this client's answers, because there will be none.
    pub(super) fn disconnect(&self, peer: &Arc<ClientPeer>) {
        peer.drop_pending();
        self.suspended.drop_requests(Some(peer));
    }

    /// Handles one message to its end; may block. The transport cancels `cancel` when the client is gone.
    pub fn handle(
        self: &Arc<Self>,
        peer: &Arc<ClientPeer>,
        message: RpcMessage,
        sink: &Arc<dyn MessageSink>,
        cancel: &Cancel,
    ) {
        if let Some(request) = self.begin(peer, message, sink, cancel) {
            request.run();
        }
    }

    /// Handles one message as far as that does not block. A request that may block is registered, so that it can be
    /// cancelled, and returned.
    pub fn begin(
        self: &Arc<Self>,
        peer: &Arc<ClientPeer>,
        message: RpcMessage,
        sink: &Arc<dyn MessageSink>,
        cancel: &Cancel,
    ) -> Option<PendingRequest> {
        match message {
            RpcMessage::Request { id, method, params } => {
                let begun = self.begin_request(peer, (id.clone(), method, params), sink, cancel);
                return begun.unwrap_or_else(|error| {
                    sink.send(&RpcMessage::response(id, Err(error)));
                    None
                });
            }
            RpcMessage::Notification { method, params } => {
                if method == "notifications/cancelled"
                    && let Some(id) = params.get("requestId").and_then(RequestId::read)
                {
                    peer.cancel(&id);
                }
            }
            RpcMessage::Response { id: Some(id), outcome } => peer.deliver(&id, outcome),
            RpcMessage::Response { id: None, .. } => {}
        }
        None
    }

    fn begin_request(
        self: &Arc<Self>,
        peer: &Arc<ClientPeer>,
        (id, method, mut params): (RequestId, String, Value),
        sink: &Arc<dyn MessageSink>,
        cancel: &Cancel,
    ) -> Result<Option<PendingRequest>, RpcError> {
        let declared = Declared::read(peer, &method, &params)?;
        let is_stateless = declared.version.is_stateless();
        let route = ReplyRoute {
            id: id.clone(),
            sink: Arc::clone(sink),
            progress_token: progress_token(&params),
            is_answered: false,
        };
        if method == "subscriptions/listen" && is_stateless {
            return self.subscribe(peer, route, &params, cancel).map(|()| None);
        }
        peer.begin(&id, cancel)?;
        let may_suspend = is_stateless && methods::may_request_input(&method);
        if may_suspend && params.get("requestState").is_some() {
            let resumed = self.suspended.resume((&method, &params), &peer.principal, route, cancel);
            return resumed.map(|()| None).inspect_err(|_| peer.finish(&id));
        }
        let may_be_task = may_suspend && method == "tools/call" && self.service.capabilities().tasks;
        let tasks = (may_be_task && tasks::is_declared(&declared.capabilities)).then(|| self.tasks.clone());
        let initial_input = match params.get_mut("inputResponses").filter(|_| may_suspend) {
            Some(input) => input.take(),
            None => Value::Null,
        };
        let context = Arc::new(RequestContext {
            peer: Arc::clone(peer),
            version: declared.version,
            client_info: declared.client_info,
            capabilities: declared.capabilities,
            log_level: declared.log_level,
            cancel: cancel.clone(),
            route: Mutex::new(route),
            retry_guards: Mutex::default(),
            suspension: may_suspend.then(|| self.suspended.for_request(&method, &params)),
            trace: meta::trace(&params),
            initial_input,
            tasks,
            task: OnceLock::new(),
        });
        let request = PendingRequest { server: Arc::clone(self), context, method, params };
        if methods::is_immediate(&request.method) {
            request.run();
            return Ok(None);
        }
        Ok(Some(request))
    }

    /// Begins a subscription, which lasts until it is cancelled and needs no thread.
    fn subscribe(
        &self,
        peer: &Arc<ClientPeer>,
        route: ReplyRoute,
        params: &Value,
        cancel: &Cancel,
    ) -> Result<(), RpcError> {
        let (filter, accepted) = methods::read_filter(self, params)?;
        peer.begin(&route.id, cancel)?;
        let params = json!({"_meta": {meta::SUBSCRIPTION: route.id}, "notifications": accepted});
        let acknowledgement = RpcMessage::notification("notifications/subscriptions/acknowledged", params);
        let listener = Listener { id: route.id.clone(), filter, sink: route.sink, cancel: cancel.clone() };
        let number = self.notifier.add_listener(listener, &acknowledgement);
        let (notifier, peer, id) = (self.notifier.clone(), Arc::clone(peer), route.id);
        cancel.then(move || {
            notifier.remove_listener(number);
            peer.finish(&id);
        });
        Ok(())
    }
}

/// Checks that a stateless request declares all that it must.
pub(super) fn check_stateless(version: &Value, params: &Value) -> Result<(), RpcError> {
    Declared::read_stateless(version, params).map(drop)
}

/// A registered request that has not run yet.
pub struct PendingRequest {
    server: Arc<McpServer>,
    context: Arc<RequestContext>,
    method: String,
    params: Value,
}

impl PendingRequest {
    /// Answers the request with an error instead of running it.
    pub fn refuse(self, error: RpcError) {
        self.context.reply(Err(error));
    }

    /// Runs the request and sends its response.
    pub fn run(self) {
        self.respond().send();
    }

    /// Runs the request. A panic of the service becomes an error.
    pub(super) fn respond(self) -> RequestAnswer {
        let Self { server, context, method, params } = self;
        let respond = || methods::respond(&server, &context, &method, params);
        let outcome = catch_unwind(AssertUnwindSafe(respond)).unwrap_or_else(|_| {
            Err(RpcError::internal(format!("{method} failed because of a fault in the server")))
        });
        RequestAnswer { context, outcome }
    }
}

/// The outcome of a request that has run.
pub(super) struct RequestAnswer {
    context: Arc<RequestContext>,
    outcome: Result<Value, RpcError>,
}

impl RequestAnswer {
    /// Sends the response.
    pub(super) fn send(self) {
        self.context.reply(self.outcome);
    }
}

/// What is declared for one request: by a handshake, or by the request itself.
struct Declared {
    version: ProtocolVersion,
    client_info: Arc<Value>,
    capabilities: Arc<Value>,
    log_level: Option<LogLevel>,
}

impl Declared {
    fn read(peer: &ClientPeer, method: &str, params: &Value) -> Result<Self, RpcError> {
        if let Some(version) = meta::get(params, meta::VERSION) {
            return Self::read_stateless(version, params);
        }
        if method == "server/discover" {
            return Err(RpcError::invalid_params(format!("_meta must contain {:?}", meta::VERSION)));
        }
        let state = peer.state();
        let version = match state.version {
            Some(version) => version,
            None if matches!(method, "initialize" | "ping") => ProtocolVersion::NEWEST_LEGACY,
            None => {
                let why = format!(
                    "Invalid request: {method:?} came before \"initialize\" and without {:?} in _meta",
                    meta::VERSION
                );
                return Err(RpcError::new(INVALID_REQUEST, why));
            }
        };
        let (client_info, capabilities) = (Arc::clone(&state.client_info), Arc::clone(&state.capabilities));
        Ok(Self { version, client_info, capabilities, log_level: state.log_level })
    }

    fn read_stateless(version: &Value, params: &Value) -> Result<Self, RpcError> {
        let name = version.as_str().unwrap_or_default();
        let version = ProtocolVersion::parse(name).filter(|version| version.is_stateless());
        let version = version.ok_or_else(|| RpcError::unsupported_version(name))?;
        let capabilities = meta::get(params, meta::CAPABILITIES).filter(|value| value.is_object());
        let capabilities = capabilities.cloned().ok_or_else(|| {
            RpcError::invalid_params(format!("_meta must contain {:?}, an object", meta::CAPABILITIES))
        })?;
        let client_info = meta::get(params, meta::CLIENT).cloned().unwrap_or_default();
        let log_level = meta::get(params, meta::LOG_LEVEL).and_then(Value::as_str).and_then(LogLevel::parse);
        Ok(Self {
            version,
            client_info: Arc::new(client_info),
            capabilities: Arc::new(capabilities),
            log_level,
        })
    }
}
