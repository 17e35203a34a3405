//! Listening for news in the new era: one long request, made anew when it ends.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use haft_tool::Cancel;
use serde_json::{Map, Value, json};

use super::conversation::{Conversation, Question};
use super::patience::Patience;
use super::{McpError, lock};

/// The shortest and the longest pause before it is made anew.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(1));
/// How long the server is waited for to say that it will tell: what changes before that would be missed.
const BEGIN: Duration = Duration::from_secs(1);
/// How many resources are watched at most.
const MOST_WATCHED: usize = 256;

/// What is listened for, and by which request.
pub(super) struct Subscription {
    conversation: Arc<Conversation>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    begun: bool,
    watched: BTreeSet<String>,
    /// Ends the request under way.
    current: Option<Cancel>,
}

impl Subscription {
    pub(super) fn new(conversation: &Arc<Conversation>) -> Self {
        Self { conversation: Arc::clone(conversation), state: Mutex::default() }
    }

    pub(super) fn begin(&self) {
        if self.conversation.version().is_stateless() {
            let mut state = lock(&self.state);
            state.begun = true;
            self.renew(&mut state);
        } else {
            self.conversation.link.listen();
        }
    }

    pub(super) fn watch(&self, uri: &str) {
        let mut state = lock(&self.state);
        if state.watched.len() < MOST_WATCHED && state.watched.insert(uri.to_owned()) && state.begun {
            self.renew(&mut state);
        }
    }

    pub(super) fn end(&self) {
        if let Some(current) = lock(&self.state).current.take() {
            current.cancel();
        }
    }

    /// Listens for all that is wanted now.
    fn renew(&self, state: &mut State) {
        let cancel = Cancel::new();
        if let Some(before) = state.current.replace(cancel.clone()) {
            before.cancel();
        }
        let Some(filter) = self.filter(&state.watched) else { return };
        let conversation = Arc::clone(&self.conversation);
        let news = &self.conversation.ear.news;
        let before = news.promised();
        let listen = move || listen(&conversation, &filter, &cancel);
        // Without a thread there are no news; lists are asked for all the same.
        if std::thread::Builder::new().name("mcp-listener".to_owned()).spawn(listen).is_ok() {
            news.until_promised(before, BEGIN);
        }
    }

    /// What there may be news of.
    fn filter(&self, watched: &BTreeSet<String>) -> Option<Value> {
        let info = self.conversation.info();
        let mut filter = Map::new();
        for (capability, name) in [
            ("tools", "toolsListChanged"),
            ("prompts", "promptsListChanged"),
            ("resources", "resourcesListChanged"),
        ] {
            if info.declares_that(capability, "listChanged") {
                filter.insert(name.to_owned(), json!(true));
            }
        }
        if !watched.is_empty() {
            filter.insert("resourceSubscriptions".to_owned(), json!(watched));
        }
        (!filter.is_empty()).then_some(Value::Object(filter))
    }
}

fn listen(conversation: &Conversation, filter: &Value, cancel: &Cancel) {
    let (linked, _guards) = conversation.linked(cancel);
    let mut pause = PAUSES.0;
    while !linked.is_cancelled() {
        let question = Question::new("subscriptions/listen", json!({"notifications": filter}));
        match conversation.ask(&question, &Patience::without_end(&linked)) {
            Ok(_) => pause = PAUSES.0,
            Err(error) => match error.kind {
                // It does not offer this, or there is nobody any more.
                McpError::Rpc(_) | McpError::HttpStatus(_) | McpError::Closed | McpError::Unauthorized => {
                    return;
                }
                _ => pause = (pause * 2).min(PAUSES.1),
            },
        }
        linked.wait(pause);
    }
}
