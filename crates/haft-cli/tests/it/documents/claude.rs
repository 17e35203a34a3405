//! What document 003 says of the tools of `claude` and no other test holds.

use haft::{ErrorKind, SideEffect, Value, json};

use crate::fixture::runtime::RuntimeFixture;

fn claude() -> RuntimeFixture {
    RuntimeFixture::of(haft::claude())
}

#[test]
fn side_effects_are_as_listed() {
    let tools = claude().haft.definitions();
    let kind = |name: &str| tools.iter().find(|tool| tool.name == name).unwrap().side_effect;
    for name in ["TaskOutput", "Read", "Glob", "Grep", "ListMcpResources", "ReadMcpResource"] {
        assert_eq!(kind(name), SideEffect::ReadOnly, "{name}");
    }
    for name in ["Bash", "Edit", "Write", "NotebookEdit", "TaskStop", "TodoWrite", "Config"] {
        assert_eq!(kind(name), SideEffect::Mutating, "{name}");
    }
    for name in ["WebFetch", "WebSearch"] {
        assert_eq!(kind(name), SideEffect::Network, "{name}");
    }
    // Leaving plan mode changes state too, and it waits for the user's yes.
    for name in ["AskUserQuestion", "ExitPlanMode"] {
        assert_eq!(kind(name), SideEffect::Blocking, "{name}");
    }
    assert_eq!(kind("Agent"), SideEffect::Spawns);
}

#[test]
fn there_are_six_kinds_of_side_effect() {
    use SideEffect::{Blocking, Mutating, Network, None, ReadOnly, Spawns};
    let words = [None, ReadOnly, Mutating, Network, Blocking, Spawns].map(|kind| json!(kind));
    assert_eq!(words, ["none", "read_only", "mutating", "network", "blocking", "spawns"].map(Value::from));
}

#[test]
fn the_names_of_the_document_lead_to_those_on_the_wire() {
    let haft = claude().haft;
    let wire = |name: &str| haft.registry().get(name).map(|tool| tool.name().to_owned());
    for (name, on_the_wire) in
        [("FileRead", "Read"), ("FileWrite", "Write"), ("FileEdit", "Edit"), ("Task", "Agent")]
    {
        assert_eq!(wire(name).as_deref(), Some(on_the_wire));
    }
    assert_eq!(wire("Tasks"), None);
}

#[tokio::test]
async fn web_fetch_takes_only_urls() {
    let claude = claude();
    for url in ["not a url", "file:///etc/passwd", "ftp://example.org/", "/etc/passwd", ""] {
        let (kind, said) = claude.fails("WebFetch", json!({"url": url, "prompt": "x"})).await;
        assert_eq!(kind, ErrorKind::InvalidArguments, "{url}: {said}");
    }
}

#[tokio::test]
async fn the_path_of_a_notebook_must_be_absolute() {
    let edit = json!({"notebook_path": "a.ipynb", "new_source": "x", "cell_id": "a"});
    assert_eq!(claude().fails("NotebookEdit", edit).await.0, ErrorKind::InvalidArguments);
}
