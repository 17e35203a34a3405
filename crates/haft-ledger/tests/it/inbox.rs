//! The inbox: messages are accepted once, kept until they are finished, and handled by one process.

use std::path::Path;

use haft_ledger::{Ledger, NewSession};
use haft_tool::ErrorKind;

use crate::fixture::Fixture;

const WORKSPACE: &str = "/work/space";

#[test]
fn message_is_accepted_once_and_open_until_it_is_finished() {
    let fixture = Fixture::new();
    let inbox = fixture.ledger.inbox(Path::new(WORKSPACE)).unwrap();
    let first = inbox.accept("hook", "c1", "m1", Some("ann"), "hello").unwrap().unwrap();
    let second = inbox.accept("hook", "c1", "m2", None, "more").unwrap().unwrap();
    assert!(second > first);
    assert_eq!(inbox.accept("hook", "c1", "m1", None, "again").unwrap(), None);
    assert!(inbox.accept("slack", "c1", "m1", None, "another channel").unwrap().is_some());
    assert!(inbox.accept("hook", "c2", "m1", None, "another chat").unwrap().is_some());
    assert!(inbox.has("hook", "c1", "m1").unwrap() && !inbox.has("hook", "c1", "m3").unwrap());
    assert!(!inbox.has("hook", "c3", "m1").unwrap());
    inbox.begin(first, 7).unwrap();
    let open = inbox.open_messages().unwrap();
    assert_eq!((open[0].id, open[0].text.as_str(), open[0].begun_after), (first, "hello", Some(7)));
    assert_eq!((open[1].id, open[1].begun_after), (second, None));
    inbox.finish(first).unwrap();
    assert_eq!(inbox.open_messages().unwrap()[0].id, second);
    assert_eq!(inbox.accept("hook", "c1", "m1", None, "late").unwrap(), None, "a finished one is remembered");
}

#[test]
fn inbox_belongs_to_one_process_and_to_its_workspace() {
    let fixture = Fixture::new();
    let inbox = fixture.ledger.inbox(Path::new(WORKSPACE)).unwrap();
    inbox.accept("hook", "c", "m", None, "hello").unwrap();
    let again = Ledger::open(fixture.home()).unwrap();
    assert_eq!(again.inbox(Path::new(WORKSPACE)).unwrap_err().kind, ErrorKind::Conflict);
    let other = again.inbox(Path::new("/work/other")).unwrap();
    assert!(other.open_messages().unwrap().is_empty() && !other.has("hook", "c", "m").unwrap());
    drop(inbox);
    assert_eq!(again.inbox(Path::new(WORKSPACE)).unwrap().open_messages().unwrap().len(), 1);
}

#[test]
fn conversation_has_one_session_per_key_and_workspace() {
    let fixture = Fixture::new();
    let new = |workspace: &str| NewSession {
        workspace: workspace.into(),
        dialect: "claude".to_owned(),
        entry_point: "gateway".to_owned(),
    };
    let id = fixture.ledger.conversation("hook:c1", &new(WORKSPACE)).unwrap();
    assert_eq!(fixture.ledger.conversation("hook:c1", &new(WORKSPACE)).unwrap(), id);
    assert_ne!(fixture.ledger.conversation("hook:c1", &new("/work/other")).unwrap(), id);
    assert_eq!(fixture.ledger.session_in("hook:c1", Path::new(WORKSPACE)).unwrap().id, id);
}
