//! Where a call needs a yes, the client's user is asked; where the client cannot ask, the answer is no and says how to allow
//! it.

use serde_json::{Value, json};

use crate::fixture::mcp::McpFixture;
use crate::fixture::peer_client::{ClientRun, PeerClient, text};
use crate::mcp_clients::every_client;

every_client!(asks);

/// In this mode a command needs a yes.
const ASKING: &[&str] = &["--permission-mode", "default"];

fn run(name: &str) -> Value {
    json!({"call": "Bash", "arguments": {"command": format!("echo x > {name}")}})
}

fn question() -> Value {
    json!({"call": "AskUserQuestion", "arguments": {"questions": [{
        "question": "Which colour?", "header": "Colour", "multiSelect": false,
        "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}],
    }]}})
}

fn asks(client: PeerClient, transport: Transport) {
    let fixture = McpFixture::new();
    let steps = json!([
        run("accepted.txt"),
        run("unticked.txt"),
        run("declined.txt"),
        run("cancelled.txt"),
        question(),
        question(),
        question(),
    ]);
    let answers = json!([
        {"action": "accept", "content": {"run": true}},
        {"action": "accept", "content": {"run": false}},
        {"action": "decline"},
        {"action": "cancel"},
        {"action": "accept", "content": {"answer_1": "Blue"}},
        {"action": "decline"},
        {"action": "cancel"},
    ]);
    let run = client.run(&fixture, transport, ASKING, Some(&answers), &steps);
    shows_what_it_is_about(&run);
    assert_eq!(fixture.cli.read("accepted.txt"), "x\n");
    for (at, name) in [(1, "unticked.txt"), (2, "declined.txt"), (3, "cancelled.txt")] {
        let denied = &run.steps[at];
        assert!(denied["isError"] == true && text(denied).contains("user declined"), "{denied}");
        assert!(!fixture.has(name));
    }
    let answered = &run.steps[4];
    assert!(answered["isError"] == false && text(answered).contains("Blue"), "{answered}");
    for silent in &run.steps[5..7] {
        assert!(silent["isError"] == true && text(silent).contains("declined to answer"), "{silent}");
    }
    let verdicts: Vec<Value> =
        fixture.receipts().iter().map(|receipt| receipt["decision"]["verdict"].clone()).collect();
    assert_eq!(verdicts[..4], [json!("allow"), json!("deny"), json!("deny"), json!("deny")], "{verdicts:?}");

    no_user_can_be_asked(client, transport);
}

fn shows_what_it_is_about(run: &ClientRun) {
    assert_eq!(run.asked.len(), 7, "{:?}", run.asked);
    let message = |at: usize| run.asked[at]["message"].as_str().unwrap();
    assert!(message(0).contains("echo x > accepted.txt"), "{}", message(0));
    assert_eq!(run.asked[0]["requestedSchema"]["properties"]["run"]["type"], "boolean");
    assert!(message(4).contains("Which colour?"), "{}", message(4));
    let field = &run.asked[4]["requestedSchema"]["properties"]["answer_1"];
    assert_eq!(field["enum"], json!(["Red", "Blue"]), "{field}");
}

fn no_user_can_be_asked(client: PeerClient, transport: Transport) {
    let fixture = McpFixture::new();
    let run = client.run(&fixture, transport, ASKING, None, &json!([run("x.txt"), question()]));
    let (denied, silent) = (&run.steps[0], &run.steps[1]);
    assert!(denied["isError"] == true && !fixture.has("x.txt"), "{denied}");
    let said = text(denied);
    assert!(said.contains("No one can be asked here") && said.contains("--allowedTools"), "{said}");
    assert!(silent["isError"] == true && text(silent).contains("No one can answer"), "{silent}");
}
