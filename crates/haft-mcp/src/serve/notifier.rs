//! Notifies clients of changed lists and resources.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use haft_tool::Cancel;
use serde_json::{Value, json};

use super::peer::{ClientPeer, MessageSink, lock};
use crate::wire::{RequestId, RpcMessage, meta};

/// What has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerChange {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The list of resources.
    Resources,
    /// The resource with this URI.
    Resource(String),
}

impl ServerChange {
    fn notification(&self, subscription: Option<&RequestId>) -> RpcMessage {
        let method = match self {
            Self::Tools => "notifications/tools/list_changed",
            Self::Prompts => "notifications/prompts/list_changed",
            Self::Resources => "notifications/resources/list_changed",
            Self::Resource(_) => "notifications/resources/updated",
        };
        let mut params = json!({});
        if let Self::Resource(uri) = self {
            params["uri"] = json!(uri);
        }
        if let Some(id) = subscription {
            params["_meta"] = json!({ meta::SUBSCRIPTION: id });
        }
        RpcMessage::notification(method, params)
    }
}

/// The changes that one subscription is about.
#[derive(Debug, Clone, Default)]
pub(super) struct ChangeFilter {
    pub(super) tools: bool,
    pub(super) prompts: bool,
    pub(super) resources: bool,
    pub(super) uris: Vec<String>,
}

impl ChangeFilter {
    fn matches(&self, change: &ServerChange) -> bool {
        match change {
            ServerChange::Tools => self.tools,
            ServerChange::Prompts => self.prompts,
            ServerChange::Resources => self.resources,
            ServerChange::Resource(uri) => self.uris.contains(uri),
        }
    }
}

/// A `subscriptions/listen` request.
pub(super) struct Listener {
    pub(super) id: RequestId,
    pub(super) filter: ChangeFilter,
    pub(super) sink: Arc<dyn MessageSink>,
    /// Cancelled when the subscription ends.
    pub(super) cancel: Cancel,
}

#[derive(Default)]
struct Subscribers {
    /// Clients of legacy versions.
    peers: Mutex<Vec<Weak<ClientPeer>>>,
    /// Subscriptions of stateless clients.
    listeners: Mutex<HashMap<u64, Listener>>,
    next_listener: AtomicU64,
}

/// Sends changes to the clients that want them. Clones share their subscribers.
#[derive(Clone, Default)]
pub struct ChangeNotifier(Arc<Subscribers>);

impl ChangeNotifier {
    /// Notifies all clients that want this change.
    pub fn notify(&self, change: &ServerChange) {
        let peers: Vec<_> = {
            let mut peers = lock(&self.0.peers);
            peers.retain(|peer| peer.strong_count() > 0);
            peers.iter().filter_map(Weak::upgrade).collect()
        };
        for peer in peers {
            let is_wanted = match change {
                ServerChange::Resource(uri) => peer.state().subscribed.contains(uri),
                _ => true,
            };
            if is_wanted {
                peer.send(&change.notification(None));
            }
        }
        let listeners: Vec<(RequestId, Arc<dyn MessageSink>)> = lock(&self.0.listeners)
            .values()
            .filter(|listener| listener.filter.matches(change))
            .map(|listener| (listener.id.clone(), Arc::clone(&listener.sink)))
            .collect();
        for (id, sink) in listeners {
            sink.send(&change.notification(Some(&id)));
        }
    }

    /// Adds a client that completed a handshake.
    pub(super) fn add_peer(&self, peer: &Arc<ClientPeer>) {
        lock(&self.0.peers).push(Arc::downgrade(peer));
    }

    /// Adds a subscription and sends it `acknowledgement`; returns the number for [`Self::remove_listener`].
    pub(super) fn add_listener(&self, listener: Listener, acknowledgement: &RpcMessage) -> u64 {
        let number = self.0.next_listener.fetch_add(1, Ordering::Relaxed);
        // Sent under the lock, so that no change comes before it.
        let mut listeners = lock(&self.0.listeners);
        listener.sink.send(acknowledgement);
        listeners.insert(number, listener);
        number
    }

    pub(super) fn remove_listener(&self, number: u64) {
        lock(&self.0.listeners).remove(&number);
    }

    /// Ends all subscriptions with a result.
    pub(super) fn close(&self) {
        let listeners = std::mem::take(&mut *lock(&self.0.listeners));
        for listener in listeners.into_values() {
            let result = json!({"resultType": "complete", "_meta": {meta::SUBSCRIPTION: listener.id}});
            listener.sink.send(&RpcMessage::response(listener.id, Ok::<Value, _>(result)));
            listener.cancel.cancel();
        }
    }
}
