//! The event stream: in order, without gaps or duplicates, whatever happens to the server.

use std::collections::{BTreeMap, BTreeSet};

use haft_ledger::{EventLog as _, Expected, FeedEntry, FeedItem, Ledger, NewSession};
use serde_json::json;

use crate::fixture::http_client::{EventStream, StreamEvent};
use crate::fixture::serve::{ACT, ReservedPort, ServeFixture, VIEW};
use crate::fixture::wait_until;

/// Processes that write at the same time, and the calls of each.
const WRITERS: usize = 4;
const CALLS_EACH: usize = 8;
/// The server is killed when this many of these calls have ended.
const KILLED_AFTER_CALLS: [usize; 3] = [4, 11, 20];
/// More entries than the feed keeps.
const MANY_ENTRIES: usize = 10_050;
/// After this many entries, the test waits for the open stream.
const SEEN_EACH: usize = 500;
/// More pages than one person has open.
const CROWD: usize = 500;
/// The most memory that a server for them may have used.
#[cfg(target_os = "linux")]
const MAX_PEAK_KIB: u64 = 100 << 10;

/// The feed of a ledger after a position.
fn feed(ledger: &Ledger, after: u64) -> Vec<FeedEntry> {
    ledger.feed_after(after, 100_000).unwrap().unwrap()
}

/// Reads events up to a position, or to the end of the stream.
fn events_until(stream: &mut EventStream, position: u64) -> Vec<StreamEvent> {
    let mut events = Vec::new();
    while let Some(event) = stream.next() {
        let is_last = event.id >= Some(position);
        events.push(event);
        if is_last {
            break;
        }
    }
    events
}

/// The next matching event. Fails if the stream is told to reload everything before it.
fn next_without_reset(stream: &mut EventStream, is_wanted: impl Fn(&StreamEvent) -> bool) -> StreamEvent {
    loop {
        let event = stream.next().unwrap();
        assert_ne!(event.name, "reset", "{event:?}");
        if is_wanted(&event) {
            return event;
        }
    }
}

/// The position of the last entry about a call, which always has an event.
fn last_call(ledger: &Ledger) -> u64 {
    let is_call = |entry: &&FeedEntry| matches!(entry.item, FeedItem::Call(_));
    feed(ledger, 0).iter().rev().find(is_call).unwrap().position
}

/// Checks the events against the ledger: positions rise, each event is about the same thing as its entry, and the last entry about
/// each thing has one.
#[track_caller]
fn assert_complete(ledger: &Ledger, after: u64, until: u64, events: &[StreamEvent]) {
    let ids: Vec<u64> = events.iter().filter_map(|event| event.id).collect();
    assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?}");
    let entries: Vec<FeedEntry> =
        feed(ledger, after).into_iter().filter(|entry| entry.position <= until).collect();
    let by_position: BTreeMap<u64, &FeedEntry> =
        entries.iter().map(|entry| (entry.position, entry)).collect();
    for event in events.iter().filter(|event| event.id.is_some()) {
        let entry =
            by_position.get(&event.id.unwrap()).unwrap_or_else(|| panic!("{event:?} is not in the ledger"));
        match entry.item {
            FeedItem::Call(id) => assert_eq!((event.name.as_str(), &event.data["id"]), ("call", &json!(id))),
            FeedItem::Session => {
                assert_eq!((event.name.as_str(), &event.data["id"]), ("session", &json!(entry.session)));
            }
            _ => {}
        }
    }
    let mut newest: BTreeMap<String, u64> = BTreeMap::new();
    for entry in &entries {
        if matches!(entry.item, FeedItem::Call(_) | FeedItem::Session) {
            newest.insert(format!("{} {:?}", entry.session, entry.item), entry.position);
        }
    }
    let missing: Vec<_> = newest.iter().filter(|(_, position)| !ids.contains(position)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// How many calls have ended.
fn ended_calls(events: &[StreamEvent]) -> usize {
    let ended = events.iter().filter(|event| event.name == "call" && event.data["state"] == "completed");
    ended.map(|event| event.data["id"].to_string()).collect::<BTreeSet<_>>().len()
}

/// Lets several processes make calls at the same time.
fn write(fixture: &ServeFixture) {
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            scope.spawn(move || {
                let calls: Vec<_> = (0..CALLS_EACH)
                    .map(|call| super::content::bash(format!("echo {call} >> writer{writer}.txt")))
                    .collect();
                super::content::session_with(&fixture.cli, &[], &calls);
            });
        }
    });
}

#[test]
fn what_several_processes_do_comes_in_order_without_gaps_or_doubles() {
    let fixture = ServeFixture::new();
    let server = fixture.serve();
    let after = server.get("/meta")["position"].as_u64().unwrap();
    let (mut early, mut second) = (server.events(None), server.events_as(VIEW, Some(after)));
    write(&fixture);
    let ledger = Ledger::open(fixture.cli.home()).unwrap();
    let until = last_call(&ledger);
    for stream in [&mut early, &mut second] {
        assert_complete(&ledger, after, until, &events_until(stream, until));
    }
    // A page that connects later, from any position that it has seen.
    for position in [0, until / 2, until - 1] {
        let mut late = server.events(Some(position));
        assert_complete(&ledger, position, until, &events_until(&mut late, until));
    }
    // The last event about each call has its current state.
    let mut late = server.events(Some(0));
    let mut states = BTreeMap::new();
    for event in events_until(&mut late, until) {
        if event.name == "call" {
            states.insert(event.data["id"].as_i64().unwrap(), event.data);
        }
    }
    assert_eq!(states.len(), WRITERS * CALLS_EACH);
    for (id, state) in states {
        assert_eq!(state, server.get(&format!("/calls/{id}"))["summary"]);
        assert_eq!(state["state"], "completed");
    }
}

#[test]
fn a_stream_goes_on_where_it_was_when_the_server_was_killed() {
    let fixture = ServeFixture::new();
    let port = ReservedPort::new();
    let server = fixture.serve_at(port.number);
    let ledger = Ledger::open(fixture.cli.home()).unwrap();
    let mut stream = server.events(None);
    let mut running = Some(server);
    let mut all: Vec<StreamEvent> = Vec::new();
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| write(&fixture));
        // Each time this many calls have ended, the server dies and is started again.
        for ended in KILLED_AFTER_CALLS {
            while ended_calls(&all) < ended {
                all.push(stream.next().unwrap());
            }
            running.take().unwrap().kill();
            while let Some(event) = stream.next() {
                all.push(event);
            }
            let last = all.iter().filter_map(|event| event.id).next_back();
            let restarted = fixture.serve_at(port.number);
            stream = restarted.events(last);
            running = Some(restarted);
        }
        writing.join().unwrap();
    });
    let until = last_call(&ledger);
    if all.iter().filter_map(|event| event.id).next_back() < Some(until) {
        all.extend(events_until(&mut stream, until));
    }
    assert_complete(&ledger, 0, until, &all);
}

#[test]
fn a_page_that_is_too_far_behind_loads_everything_again() {
    let fixture = ServeFixture::new();
    let server = fixture.serve();
    let ledger = Ledger::open(fixture.cli.home()).unwrap();
    let new = NewSession {
        workspace: fixture.cli.root().to_owned(),
        dialect: "claude".to_owned(),
        entry_point: "test".to_owned(),
    };
    let session = ledger.start_session(&new).unwrap();
    let mut open = server.events(Some(0));
    for entry in 0..MANY_ENTRIES {
        ledger.append(&session, Expected::Any, &json!({"type": "none"})).unwrap();
        if entry % SEEN_EACH == 0 {
            // The open stream has everything up to here.
            let seen = ledger.start_session(&new).unwrap();
            next_without_reset(&mut open, |event| event.data["id"] == seen.as_str());
        }
    }
    let newest = ledger.feed_position().unwrap();
    // A second server, because the first one still has all events. 0 is a position like any other; those of other ledgers are invalid.
    let later = fixture.serve();
    for position in [0, 1, 40, newest + 1, u64::MAX >> 1] {
        let mut stream = later.events(Some(position));
        let reset = stream.next_of("reset", |_| true);
        assert_eq!((&reset.data["position"], reset.id), (&json!(newest), None), "{position}");
        drop(stream);
    }
    fixture.cli.call("Bash", &json!({"command": "true"}));
    // A stream continues after a reset; one that was open all the time needs none.
    let mut stream = later.events(Some(newest));
    let ended = stream.next_of("call", |call| call["state"] == "completed");
    let seen = next_without_reset(&mut open, |event| event.data["state"] == "completed");
    assert_eq!((ended.id, ended.data), (seen.id, seen.data));
}

#[test]
#[cfg(target_os = "linux")]
fn output_comes_while_it_is_written_and_fits_together() {
    let fixture = ServeFixture::new();
    let server = fixture.serve();
    let mut stream = server.events(None);
    let go_on = fixture.cli.path("go-on");
    let command = "for i in $(seq 300); do echo line $i €; done; until [ -e go-on ]; do sleep 0.02; done; echo last line";
    let mut child =
        fixture.cli.command(&["call", "Bash", &json!({"command": command}).to_string()]).spawn().unwrap();
    let expected: String = (1..=300).map(|line| format!("line {line} €\n")).collect();
    let begun = stream.next_of("call", |call| call["state"] == "running");
    let call = begun.data["id"].as_i64().unwrap();
    let mut text = String::new();
    while text.len() < expected.len() {
        let part = stream.next_of("output", |part| part["call"] == call).data;
        let from = usize::try_from(part["from"].as_u64().unwrap()).unwrap();
        assert_eq!(from, text.len());
        text += part["text"].as_str().unwrap();
    }
    assert_eq!(text, expected);
    let now = server.get("/now");
    assert_eq!(now["calls"][0]["id"], call);
    assert!(now["calls"][0]["output"]["text"].as_str().unwrap().ends_with("line 300 €\n"), "{now}");
    let half = expected.find("line 150").unwrap();
    let rest = server.get(&format!("/calls/{call}/output?from={half}"));
    assert_eq!(rest["text"].as_str(), Some(&expected[half..]));
    std::fs::write(go_on, "").unwrap();
    stream.next_of("call", |summary| summary["id"] == call && summary["state"] == "completed");
    assert!(child.wait().unwrap().success());
    assert_eq!(server.get("/now")["calls"], json!([]));
    assert!(server.get(&format!("/calls/{call}"))["result"].as_str().unwrap().ends_with("last line\n"));
}

/// A call whose process dies is shown as interrupted, without anyone else making a call.
#[test]
#[cfg(target_os = "linux")]
fn a_call_of_a_process_that_dies_ends_on_the_page() {
    let fixture = ServeFixture::new();
    let server = fixture.serve();
    let mut stream = server.events(None);
    let command = json!({"command": "echo begun > begun; sleep 1000"}).to_string();
    let mut child = fixture.cli.command(&["call", "Bash", &command]).spawn().unwrap();
    stream.next_of("call", |call| call["state"] == "running");
    wait_until(|| fixture.cli.path("begun").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    let ended = stream.next_of("call", |call| call["state"] != "running");
    assert_eq!(ended.data["state"], "interrupted");
}

/// Without a page that can answer, questions are denied.
#[test]
fn pages_that_look_leave_room_for_those_that_answer() {
    let fixture = ServeFixture::new();
    let server = fixture.serve();
    let open = |token: &str| EventStream::open(server.port, "/api/v1/events", token);
    let mut looking = Vec::new();
    let refused = loop {
        match open(VIEW) {
            Ok(stream) => looking.push(stream),
            Err(answer) => break answer,
        }
    };
    assert_eq!(refused.status, 503, "{}", refused.text());
    for _ in 0..50 {
        looking.push(open(ACT).unwrap_or_else(|answer| panic!("{}", answer.text())));
    }
}

#[test]
#[cfg(target_os = "linux")]
fn five_hundred_pages_are_served_with_bounded_memory() {
    let fixture = ServeFixture::new();
    let server = fixture.serve();
    let target = "/api/v1/events";
    let mut crowd: Vec<EventStream> = Vec::new();
    for _ in 0..CROWD {
        crowd.push(
            EventStream::open(server.port, target, ACT).unwrap_or_else(|answer| panic!("{}", answer.text())),
        );
    }
    let calls: Vec<_> =
        (0..20).map(|call| super::content::bash(format!("seq {call}00000 | head -c 20000"))).collect();
    super::content::session_with(&fixture.cli, &[], &calls);
    // The server still answers, and each page sees the last call.
    assert_eq!(server.get("/calls")["calls"].as_array().unwrap().len(), calls.len());
    for stream in &mut crowd {
        stream.next_of("call", |call| call["id"] == 20 && call["state"] == "completed");
    }
    let peak_kib = server.memory_kib("VmHWM");
    assert!(peak_kib < MAX_PEAK_KIB, "{peak_kib} KiB");
    // Further streams are refused, but other requests are still answered.
    let mut refused = 0;
    for _ in 0..150 {
        match EventStream::open(server.port, target, ACT) {
            Ok(stream) => crowd.push(stream),
            Err(answer) => {
                assert_eq!(answer.status, 503, "{}", answer.text());
                assert_eq!(answer.header("retry-after"), Some("1"));
                refused += 1;
            }
        }
    }
    assert!(refused > 0);
    server.get("/now");
    drop(crowd);
    wait_until(|| EventStream::open(server.port, target, ACT).is_ok());
}
