//! Changes that a server reports: merged, and passed on at a limited rate.

use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;

use super::lock;
use crate::serve::ServerChange;

/// The shortest interval between two reports to the listener.
const REPORT_INTERVAL: Duration = Duration::from_millis(250);
/// Changed resources that wait to be reported; more are dropped.
const MAX_QUEUED_RESOURCES: usize = 256;
const MAX_URI_BYTES: usize = 4096;

type ChangeListener = Box<dyn Fn(ServerChange) + Send>;

/// Collects changes and reports them to a listener.
#[derive(Default)]
pub(super) struct ChangeFeed(Arc<FeedShared>);

#[derive(Default)]
struct FeedShared {
    state: Mutex<FeedState>,
    changed: Condvar,
}

#[derive(Default)]
struct FeedState {
    tools: bool,
    prompts: bool,
    resources: bool,
    updated: BTreeSet<String>,
    is_closed: bool,
    /// The number of the current listener.
    listener: u64,
    tool_list_changes: u64,
    /// How many subscriptions the server has acknowledged.
    acknowledgements: u64,
}

impl FeedState {
    fn take(&mut self) -> Vec<ServerChange> {
        let lists = [
            (&mut self.tools, ServerChange::Tools),
            (&mut self.prompts, ServerChange::Prompts),
            (&mut self.resources, ServerChange::Resources),
        ];
        let lists = lists.into_iter().filter_map(|(flag, change)| std::mem::take(flag).then_some(change));
        lists.chain(std::mem::take(&mut self.updated).into_iter().map(ServerChange::Resource)).collect()
    }
}

impl ChangeFeed {
    /// Records a notification. Returns false if it is not about a change.
    pub(super) fn notification(&self, method: &str, params: &Value) -> bool {
        let mut state = lock(&self.0.state);
        match method {
            "notifications/tools/list_changed" => {
                state.tools = true;
                state.tool_list_changes += 1;
            }
            "notifications/prompts/list_changed" => state.prompts = true,
            "notifications/resources/list_changed" => state.resources = true,
            "notifications/resources/updated" => {
                let uri = params.get("uri").and_then(Value::as_str).filter(|uri| uri.len() <= MAX_URI_BYTES);
                if let Some(uri) = uri
                    && state.updated.len() < MAX_QUEUED_RESOURCES
                {
                    state.updated.insert(uri.to_owned());
                }
            }
            "notifications/subscriptions/acknowledged" => state.acknowledgements += 1,
            _ => return false,
        }
        self.0.changed.notify_all();
        true
    }

    /// Reports changes to `listener` from now on, on a thread of its own; replaces the previous listener.
    pub(super) fn listen(&self, listener: ChangeListener) {
        let number = {
            let mut state = lock(&self.0.state);
            state.listener += 1;
            state.listener
        };
        self.0.changed.notify_all();
        let shared = Arc::clone(&self.0);
        // Without a thread there are no reports; lists can still be requested.
        let _ = std::thread::Builder::new()
            .name("mcp-changes".to_owned())
            .spawn(move || shared.report(number, &listener));
    }

    /// How often the server has reported that its list of tools has changed.
    pub(super) fn tool_list_changes(&self) -> u64 {
        lock(&self.0.state).tool_list_changes
    }

    /// How many subscriptions the server has acknowledged.
    pub(super) fn acknowledgements(&self) -> u64 {
        lock(&self.0.state).acknowledgements
    }

    /// Waits for one more acknowledgement than `before`, at most for `timeout`.
    pub(super) fn wait_acknowledged(&self, before: u64, timeout: Duration) {
        let is_missing = |state: &mut FeedState| state.acknowledgements <= before && !state.is_closed;
        drop(self.0.changed.wait_timeout_while(lock(&self.0.state), timeout, is_missing));
    }

    pub(super) fn close(&self) {
        lock(&self.0.state).is_closed = true;
        self.0.changed.notify_all();
    }
}

impl FeedShared {
    /// Reports changes until the feed is closed or another listener replaces this one.
    fn report(&self, number: u64, listener: &ChangeListener) {
        let mut state = lock(&self.state);
        while !state.is_closed && state.listener == number {
            let changes = state.take();
            if changes.is_empty() {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            drop(state);
            changes.into_iter().for_each(listener);
            let is_current = |state: &mut FeedState| !state.is_closed && state.listener == number;
            let waited = self.changed.wait_timeout_while(lock(&self.state), REPORT_INTERVAL, is_current);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use serde_json::json;

    use super::*;

    #[test]
    fn flood_of_changes_is_merged_and_the_last_is_not_lost() {
        let feed = ChangeFeed::default();
        let (sender, receiver) = channel();
        feed.listen(Box::new(move |change| drop(sender.send(change))));
        for _ in 0..10_000 {
            assert!(feed.notification("notifications/tools/list_changed", &json!({})));
        }
        feed.notification("notifications/resources/updated", &json!({"uri": "memo://last"}));
        feed.notification("notifications/resources/updated", &json!({"uri": 7}));
        assert!(!feed.notification("notifications/message", &json!({})));
        let limit = Duration::from_mins(1);
        let mut reported = Vec::new();
        while reported.last() != Some(&ServerChange::Resource("memo://last".to_owned())) {
            reported.push(receiver.recv_timeout(limit).unwrap());
        }
        assert!(reported.len() < 100, "{} reports", reported.len());
        assert_eq!(reported[0], ServerChange::Tools);
        feed.close();
        assert!(receiver.recv_timeout(limit).is_err(), "the listener is dropped");
    }

    #[test]
    fn queued_resources_are_bounded() {
        let feed = ChangeFeed::default();
        for number in 0..10_000 {
            feed.notification("notifications/resources/updated", &json!({"uri": format!("memo://{number}")}));
        }
        assert_eq!(lock(&feed.0.state).take().len(), MAX_QUEUED_RESOURCES);
    }
}
