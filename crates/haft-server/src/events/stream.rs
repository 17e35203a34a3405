//! The event stream of one client.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use haft_tool::{ToolError, json};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::{Instant, sleep_until, timeout};

use super::hub::{EventListener, Hub, NextEvents};
use super::render::{self, transient};
use crate::access::Role;

/// Events queued for a client; further ones stay in the hub.
const MAX_WAITING_EVENTS: usize = 8;
/// Events taken from the hub at a time.
const MAX_BATCH_EVENTS: usize = 64;
/// Feed entries per read from the ledger.
const READ_ENTRIES: usize = 200;
/// How often a comment is sent to keep the connection open.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(15);
/// A client that reads nothing for this long is disconnected.
const SEND_TIMEOUT: Duration = Duration::from_mins(1);

/// Streams events to a client: those after a position, or else new ones only.
pub(crate) async fn connect(
    hub: &Arc<Hub>,
    after: Option<u64>,
    role: Role,
    permits: Vec<OwnedSemaphorePermit>,
) -> Result<mpsc::Receiver<Bytes>, ToolError> {
    let newest = from_ledger(hub, |hub| hub.ledger.feed_position()).await?;
    let (sender, receiver) = mpsc::channel(MAX_WAITING_EVENTS);
    let mut client = EventClient { hub: Arc::clone(hub), sender, position: after.unwrap_or(newest) };
    let listener = hub.listen(role);
    tokio::spawn(async move {
        let _permits = permits;
        // Sent at once, so that the client knows that it is connected.
        let greeting = client.send(Bytes::from_static(b": connected\n\n")).await;
        // A position beyond the newest comes from another ledger.
        let begun = if client.position > newest { client.reset(newest).await } else { greeting };
        if begun.is_some() {
            let _ = client.run(listener).await;
        }
    });
    Ok(receiver)
}

/// Reads from the ledger on a blocking thread.
async fn from_ledger<T: Send + 'static>(
    hub: &Arc<Hub>,
    read: impl FnOnce(&Hub) -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let hub = Arc::clone(hub);
    let done = tokio::task::spawn_blocking(move || read(&hub)).await;
    done.map_err(|_| ToolError::internal("The ledger could not be read."))?
}

struct EventClient {
    hub: Arc<Hub>,
    sender: mpsc::Sender<Bytes>,
    /// The client has all events up to this position.
    position: u64,
}

/// `None` ends the stream.
type Sent = Option<()>;

impl EventClient {
    async fn run(&mut self, mut listener: EventListener) -> Sent {
        let mut heartbeat = Instant::now() + HEARTBEAT_INTERVAL;
        loop {
            listener.news.borrow_and_update();
            self.catch_up().await?;
            tokio::select! {
                changed = listener.news.changed() => {
                    changed.ok()?;
                    if self.hub.is_stopped() {
                        return None;
                    }
                }
                part = listener.parts.recv() => match part {
                    Ok(part) => self.send(part).await?,
                    // The client requests the output that it missed.
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return None,
                },
                () = sleep_until(heartbeat) => {
                    heartbeat = Instant::now() + HEARTBEAT_INTERVAL;
                    self.send(Bytes::from_static(b": waiting\n\n")).await?;
                }
                () = self.sender.closed() => return None,
            }
        }
    }

    /// Sends all events so far.
    async fn catch_up(&mut self) -> Sent {
        loop {
            match self.hub.after(self.position, MAX_BATCH_EVENTS) {
                NextEvents::Kept(events, reached) => {
                    self.position = reached;
                    if events.is_empty() {
                        return Some(());
                    }
                    for event in events {
                        self.send(event).await?;
                    }
                }
                NextEvents::InLedger => self.catch_up_from_ledger().await?,
            }
        }
    }

    /// Sends the next events that the hub no longer has.
    async fn catch_up_from_ledger(&mut self) -> Sent {
        let position = self.position;
        let read = from_ledger(&self.hub, move |hub| {
            let Some(entries) = hub.ledger.feed_after(position, READ_ENTRIES)? else {
                return Ok(Err(hub.ledger.feed_position()?));
            };
            Ok(Ok(render::frames(&hub.ledger, &entries, position)?))
        });
        match read.await {
            Ok(Ok((frames, reached))) => {
                for frame in frames {
                    self.send(frame.bytes).await?;
                }
                self.position = reached;
                Some(())
            }
            Ok(Err(newest)) => self.reset(newest).await,
            Err(error) => {
                tracing::warn!(%error, "a stream of events ends");
                None
            }
        }
    }

    /// Tells the client to reload everything.
    async fn reset(&mut self, newest: u64) -> Sent {
        self.position = newest;
        self.send(transient("reset", &json!({ "position": newest }))).await
    }

    async fn send(&self, bytes: Bytes) -> Sent {
        timeout(SEND_TIMEOUT, self.sender.send(bytes)).await.ok()?.ok()
    }
}
