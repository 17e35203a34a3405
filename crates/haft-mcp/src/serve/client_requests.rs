//! Requests to a client: in legacy versions a request of the server's own, in stateless versions a result that requires
//! input, after which the client retries its request.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use haft_tool::Cancel;
use serde_json::{Map, Value, json};

use super::context::{ReplyRoute, RequestContext};
use super::peer::{ClientPeer, lock};
use crate::wire::{RpcError, RpcMessage};

/// How long a client's user may take to answer.
pub(super) const USER_TIMEOUT: Duration = Duration::from_mins(10);
/// How often a waiting thread checks for cancellation.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Requests that may wait for input at once.
const MAX_SUSPENDED: usize = 256;
/// Random bytes of a `requestState`.
const STATE_BYTES: usize = 24;

/// A request to the client.
#[derive(Debug, Clone)]
pub struct ClientRequest {
    /// Names the input in the client's retry; the same request always has the same key.
    pub key: String,
    /// `elicitation/create`, `sampling/createMessage` or `roots/list`.
    pub method: &'static str,
    /// The parameters.
    pub params: Value,
}

impl ClientRequest {
    /// The capability that the client must declare.
    pub fn capability(&self) -> &'static str {
        match self.method {
            "elicitation/create" => "elicitation",
            "sampling/createMessage" => "sampling",
            _ => "roots",
        }
    }
}

/// Why a request to the client has no result.
#[derive(Debug, Clone, PartialEq)]
pub enum ClientRequestError {
    /// The client does not declare this capability.
    Unsupported(&'static str),
    /// The client has cancelled its request, or is gone.
    Cancelled,
    /// The client took too long.
    TimedOut,
    /// The client answered with an error.
    Rejected(RpcError),
}

/// Requests that wait for their client to retry with input.
#[derive(Clone, Default)]
pub(super) struct SuspendedRequests(Arc<Mutex<HashMap<String, SuspendedRequest>>>);

struct SuspendedRequest {
    /// A retry must be the same request.
    fingerprint: Value,
    principal: String,
    peer: Weak<ClientPeer>,
    resume: Sender<Retry>,
}

/// A client's retry.
struct Retry {
    route: ReplyRoute,
    cancel: Cancel,
    input: Value,
}

/// How one request waits for input.
pub(super) struct Suspension {
    suspended: SuspendedRequests,
    fingerprint: Value,
}

impl SuspendedRequests {
    pub(super) fn for_request(&self, method: &str, params: &Value) -> Suspension {
        Suspension { suspended: self.clone(), fingerprint: fingerprint(method, params) }
    }

    /// Passes a retry to the request that waits for it. Never blocks.
    pub(super) fn resume(
        &self,
        (method, params): (&str, &Value),
        principal: &str,
        route: ReplyRoute,
        cancel: &Cancel,
    ) -> Result<(), RpcError> {
        let unknown = || RpcError::invalid_params("The requestState is unknown, expired or already used");
        let state = params.get("requestState").and_then(Value::as_str).unwrap_or_default();
        let mut all = lock(&self.0);
        let waiting = all.get(state).ok_or_else(unknown)?;
        if waiting.principal != principal || waiting.fingerprint != fingerprint(method, params) {
            return Err(unknown());
        }
        let waiting = all.remove(state).ok_or_else(unknown)?;
        drop(all);
        let input = params.get("inputResponses").cloned().unwrap_or_default();
        waiting.resume.send(Retry { route, cancel: cancel.clone(), input }).map_err(|_| unknown())
    }

    /// Gives up the requests of one client, or of all.
    pub(super) fn drop_requests(&self, of: Option<&Arc<ClientPeer>>) {
        let is_dropped =
            |peer: &Weak<ClientPeer>| of.is_none_or(|of| std::ptr::eq(peer.as_ptr(), Arc::as_ptr(of)));
        lock(&self.0).retain(|_, waiting| !is_dropped(&waiting.peer));
    }

    fn suspend(
        &self,
        suspension: &Suspension,
        peer: &Arc<ClientPeer>,
    ) -> Result<(String, Receiver<Retry>), RpcError> {
        let mut bytes = [0; STATE_BYTES];
        getrandom::fill(&mut bytes)
            .map_err(|error| RpcError::internal(format!("No random bytes: {error}")))?;
        let state: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut all = lock(&self.0);
        if all.len() >= MAX_SUSPENDED {
            return Err(RpcError::internal("Too many requests wait for input. Answer those first."));
        }
        let (resume, resumed) = channel();
        let (fingerprint, principal) = (suspension.fingerprint.clone(), peer.principal.clone());
        let peer = Arc::downgrade(peer);
        all.insert(state.clone(), SuspendedRequest { fingerprint, principal, peer, resume });
        Ok((state, resumed))
    }
}

impl Suspension {
    /// Answers the request with `input_required` and waits until the client has retried it with all input.
    pub(super) fn request_input(
        &self,
        context: &RequestContext,
        requests: &[ClientRequest],
        timeout: Duration,
    ) -> Result<Vec<Value>, ClientRequestError> {
        let mut results = Map::new();
        collect_results(&mut results, requests, &context.initial_input);
        let deadline = Instant::now() + timeout;
        loop {
            let missing: Map<String, Value> = requests
                .iter()
                .filter(|request| !results.contains_key(&request.key))
                .map(|request| {
                    (request.key.clone(), json!({"method": request.method, "params": request.params}))
                })
                .collect();
            if missing.is_empty() {
                return Ok(requests.iter().filter_map(|request| results.remove(&request.key)).collect());
            }
            let (state, resumed) =
                self.suspended.suspend(self, &context.peer).map_err(ClientRequestError::Rejected)?;
            context.reply(Ok(json!({
                "resultType": "input_required", "inputRequests": missing, "requestState": state,
            })));
            let retry = wait(&resumed, deadline, &[&context.cancel]);
            if retry.is_err() {
                lock(&self.suspended.0).remove(&state);
            }
            let Retry { route, cancel, input } = retry?;
            let original = context.cancel.clone();
            lock(&context.retry_guards).push(cancel.on_cancel(move || original.cancel()));
            *lock(&context.route) = route;
            collect_results(&mut results, requests, &input);
        }
    }
}

/// Takes the results of `requests` from a client's input and ignores the rest.
fn collect_results(results: &mut Map<String, Value>, requests: &[ClientRequest], input: &Value) {
    for request in requests {
        if let Some(result @ Value::Object(_)) = input.get(&request.key) {
            results.insert(request.key.clone(), result.clone());
        }
    }
}

impl RequestContext {
    /// Sends a request of the server's own and waits for the response.
    pub(super) fn send_request(
        &self,
        request: &ClientRequest,
        timeout: Duration,
        stop: &Cancel,
    ) -> Result<Value, ClientRequestError> {
        let (id, response) = self.peer.register_request();
        let message = RpcMessage::request(id.clone(), request.method, request.params.clone());
        let sink = Arc::clone(&lock(&self.route).sink);
        let outcome = if sink.send(&message) {
            wait(&response, Instant::now() + timeout, &[&self.cancel, stop])
        } else {
            Err(ClientRequestError::Cancelled)
        };
        self.peer.forget_request(&id);
        if matches!(outcome, Err(ClientRequestError::Cancelled | ClientRequestError::TimedOut)) {
            // The client can take its question back.
            let params = json!({"requestId": id, "reason": "The answer is no longer needed."});
            sink.send(&RpcMessage::notification("notifications/cancelled", params));
        }
        outcome?.map_err(ClientRequestError::Rejected)
    }
}

fn wait<T>(from: &Receiver<T>, deadline: Instant, stops: &[&Cancel]) -> Result<T, ClientRequestError> {
    loop {
        match from.recv_timeout(POLL_INTERVAL) {
            Ok(value) => return Ok(value),
            Err(RecvTimeoutError::Disconnected) => return Err(ClientRequestError::Cancelled),
            Err(RecvTimeoutError::Timeout) if stops.iter().any(|stop| stop.is_cancelled()) => {
                return Err(ClientRequestError::Cancelled);
            }
            Err(RecvTimeoutError::Timeout) if Instant::now() >= deadline => {
                return Err(ClientRequestError::TimedOut);
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// What a retry has in common with its first request.
fn fingerprint(method: &str, params: &Value) -> Value {
    let mut params = params.clone();
    if let Value::Object(fields) = &mut params {
        for field in ["_meta", "inputResponses", "requestState"] {
            fields.remove(field);
        }
    }
    json!([method, params])
}
