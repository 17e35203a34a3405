//! Searching event logs.

use haft_ledger::{EventLog, EventQuery, Expected, ReceiptFilter, ReceiptQuery};
use haft_tool::{Cancel, ErrorKind, json};

use crate::fixture::Fixture;

#[test]
fn events_with_a_text_are_examined_newest_first_until_enough_are_found() {
    let fixture = Fixture::new();
    for n in 1..=4 {
        let text = if n == 3 { "nothing".to_owned() } else { format!("Tea \"{n}\"\nis ready") };
        fixture.ledger.append(&fixture.session, Expected::Any, &json!({ "text": text })).unwrap();
    }
    let found = |text: &str, session: Option<&str>, limit: usize| {
        let query =
            EventQuery { workspace: None, session: session.map(str::to_owned), text: text.to_owned() };
        let mut found = Vec::new();
        let mut examine = |of: &str, event: haft_ledger::StoredEvent| {
            assert_eq!(of, fixture.session);
            found.push(event.seq);
            found.len() < limit
        };
        fixture.ledger.search_events(&query, &mut examine).unwrap();
        found
    };
    assert_eq!(found("tEA", None, 10), [4, 2, 1]);
    assert_eq!(found("2\"\nis", None, 10), [2]);
    assert_eq!(found("ready", Some(&fixture.session), 2), [4, 2]);
    assert!(found("ready", Some("unknown"), 2).is_empty());
    assert!(found("coffee", None, 2).is_empty());
}

#[test]
fn events_of_several_sessions_are_examined_by_their_time() {
    let fixture = Fixture::new();
    let other = fixture.other_session().session().unwrap().to_owned();
    // More than are read at once.
    for n in 0..500 {
        let session = if n % 3 == 0 { &other } else { &fixture.session };
        fixture.ledger.append(session, Expected::Any, &json!({ "text": "tea", "n": n })).unwrap();
    }
    fixture.tamper("UPDATE events SET at = json_extract(body, '$.n')");
    let mut found = Vec::new();
    let query = EventQuery { text: "tea".to_owned(), ..EventQuery::default() };
    let mut examine = |session: &str, event: haft_ledger::StoredEvent| {
        // The connection is free meanwhile.
        assert_eq!(fixture.ledger.session(session).unwrap().id, session);
        found.push(event.body["n"].as_u64().unwrap());
        true
    };
    fixture.ledger.search_events(&query, &mut examine).unwrap();
    assert_eq!(found, (0..500).rev().collect::<Vec<_>>());
}

#[test]
fn each_session_is_found_once_however_many_events_it_has() {
    let fixture = Fixture::new();
    let other = fixture.other_session().session().unwrap().to_owned();
    fixture.ledger.append(&other, Expected::Any, &json!({ "text": "tea" })).unwrap();
    for n in 0..500 {
        fixture.ledger.append(&fixture.session, Expected::Any, &json!({ "text": "tea", "n": n })).unwrap();
    }
    let query = EventQuery { text: "tea".to_owned(), ..EventQuery::default() };
    let examined = std::cell::Cell::new(0);
    let found = |is_wanted: &dyn Fn(&haft_ledger::StoredEvent) -> bool| {
        let wanted = |event: &haft_ledger::StoredEvent| {
            examined.set(examined.get() + 1);
            is_wanted(event)
        };
        let mut found: Vec<_> =
            fixture.ledger.sessions_with_event(&query, &wanted).unwrap().into_iter().collect();
        found.sort();
        found
    };
    let mut both = vec![other.clone(), fixture.session.clone()];
    both.sort();
    assert_eq!((found(&|_| true), examined.get()), (both, 2));
    assert_eq!(found(&|event| event.body["n"].is_null()), [other]);
}

#[test]
fn a_search_that_is_cancelled_ends() {
    let fixture = Fixture::new();
    fixture.read();
    for n in 0..1_000 {
        fixture.ledger.append(&fixture.session, Expected::Any, &json!({ "text": "tea", "n": n })).unwrap();
    }
    let cancel = Cancel::new();
    let ledger = fixture.ledger.clone().with_cancel(cancel.clone());
    let mut examined = 0;
    let query = EventQuery { text: "tea".to_owned(), ..EventQuery::default() };
    let search = ledger.search_events(&query, &mut |_, _| {
        examined += 1;
        cancel.cancel();
        true
    });
    assert_eq!(search.unwrap_err().kind, ErrorKind::Interrupted);
    assert!(examined < 1_000, "{examined}");
    let filter = ReceiptFilter { text: Some("tea".to_owned()), ..ReceiptFilter::default() };
    let search = ledger.search(&ReceiptQuery::default(), &filter);
    assert_eq!(search.unwrap_err().kind, ErrorKind::Interrupted);
    assert_eq!(fixture.ledger.search(&ReceiptQuery::default(), &filter).unwrap().len(), 0);
}
