//! The bus: takes messages, and hands each to those who listen to its channel.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use haft_tool::{Cancel, ErrorKind, Message, Pause, ToolError, close_names, lock};

use crate::queue::Queue;
use crate::{Channel, Subscription};

/// As many messages wait for one listener at most, if nobody says otherwise.
const CAPACITY: usize = 1_024;
/// As many undelivered messages are kept; more are counted.
const MOST_UNDELIVERED: usize = 1_024;
/// As long a bus that is dropped goes on delivering.
const LAST_PATIENCE: Duration = Duration::from_secs(10);

/// A message that did not arrive, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Undelivered {
    /// The message.
    pub message: Message,
    /// Why.
    pub error: ToolError,
}

type Wait = dyn Fn(&Pause, &Cancel) -> bool + Send + Sync;

/// How a bus is made.
pub struct Builder {
    capacity: usize,
    channels: Vec<(String, Arc<dyn Channel>)>,
    wait: Arc<Wait>,
}

impl Builder {
    /// How many messages may wait for one listener.
    #[must_use]
    pub fn capacity(mut self, messages: usize) -> Self {
        self.capacity = messages.max(1);
        self
    }

    /// A channel that carries on what is sent to `name`.
    #[must_use]
    pub fn channel(mut self, name: impl Into<String>, channel: impl Channel + 'static) -> Self {
        self.channels.push((name.into(), Arc::new(channel)));
        self
    }

    /// How channels wait before another attempt: gives whether to stop instead. Real time passes if nothing is said.
    #[must_use]
    pub fn wait(mut self, wait: impl Fn(&Pause, &Cancel) -> bool + Send + Sync + 'static) -> Self {
        self.wait = Arc::new(wait);
        self
    }

    /// The bus, with a worker for each channel.
    pub fn build(self) -> Result<Bus, ToolError> {
        let bus = Bus {
            shared: Arc::new(Shared {
                state: Mutex::default(),
                changed: Condvar::new(),
                cancel: Cancel::new(),
                wait: self.wait,
            }),
            capacity: self.capacity,
            workers: Mutex::default(),
        };
        for (name, channel) in self.channels {
            bus.attach(&name, channel)?;
        }
        Ok(bus)
    }
}

#[derive(Default)]
struct State {
    closed: bool,
    listeners: BTreeMap<String, Vec<Listener>>,
    /// Workers that have not come to their end.
    working: usize,
    undelivered: VecDeque<Undelivered>,
    uncounted: u64,
}

#[derive(Clone)]
struct Listener {
    queue: Arc<Queue>,
    channel: Option<Arc<dyn Channel>>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    cancel: Cancel,
    wait: Arc<Wait>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

/// Takes messages, and hands each to those who listen to its channel.
pub struct Bus {
    shared: Arc<Shared>,
    capacity: usize,
    workers: Mutex<Vec<JoinHandle<()>>>,
}

impl std::fmt::Debug for Bus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bus").field("channels", &self.channels()).finish_non_exhaustive()
    }
}

impl Bus {
    /// A bus to be made.
    pub fn builder() -> Builder {
        Builder {
            capacity: CAPACITY,
            channels: Vec::new(),
            wait: Arc::new(|pause, cancel| cancel.wait(pause.wait)),
        }
    }

    /// The names that messages can be sent to.
    pub fn channels(&self) -> Vec<String> {
        let state = self.shared.lock();
        let heard = |listeners: &[Listener]| listeners.iter().any(|listener| listener.queue.is_heard());
        state.listeners.iter().filter(|(_, all)| heard(all)).map(|(name, _)| name.clone()).collect()
    }

    /// Everything that is sent to `channel` from now on, until the subscription is dropped.
    pub fn subscribe(&self, channel: impl Into<String>) -> Subscription {
        Subscription::new(self.listen(channel.into(), None))
    }

    fn listen(&self, name: String, channel: Option<Arc<dyn Channel>>) -> Arc<Queue> {
        let queue = Queue::new(self.capacity);
        let mut state = self.shared.lock();
        if state.closed {
            queue.close();
        }
        state.listeners.entry(name).or_default().push(Listener { queue: Arc::clone(&queue), channel });
        queue
    }

    fn attach(&self, name: &str, channel: Arc<dyn Channel>) -> Result<(), ToolError> {
        let messages = Subscription::new(self.listen(name.to_owned(), Some(Arc::clone(&channel))));
        let shared = Arc::clone(&self.shared);
        self.shared.lock().working += 1;
        let worker = std::thread::Builder::new().name(format!("haft-bus {name}")).spawn(move || {
            // Counts the worker out also when its channel breaks down.
            let _end = End(&shared);
            work(&messages, channel.as_ref(), &shared);
        });
        let worker = worker.map_err(|error| {
            self.shared.lock().working -= 1;
            ToolError::io(format!("the channel {name} cannot be started"), &error)
        })?;
        lock(&self.workers).push(worker);
        Ok(())
    }

    /// Takes a message, or says why not. Does not wait: that it was taken is all that is known.
    pub fn send(&self, message: &Message) -> Result<(), ToolError> {
        let name = &message.channel;
        let mut state = self.shared.lock();
        if state.closed {
            return Err(ToolError::failed("the message bus is closed; nothing was sent"));
        }
        for listeners in state.listeners.values_mut() {
            listeners.retain(|listener| listener.queue.is_heard());
        }
        state.listeners.retain(|_, listeners| !listeners.is_empty());
        let Some(listeners) = state.listeners.get(name) else {
            return Err(unknown(name, state.listeners.keys().map(String::as_str)));
        };
        for listener in listeners {
            if let Some(channel) = &listener.channel {
                channel.check(message)?;
            }
            if listener.queue.is_full() {
                return Err(ToolError::failed(format!(
                    "the queue of {name} is full: {} messages wait to be delivered; nothing was sent, try again later",
                    listener.queue.capacity()
                )));
            }
        }
        // Only this function fills queues, and it holds the lock: what had room above has it still.
        for listener in listeners {
            listener.queue.push(message.clone());
        }
        Ok(())
    }

    /// What did not arrive so far; asking forgets it. The number is how many more there were than are kept.
    pub fn undelivered(&self) -> (Vec<Undelivered>, u64) {
        let mut state = self.shared.lock();
        (state.undelivered.drain(..).collect(), std::mem::take(&mut state.uncounted))
    }

    /// Takes no more messages and delivers those that it has; after `patience` it waits for no server any more, and
    /// tells the rest as undelivered.
    pub fn close(&self, patience: Duration) {
        let mut state = self.shared.lock();
        state.closed = true;
        for listener in state.listeners.values().flatten() {
            listener.queue.close();
        }
        let waited = self.shared.changed.wait_timeout_while(state, patience, |state| state.working > 0);
        drop(waited);
        self.shared.cancel.cancel();
        let workers = std::mem::take(&mut *lock(&self.workers));
        for worker in workers {
            // A channel that broke down has been told as such by its worker's end.
            let _ = worker.join();
        }
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        self.close(LAST_PATIENCE);
    }
}

struct End<'a>(&'a Shared);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.lock().working -= 1;
        self.0.changed.notify_all();
    }
}

fn work(messages: &Subscription, channel: &dyn Channel, shared: &Shared) {
    while let Some(message) = messages.next() {
        let stopped =
            || ToolError::new(ErrorKind::Interrupted, "the bus was closed before it could be delivered");
        let result = if shared.cancel.is_cancelled() {
            Err(stopped())
        } else {
            let mut wait =
                |pause: &Pause| if (shared.wait)(pause, &shared.cancel) { Err(stopped()) } else { Ok(()) };
            let delivery = std::panic::AssertUnwindSafe(|| channel.deliver(&message, &mut wait));
            std::panic::catch_unwind(delivery)
                .unwrap_or_else(|_| Err(ToolError::internal("the channel broke down while it delivered")))
        };
        if let Err(error) = result {
            let mut state = shared.lock();
            if state.undelivered.len() >= MOST_UNDELIVERED {
                state.uncounted += 1;
            } else {
                state.undelivered.push_back(Undelivered { message, error });
            }
        }
    }
}

fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> ToolError {
    let known: Vec<&str> = known.collect();
    if known.is_empty() {
        return ToolError::invalid_arguments(format!(
            "channel: there is none called {name:?}; none is set up (see [channels] in haft.toml)"
        ));
    }
    let near = close_names(name, known.iter().copied());
    let near = near.first().map(|near| format!(", did you mean {near:?}?")).unwrap_or_default();
    ToolError::invalid_arguments(format!(
        "channel: there is none called {name:?}{near} (there are: {})",
        known.join(", ")
    ))
}
