//! Searching event logs.

use haft_ledger::{EventLog, EventQuery, Expected};
use haft_tool::json;

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
