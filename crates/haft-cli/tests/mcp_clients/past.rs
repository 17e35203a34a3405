//! The ledger as tools, for clients whose model may look back and take back.

use serde_json::json;

use crate::stage::Stage;
use crate::visitor::{MODERN, Over, PYTHON, text};

#[test]
fn a_model_sees_what_was_done_and_takes_it_back() {
    let stage = Stage::new();
    let steps = json!([
        {"list": "tools"},
        {"call": "Write", "arguments": {"file_path": stage.path("new.txt"), "content": "new\n"}},
        {"call": "haft_log"},
        {"call": "haft_undo"},
        {"call": "haft_undo", "arguments": {"call": 999}},
    ]);
    let visit = PYTHON.speaks(MODERN).visit(&stage, Over::Stdio, &["--ledger-tools"], None, &steps);
    let names: Vec<&str> =
        visit.steps[0]["items"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert!(names.contains(&"haft_log") && names.contains(&"haft_undo"), "{names:?}");
    assert!(text(&visit.steps[2]).contains("new.txt"), "{}", visit.steps[2]);
    assert_eq!(visit.steps[3]["isError"], false, "{}", visit.steps[3]);
    assert!(!stage.has("new.txt"));
    assert_eq!(visit.steps[4]["isError"], true, "{}", visit.steps[4]);
}
