//! Runs that go on after the death of their process.

use std::collections::BTreeMap;
use std::sync::Arc;

use haft_agent::{AgentRun, NoObserver, RunParts, RunSettings, RunStop, calls_since, read_run};
use haft_ledger::{EventLog as _, ReceiptQuery};
use haft_model::{Conversation, ScriptModel};
use haft_tool::{Cancel, ErrorKind, json};

use crate::fixture::*;

/// A script in which each call can be made only once, because it adds to a file.
fn script(bench: &Workbench) -> String {
    let add = |text: &str| ("Bash", json!({"command": format!("printf {text} >> log.txt; cat log.txt")}));
    [
        bench.calls(&[("Read", json!({"file_path": "@/a.txt"})), add("1")]),
        bench.calls(&[add("2"), ("Read", json!({"file_path": "@/missing.txt"})), add("3")]),
        json!({"text": "Cut", "stop": {"reason": "length"}}).to_string(),
        bench.calls(&[
            ("Edit", json!({"file_path": "@/a.txt", "old_string": "tea", "new_string": "coffee"})),
            ("Write", json!({"file_path": "@/b.txt", "content": "b"})),
        ]),
        json!({"text": "Done."}).to_string(),
    ]
    .join("\n")
}

/// The files, and the conversation without the path of the workspace.
fn outcome(bench: &Workbench, conversation: &Conversation) -> (BTreeMap<String, String>, String) {
    let files = std::fs::read_dir(bench.root()).unwrap().map(|entry| {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let text = bench.read(&name);
        (name, text)
    });
    let conversation = serde_json::to_string(conversation).unwrap();
    (files.collect(), conversation.replace(&bench.root().display().to_string(), "@"))
}

fn parts(bench: &Workbench, session: Option<&str>) -> RunParts {
    let model = ScriptModel::parse(&script(bench)).unwrap();
    RunParts::new(bench.runtime(session), Arc::new(model)).unwrap()
}

#[test]
fn a_run_cut_after_any_event_ends_as_one_that_was_not() {
    let whole = Workbench::new();
    whole.write("a.txt", "tea\n");
    let mut run = AgentRun::start(parts(&whole, None), RunSettings::default(), Vec::new()).unwrap();
    assert_eq!(say(&mut run, "Go.").stop, RunStop::Done);
    let expected = outcome(&whole, &run.state().conversation);
    let ledger = whole.runtime(None).ledger().unwrap();
    let events = ledger.read(run.session(), 1, 1_000).unwrap().len();
    assert!(events > 20, "{events}");

    for cut in 2..events {
        let bench = Workbench::new();
        bench.write("a.txt", "tea\n");
        let first = parts(&bench, None);
        let session = first.session.clone();
        let log = Arc::new(CutLog::new(first.runtime.ledger().unwrap(), cut));
        let first = RunParts { log, ..first };
        let mut run = AgentRun::start(first, RunSettings::default(), Vec::new()).unwrap();
        let error = run.say(text("Go."), &mut NoObserver, &Cancel::new()).unwrap_err();
        assert_eq!(error.message, "killed");
        drop(run);

        let resumed = parts(&bench, Some(&session));
        let mut run = AgentRun::resume(resumed.clone(), RunSettings::default()).unwrap();
        let report = run.proceed(&mut NoObserver, &Cancel::new()).unwrap();
        assert_eq!((report.stop, report.text.as_str()), (RunStop::Done, "Done."), "cut after {cut}");
        assert_eq!(outcome(&bench, &run.state().conversation), expected, "cut after {cut}");
        assert_valid(&run.state().conversation);
        // What is stored is what was driven.
        let stored = read_run(resumed.log.as_ref(), &session).unwrap().unwrap();
        assert_eq!(stored.conversation, run.state().conversation);
        // Calls that change something were made once.
        let ledger = resumed.runtime.ledger().unwrap();
        let query = ReceiptQuery { session: Some(session), limit: 100, ..ReceiptQuery::default() };
        let made = ledger.receipts(&query).unwrap();
        let changing = made.iter().filter(|receipt| !receipt.changes.is_empty()).count();
        assert_eq!(changing, 5, "cut after {cut}");
    }
}

#[test]
fn an_interrupted_call_is_reported_with_what_it_had_changed() {
    let bench = Workbench::new();
    let lines = [
        bench.calls(&[("Bash", json!({"command": "echo half > half.txt; sleep 1000"}))]),
        json!({"expect": {"contains": "half.txt", "is_error": true}, "text": "I looked."}).to_string(),
    ];
    let model = || Arc::new(ScriptModel::parse(&lines.join("\n")).unwrap());
    let first = RunParts::new(bench.runtime(None), model()).unwrap();
    let session = first.session.clone();
    // The log is cut while the command runs; cancelling it stands for the death of its process.
    let log = Arc::new(CutLog::new(first.runtime.ledger().unwrap(), 4));
    let cancel = Cancel::new();
    let stop = cancel.clone();
    let half = bench.path("half.txt");
    std::thread::spawn(move || {
        while !half.exists() {
            std::thread::yield_now();
        }
        stop.cancel();
    });
    let mut run = AgentRun::start(RunParts { log, ..first }, RunSettings::default(), Vec::new()).unwrap();
    run.say(text("Go."), &mut NoObserver, &cancel).unwrap_err();
    drop(run);

    let resumed = RunParts::new(bench.runtime(Some(&session)), model()).unwrap();
    let mut run = AgentRun::resume(resumed, RunSettings::default()).unwrap();
    let report = run.proceed(&mut NoObserver, &Cancel::new()).unwrap();
    assert_eq!((report.stop, report.text.as_str()), (RunStop::Done, "I looked."));
    assert!(results(&run.state().conversation)[0].text().contains("before you repeat it"));
}

#[test]
fn two_drivers_never_drive_one_run() {
    let bench = Workbench::new();
    let two = [r#"{"text": "One."}"#, r#"{"text": "Two."}"#].join("\n");
    let mut run = bench.run(&two);
    let session = run.session().to_owned();
    let other = || {
        let model = Arc::new(ScriptModel::parse(&two).unwrap());
        let parts = RunParts::new(bench.runtime(Some(&session)), model).unwrap();
        AgentRun::resume(parts, RunSettings::default())
    };
    // Also while the run waits for its model or its user.
    let error = other().err().unwrap();
    assert_eq!(error.kind, ErrorKind::Conflict);
    assert!(error.message.contains("is being driven by process"), "{error}");
    say(&mut run, "Go.");
    drop(run);
    assert_eq!(say(&mut other().unwrap(), "And now?").text, "Two.");
}

#[test]
fn a_fork_goes_on_by_itself() {
    let bench = Workbench::new();
    let lines = [r#"{"text": "One."}"#, r#"{"text": "Two."}"#, r#"{"text": "Three."}"#].join("\n");
    let mut run = bench.run(&lines);
    say(&mut run, "First.");
    let parts = bench.parts(ScriptModel::parse(&lines).unwrap());
    let mut fork = AgentRun::fork(parts, RunSettings::default(), run.session()).unwrap();
    assert_eq!(fork.state().start.forked_from.as_deref(), Some(run.session()));
    assert_eq!(fork.state().conversation, run.state().conversation);
    assert_eq!(say(&mut fork, "Second.").text, "Two.");
    assert_eq!(say(&mut run, "Other second.").text, "Two.");
    assert_eq!(fork.state().turns.len(), 2);
}

#[test]
fn a_rewound_run_goes_on_from_the_turn_before() {
    let bench = Workbench::new();
    let lines = [
        r#"{"text": "One."}"#.to_owned(),
        bench.calls(&[("Bash", json!({"command": "touch two.txt"}))]),
        r#"{"text": "Two."}"#.to_owned(),
        r#"{"text": "Three."}"#.to_owned(),
    ];
    let mut run = bench.run(&lines.join("\n"));
    say(&mut run, "First.");
    let before = run.state().conversation.clone();
    say(&mut run, "Second.");
    let ledger = bench.runtime(None).ledger().unwrap();
    assert_eq!(calls_since(&ledger, run.session(), 2).unwrap().len(), 1);
    assert_eq!(calls_since(&ledger, run.session(), 1).unwrap().len(), 1);
    assert_eq!(calls_since(&ledger, run.session(), 0).unwrap_err().kind, ErrorKind::NotFound);
    assert_eq!(run.rewind(3).unwrap_err().kind, ErrorKind::NotFound);
    run.rewind(2).unwrap();
    assert_eq!(run.state().conversation, before);
    assert_eq!(say(&mut run, "Another second.").text, "Three.");
    let stored = read_run(&ledger, run.session()).unwrap().unwrap();
    assert_eq!(stored.conversation, run.state().conversation);
}

#[test]
fn events_of_a_later_version_are_skipped_and_a_later_log_is_refused() {
    let bench = Workbench::new();
    let mut run = bench.run("{\"text\": \"One.\"}\n{\"text\": \"Two.\"}");
    say(&mut run, "First.");
    let ledger = bench.runtime(None).ledger().unwrap();
    let later = json!({"event": "telepathy", "thoughts": [1, 2]});
    ledger.append(run.session(), haft_ledger::Expected::Any, &later).unwrap();
    let model = Arc::new(ScriptModel::parse("{\"text\": \"One.\"}\n{\"text\": \"Two.\"}").unwrap());
    let parts = RunParts::new(bench.runtime(Some(run.session())), model).unwrap();
    drop(run);
    let mut resumed = AgentRun::resume(parts.clone(), RunSettings::default()).unwrap();
    assert_eq!(say(&mut resumed, "Second.").text, "Two.");

    let other = bench.runtime(None);
    let (session, started) = (other.session().unwrap(), json!({"event": "started", "version": 99}));
    ledger.append(&session, haft_ledger::Expected::Any, &started).unwrap();
    let error = AgentRun::resume(RunParts { session, ..parts }, RunSettings::default()).err().unwrap();
    assert!(error.message.contains("later version"), "{error}");
}
