//! The bus: nothing that it takes gets lost without a word.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use haft_bus::{Bus, Channel, Log, Waiting};
use haft_tool::{ErrorKind, Message, Pause, ToolError};

fn message(channel: &str, content: &str) -> Message {
    Message { channel: channel.to_owned(), chat_id: "1".to_owned(), content: content.to_owned() }
}

/// Delivers one message each time it is let.
struct Gate {
    begun: Sender<String>,
    open: Mutex<Receiver<()>>,
}

impl Gate {
    fn new() -> (Self, Receiver<String>, Sender<()>) {
        let (begun, started) = channel();
        let (let_go, open) = channel();
        (Self { begun, open: Mutex::new(open) }, started, let_go)
    }
}

impl Channel for Gate {
    fn deliver(&self, message: &Message, _: &mut Waiting<'_>) -> Result<(), ToolError> {
        self.begun.send(message.content.clone()).unwrap();
        self.open.lock().unwrap().recv().map_err(|_| ToolError::failed("nobody opens"))
    }
}

#[test]
fn a_full_queue_is_an_error_that_the_sender_sees() {
    let (gate, started, let_go) = Gate::new();
    let bus = Bus::builder().capacity(2).channel("slow", gate).build().unwrap();
    bus.send(&message("slow", "1")).unwrap();
    assert_eq!(started.recv().unwrap(), "1");
    bus.send(&message("slow", "2")).unwrap();
    bus.send(&message("slow", "3")).unwrap();
    let error = bus.send(&message("slow", "4")).unwrap_err();
    assert_eq!(error.kind, ErrorKind::ExecutionFailed);
    assert!(error.message.starts_with("the queue of slow is full: 2 messages wait"), "{error}");
    for _ in 0..3 {
        let_go.send(()).unwrap();
    }
    bus.close(Duration::from_mins(1));
    assert_eq!(started.try_iter().collect::<Vec<_>>(), ["2", "3"], "what was taken is delivered, in order");
    assert_eq!(bus.undelivered(), (Vec::new(), 0));
}

#[test]
fn an_unknown_channel_is_an_error_that_names_the_known_ones() {
    let bus = Bus::builder().channel("slack", Log::new(|_| Ok(()))).build().unwrap();
    let error = bus.send(&message("slak", "hi")).unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidArguments);
    assert_eq!(
        error.message,
        "channel: there is none called \"slak\", did you mean \"slack\"? (there are: slack)"
    );
    let empty = Bus::builder().build().unwrap();
    assert!(empty.send(&message("slack", "hi")).unwrap_err().message.contains("none is set up"));
}

#[test]
fn subscribers_get_the_messages_of_their_channel_and_no_others() {
    let bus = Bus::builder().capacity(1).build().unwrap();
    let (one, two, other) = (bus.subscribe("a"), bus.subscribe("a"), bus.subscribe("b"));
    bus.send(&message("a", "x")).unwrap();
    assert_eq!(one.next().unwrap().content, "x");
    assert!(other.try_next().is_none());
    let error = bus.send(&message("a", "y")).unwrap_err();
    assert!(error.message.contains("full"), "one listener that does not take its messages is enough");
    assert!(one.try_next().is_none(), "and then nobody gets it");
    drop(two);
    bus.send(&message("a", "y")).unwrap();
    assert_eq!(one.next().unwrap().content, "y");
    drop(one);
    assert_eq!(bus.send(&message("a", "z")).unwrap_err().kind, ErrorKind::InvalidArguments, "nobody listens");
    assert_eq!(bus.channels(), ["b"]);
    bus.close(Duration::ZERO);
    assert!(other.next().is_none(), "a closed bus has an end");
}

#[test]
fn a_closed_bus_delivers_what_it_has_and_takes_no_more() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    let log = Log::new(move |message| {
        sink.lock().unwrap().push(message.content.clone());
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

/// Waits before every message.
struct Patient;

impl Channel for Patient {
    fn deliver(&self, _: &Message, wait: &mut Waiting<'_>) -> Result<(), ToolError> {
        wait(&Pause { why: "HTTP 429".into(), wait: Duration::from_hours(1), next: 2, attempts: 5 })
    }
}

#[test]
fn patience_has_an_end_and_the_rest_is_told() {
    let bus = Bus::builder().channel("p", Patient).build().unwrap();
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
fn one_channel_that_waits_or_breaks_down_holds_up_no_other() {
    let (gate, started, let_go) = Gate::new();
    let (told, heard) = channel();
    let told = Mutex::new(told);
    let log = Log::new(move |message| {
        told.lock().unwrap().send(message.content.clone()).unwrap();
        Ok(())
    });
    let broken = Log::new(|_| panic!("on purpose"));
    let bus =
        Bus::builder().channel("slow", gate).channel("log", log).channel("broken", broken).build().unwrap();
    bus.send(&message("slow", "1")).unwrap();
    started.recv().unwrap();
    bus.send(&message("broken", "2")).unwrap();
    bus.send(&message("broken", "3")).unwrap();
    bus.send(&message("log", "4")).unwrap();
    assert_eq!(heard.recv().unwrap(), "4");
    let_go.send(()).unwrap();
    bus.close(Duration::from_mins(1));
    let (undelivered, _) = bus.undelivered();
    let broken: Vec<_> =
        undelivered.iter().map(|one| (one.message.content.as_str(), one.error.kind)).collect();
    assert_eq!(broken, [("2", ErrorKind::Internal), ("3", ErrorKind::Internal)]);
}

#[test]
fn waits_are_as_the_maker_of_the_bus_says() {
    let waited = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&waited);
    let bus = Bus::builder()
        .channel("p", Patient)
        .wait(move |pause, _| {
            kept.lock().unwrap().push(pause.wait);
            false
        })
        .build()
        .unwrap();
    bus.send(&message("p", "1")).unwrap();
    bus.close(Duration::from_mins(1));
    assert_eq!((bus.undelivered().0.len(), waited.lock().unwrap().len()), (0, 1));
}
