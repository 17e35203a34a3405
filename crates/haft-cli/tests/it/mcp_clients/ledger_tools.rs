//! The ledger as tools, for clients whose model may look back and take back.

use serde_json::json;

use crate::fixture::mcp::McpFixture;
use crate::fixture::peer_client::{PYTHON, STATELESS, Transport, text};

#[test]
fn a_model_sees_what_was_done_and_takes_it_back() {
    let fixture = McpFixture::new();
    let steps = json!([
        {"list": "tools"},
        {"call": "Write", "arguments": {"file_path": fixture.path("new.txt"), "content": "new\n"}},
        {"call": "haft_log"},
        {"call": "haft_undo"},
        {"call": "haft_undo", "arguments": {"call": 999}},
    ]);
    let run = PYTHON.with_mode(STATELESS).run(&fixture, Transport::Stdio, &["--ledger-tools"], None, &steps);
    let names: Vec<&str> =
        run.steps[0]["items"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert!(names.contains(&"haft_log") && names.contains(&"haft_undo"), "{names:?}");
    assert!(text(&run.steps[2]).contains("new.txt"), "{}", run.steps[2]);
    assert_eq!(run.steps[3]["isError"], false, "{}", run.steps[3]);
    assert!(!fixture.has("new.txt"));
    assert_eq!(run.steps[4]["isError"], true, "{}", run.steps[4]);
}
