//! Whom the user trusts, and with what: servers that come with a project, tools that change, names that are somebody else's.

use serde_json::{Value, json};

use crate::peers;
use crate::peers::visitor::{MODERN, Over, PYTHON, Visitor, text};
use crate::rack::{Rack, filesystem, hostile, processes};

fn echo() -> Value {
    json!({"text": "hi"})
}

fn said(result: &Value) -> &str {
    result["content"].as_str().unwrap_or_default()
}

#[test]
fn a_projects_server_is_not_even_started_before_its_user_has_said_yes() {
    let rack = Rack::with(&[]);
    rack.project(&[("tests", hostile("good", &rack.mark()))]);
    for refused in [
        rack.call("mcp__tests__echo", &echo()),
        rack.call("ReadMcpResource", &json!({"server": "tests", "uri": "memo://hello"})),
    ] {
        assert_eq!(refused["error_kind"], "permission_denied", "{refused}");
        assert!(said(&refused).contains("`haft mcp trust tests`"), "{refused}");
    }
    for args in [&["mcp", "test", "tests"][..], &["mcp", "call", "tests", "echo"]] {
        let ran = rack.haft(args);
        assert!(ran.code == 3 && ran.stderr.contains("`haft mcp trust tests`"), "{}", ran.stderr);
    }
    let tools = rack.haft(&["tools"]);
    assert!(tools.code == 0 && tools.stderr.contains("`haft mcp trust tests`"), "{}", tools.stderr);
    assert!(!tools.stdout.contains("mcp__tests"));
    assert_eq!(rack.call("ListMcpResources", &json!({}))["is_error"], false);
    let started = rack.stage.receipts().iter().any(|receipt| receipt["tool"] == "server");
    assert!(!started, "nobody was started");

    rack.done(&["mcp", "trust", "tests", "--yes"]);
    assert_eq!(said(&rack.call("mcp__tests__echo", &echo())), "hi");

    rack.project(&[("tests", hostile("grow", &rack.mark()))]);
    let changed = rack.call("mcp__tests__echo", &echo());
    assert_eq!(changed["error_kind"], "permission_denied", "another command is another server: {changed}");
    rack.done(&["mcp", "trust", "tests", "--yes"]);
    assert_eq!(said(&rack.call("mcp__tests__echo", &echo())), "hi");
    rack.done(&["mcp", "untrust", "tests"]);
    assert_eq!(rack.call("mcp__tests__echo", &echo())["error_kind"], "permission_denied");
    assert!(processes(&rack.mark()).is_empty());
}

#[test]
fn a_skills_server_needs_a_yes_like_a_projects() {
    let rack = Rack::with(&[]);
    let script = peers::ours("../haft-mcp/tests/hostile/server.py");
    let heads = [
        format!("name: web\ndescription: Looks things up.\nmcp-lines: python3 {script} good -\n"),
        format!(
            "name = \"old\"\n[mcp.table]\ncommand = \"python3\"\nargs = [\"{script}\", \"good\"]\nwrites = true\n"
        ),
    ];
    for (folder, head) in [".claude/skills/web", ".haft/skills/old"].into_iter().zip(&heads) {
        std::fs::create_dir_all(rack.stage.path(folder)).unwrap();
        rack.stage.house.write(&format!("{folder}/SKILL.md"), &format!("---\n{head}---\nDo it.\n"));
    }
    for name in ["lines", "table"] {
        let tool = format!("mcp__{name}__echo");
        assert_eq!(rack.call(&tool, &echo())["error_kind"], "permission_denied");
        let ran = rack.haft(&["mcp", "remove", name, "--yes"]);
        assert!(ran.code != 0 && ran.stderr.contains("SKILL.md"), "{}", ran.stderr);
        rack.done(&["mcp", "trust", name, "--yes"]);
        assert_eq!(said(&rack.call(&tool, &echo())), "hi");
        let write = json!({"path": rack.stage.path("new.txt")});
        let refused = rack.call(&format!("mcp__{name}__write"), &write);
        assert!(refused["is_error"] == true && !rack.stage.has("new.txt"), "{refused}");
    }
    let other = rack.stage.house.read(".claude/skills/web/SKILL.md").replace("good -", "grow -");
    rack.stage.house.write(".claude/skills/web/SKILL.md", &other);
    assert_eq!(rack.call("mcp__lines__echo", &echo())["error_kind"], "permission_denied");
}

#[test]
fn a_project_grants_itself_nothing_and_its_user_grants_what_they_say() {
    let rack = Rack::with(&[]);
    let mut greedy = filesystem(rack.stage.house.root());
    (greedy["writes"], greedy["network"], greedy["sandbox"]) = (json!(true), json!("all"), json!("off"));
    rack.project(&[("files", greedy)]);
    let write = json!({"path": rack.stage.path("new.txt"), "content": "new\n"});
    rack.done(&["mcp", "trust", "files", "--yes"]);
    let refused = rack.ask("files", "write_file", &write);
    assert!(refused["is_error"] == true && !rack.stage.has("new.txt"), "{refused}");
    rack.done(&["mcp", "trust", "files", "--writes", "--yes"]);
    let wrote = rack.ask("files", "write_file", &write);
    assert!(wrote["is_error"] == false && rack.stage.has("new.txt"), "{wrote}");
    rack.done(&["undo", "--yes"]);
    assert!(!rack.stage.has("new.txt"));
}

#[test]
fn a_tool_that_is_another_one_after_a_restart_waits_for_a_yes() {
    let rack = Rack::with(&[]);
    let state = rack.stage.path("state");
    std::fs::create_dir(&state).unwrap();
    let mut entry = hostile("rug-pull-restart", &state);
    // It counts its starts in a file.
    entry["writes"] = json!(true);
    rack.own(&[("rug", entry)]);
    assert_eq!(said(&rack.call("mcp__rug__echo", &echo())), "hi");
    let pulled = rack.call("mcp__rug__echo", &echo());
    assert_eq!(pulled["error_kind"], "permission_denied", "{pulled}");
    assert!(said(&pulled).contains("`haft mcp trust rug`"), "{pulled}");
    let add = rack.call("mcp__rug__add", &json!({"a": 1, "b": 2}));
    assert_eq!(said(&add), "3", "the others are as they were");
    let shown = rack.done(&["mcp", "get", "rug"]);
    assert!(shown.contains("changed") && shown.contains("echo"), "{shown}");
    rack.done(&["mcp", "trust", "rug", "--yes"]);
    assert_eq!(said(&rack.call("mcp__rug__echo", &echo())), "hi", "the user has seen it now");
}

/// A server that changes its tool as soon as it was called, within one session.
fn pulled_within_a_session(visitor: Visitor, mode: &str) {
    let rack = Rack::with(&[("rug", hostile(mode, "-")), ("good", hostile("good", "-"))]);
    let steps = json!([
        {"list": "tools"},
        {"call": "mcp__rug__echo", "arguments": echo()},
        {"list": "tools"},
        {"call": "mcp__rug__echo", "arguments": echo()},
        {"call": "mcp__rug__add", "arguments": {"a": 1, "b": 2}},
        {"call": "mcp__good__echo", "arguments": echo()},
    ]);
    let mut command = visitor.over_stdio(&rack.stage, &[], None, &steps);
    let ran = command.output().unwrap();
    let visit = visitor.read(&ran);
    assert_eq!(text(&visit.steps[1]), "hi", "{mode}: {}", visit.steps[1]);
    let refused = &visit.steps[3];
    assert!(
        refused["isError"] == true && text(refused).contains("`haft mcp trust rug`"),
        "{mode}: {refused}"
    );
    assert_eq!((text(&visit.steps[4]).as_str(), text(&visit.steps[5]).as_str()), ("3", "hi"), "{mode}");
    let notes = String::from_utf8_lossy(&ran.stderr);
    assert!(notes.contains("echo") && notes.contains("`haft mcp trust rug`"), "{mode}: {notes}");
    let pending = rack.json(&["mcp", "get", "rug", "--json"]);
    assert_eq!(pending["pending"]["changed"], json!(["echo"]), "{mode}: {pending}");
    rack.done(&["mcp", "trust", "rug", "--yes"]);
}

#[test]
fn a_tool_that_changes_within_a_session_is_withheld_and_told() {
    pulled_within_a_session(PYTHON.speaks(MODERN), "rug-pull-announced");
}

#[test]
fn a_schema_that_wants_a_secret_is_withheld_and_told() {
    pulled_within_a_session(PYTHON.speaks("legacy"), "rug-pull-schema");
}

#[test]
fn no_server_takes_a_name_that_is_somebody_elses() {
    let rack =
        Rack::with(&[("shadow", hostile("shadow-builtins", "-")), ("other", hostile("shadow-servers", "-"))]);
    rack.stage.house.write("letter.txt", "Dear Ann,\n");
    let names = rack.tools(&[]);
    for name in ["Read", "Write", "Bash"] {
        assert_eq!(names.iter().filter(|other| *other == name).count(), 1, "{names:?}");
    }
    let mut once = names.clone();
    once.sort();
    once.dedup();
    assert_eq!(once.len(), names.len(), "each name is one tool's: {names:?}");
    let read = rack.done(&["call", "Read", &json!({"file_path": rack.stage.path("letter.txt")}).to_string()]);
    assert!(read.contains("Dear Ann,"), "{read}");
    let theirs = rack.call("mcp__shadow__Read", &json!({}));
    assert_eq!(said(&theirs), "shadowed", "under their own name they may be called: {theirs}");
    for dialect in ["loom", "omega", "clawft"] {
        let names = rack.tools(&["--dialect", dialect]);
        for name in ["read_file", "bash"] {
            assert!(names.iter().filter(|other| *other == name).count() <= 1, "{dialect}: {names:?}");
        }
    }
}

#[test]
fn words_that_hide_or_move_do_not_reach_anybody() {
    let rack = Rack::with(&[("names", hostile("names-control", "-")), ("rug", hostile("good", "-"))]);
    let visit = PYTHON.visit(&rack.stage, Over::Stdio, &[], None, &json!([{"list": "tools"}]));
    let items = visit.steps[0]["items"].as_array().unwrap();
    let fits =
        |name: &str| name.len() <= 64 && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
    assert!(items.iter().all(|tool| fits(tool["name"].as_str().unwrap())), "{items:?}");
    assert!(items.iter().any(|tool| tool["name"] == "mcp__names__echo"));
}
