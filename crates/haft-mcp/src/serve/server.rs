//! The one way in for messages from clients.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use haft_tool::Cancel;
use serde_json::{Value, json};

use super::asking::Parked;
use super::exchange::{Exchange, Level, Route, progress_token};
use super::hub::{Hub, Listener};
use super::methods;
use super::peer::{Outbox, Peer};
use super::service::Service;
use crate::wire::{INVALID_REQUEST, Id, Message, RpcError, Version, meta};

/// Answers clients with what a service offers.
pub struct Server {
    pub(super) service: Arc<dyn Service>,
    pub(super) hub: Hub,
    /// Who answers, as the wire has it.
    pub(super) info: Value,
    parked: Parked,
}

impl Server {
    /// A server of `service`.
    pub fn new(service: Arc<dyn Service>) -> Self {
        let hub = Hub::default();
        service.listen(&hub);
        let info = methods::info(&service.identity());
        Self { service, hub, info, parked: Parked::default() }
    }

    /// What is served.
    pub fn service(&self) -> &Arc<dyn Service> {
        &self.service
    }

    /// Tells listeners that there will be no more news, and requests that wait for answers that none will come.
    pub fn close(&self) {
        self.hub.close();
        self.parked.leave(None);
    }

    /// A client will answer no more questions.
    pub(super) fn left(&self, peer: &Arc<Peer>) {
        peer.give_up_asking();
        self.parked.leave(Some(peer));
    }

    /// Handles one message to its end. `cancel` is cancelled by the transport when the client is gone.
    pub fn handle(
        self: &Arc<Self>,
        peer: &Arc<Peer>,
        message: Message,
        outbox: &Arc<dyn Outbox>,
        cancel: &Cancel,
    ) {
        if let Some(request) = self.begin(peer, message, outbox, cancel) {
            request.run();
        }
    }

    /// Handles one message as far as that never blocks: all but most requests. Those are registered, so that they can
    /// be cancelled, and returned; they may block and need a thread.
    pub fn begin(
        self: &Arc<Self>,
        peer: &Arc<Peer>,
        message: Message,
        outbox: &Arc<dyn Outbox>,
        cancel: &Cancel,
    ) -> Option<PendingRequest> {
        match message {
            Message::Request { id, method, params } => {
                let request = Request { id: id.clone(), method, params };
                return self.begin_request(peer, request, outbox, cancel).unwrap_or_else(|error| {
                    outbox.send(&Message::response(id, Err(error)));
                    None
                });
            }
            Message::Notification { method, params } => {
                if method == "notifications/cancelled"
                    && let Some(id) = params.get("requestId").and_then(Id::read)
                {
                    peer.cancel(&id);
                }
            }
            Message::Response { id: Some(id), outcome } => peer.answered(&id, outcome),
            Message::Response { id: None, .. } => {}
        }
        None
    }

    fn begin_request(
        self: &Arc<Self>,
        peer: &Arc<Peer>,
        request: Request,
        outbox: &Arc<dyn Outbox>,
        cancel: &Cancel,
    ) -> Result<Option<PendingRequest>, RpcError> {
        let Request { id, method, mut params } = request;
        let spoken = Spoken::of(peer, &method, &params)?;
        let route = Route {
            id: id.clone(),
            outbox: Arc::clone(outbox),
            progress: progress_token(&params),
            answered: false,
        };
        if method == "subscriptions/listen" && spoken.version.is_modern() {
            return self.listen(peer, route, &params, cancel).map(|()| None);
        }
        peer.begin(&id, cancel)?;
        let may_ask = spoken.version.is_modern() && methods::may_ask(&method);
        if may_ask && let Some(state) = params.get("requestState").cloned() {
            let state = state.as_str().unwrap_or_default();
            let resumed = self.parked.resume(state, &method, &params, &peer.principal, route, cancel);
            return resumed.map(|()| None).inspect_err(|_| peer.done(&id));
        }
        let given = params.get_mut("inputResponses").map(Value::take).unwrap_or_default();
        let exchange = Arc::new(Exchange {
            peer: Arc::clone(peer),
            version: spoken.version,
            client: spoken.client,
            capabilities: spoken.capabilities,
            level: spoken.level,
            cancel: cancel.clone(),
            route: Mutex::new(route),
            links: Mutex::default(),
            parking: may_ask.then(|| self.parked.for_request(&method, &params)),
            given,
        });
        let request = PendingRequest { server: Arc::clone(self), exchange, method, params };
        if methods::is_immediate(&request.method) {
            request.run();
            return Ok(None);
        }
        Ok(Some(request))
    }

    /// A request that stays until somebody ends it.
    fn listen(
        &self,
        peer: &Arc<Peer>,
        route: Route,
        params: &Value,
        cancel: &Cancel,
    ) -> Result<(), RpcError> {
        let (filter, agreed) = methods::filter(self, params)?;
        peer.begin(&route.id, cancel)?;
        let told = json!({"_meta": {meta::SUBSCRIPTION: route.id}, "notifications": agreed});
        let first = Message::notification("notifications/subscriptions/acknowledged", told);
        let listener =
            Listener { id: route.id.clone(), filter, outbox: route.outbox, cancel: cancel.clone() };
        let number = self.hub.join(listener, &first);
        let (hub, peer, id) = (self.hub.clone(), Arc::clone(peer), route.id);
        // Nobody waits here meanwhile; whoever ends it takes it off the list.
        cancel.then(move || {
            hub.part(number);
            peer.done(&id);
        });
        Ok(())
    }
}

/// Whether a request says everything that one of the new era has to say about itself.
pub(super) fn speaks_for_itself(version: &Value, params: &Value) -> Result<(), RpcError> {
    Spoken::for_itself(version, params).map(drop)
}

/// A registered request that has not run yet.
pub struct PendingRequest {
    server: Arc<Server>,
    exchange: Arc<Exchange>,
    method: String,
    params: Value,
}

impl PendingRequest {
    /// Answers the request with an error instead of running it.
    pub fn refuse(self, error: RpcError) {
        self.exchange.reply(Err(error));
    }

    /// Runs the request and sends its answer. A panic of the service becomes an error.
    pub fn run(self) {
        let Self { server, exchange, method, params } = self;
        let answer = || methods::answer(&server, &exchange, &method, params);
        let outcome = catch_unwind(AssertUnwindSafe(answer)).unwrap_or_else(|_| {
            Err(RpcError::internal(format!("{method} failed because of a fault in the server")))
        });
        exchange.reply(outcome);
    }
}

/// A request as it came.
struct Request {
    id: Id,
    method: String,
    params: Value,
}

/// In which words a request is written, and what its client can do.
struct Spoken {
    version: Version,
    client: Arc<Value>,
    capabilities: Arc<Value>,
    level: Option<Level>,
}

impl Spoken {
    fn of(peer: &Peer, method: &str, params: &Value) -> Result<Self, RpcError> {
        if let Some(version) = meta::get(params, meta::VERSION) {
            return Self::for_itself(version, params);
        }
        if method == "server/discover" {
            return Err(RpcError::params(format!("_meta must have {:?}", meta::VERSION)));
        }
        let known = peer.known();
        let version = match known.version {
            Some(version) => version,
            // Nothing has been agreed on yet, and these two need nothing.
            None if matches!(method, "initialize" | "ping") => Version::NEWEST_HANDSHAKE,
            None => {
                return Err(RpcError::new(
                    INVALID_REQUEST,
                    format!(
                        "Invalid request: {method:?} before \"initialize\", and without {:?} in _meta",
                        meta::VERSION
                    ),
                ));
            }
        };
        let (client, capabilities) = (Arc::clone(&known.client), Arc::clone(&known.capabilities));
        Ok(Self { version, client, capabilities, level: known.level })
    }

    /// A request of the new era brings everything along.
    fn for_itself(version: &Value, params: &Value) -> Result<Self, RpcError> {
        let word = version.as_str().unwrap_or_default();
        let version = Version::parse(word).filter(|version| version.is_modern());
        let version = version.ok_or_else(|| RpcError::version(word))?;
        let capabilities = meta::get(params, meta::CAPABILITIES).filter(|value| value.is_object());
        let capabilities = capabilities.cloned().ok_or_else(|| {
            RpcError::params(format!("_meta must have {:?}, an object", meta::CAPABILITIES))
        })?;
        let client = meta::get(params, meta::CLIENT).cloned().unwrap_or_default();
        let level = meta::get(params, meta::LOG_LEVEL).and_then(Value::as_str).and_then(Level::parse);
        Ok(Self { version, client: Arc::new(client), capabilities: Arc::new(capabilities), level })
    }
}
