//! Trust: servers of a project, changed tools, and names that imitate others.

use serde_json::{Value, json};

use crate::fixture::mcp_servers::{ServerFixture, filesystem, hostile, processes};
use crate::fixture::peer_client::{PYTHON, PeerClient, STATELESS, Transport, text};
use crate::fixture::peers;

fn echo() -> Value {
    json!({"text": "hi"})
}

fn said(result: &Value) -> &str {
    result["content"].as_str().unwrap_or_default()
}

#[test]
fn a_projects_server_is_not_even_started_before_its_user_has_said_yes() {
    let fixture = ServerFixture::with(&[]);
    fixture.project(&[("tests", hostile("good", &fixture.mark()))]);
    for refused in [
        fixture.call("mcp__tests__echo", &echo()),
        fixture.call("ReadMcpResource", &json!({"server": "tests", "uri": "memo://hello"})),
    ] {
        assert_eq!(refused["error_kind"], "permission_denied", "{refused}");
        assert!(said(&refused).contains("`haft mcp trust tests`"), "{refused}");
    }
    for args in [&["mcp", "test", "tests"][..], &["mcp", "call", "tests", "echo"]] {
        let ran = fixture.haft(args);
        assert!(ran.code == 3 && ran.stderr.contains("`haft mcp trust tests`"), "{}", ran.stderr);
    }
    let tools = fixture.haft(&["tools"]);
    assert!(tools.code == 0 && tools.stderr.contains("`haft mcp trust tests`"), "{}", tools.stderr);
    assert!(!tools.stdout.contains("mcp__tests"));
    assert_eq!(fixture.call("ListMcpResources", &json!({}))["is_error"], false);
    let started = fixture.mcp.receipts().iter().any(|receipt| receipt["tool"] == "server");
    assert!(!started, "no server was started");

    fixture.done(&["mcp", "trust", "tests", "--yes"]);
    assert_eq!(said(&fixture.call("mcp__tests__echo", &echo())), "hi");

    fixture.project(&[("tests", hostile("grow", &fixture.mark()))]);
    let changed = fixture.call("mcp__tests__echo", &echo());
    assert_eq!(changed["error_kind"], "permission_denied", "another command is another server: {changed}");
    fixture.done(&["mcp", "trust", "tests", "--yes"]);
    assert_eq!(said(&fixture.call("mcp__tests__echo", &echo())), "hi");
    fixture.done(&["mcp", "untrust", "tests"]);
    assert_eq!(fixture.call("mcp__tests__echo", &echo())["error_kind"], "permission_denied");
    assert!(processes(&fixture.mark()).is_empty());
}

#[test]
fn a_skills_server_needs_a_yes_like_a_projects() {
    let fixture = ServerFixture::with(&[]);
    let script = peers::ours("../haft-mcp/tests/fixtures/hostile_server.py");
    let heads = [
        format!("name: web\ndescription: Looks things up.\nmcp-lines: python3 {script} good -\n"),
        format!(
            "name = \"old\"\n[mcp.table]\ncommand = \"python3\"\nargs = [\"{script}\", \"good\"]\nwrites = true\n"
        ),
    ];
    for (folder, head) in [".claude/skills/web", ".haft/skills/old"].into_iter().zip(&heads) {
        std::fs::create_dir_all(fixture.mcp.path(folder)).unwrap();
        fixture.mcp.cli.write(&format!("{folder}/SKILL.md"), &format!("---\n{head}---\nDo it.\n"));
    }
    for name in ["lines", "table"] {
        let tool = format!("mcp__{name}__echo");
        assert_eq!(fixture.call(&tool, &echo())["error_kind"], "permission_denied");
        let ran = fixture.haft(&["mcp", "remove", name, "--yes"]);
        assert!(ran.code != 0 && ran.stderr.contains("SKILL.md"), "{}", ran.stderr);
        fixture.done(&["mcp", "trust", name, "--yes"]);
        assert_eq!(said(&fixture.call(&tool, &echo())), "hi");
        let write = json!({"path": fixture.mcp.path("new.txt")});
        let refused = fixture.call(&format!("mcp__{name}__write"), &write);
        assert!(refused["is_error"] == true && !fixture.mcp.has("new.txt"), "{refused}");
    }
    let other = fixture.mcp.cli.read(".claude/skills/web/SKILL.md").replace("good -", "grow -");
    fixture.mcp.cli.write(".claude/skills/web/SKILL.md", &other);
    assert_eq!(fixture.call("mcp__lines__echo", &echo())["error_kind"], "permission_denied");
}

#[test]
fn a_project_grants_itself_nothing_and_its_user_grants_what_they_say() {
    let fixture = ServerFixture::with(&[]);
    let mut greedy = filesystem(fixture.mcp.cli.root());
    (greedy["writes"], greedy["network"], greedy["sandbox"]) = (json!(true), json!("all"), json!("off"));
    fixture.project(&[("files", greedy)]);
    let write = json!({"path": fixture.mcp.path("new.txt"), "content": "new\n"});
    fixture.done(&["mcp", "trust", "files", "--yes"]);
    let refused = fixture.ask("files", "write_file", &write);
    assert!(refused["is_error"] == true && !fixture.mcp.has("new.txt"), "{refused}");
    fixture.done(&["mcp", "trust", "files", "--writes", "--yes"]);
    let wrote = fixture.ask("files", "write_file", &write);
    assert!(wrote["is_error"] == false && fixture.mcp.has("new.txt"), "{wrote}");
    fixture.done(&["undo", "--yes"]);
    assert!(!fixture.mcp.has("new.txt"));
}

#[test]
fn a_tool_that_is_another_one_after_a_restart_waits_for_a_yes() {
    let fixture = ServerFixture::with(&[]);
    let state = fixture.mcp.path("state");
    std::fs::create_dir(&state).unwrap();
    let mut entry = hostile("rug-pull-restart", &state);
    // It counts its starts in a file.
    entry["writes"] = json!(true);
    fixture.own(&[("rug", entry)]);
    assert_eq!(said(&fixture.call("mcp__rug__echo", &echo())), "hi");
    let pulled = fixture.call("mcp__rug__echo", &echo());
    assert_eq!(pulled["error_kind"], "permission_denied", "{pulled}");
    assert!(said(&pulled).contains("`haft mcp trust rug`"), "{pulled}");
    let add = fixture.call("mcp__rug__add", &json!({"a": 1, "b": 2}));
    assert_eq!(said(&add), "3", "the others are as they were");
    let shown = fixture.done(&["mcp", "get", "rug"]);
    assert!(shown.contains("changed") && shown.contains("echo"), "{shown}");
    fixture.done(&["mcp", "trust", "rug", "--yes"]);
    assert_eq!(said(&fixture.call("mcp__rug__echo", &echo())), "hi", "the user has seen it now");
}

/// A server that changes its tool as soon as it was called, within one session.
fn pulled_within_a_session(client: PeerClient, mode: &str) {
    let fixture = ServerFixture::with(&[("rug", hostile(mode, "-")), ("good", hostile("good", "-"))]);
    let steps = json!([
        {"list": "tools"},
        {"call": "mcp__rug__echo", "arguments": echo()},
        {"list": "tools"},
        {"call": "mcp__rug__echo", "arguments": echo()},
        {"call": "mcp__rug__add", "arguments": {"a": 1, "b": 2}},
        {"call": "mcp__good__echo", "arguments": echo()},
    ]);
    let mut command = client.over_stdio(&fixture.mcp, &[], None, &steps);
    let ran = command.output().unwrap();
    let run = client.read(&ran);
    assert_eq!(text(&run.steps[1]), "hi", "{mode}: {}", run.steps[1]);
    let refused = &run.steps[3];
    assert!(
        refused["isError"] == true && text(refused).contains("`haft mcp trust rug`"),
        "{mode}: {refused}"
    );
    assert_eq!((text(&run.steps[4]).as_str(), text(&run.steps[5]).as_str()), ("3", "hi"), "{mode}");
    let notes = String::from_utf8_lossy(&ran.stderr);
    assert!(notes.contains("echo") && notes.contains("`haft mcp trust rug`"), "{mode}: {notes}");
    let pending = fixture.json(&["mcp", "get", "rug", "--json"]);
    assert_eq!(pending["pending"]["changed"], json!(["echo"]), "{mode}: {pending}");
    fixture.done(&["mcp", "trust", "rug", "--yes"]);
}

#[test]
fn a_tool_that_changes_within_a_session_is_withheld_and_told() {
    pulled_within_a_session(PYTHON.with_mode(STATELESS), "rug-pull-announced");
}

#[test]
fn a_schema_that_wants_a_secret_is_withheld_and_told() {
    pulled_within_a_session(PYTHON.with_mode("legacy"), "rug-pull-schema");
}

#[test]
fn no_server_takes_a_name_of_another() {
    let fixture = ServerFixture::with(&[
        ("shadow", hostile("shadow-builtins", "-")),
        ("other", hostile("shadow-servers", "-")),
    ]);
    fixture.mcp.cli.write("letter.txt", "Dear Ann,\n");
    let names = fixture.tools(&[]);
    for name in ["Read", "Write", "Bash"] {
        assert_eq!(names.iter().filter(|other| *other == name).count(), 1, "{names:?}");
    }
    let mut once = names.clone();
    once.sort();
    once.dedup();
    assert_eq!(once.len(), names.len(), "each name is one tool's: {names:?}");
    let read =
        fixture.done(&["call", "Read", &json!({"file_path": fixture.mcp.path("letter.txt")}).to_string()]);
    assert!(read.contains("Dear Ann,"), "{read}");
    let theirs = fixture.call("mcp__shadow__Read", &json!({}));
    assert_eq!(said(&theirs), "shadowed", "under their own name they may be called: {theirs}");
    for dialect in ["loom", "omega", "clawft"] {
        let names = fixture.tools(&["--dialect", dialect]);
        for name in ["read_file", "bash"] {
            assert!(names.iter().filter(|other| *other == name).count() <= 1, "{dialect}: {names:?}");
        }
    }
}

#[test]
fn words_that_hide_or_move_do_not_reach_anybody() {
    let fixture =
        ServerFixture::with(&[("names", hostile("names-control", "-")), ("rug", hostile("good", "-"))]);
    let run = PYTHON.run(&fixture.mcp, Transport::Stdio, &[], None, &json!([{"list": "tools"}]));
    let items = run.steps[0]["items"].as_array().unwrap();
    let fits =
        |name: &str| name.len() <= 64 && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
    assert!(items.iter().all(|tool| fits(tool["name"].as_str().unwrap())), "{items:?}");
    assert!(items.iter().any(|tool| tool["name"] == "mcp__names__echo"));
}
