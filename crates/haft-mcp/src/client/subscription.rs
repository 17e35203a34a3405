//! Receives changes from stateless servers: one long request, repeated when it ends.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use haft_tool::Cancel;
use serde_json::{Map, Value, json};

use super::deadline::Deadline;
use super::session::{ClientSession, OutgoingRequest};
use super::{McpError, lock};

/// The shortest and the longest pause before the request is repeated.
const MIN_RETRY_DELAY: Duration = Duration::from_secs(1);
const MAX_RETRY_DELAY: Duration = Duration::from_mins(1);
/// How long the acknowledgement is waited for: changes before it are missed.
const ACKNOWLEDGEMENT_TIMEOUT: Duration = Duration::from_secs(1);
const MAX_RESOURCES: usize = 256;

/// What is subscribed to.
pub(super) struct Subscription {
    session: Arc<ClientSession>,
    state: Mutex<SubscriptionState>,
}

#[derive(Default)]
struct SubscriptionState {
    has_begun: bool,
    resources: BTreeSet<String>,
    /// Ends the request in progress.
    current: Option<Cancel>,
}

impl Subscription {
    pub(super) fn new(session: &Arc<ClientSession>) -> Self {
        Self { session: Arc::clone(session), state: Mutex::default() }
    }

    pub(super) fn begin(&self) {
        if self.session.version().is_stateless() {
            let mut state = lock(&self.state);
            state.has_begun = true;
            self.restart(&mut state);
        } else {
            self.session.connection.listen();
        }
    }

    pub(super) fn add_resource(&self, uri: &str) {
        let mut state = lock(&self.state);
        if state.resources.len() < MAX_RESOURCES && state.resources.insert(uri.to_owned()) && state.has_begun
        {
            self.restart(&mut state);
        }
    }

    pub(super) fn end(&self) {
        if let Some(current) = lock(&self.state).current.take() {
            current.cancel();
        }
    }

    /// Replaces the request in progress by one for all that is wanted now.
    fn restart(&self, state: &mut SubscriptionState) {
        let cancel = Cancel::new();
        if let Some(previous) = state.current.replace(cancel.clone()) {
            previous.cancel();
        }
        let Some(filter) = self.filter(&state.resources) else { return };
        let session = Arc::clone(&self.session);
        let changes = &self.session.inbound.changes;
        let acknowledged = changes.acknowledgements();
        let listen = move || listen(&session, &filter, &cancel);
        // Without a thread there are no change notifications; lists can still be requested.
        if std::thread::Builder::new().name("mcp-subscription".to_owned()).spawn(listen).is_ok() {
            changes.wait_acknowledged(acknowledged, ACKNOWLEDGEMENT_TIMEOUT);
        }
    }

    fn filter(&self, resources: &BTreeSet<String>) -> Option<Value> {
        let info = self.session.info();
        let mut filter = Map::new();
        for (capability, name) in [
            ("tools", "toolsListChanged"),
            ("prompts", "promptsListChanged"),
            ("resources", "resourcesListChanged"),
        ] {
            if info.has_flag(capability, "listChanged") {
                filter.insert(name.to_owned(), json!(true));
            }
        }
        if !resources.is_empty() {
            filter.insert("resourceSubscriptions".to_owned(), json!(resources));
        }
        (!filter.is_empty()).then_some(Value::Object(filter))
    }
}

fn listen(session: &ClientSession, filter: &Value, cancel: &Cancel) {
    let (linked, _guards) = session.linked_cancel(cancel);
    let mut delay = MIN_RETRY_DELAY;
    while !linked.is_cancelled() {
        let request = OutgoingRequest::new("subscriptions/listen", json!({"notifications": filter}));
        match session.request(&request, &Deadline::unlimited(&linked)) {
            Ok(_) => delay = MIN_RETRY_DELAY,
            Err(error) => match error.kind {
                // The server does not offer this, or the connection is closed.
                McpError::Rpc(_) | McpError::HttpStatus(_) | McpError::Closed | McpError::Unauthorized => {
                    return;
                }
                _ => delay = (delay * 2).min(MAX_RETRY_DELAY),
            },
        }
        linked.wait(delay);
    }
}
