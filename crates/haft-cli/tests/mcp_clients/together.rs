//! Several clients at once on one server and one workspace: each has its own session, and none waits for the other.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::stage::Stage;
use crate::visitor::{MODERN, PYTHON, TYPESCRIPT_1, TYPESCRIPT_2, Visitor, text};

/// Neither can end unless both are at work.
fn meets(own: &str, other: &str) -> Value {
    let command = format!("echo {own} > {own}; until [ -e {other} ]; do sleep 0.02; done; echo met");
    json!([{"call": "Bash", "arguments": {"command": command}}])
}

fn both(visitors: [Visitor; 2]) {
    let stage = Stage::new();
    let served = stage.serve(&[]);
    let steps = [meets("one", "two"), meets("two", "one")];
    let children = [0, 1].map(|at| {
        let mut command = visitors[at].at(&stage, &served, None, &steps[at]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    });
    for (visitor, child) in visitors.into_iter().zip(children) {
        let visit = visitor.read(&child.wait_with_output().unwrap());
        assert_eq!(text(&visit.steps[0]), "met\n", "{}", visit.steps[0]);
    }
    served.ends();
    let receipts = stage.receipts();
    assert_eq!(receipts.len(), 2, "{receipts:?}");
    let session = |at: usize| receipts[at]["session"].as_str().unwrap();
    assert_ne!(session(0), session(1), "each client has a session of its own");
    let first = receipts[0]["changes"][0]["path"].as_str().unwrap();
    stage.haft(&["undo", "--session", session(0), "--yes"]);
    let (gone, stays) = if first.ends_with("one") { ("one", "two") } else { ("two", "one") };
    assert!(!stage.has(gone) && stage.has(stays), "what one has done is taken back without the other's");
}

#[test]
fn two_clients_of_the_old_era_work_side_by_side() {
    both([PYTHON.speaks("legacy"), TYPESCRIPT_1]);
}

#[test]
fn two_clients_of_the_new_era_work_side_by_side() {
    both([PYTHON.speaks(MODERN), TYPESCRIPT_2.speaks(MODERN)]);
}

#[test]
fn a_client_of_each_era_work_side_by_side() {
    both([PYTHON.speaks("legacy"), PYTHON.speaks(MODERN)]);
}
