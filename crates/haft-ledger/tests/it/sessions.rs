//! Sessions.

use haft_ledger::{Ledger, NewSession};
use haft_tool::ErrorKind;

use crate::fixture::Fixture;

#[test]
fn id_is_eight_characters_that_are_easy_to_type() {
    let session = Fixture::new().session;
    assert_eq!(session.len(), 8);
    assert!(session.chars().all(|c| "0123456789abcdefghjkmnpqrstvwxyz".contains(c)), "{session}");
}

#[test]
fn session_is_found_by_its_id_or_a_unique_prefix_in_any_case() {
    let fixture = Fixture::new();
    fixture.read();
    fixture.read();
    let session = fixture.ledger.session(&fixture.session).unwrap();
    assert_eq!((session.dialect.as_str(), session.entry_point.as_str(), session.calls), ("claude", "cli", 2));
    assert_eq!(session.workspace, std::path::Path::new("/w"));
    assert_eq!(fixture.ledger.session(&fixture.session[..5].to_uppercase()).unwrap(), session);
    for id in ["zzzzzzz1", "zzzzzzz0"] {
        fixture.tamper(&format!("INSERT INTO sessions VALUES ('{id}', '/w', 'claude', 'cli', 1, '', NULL)"));
    }
    assert_eq!(fixture.ledger.session("zzzzzzzl").unwrap().id, "zzzzzzz1", "an l is read as a 1");
    assert_eq!(fixture.ledger.session("zzz").unwrap_err().kind, ErrorKind::InvalidArguments);
}

#[test]
fn unknown_session_is_not_found() {
    let fixture = Fixture::new();
    for id in ["", "-", "%", "uuuuuuuu", "0123456789", "ü"] {
        assert_eq!(fixture.ledger.session(id).unwrap_err().kind, ErrorKind::NotFound, "{id:?}");
    }
}

#[test]
fn name_continues_a_session_of_its_workspace_or_starts_one() {
    let fixture = Fixture::new();
    let new = |workspace: &str| NewSession {
        workspace: workspace.into(),
        dialect: "claude".into(),
        entry_point: "cli".into(),
    };
    let open = |name: &str, workspace| fixture.ledger.continue_or_start_session(name, &new(workspace));
    let first = open("review", "/w").unwrap();
    assert_eq!(open("review", "/w").unwrap(), first);
    let other = open("review", "/other").unwrap();
    assert_ne!(other, first);
    assert_eq!(fixture.ledger.session_in("review", "/w".as_ref()).unwrap().id, first);
    assert_eq!(fixture.ledger.session_in("review", "/other".as_ref()).unwrap().id, other);
    assert_eq!(open(&first.to_uppercase(), "/other").unwrap(), first, "an id is known everywhere");
    assert_eq!(open("zzzzzzz9", "/w").unwrap_err().kind, ErrorKind::NotFound, "it has the form of an id");
    for name in ["", "-", "a\nb", "a\u{202e}b", &"x".repeat(65)] {
        assert_eq!(open(name, "/w").unwrap_err().kind, ErrorKind::InvalidArguments, "{name:?}");
    }
    assert!(open("database", "/w").is_ok(), "a word is a name");
}

#[test]
fn sessions_are_listed_newest_first() {
    let fixture = Fixture::new();
    fixture.tamper("UPDATE sessions SET started_at = 1");
    let other = fixture.other_session();
    let second = other.session().unwrap();
    let ids: Vec<_> = fixture.ledger.sessions(10).unwrap().into_iter().map(|session| session.id).collect();
    assert_eq!(ids, [second, &fixture.session]);
    assert_eq!(fixture.ledger.sessions(1).unwrap()[0].id, second);
}

#[test]
fn run_has_one_driver_until_it_is_dropped_or_its_process_is_gone() {
    let fixture = Fixture::new();
    let (ledger, session) = (&fixture.ledger, &fixture.session);
    let driver = ledger.drive_run(session).unwrap();
    let error = Ledger::open(fixture.home()).unwrap().drive_run(session).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Conflict);
    assert!(error.message.contains(&format!("process {}", std::process::id())), "{error}");
    assert!(ledger.drive_run(fixture.other_session().session().unwrap()).is_ok(), "another run");
    drop(driver);
    let driver = ledger.drive_run(session).unwrap();
    // A process with the same number, in another boot of the machine.
    fixture.tamper("UPDATE driven SET process = '1 1 another-boot -'");
    let next = ledger.drive_run(session).unwrap();
    drop(driver);
    drop(next);
    assert!(ledger.drive_run(session).is_ok());
}

#[test]
#[cfg(target_os = "linux")]
fn the_process_of_a_run_in_a_container_has_no_number_here() {
    let fixture = Fixture::new();
    let driver = fixture.ledger.drive_run(&fixture.session).unwrap();
    let pid = std::process::id();
    assert_eq!(fixture.ledger.driven_runs().unwrap()[0].pid, Some(pid));
    fixture.tamper(&format!("UPDATE driven SET process = '{pid} 1 - pid:[1]'"));
    let runs = fixture.ledger.driven_runs().unwrap();
    assert_eq!((runs.len(), runs[0].pid), (1, None));
    drop(driver);
}
