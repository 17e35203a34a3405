//! Several clients at once on one server and one workspace: each has its own session, and none waits for the other.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::fixture::mcp::McpFixture;
use crate::fixture::peer_client::{PYTHON, PeerClient, STATELESS, TYPESCRIPT_1, TYPESCRIPT_2, text};

/// Neither can end unless both are at work.
fn meets(own: &str, other: &str) -> Value {
    let command = format!("echo {own} > {own}; until [ -e {other} ]; do sleep 0.02; done; echo met");
    json!([{"call": "Bash", "arguments": {"command": command}}])
}

fn both(visitors: [PeerClient; 2]) {
    let fixture = McpFixture::new();
    let served = fixture.serve(&[]);
    let steps = [meets("one", "two"), meets("two", "one")];
    let children = [0, 1].map(|at| {
        let mut command = visitors[at].at(&fixture, &served, None, &steps[at]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    });
    for (client, child) in visitors.into_iter().zip(children) {
        let run = client.read(&child.wait_with_output().unwrap());
        assert_eq!(text(&run.steps[0]), "met\n", "{}", run.steps[0]);
    }
    served.ends();
    let receipts = fixture.receipts();
    assert_eq!(receipts.len(), 2, "{receipts:?}");
    let session = |at: usize| receipts[at]["session"].as_str().unwrap();
    assert_ne!(session(0), session(1), "each client has a session of its own");
    let first = receipts[0]["changes"][0]["path"].as_str().unwrap();
    fixture.haft(&["undo", "--session", session(0), "--yes"]);
    let (gone, stays) = if first.ends_with("one") { ("one", "two") } else { ("two", "one") };
    assert!(!fixture.has(gone) && fixture.has(stays), "one client's change is undone without the other's");
}

#[test]
fn two_clients_of_the_old_era_work_side_by_side() {
    both([PYTHON.with_mode("legacy"), TYPESCRIPT_1]);
}

#[test]
fn two_clients_of_the_new_era_work_side_by_side() {
    both([PYTHON.with_mode(STATELESS), TYPESCRIPT_2.with_mode(STATELESS)]);
}

#[test]
fn a_client_of_each_era_work_side_by_side() {
    both([PYTHON.with_mode("legacy"), PYTHON.with_mode(STATELESS)]);
}
