//! Questions to a client: in the old era a request of the server's own, in the new one a result that asks for a retry.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use haft_tool::Cancel;
use serde_json::{Map, Value, json};

use super::exchange::{Exchange, Route};
use super::peer::{Peer, lock};
use crate::wire::{Message, RpcError};

/// How long a client may take to answer.
const PATIENCE: Duration = Duration::from_mins(10);
/// How often somebody who waits looks whether the answer is still wanted.
const STEP: Duration = Duration::from_millis(100);
/// The most requests that may wait for answers at once.
const MOST_PARKED: usize = 256;

/// One question to a client.
#[derive(Debug, Clone)]
pub struct Ask {
    /// What its answer is known by; the same question always has the same.
    pub key: String,
    /// `elicitation/create`, `sampling/createMessage` or `roots/list`.
    pub method: &'static str,
    /// What is asked.
    pub params: Value,
}

impl Ask {
    /// What the client must be able to do.
    pub fn ability(&self) -> &'static str {
        match self.method {
            "elicitation/create" => "elicitation",
            "sampling/createMessage" => "sampling",
            _ => "roots",
        }
    }
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Unanswered {
    /// The client cannot do this.
    Unable(&'static str),
    /// The request was taken back, or the client is gone.
    Gone,
    /// It took too long.
    Late,
    /// The client answered with an error.
    Refused(RpcError),
}

/// Requests that wait for their client to come back with answers.
#[derive(Clone, Default)]
pub(super) struct Parked(Arc<Mutex<HashMap<String, Waiting>>>);

struct Waiting {
    /// What the request was, so that nobody comes back with another.
    fingerprint: Value,
    principal: String,
    peer: Weak<Peer>,
    resume: Sender<Return>,
}

/// A client that has come back.
pub(super) struct Return {
    route: Route,
    cancel: Cancel,
    answers: Value,
}

/// Where one request waits.
pub(super) struct Parking {
    parked: Parked,
    fingerprint: Value,
}

impl Parked {
    pub(super) fn for_request(&self, method: &str, params: &Value) -> Parking {
        Parking { parked: self.clone(), fingerprint: fingerprint(method, params) }
    }

    /// Gives a request that came back to the one that waits for it.
    pub(super) fn resume(
        &self,
        state: &str,
        method: &str,
        params: &Value,
        principal: &str,
        route: Route,
        cancel: &Cancel,
    ) -> Result<(), RpcError> {
        let unknown =
            || RpcError::params("The requestState is none of this server's, was used already or is too old");
        let mut all = lock(&self.0);
        let waiting = all.get(state).ok_or_else(unknown)?;
        if waiting.principal != principal || waiting.fingerprint != fingerprint(method, params) {
            return Err(unknown());
        }
        let waiting = all.remove(state).ok_or_else(unknown)?;
        drop(all);
        let answers = params.get("inputResponses").cloned().unwrap_or_default();
        let back = Return { route, cancel: cancel.clone(), answers };
        waiting.resume.send(back).map_err(|_| unknown())
    }

    /// Lets go of those whose client will not come back: of one client, or of all.
    pub(super) fn leave(&self, of: Option<&Arc<Peer>>) {
        let gone = |peer: &Weak<Peer>| of.is_none_or(|of| std::ptr::eq(peer.as_ptr(), Arc::as_ptr(of)));
        lock(&self.0).retain(|_, waiting| !gone(&waiting.peer));
    }

    fn park(&self, parking: &Parking, peer: &Arc<Peer>) -> Result<(String, Receiver<Return>), RpcError> {
        let mut bytes = [0; 24];
        getrandom::fill(&mut bytes).map_err(|error| RpcError::internal(format!("no randomness: {error}")))?;
        let state: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut all = lock(&self.0);
        if all.len() >= MOST_PARKED {
            return Err(RpcError::internal("Too many requests wait for answers; answer those first"));
        }
        let (resume, resumed) = channel();
        let (fingerprint, principal) = (parking.fingerprint.clone(), peer.principal.clone());
        let peer = Arc::downgrade(peer);
        all.insert(state.clone(), Waiting { fingerprint, principal, peer, resume });
        Ok((state, resumed))
    }
}

impl Parking {
    /// Answers the request with the questions and waits until it comes back with all answers.
    pub(super) fn ask(&self, exchange: &Exchange, questions: &[Ask]) -> Result<Vec<Value>, Unanswered> {
        let mut answers = Map::new();
        take(&mut answers, questions, &exchange.given);
        let limit = Instant::now() + PATIENCE;
        loop {
            let missing: Vec<&Ask> = questions.iter().filter(|ask| !answers.contains_key(&ask.key)).collect();
            if missing.is_empty() {
                return Ok(questions.iter().filter_map(|ask| answers.remove(&ask.key)).collect());
            }
            let requests: Map<String, Value> = missing
                .iter()
                .map(|ask| (ask.key.clone(), json!({"method": ask.method, "params": ask.params})))
                .collect();
            let (state, resumed) = self.parked.park(self, &exchange.peer).map_err(Unanswered::Refused)?;
            exchange.reply(Ok(json!({
                "resultType": "input_required", "inputRequests": requests, "requestState": state,
            })));
            let back = wait(&resumed, limit, &exchange.cancel);
            if back.is_err() {
                lock(&self.parked.0).remove(&state);
            }
            let Return { route, cancel, answers: new } = back?;
            let call = exchange.cancel.clone();
            let linked = cancel.on_cancel(move || call.cancel());
            // The link lives as long as the request that it belongs to, which is the rest of this exchange.
            lock(&exchange.links).push(linked);
            *lock(&exchange.route) = route;
            take(&mut answers, questions, &new);
        }
    }
}

/// Takes the answers that were asked for, and lets the others lie.
fn take(answers: &mut Map<String, Value>, questions: &[Ask], from: &Value) {
    for ask in questions {
        if let Some(answer @ Value::Object(_)) = from.get(&ask.key) {
            answers.insert(ask.key.clone(), answer.clone());
        }
    }
}

impl Exchange {
    /// Asks by a request of the server's own.
    pub(super) fn ask_at_once(&self, question: &Ask) -> Result<Value, Unanswered> {
        let (id, answered) = self.peer.ask();
        let request = Message::request(id.clone(), question.method, question.params.clone());
        if !lock(&self.route).outbox.send(&request) {
            self.peer.forget(&id);
            return Err(Unanswered::Gone);
        }
        let outcome = wait(&answered, Instant::now() + PATIENCE, &self.cancel);
        self.peer.forget(&id);
        outcome?.map_err(Unanswered::Refused)
    }
}

fn wait<T>(from: &Receiver<T>, limit: Instant, cancel: &Cancel) -> Result<T, Unanswered> {
    loop {
        match from.recv_timeout(STEP) {
            Ok(value) => return Ok(value),
            Err(RecvTimeoutError::Disconnected) => return Err(Unanswered::Gone),
            Err(RecvTimeoutError::Timeout) if cancel.is_cancelled() => return Err(Unanswered::Gone),
            Err(RecvTimeoutError::Timeout) if Instant::now() >= limit => return Err(Unanswered::Late),
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// What makes a request the same when it comes back: all but its answers and what it says about itself.
fn fingerprint(method: &str, params: &Value) -> Value {
    let mut params = params.clone();
    if let Value::Object(fields) = &mut params {
        for field in ["_meta", "inputResponses", "requestState"] {
            fields.remove(field);
        }
    }
    json!([method, params])
}
