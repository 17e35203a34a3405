//! Questions, and which processes show them.

use haft_tool::json;

use crate::fixture::Fixture;

#[test]
fn a_server_that_no_longer_notes_that_it_shows_questions_is_gone_wherever_it_ran() {
    let fixture = Fixture::new();
    let ledger = &fixture.ledger;
    let shown = || ledger.is_anyone_answering().unwrap();
    ledger.set_answering(true).unwrap();
    assert!(shown());
    let hour = 60 * 60 * 1_000;
    let set_since = |age: i64| fixture.tamper(&format!("UPDATE answering SET since = since + {age}"));
    // A page that has been open for days is noted again and again.
    set_since(-30 * hour);
    assert!(!shown());
    ledger.set_answering(true).unwrap();
    assert!(shown());
    if cfg!(target_os = "linux") {
        fixture.tamper("UPDATE answering SET process = '1 1 - pid:[1]'");
        assert!(shown(), "whether it runs cannot be seen");
        set_since(-hour);
        assert!(!shown());
    }
    ledger.forget_dead_processes().unwrap();
    set_since(2 * hour);
    assert!(!shown(), "its note is removed");
}

#[test]
fn open_questions_stay_however_many_others_there_are() {
    let fixture = Fixture::new();
    let (ledger, session) = (&fixture.ledger, &fixture.session);
    let open = ledger.ask(session, &json!({ "kind": "first" })).unwrap();
    let closed: Vec<_> = (0..1_200)
        .map(|_| {
            let id = ledger.ask(session, &json!({})).unwrap();
            ledger.withdraw(id).unwrap();
            id
        })
        .collect();
    assert_eq!(ledger.question(open).unwrap().body["kind"], "first");
    assert!(ledger.question(closed[1_000]).is_err(), "old ones that have ended are removed");
    assert!(ledger.question(closed[1_150]).is_ok());
}

#[test]
fn an_answer_that_is_too_long_is_called_an_answer() {
    let fixture = Fixture::new();
    let id = fixture.ledger.ask(&fixture.session, &json!({})).unwrap();
    let long = json!("x".repeat(2 << 20));
    let why = |error: haft_tool::ToolError| error.message;
    assert!(why(fixture.ledger.answer(id, &long).unwrap_err()).starts_with("The answer has 2097154 bytes"));
    let asked = fixture.ledger.ask(&fixture.session, &long);
    assert!(why(asked.unwrap_err()).starts_with("The question has 2097154 bytes"));
}
