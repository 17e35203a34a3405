//! Queues, workers and the end of a bus.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use haft_bus::{Bus, Channel, LogChannel, WaitToRetry};
use haft_tool::{ErrorKind, Message, Pause, ToolError};

fn message(channel: &str, content: &str) -> Message {
    Message { channel: channel.to_owned(), chat_id: "1".to_owned(), content: content.to_owned() }
}

/// Reports each message, and delivers it when the test permits it.
struct GatedChannel {
    started: Sender<String>,
    permits: Mutex<Receiver<()>>,
}

impl GatedChannel {
    fn new() -> (Self, Receiver<String>, Sender<()>) {
        let (sender, started) = channel();
        let (permit, permits) = channel();
        (Self { started: sender, permits: Mutex::new(permits) }, started, permit)
    }
}

impl Channel for GatedChannel {
    fn deliver(&self, message: &Message, _: &mut WaitToRetry<'_>) -> Result<(), ToolError> {
        self.started.send(message.content.clone()).unwrap();
        self.permits.lock().unwrap().recv().map_err(|_| ToolError::failed("the test has ended"))
    }
}

#[test]
fn full_queue_is_an_error_for_the_sender() {
    let (gate, started, permit) = GatedChannel::new();
    let bus = Bus::builder().capacity(2).channel("slow", gate).build().unwrap();
    bus.send(&message("slow", "1")).unwrap();
    assert_eq!(started.recv().unwrap(), "1");
    bus.send(&message("slow", "2")).unwrap();
    bus.send(&message("slow", "3")).unwrap();
    let error = bus.send(&message("slow", "4")).unwrap_err();
    assert_eq!(error.kind, ErrorKind::ExecutionFailed);
    assert!(error.message.starts_with("the queue of slow is full (2 messages)"), "{error}");
    for _ in 0..3 {
        permit.send(()).unwrap();
    }
    bus.close(Duration::from_mins(1));
    assert_eq!(
        started.try_iter().collect::<Vec<_>>(),
        ["2", "3"],
        "accepted messages are delivered in order"
    );
    assert_eq!(bus.undelivered(), (Vec::new(), 0));
}

#[test]
fn unknown_channel_is_an_error_with_the_known_ones() {
    let bus = Bus::builder().channel("slack", LogChannel::new(|_| Ok(()))).build().unwrap();
    let error = bus.send(&message("slak", "hi")).unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidArguments);
    assert_eq!(error.message, "channel: \"slak\" is unknown; did you mean \"slack\"? (configured: slack)");
    let empty = Bus::builder().build().unwrap();
    assert!(empty.send(&message("slack", "hi")).unwrap_err().message.contains("no channel is configured"));
}

#[test]
fn closed_bus_delivers_its_queue_and_accepts_no_more() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let received = Arc::clone(&seen);
    let log = LogChannel::new(move |message| {
        received.lock().unwrap().push(message.content.clone());
        Ok(())
    });
    let bus = Bus::builder().channel("log", log).build().unwrap();
    let all: Vec<String> = (0..200).map(|n| n.to_string()).collect();
    for content in &all {
        bus.send(&message("log", content)).unwrap();
    }
    bus.close(Duration::from_mins(1));
    assert_eq!(*seen.lock().unwrap(), all);
    assert!(bus.send(&message("log", "late")).unwrap_err().message.contains("closed"));
}

/// Waits before each message.
struct WaitingChannel;

impl Channel for WaitingChannel {
    fn deliver(&self, _: &Message, wait: &mut WaitToRetry<'_>) -> Result<(), ToolError> {
        wait(&Pause { why: "HTTP 429".into(), wait: Duration::from_hours(1), next: 2, attempts: 5 })
    }
}

#[test]
fn close_timeout_leaves_the_rest_undelivered() {
    let bus = Bus::builder().channel("p", WaitingChannel).build().unwrap();
    for content in ["1", "2"] {
        bus.send(&message("p", content)).unwrap();
    }
    bus.close(Duration::ZERO);
    let (undelivered, more) = bus.undelivered();
    let contents: Vec<_> = undelivered.iter().map(|one| one.message.content.as_str()).collect();
    assert_eq!((contents, more), (vec!["1", "2"], 0));
    assert!(undelivered.iter().all(|one| one.error.kind == ErrorKind::Interrupted));
}

#[test]
fn waiting_or_panicking_channel_delays_no_other() {
    let (gate, started, permit) = GatedChannel::new();
    let (sender, logged) = channel();
    let sender = Mutex::new(sender);
    let log = LogChannel::new(move |message| {
        sender.lock().unwrap().send(message.content.clone()).unwrap();
        Ok(())
    });
    let broken = LogChannel::new(|_| panic!("on purpose"));
    let bus =
        Bus::builder().channel("slow", gate).channel("log", log).channel("broken", broken).build().unwrap();
    bus.send(&message("slow", "1")).unwrap();
    started.recv().unwrap();
    bus.send(&message("broken", "2")).unwrap();
    bus.send(&message("broken", "3")).unwrap();
    bus.send(&message("log", "4")).unwrap();
    assert_eq!(logged.recv().unwrap(), "4");
    permit.send(()).unwrap();
    bus.close(Duration::from_mins(1));
    let (undelivered, _) = bus.undelivered();
    let broken: Vec<_> =
        undelivered.iter().map(|one| (one.message.content.as_str(), one.error.kind)).collect();
    assert_eq!(broken, [("2", ErrorKind::Internal), ("3", ErrorKind::Internal)]);
}

#[test]
fn wait_function_replaces_sleeping() {
    let waited = Arc::new(Mutex::new(Vec::new()));
    let record = Arc::clone(&waited);
    let bus = Bus::builder()
        .channel("p", WaitingChannel)
        .wait(move |pause, _| {
            record.lock().unwrap().push(pause.wait);
            false
        })
        .build()
        .unwrap();
    bus.send(&message("p", "1")).unwrap();
    bus.close(Duration::from_mins(1));
    assert_eq!((bus.undelivered().0.len(), waited.lock().unwrap().len()), (0, 1));
}
