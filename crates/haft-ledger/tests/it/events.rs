//! The event log and its sequence numbers.

use std::borrow::Cow;

use haft_ledger::{Event, EventLog, Expected, GcPolicy};
use haft_tool::{ErrorKind, State};

use crate::setting::{new_session, setting};

#[test]
fn every_call_leaves_its_events_in_order() {
    let set = setting();
    let mut receipt = set.call();
    set.ledger.begin(&mut receipt).unwrap();
    receipt.state = State::Completed;
    set.ledger.finish(&mut receipt).unwrap();
    let read = set.read();
    let events = set.ledger.read(&set.session, 1, 10).unwrap();
    assert_eq!(events.iter().map(|stored| stored.seq).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(matches!(&events[0].event, Event::CallStarted { receipt } if receipt.state == State::Running));
    assert_eq!(events[1].event, Event::CallFinished { receipt: Cow::Owned(receipt) });
    assert_eq!(events[2].event.receipt(), &read);
    assert_eq!(set.ledger.read(&set.session, 2, 1).unwrap()[..], events[1..2]);
    assert!(set.ledger.read("nobody", 1, 10).unwrap().is_empty());
}

#[test]
fn appending_where_the_log_does_not_end_is_a_conflict_and_writes_nothing() {
    let set = setting();
    let mut receipt = set.read();
    receipt.tool = "Renamed".into();
    let event = Event::CallFinished { receipt: Cow::Borrowed(&receipt) };
    for wrong in [0, 2] {
        let error = set.ledger.append(&set.session, Expected::Seq(wrong), &event).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Conflict);
        assert_eq!(error.details.unwrap()["last_seq"], 1);
    }
    assert_eq!(set.ledger.receipt(receipt.id).unwrap().tool, "Read");
    assert_eq!(set.ledger.append(&set.session, Expected::Seq(1), &event).unwrap(), 2);
    assert_eq!(set.ledger.append(&set.session, Expected::Any, &event).unwrap(), 3);
    assert_eq!(set.ledger.receipt(receipt.id).unwrap(), receipt, "the index follows the log");
}

#[test]
fn of_two_writers_that_expect_the_same_place_one_wins() {
    let set = setting();
    let receipt = set.read();
    let event = Event::CallFinished { receipt: Cow::Borrowed(&receipt) };
    let append = || set.ledger.append(&set.session, Expected::Seq(1), &event);
    let (a, b) = std::thread::scope(|scope| {
        let (a, b) = (scope.spawn(append), scope.spawn(append));
        (a.join().unwrap(), b.join().unwrap())
    });
    assert_eq!([&a, &b].iter().filter(|appended| appended.is_ok()).count(), 1, "{a:?} {b:?}");
}

#[test]
fn an_event_about_somebody_elses_call_is_refused() {
    let set = setting();
    let other = set.ledger.start_session(&new_session("/v")).unwrap();
    let mut receipt = set.read();
    let append = |receipt: &haft_tool::Receipt, session: &str| {
        set.ledger.append(session, Expected::Any, &Event::CallFinished { receipt: Cow::Borrowed(receipt) })
    };
    assert_eq!(append(&receipt, &other).unwrap_err().kind, ErrorKind::InvalidArguments);
    assert_eq!(append(&set.call(), &set.session).unwrap_err().kind, ErrorKind::InvalidArguments);
    receipt.session.clone_from(&other);
    assert_eq!(append(&receipt, &other).unwrap_err().kind, ErrorKind::NotFound);
}

#[test]
fn an_event_is_json_that_names_its_kind_and_version() {
    let set = setting();
    let receipt = set.read();
    let text = serde_json::to_value(Event::CallFinished { receipt: Cow::Borrowed(&receipt) }).unwrap();
    assert_eq!(text["event"], "call_finished.v1");
    assert_eq!(text["receipt"]["tool"], "Read");
    assert_eq!(serde_json::from_value::<Event<'_>>(text).unwrap().into_receipt(), receipt);
}

#[test]
fn numbers_of_forgotten_events_are_not_used_again() {
    let set = setting();
    set.read();
    set.read();
    let newer = set.ledger.start_session(&new_session("/v")).unwrap();
    let mut receipt = set.call();
    receipt.session.clone_from(&newer);
    set.ledger.finish(&mut receipt).unwrap();
    set.ledger.gc(&GcPolicy { max_bytes: Some(0), ..GcPolicy::default() }).unwrap();
    assert!(set.ledger.read(&set.session, 0, 10).unwrap().is_empty());
    assert_eq!(set.read().id, 4);
    assert_eq!(set.ledger.read(&set.session, 0, 10).unwrap()[0].seq, 3);
}
