//! Where a call needs a yes, the client's user is asked; where the client cannot ask, the answer is no and says how to allow
//! it.

use serde_json::{Value, json};

use crate::every_client;
use crate::stage::Stage;
use crate::visitor::{Visit, Visitor, text};

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

fn asks(visitor: Visitor, over: Over) {
    let stage = Stage::new();
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
    let visit = visitor.visit(&stage, over, ASKING, Some(&answers), &steps);
    shows_what_it_is_about(&visit);
    assert_eq!(stage.house.read("accepted.txt"), "x\n");
    for (at, name) in [(1, "unticked.txt"), (2, "declined.txt"), (3, "cancelled.txt")] {
        let denied = &visit.steps[at];
        assert!(denied["isError"] == true && text(denied).contains("user declined"), "{denied}");
        assert!(!stage.has(name));
    }
    let answered = &visit.steps[4];
    assert!(answered["isError"] == false && text(answered).contains("Blue"), "{answered}");
    for silent in &visit.steps[5..7] {
        assert!(silent["isError"] == true && text(silent).contains("declined to answer"), "{silent}");
    }
    let verdicts: Vec<Value> =
        stage.receipts().iter().map(|receipt| receipt["decision"]["verdict"].clone()).collect();
    assert_eq!(verdicts[..4], [json!("allow"), json!("deny"), json!("deny"), json!("deny")], "{verdicts:?}");

    nobody_can_be_asked(visitor, over);
}

fn shows_what_it_is_about(visit: &Visit) {
    assert_eq!(visit.asked.len(), 7, "{:?}", visit.asked);
    let message = |at: usize| visit.asked[at]["message"].as_str().unwrap();
    assert!(message(0).contains("echo x > accepted.txt"), "{}", message(0));
    assert_eq!(visit.asked[0]["requestedSchema"]["properties"]["run"]["type"], "boolean");
    assert!(message(4).contains("Which colour?"), "{}", message(4));
    let field = &visit.asked[4]["requestedSchema"]["properties"]["answer_1"];
    assert_eq!(field["enum"], json!(["Red", "Blue"]), "{field}");
}

fn nobody_can_be_asked(visitor: Visitor, over: Over) {
    let stage = Stage::new();
    let visit = visitor.visit(&stage, over, ASKING, None, &json!([run("x.txt"), question()]));
    let (denied, silent) = (&visit.steps[0], &visit.steps[1]);
    assert!(denied["isError"] == true && !stage.has("x.txt"), "{denied}");
    let said = text(denied);
    assert!(said.contains("No one can be asked here") && said.contains("--allowedTools"), "{said}");
    assert!(silent["isError"] == true && text(silent).contains("No one can answer"), "{silent}");
}
