//! Event logs and their sequence numbers.

use haft_ledger::{EventLog, Expected, GcPolicy};
use haft_tool::{ErrorKind, json};

use crate::fixture::Fixture;

#[test]
fn events_are_read_in_order_from_any_position() {
    let fixture = Fixture::new();
    let body = |n: u64| json!({"event": "user_message.v1", "text": format!("message {n}")});
    for n in 1..=5 {
        let seq = fixture.ledger.append(&fixture.session, Expected::Seq(n - 1), &body(n)).unwrap();
        assert_eq!(seq, n);
    }
    let events = fixture.ledger.read(&fixture.session, 2, 3).unwrap();
    assert_eq!(events.iter().map(|event| event.seq).collect::<Vec<_>>(), [2, 3, 4]);
    assert!(events.iter().all(|event| event.body == body(event.seq) && event.at > 0));
    assert_eq!(fixture.ledger.read(&fixture.session, 0, 100).unwrap().len(), 5);
    assert!(fixture.ledger.read("unknown", 1, 10).unwrap().is_empty());
}

#[test]
fn append_at_another_end_is_a_conflict_and_writes_nothing() {
    let fixture = Fixture::new();
    let event = json!({"event": "x.v1"});
    fixture.ledger.append(&fixture.session, Expected::Any, &event).unwrap();
    for wrong in [0, 2] {
        let error = fixture.ledger.append(&fixture.session, Expected::Seq(wrong), &event).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Conflict);
        assert_eq!(error.details.unwrap()["last_seq"], 1);
    }
    assert_eq!(fixture.ledger.read(&fixture.session, 0, 10).unwrap().len(), 1);
    assert_eq!(fixture.ledger.append(&fixture.session, Expected::Seq(1), &event).unwrap(), 2);
    assert_eq!(fixture.ledger.append(&fixture.session, Expected::Any, &event).unwrap(), 3);
}

#[test]
fn one_of_two_writers_that_expect_the_same_end_wins() {
    let fixture = Fixture::new();
    let append = || fixture.ledger.append(&fixture.session, Expected::Seq(0), &json!({}));
    let (a, b) = std::thread::scope(|scope| {
        let (a, b) = (scope.spawn(append), scope.spawn(append));
        (a.join().unwrap(), b.join().unwrap())
    });
    assert_eq!([&a, &b].iter().filter(|appended| appended.is_ok()).count(), 1, "{a:?} {b:?}");
}

#[test]
fn unknown_session_and_unreadable_event_are_refused() {
    let fixture = Fixture::new();
    let error = fixture.ledger.append("unknown", Expected::Any, &json!({})).unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotFound);
    let deep = (0..127).fold(json!(1), |inner, _| json!([inner]));
    let error = fixture.ledger.append(&fixture.session, Expected::Any, &deep).unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidArguments);
}

#[test]
fn gc_keeps_recent_events_and_removes_old_ones_with_their_session() {
    let fixture = Fixture::new();
    let other = fixture.other_session();
    for session in [&fixture.session, other.session().unwrap()] {
        fixture.ledger.append(session, Expected::Any, &json!({})).unwrap();
    }
    fixture.tamper(&format!(
        "UPDATE sessions SET process = '1 1 another-boot -'; UPDATE events SET at = 1 WHERE session = '{}'",
        fixture.session
    ));
    assert_eq!(fixture.ledger.gc(&GcPolicy::default()).unwrap().sessions_removed, 0);
    let old = GcPolicy { older_than_ms: Some(60_000), ..GcPolicy::default() };
    assert_eq!(fixture.ledger.gc(&old).unwrap().sessions_removed, 1);
    assert!(fixture.ledger.read(&fixture.session, 0, 10).unwrap().is_empty());
    assert_eq!(fixture.ledger.read(other.session().unwrap(), 0, 10).unwrap().len(), 1);
    let all = GcPolicy { max_bytes: Some(0), ..GcPolicy::default() };
    assert_eq!(fixture.ledger.gc(&all).unwrap().sessions_removed, 1);
}
