//! The bus: one queue and one worker thread per channel.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use haft_tool::{Cancel, ErrorKind, Message, Pause, ToolError, close_names, lock};

use crate::Channel;

/// Messages in the queue of one channel.
const DEFAULT_CAPACITY: usize = 1_024;
/// Undelivered messages that are kept; more are only counted.
const MAX_UNDELIVERED: usize = 1_024;
/// How long a bus that is dropped continues to deliver.
const DROP_TIMEOUT: Duration = Duration::from_secs(10);

/// A message that was accepted but not delivered.
#[derive(Debug, Clone, PartialEq)]
pub struct Undelivered {
    /// The message.
    pub message: Message,
    /// The error of the last attempt.
    pub error: ToolError,
}

type WaitFn = dyn Fn(&Pause, &Cancel) -> bool + Send + Sync;

/// Options of a [`Bus`].
pub struct BusBuilder {
    capacity: usize,
    channels: BTreeMap<String, Arc<dyn Channel>>,
    wait: Arc<WaitFn>,
}

impl BusBuilder {
    /// Sets how many messages may wait in the queue of one channel, at least 1.
    #[must_use]
    pub fn capacity(mut self, messages: usize) -> Self {
        self.capacity = messages.max(1);
        self
    }

    /// Adds the channel that messages to `name` go to. It replaces one with the same name.
    #[must_use]
    pub fn channel(mut self, name: impl Into<String>, channel: impl Channel + 'static) -> Self {
        self.channels.insert(name.into(), Arc::new(channel));
        self
    }

    /// Sets how channels wait before they try again; `wait` returns true if they shall give up instead. The default
    /// sleeps until the time is over or the bus is closed.
    #[must_use]
    pub fn wait(mut self, wait: impl Fn(&Pause, &Cancel) -> bool + Send + Sync + 'static) -> Self {
        self.wait = Arc::new(wait);
        self
    }

    /// Creates the bus and starts a thread for each channel.
    pub fn build(self) -> Result<Bus, ToolError> {
        let delivery =
            Arc::new(Delivery { cancel: Cancel::new(), wait: self.wait, undelivered: Mutex::default() });
        let (running, workers_ended) = channel();
        let mut bus = Bus {
            queues: Mutex::default(),
            delivery,
            workers: Mutex::default(),
            workers_ended: Mutex::new(workers_ended),
        };
        let mut queues = BTreeMap::new();
        for (name, channel) in self.channels {
            let queue = bus.start_worker(&name, Arc::clone(&channel), self.capacity, running.clone())?;
            queues.insert(name, ChannelQueue { channel, queue, capacity: self.capacity });
        }
        bus.queues = Mutex::new(Some(queues));
        Ok(bus)
    }
}

struct ChannelQueue {
    channel: Arc<dyn Channel>,
    queue: SyncSender<Message>,
    capacity: usize,
}

/// What the workers share.
struct Delivery {
    cancel: Cancel,
    wait: Arc<WaitFn>,
    undelivered: Mutex<(Vec<Undelivered>, u64)>,
}

/// Accepts messages and delivers each to its channel.
pub struct Bus {
    /// `None` once the bus is closed, which ends the workers when their queues are empty.
    queues: Mutex<Option<BTreeMap<String, ChannelQueue>>>,
    delivery: Arc<Delivery>,
    workers: Mutex<Vec<JoinHandle<()>>>,
    /// Disconnected when all workers have ended.
    workers_ended: Mutex<Receiver<Infallible>>,
}

impl std::fmt::Debug for Bus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bus").field("channels", &self.channels()).finish_non_exhaustive()
    }
}

impl Bus {
    /// Returns a builder without channels.
    pub fn builder() -> BusBuilder {
        BusBuilder {
            capacity: DEFAULT_CAPACITY,
            channels: BTreeMap::new(),
            wait: Arc::new(|pause, cancel| cancel.wait(pause.wait)),
        }
    }

    /// Returns the names of the channels, none if the bus is closed.
    pub fn channels(&self) -> Vec<String> {
        lock(&self.queues).iter().flat_map(BTreeMap::keys).cloned().collect()
    }

    fn start_worker(
        &self,
        name: &str,
        channel: Arc<dyn Channel>,
        capacity: usize,
        running: Sender<Infallible>,
    ) -> Result<SyncSender<Message>, ToolError> {
        let (queue, messages) = sync_channel(capacity);
        let delivery = Arc::clone(&self.delivery);
        let worker = std::thread::Builder::new().name(format!("haft-bus {name}")).spawn(move || {
            for message in messages {
                delivery.deliver(channel.as_ref(), message);
            }
            drop(running);
        });
        let worker = worker.map_err(|error| {
            ToolError::io(format!("the thread of the channel {name} cannot start"), &error)
        })?;
        lock(&self.workers).push(worker);
        Ok(queue)
    }

    /// Accepts a message for delivery, without waiting for it.
    pub fn send(&self, message: &Message) -> Result<(), ToolError> {
        let name = &message.channel;
        let queues = lock(&self.queues);
        let Some(queues) = queues.as_ref() else {
            return Err(ToolError::failed("the message bus is closed; nothing was sent"));
        };
        let Some(ChannelQueue { channel, queue, capacity }) = queues.get(name) else {
            return Err(unknown_channel(name, queues.keys().map(String::as_str)));
        };
        channel.check(message)?;
        queue.try_send(message.clone()).map_err(|error| match error {
            TrySendError::Full(_) => ToolError::failed(format!(
                "the queue of {name} is full ({capacity} messages); nothing was sent, try again later"
            )),
            TrySendError::Disconnected(_) => {
                ToolError::internal(format!("the thread of the channel {name} has ended; nothing was sent"))
            }
        })
    }

    /// Removes and returns the messages that could not be delivered so far. The number counts those beyond the first
    /// 1,024, which are not kept.
    pub fn undelivered(&self) -> (Vec<Undelivered>, u64) {
        std::mem::take(&mut *lock(&self.delivery.undelivered))
    }

    /// Accepts no more messages and delivers those in the queues. After `timeout`, retries end and the rest is
    /// undelivered.
    pub fn close(&self, timeout: Duration) {
        lock(&self.queues).take();
        // The result says whether the workers ended or the time is over; both lead to the same end.
        let _ = lock(&self.workers_ended).recv_timeout(timeout);
        self.delivery.cancel.cancel();
        let workers = std::mem::take(&mut *lock(&self.workers));
        for worker in workers {
            // Panics of channels are caught in the worker.
            let _ = worker.join();
        }
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        self.close(DROP_TIMEOUT);
    }
}

impl Delivery {
    fn deliver(&self, channel: &dyn Channel, message: Message) {
        let Err(error) = self.try_deliver(channel, &message) else { return };
        let mut undelivered = lock(&self.undelivered);
        if undelivered.0.len() < MAX_UNDELIVERED {
            undelivered.0.push(Undelivered { message, error });
        } else {
            undelivered.1 += 1;
        }
    }

    fn try_deliver(&self, channel: &dyn Channel, message: &Message) -> Result<(), ToolError> {
        let closed =
            || ToolError::new(ErrorKind::Interrupted, "the bus was closed before the message was delivered");
        if self.cancel.is_cancelled() {
            return Err(closed());
        }
        let mut wait = |pause: &Pause| if (self.wait)(pause, &self.cancel) { Err(closed()) } else { Ok(()) };
        catch_unwind(AssertUnwindSafe(|| channel.deliver(message, &mut wait)))
            .unwrap_or_else(|_| Err(ToolError::internal("the channel panicked during the delivery")))
    }
}

fn unknown_channel<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> ToolError {
    let known: Vec<&str> = known.collect();
    if known.is_empty() {
        return ToolError::invalid_arguments(format!(
            "channel: {name:?} is unknown, as no channel is configured; see [channels] in haft.toml"
        ));
    }
    let near = close_names(name, known.iter().copied());
    let hint = near.first().map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
    let known = known.join(", ");
    ToolError::invalid_arguments(format!("channel: {name:?} is unknown{hint} (configured: {known})"))
}
