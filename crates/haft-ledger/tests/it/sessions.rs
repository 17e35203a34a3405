//! Sessions.

use haft_tool::ErrorKind;

use crate::setting::{new_session, setting};

#[test]
fn an_id_is_eight_characters_that_are_easy_to_type() {
    let set = setting();
    assert_eq!(set.session.len(), 8);
    assert!(set.session.chars().all(|c| "0123456789abcdefghjkmnpqrstvwxyz".contains(c)), "{}", set.session);
}

#[test]
fn a_session_is_found_by_its_id_or_a_unique_beginning_in_any_case() {
    let set = setting();
    set.read();
    set.read();
    let session = set.ledger.session(&set.session).unwrap();
    assert_eq!((session.dialect.as_str(), session.door.as_str(), session.calls), ("claude", "cli", 2));
    assert_eq!(session.workspace, std::path::Path::new("/w"));
    assert_eq!(set.ledger.session(&set.session[..5].to_uppercase()).unwrap(), session);
    set.meddle("INSERT INTO sessions SELECT 'zzzzzzz1', workspace, dialect, door, 1, '', 0 FROM sessions");
    set.meddle(
        "INSERT INTO sessions SELECT 'zzzzzzz0', workspace, dialect, door, 1, '', 0 FROM sessions LIMIT 1",
    );
    assert_eq!(set.ledger.session("zzzzzzzl").unwrap().id, "zzzzzzz1", "an l is read as a 1");
    assert_eq!(set.ledger.session("zzz").unwrap_err().kind, ErrorKind::InvalidArguments);
}

#[test]
fn an_unknown_session_is_told_as_such() {
    let set = setting();
    for id in ["", "-", "%", "uuuuuuuu", "0123456789", "ü"] {
        assert_eq!(set.ledger.session(id).unwrap_err().kind, ErrorKind::NotFound, "{id:?}");
    }
}

#[test]
fn sessions_come_newest_first() {
    let set = setting();
    set.meddle("UPDATE sessions SET started_at = 1");
    let second = set.ledger.start_session(&new_session("/v")).unwrap();
    let ids: Vec<_> = set.ledger.sessions(10).unwrap().into_iter().map(|session| session.id).collect();
    assert_eq!(ids, [second.clone(), set.session.clone()]);
    assert_eq!(set.ledger.sessions(1).unwrap()[0].id, second);
}
