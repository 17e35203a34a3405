//! News for clients: lists and resources that have changed.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use haft_tool::Cancel;
use serde_json::{Value, json};

use super::peer::{Outbox, Peer, lock};
use crate::wire::{Id, Message, meta};

/// What has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The list of resources.
    Resources,
    /// One resource.
    Resource(String),
}

impl News {
    fn method(&self) -> &'static str {
        match self {
            Self::Tools => "notifications/tools/list_changed",
            Self::Prompts => "notifications/prompts/list_changed",
            Self::Resources => "notifications/resources/list_changed",
            Self::Resource(_) => "notifications/resources/updated",
        }
    }

    fn params(&self, subscription: Option<&Id>) -> Value {
        let mut params = json!({});
        if let Self::Resource(uri) = self {
            params["uri"] = json!(uri);
        }
        if let Some(id) = subscription {
            params["_meta"] = json!({ meta::SUBSCRIPTION: id });
        }
        params
    }
}

/// What one listener wants to hear.
#[derive(Debug, Clone, Default)]
pub(super) struct Filter {
    pub(super) tools: bool,
    pub(super) prompts: bool,
    pub(super) resources: bool,
    pub(super) watched: Vec<String>,
}

impl Filter {
    fn wants(&self, news: &News) -> bool {
        match news {
            News::Tools => self.tools,
            News::Prompts => self.prompts,
            News::Resources => self.resources,
            News::Resource(uri) => self.watched.contains(uri),
        }
    }
}

/// A request that stays to listen.
pub(super) struct Listener {
    pub(super) id: Id,
    pub(super) filter: Filter,
    pub(super) outbox: Arc<dyn Outbox>,
    /// What ends it.
    pub(super) cancel: Cancel,
}

#[derive(Default)]
struct Inside {
    peers: Mutex<Vec<Weak<Peer>>>,
    listeners: Mutex<HashMap<u64, Listener>>,
    numbers: AtomicU64,
}

/// Where news is told, and who hears it. Clones are the same place.
#[derive(Clone, Default)]
pub struct Hub(Arc<Inside>);

impl Hub {
    /// Tells everybody who wants to know.
    pub fn tell(&self, news: &News) {
        let peers: Vec<_> = {
            let mut peers = lock(&self.0.peers);
            peers.retain(|peer| peer.strong_count() > 0);
            peers.iter().filter_map(Weak::upgrade).collect()
        };
        for peer in peers {
            let wanted = match news {
                News::Resource(uri) => peer.known().watched.contains(uri),
                _ => true,
            };
            if wanted {
                peer.tell(&Message::notification(news.method(), news.params(None)));
            }
        }
        let listeners: Vec<(Id, Arc<dyn Outbox>)> = lock(&self.0.listeners)
            .values()
            .filter(|listener| listener.filter.wants(news))
            .map(|listener| (listener.id.clone(), Arc::clone(&listener.outbox)))
            .collect();
        for (id, outbox) in listeners {
            outbox.send(&Message::notification(news.method(), news.params(Some(&id))));
        }
    }

    /// A client that hears news without asking for each kind.
    pub(super) fn meet(&self, peer: &Arc<Peer>) {
        lock(&self.0.peers).push(Arc::downgrade(peer));
    }

    /// Takes in a listener, and tells it the first it hears; gives the number by which it leaves.
    pub(super) fn join(&self, listener: Listener, first: &Message) -> u64 {
        let number = self.0.numbers.fetch_add(1, Ordering::Relaxed);
        let mut listeners = lock(&self.0.listeners);
        // Nobody tells news meanwhile, so that nothing comes before it.
        listener.outbox.send(first);
        listeners.insert(number, listener);
        number
    }

    /// Whether a listener left that was still there.
    pub(super) fn part(&self, number: u64) -> bool {
        lock(&self.0.listeners).remove(&number).is_some()
    }

    /// Ends all listeners with the answer that they end with.
    pub(super) fn close(&self) {
        let all = std::mem::take(&mut *lock(&self.0.listeners));
        for listener in all.into_values() {
            let result = json!({"resultType": "complete", "_meta": {meta::SUBSCRIPTION: listener.id}});
            listener.outbox.send(&Message::response(listener.id, Ok(result)));
            listener.cancel.cancel();
        }
    }
}
