//! One request on its way: what its service can tell and ask its client meanwhile.

use std::borrow::Cow;
use std::sync::{Arc, Mutex};

use haft_tool::{Cancel, CancelGuard};
use serde_json::{Value, json};

use super::asking::{Ask, Parking, Unanswered};
use super::peer::{Outbox, Peer, lock};
use crate::wire::{Id, Message, Version, meta};

/// How grave a log message is, from the least to the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the words of syslog")]
pub enum Level {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

impl Level {
    const WORDS: [(&'static str, Self); 8] = [
        ("debug", Self::Debug),
        ("info", Self::Info),
        ("notice", Self::Notice),
        ("warning", Self::Warning),
        ("error", Self::Error),
        ("critical", Self::Critical),
        ("alert", Self::Alert),
        ("emergency", Self::Emergency),
    ];

    /// The level of that name.
    pub fn parse(word: &str) -> Option<Self> {
        Self::WORDS.into_iter().find(|(name, _)| *name == word).map(|(_, level)| level)
    }

    /// Its name.
    pub fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, level)| *level == self).map_or("info", |(name, _)| name)
    }
}

/// Where the answer goes, and what else is said until then. A request that comes back with answers brings a new one.
pub(super) struct Route {
    pub(super) id: Id,
    pub(super) outbox: Arc<dyn Outbox>,
    pub(super) progress: Option<Value>,
    /// Whether the answer is given, be it a question: then there is nothing more to say until the client comes back.
    pub(super) answered: bool,
}

/// One request on its way.
pub struct Exchange {
    pub(super) peer: Arc<Peer>,
    pub(super) version: Version,
    pub(super) client: Arc<Value>,
    pub(super) capabilities: Arc<Value>,
    pub(super) level: Option<Level>,
    pub(super) cancel: Cancel,
    pub(super) route: Mutex<Route>,
    /// What ties the requests that brought answers to this one.
    pub(super) links: Mutex<Vec<CancelGuard>>,
    /// Where a request of the new era waits for answers; none where it may not ask.
    pub(super) parking: Option<Parking>,
    /// What happened to come with the request: answers to questions that it has not been asked yet.
    pub(super) given: Value,
}

impl Exchange {
    /// The revision that the client speaks.
    pub fn version(&self) -> Version {
        self.version
    }

    /// What the client says it is: its name and version.
    pub fn client(&self) -> &Value {
        &self.client
    }

    /// Who the client is, as far as the transport made sure of that.
    pub fn principal(&self) -> &str {
        &self.peer.principal
    }

    /// The request's own id.
    pub fn id(&self) -> String {
        lock(&self.route).id.to_string()
    }

    /// What all requests of one client have in common: their connection or session, or who sends them.
    pub fn session(&self) -> Cow<'_, str> {
        if !self.version.is_modern() || self.peer.stays() {
            return Cow::Borrowed(&self.peer.name);
        }
        let name = self.client.get("name").and_then(Value::as_str).unwrap_or_default();
        Cow::Owned(format!("{}/{name}", self.peer.principal))
    }

    /// Whether the result is still wanted.
    pub fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// Whether the client says that it can do this: `elicitation`, `sampling`, `roots`.
    pub fn can(&self, ability: &str) -> bool {
        self.capabilities.get(ability).is_some_and(Value::is_object)
    }

    /// What the client says about one of its abilities.
    pub fn ability(&self, ability: &str) -> Option<&Value> {
        self.capabilities.get(ability)
    }

    /// Whether the client wants to hear how far the request has come.
    pub fn wants_progress(&self) -> bool {
        lock(&self.route).progress.is_some()
    }

    /// Tells how far the request has come.
    pub fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        let route = lock(&self.route);
        let Some(token) = route.progress.as_ref().filter(|_| self.is_wanted(&route)) else { return };
        let mut params = json!({"progressToken": token, "progress": number(progress)});
        if let Some(total) = total {
            params["total"] = number(total);
        }
        if let Some(message) = message {
            params["message"] = json!(message);
        }
        route.outbox.send(&Message::notification("notifications/progress", params));
    }

    /// Tells something for the log, if the client wants it.
    pub fn log(&self, level: Level, logger: &str, data: &Value) {
        let wanted = if self.version.is_modern() {
            self.level
        } else {
            Some(self.peer.known().level.unwrap_or(Level::Info))
        };
        let route = lock(&self.route);
        if wanted.is_some_and(|wanted| level >= wanted) && self.is_wanted(&route) {
            let params = json!({"level": level.word(), "logger": logger, "data": data});
            route.outbox.send(&Message::notification("notifications/message", params));
        }
    }

    /// Asks the client, and waits for all its answers: one for each question, in order.
    pub fn ask(&self, questions: &[Ask]) -> Result<Vec<Value>, Unanswered> {
        if let Some(missing) = questions.iter().find(|ask| !self.can(ask.ability())) {
            return Err(Unanswered::Unable(missing.ability()));
        }
        match &self.parking {
            Some(parking) => parking.ask(self, questions),
            None if self.version.is_modern() => Err(Unanswered::Unable("questions about this request")),
            None => questions.iter().map(|question| self.ask_at_once(question)).collect(),
        }
    }

    /// Has the client hang up and come back for what is still to be said, where it can; nothing is lost meanwhile.
    pub fn come_back_later(&self) {
        lock(&self.route).outbox.pause();
    }

    pub(super) fn reply(&self, outcome: Result<Value, crate::wire::RpcError>) {
        let mut route = lock(&self.route);
        self.peer.done(&route.id);
        if self.is_wanted(&route) {
            route.outbox.send(&Message::response(route.id.clone(), outcome));
        }
        route.answered = true;
    }

    /// Whether anything said about the request is still wanted: not after its answer, and not when it was taken back.
    fn is_wanted(&self, route: &Route) -> bool {
        !route.answered && !self.cancel.is_cancelled()
    }
}

/// Whole numbers are written without a point.
fn number(value: f64) -> Value {
    #[expect(clippy::cast_possible_truncation, reason = "only whole numbers within the range get here")]
    if value.fract() == 0.0 && value.abs() < 9e15 { json!(value as i64) } else { json!(value) }
}

/// The token under which the client wants to hear how far its request has come.
pub(super) fn progress_token(params: &Value) -> Option<Value> {
    meta::get(params, "progressToken").filter(|token| token.is_string() || token.is_number()).cloned()
}
