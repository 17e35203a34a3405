//! What a server says of its own accord: that something has changed.

use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;

use super::lock;
use crate::serve::ServerChange;

/// How long after some news the next are told: a server that cries wolf is heard a few times a second.
const PAUSE: Duration = Duration::from_millis(250);
/// How many changed resources wait to be told; of more, some are told later or never.
const MOST_RESOURCES: usize = 256;
/// The longest address of a resource.
const LONGEST: usize = 4096;

type OnNews = Box<dyn Fn(ServerChange) + Send>;

/// Collects news and tells them, many of the same as one.
#[derive(Default)]
pub(super) struct NewsDesk {
    state: Arc<(Mutex<State>, Condvar)>,
}

#[derive(Default)]
struct State {
    tools: bool,
    prompts: bool,
    resources: bool,
    changed: BTreeSet<String>,
    closed: bool,
    listener: u64,
    /// How often the server has said that its tools are others.
    tool_list_changes: u64,
    /// How often the server has said that it will tell.
    promised: u64,
}

impl State {
    fn take(&mut self) -> Vec<ServerChange> {
        let lists = [
            (&mut self.tools, ServerChange::Tools),
            (&mut self.prompts, ServerChange::Prompts),
            (&mut self.resources, ServerChange::Resources),
        ];
        let lists = lists.into_iter().filter_map(|(flag, news)| std::mem::take(flag).then_some(news));
        let mut all: Vec<ServerChange> = lists.collect();
        all.extend(std::mem::take(&mut self.changed).into_iter().map(ServerChange::Resource));
        all
    }
}

impl NewsDesk {
    /// Takes a notification; whether it was news.
    pub(super) fn note(&self, method: &str, params: &Value) -> bool {
        let mut state = lock(&self.state.0);
        match method {
            "notifications/tools/list_changed" => {
                (state.tools, state.tool_list_changes) = (true, state.tool_list_changes + 1);
            }
            "notifications/prompts/list_changed" => state.prompts = true,
            "notifications/resources/list_changed" => state.resources = true,
            "notifications/resources/updated" => {
                let uri = params.get("uri").and_then(Value::as_str).filter(|uri| uri.len() <= LONGEST);
                if let Some(uri) = uri
                    && state.changed.len() < MOST_RESOURCES
                {
                    state.changed.insert(uri.to_owned());
                }
            }
            "notifications/subscriptions/acknowledged" => state.promised += 1,
            _ => return false,
        }
        self.state.1.notify_all();
        true
    }

    /// Has news told to `listener` from now on, on a thread of its own, and to nobody else any more.
    pub(super) fn listen(&self, listener: OnNews) {
        let own = {
            let mut state = lock(&self.state.0);
            state.listener += 1;
            state.listener
        };
        self.state.1.notify_all();
        let shared = Arc::clone(&self.state);
        // Without a thread there are no news; lists are asked for all the same.
        let _ = std::thread::Builder::new()
            .name("mcp-news".to_owned())
            .spawn(move || tell(&shared, own, &listener));
    }

    /// How often the server has said that its tools are others.
    pub(super) fn tool_list_changes(&self) -> u64 {
        lock(&self.state.0).tool_list_changes
    }

    /// How often the server has said that it will tell.
    pub(super) fn promised(&self) -> u64 {
        lock(&self.state.0).promised
    }

    /// Waits until the server has said so more than `before` times, but not for long.
    pub(super) fn until_promised(&self, before: u64, limit: Duration) {
        let (state, changed) = &*self.state;
        let waits = |state: &mut State| state.promised <= before && !state.closed;
        // Whether it came or did not makes no difference to who waits.
        drop(changed.wait_timeout_while(lock(state), limit, waits));
    }

    pub(super) fn close(&self) {
        lock(&self.state.0).closed = true;
        self.state.1.notify_all();
    }
}

fn tell(shared: &(Mutex<State>, Condvar), own: u64, listener: &OnNews) {
    let (state, changed) = shared;
    let mut held = lock(state);
    loop {
        if held.closed || held.listener != own {
            return;
        }
        let news = held.take();
        if news.is_empty() {
            held = changed.wait(held).unwrap_or_else(PoisonError::into_inner);
            continue;
        }
        drop(held);
        news.into_iter().for_each(listener);
        held = lock(state);
        let stop = |state: &mut State| !state.closed && state.listener == own;
        held = changed.wait_timeout_while(held, PAUSE, stop).unwrap_or_else(PoisonError::into_inner).0;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use serde_json::json;

    use super::*;

    #[test]
    fn a_storm_of_news_is_told_a_few_times_and_none_is_lost() {
        let desk = NewsDesk::default();
        let (tell, told) = channel();
        desk.listen(Box::new(move |news| drop(tell.send(news))));
        for _ in 0..10_000 {
            assert!(desk.note("notifications/tools/list_changed", &json!({})));
        }
        desk.note("notifications/resources/updated", &json!({"uri": "memo://last"}));
        desk.note("notifications/resources/updated", &json!({"uri": 7}));
        assert!(!desk.note("notifications/message", &json!({})));
        let limit = Duration::from_mins(1);
        let mut heard = Vec::new();
        while heard.last() != Some(&ServerChange::Resource("memo://last".to_owned())) {
            heard.push(told.recv_timeout(limit).unwrap());
        }
        assert!(heard.len() < 100, "{} times", heard.len());
        assert_eq!(heard[0], ServerChange::Tools);
        desk.close();
        assert!(told.recv_timeout(limit).is_err(), "the listener is let go");
    }

    #[test]
    fn changed_resources_are_counted_only_so_far() {
        let desk = NewsDesk::default();
        for number in 0..10_000 {
            desk.note("notifications/resources/updated", &json!({"uri": format!("memo://{number}")}));
        }
        assert_eq!(lock(&desk.state.0).take().len(), MOST_RESOURCES);
    }
}
