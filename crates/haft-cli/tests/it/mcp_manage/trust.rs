//! The user's yes to a server that came with a project.

use std::collections::BTreeMap;

use haft_cli::servers::ServerGrants;
use serde_json::json;

use crate::fixture::settings::SettingsFixture;
use crate::fixture::terminal::Terminal;

fn with_project(args: &[&str]) -> SettingsFixture {
    let fixture = SettingsFixture::new();
    let entry = json!({"command": "npx", "args": args, "env": {"TOKEN": "s3cr3t"}});
    fixture.cli.write(".mcp.json", &json!({"mcpServers": {"tests": entry}}).to_string());
    fixture
}

#[test]
fn a_yes_is_to_one_command_and_can_be_taken_back() {
    let fixture = with_project(&["tester@1.0.0", "a b"]);
    insta::assert_snapshot!(fixture.said(&["mcp", "trust", "tests", "--writes"]));
    assert!(fixture.said(&["mcp", "list"]).contains("tests  untrusted"));
    for (answer, code) in [("", 3), ("y", 0)] {
        let mut terminal =
            Terminal::run(fixture.command(&["mcp", "trust", "tests", "--writes", "--network", "a.org"]));
        terminal.sees("command    npx tester@1.0.0 'a b'");
        terminal.sees("variables  TOKEN");
        terminal.sees("access     writes the workspace, reaches a.org");
        terminal.sees("Trust tests? [y/N]");
        terminal.types(answer);
        let (ended, said) = terminal.ends();
        assert_eq!(ended, code, "{said}");
        assert!(!said.contains("s3cr3t"), "{said}");
    }
    let said = fixture.said(&["mcp", "list"]);
    assert!(
        said.contains("tests  trusted") && said.contains("writes the workspace, reaches a.org"),
        "{said}"
    );
    assert!(fixture.done(&["mcp", "trust", "tests"]).stderr.contains("already trusted"));

    let other = fixture.cli.read(".mcp.json").replace("a b", "a c");
    let first = fixture.cli.read(".mcp.json");
    fixture.cli.write(".mcp.json", &other);
    assert!(
        fixture.said(&["mcp", "list"]).contains("tests  untrusted"),
        "another argument is another server"
    );
    fixture.cli.write(".mcp.json", &first);
    assert!(fixture.said(&["mcp", "list"]).contains("tests  trusted"));

    assert!(fixture.done(&["mcp", "untrust", "tests"]).stderr.contains("no longer trusted"));
    assert!(fixture.said(&["mcp", "list"]).contains("tests  untrusted"));
    assert!(fixture.done(&["mcp", "untrust", "tests"]).stderr.contains("was not trusted"));
    fixture.done(&["mcp", "trust", "tests", "--yes"]);
    assert!(fixture.said(&["mcp", "list"]).contains("reads the workspace, no network"));
}

#[test]
fn changed_tools_are_shown_and_need_a_yes_of_their_own() {
    let fixture = with_project(&[]);
    let entry = fixture.of_project("tests");
    fixture.trust().consent(&entry, ServerGrants::default()).unwrap();
    let tools =
        |words: &str| BTreeMap::from([("run".to_owned(), json!({"name": "run", "description": words}))]);
    fixture.trust().record_tools(&entry, &tools("Runs")).unwrap();
    fixture.trust().record_tools(&entry, &tools("Runs\u{202e} away")).unwrap();
    let said = fixture.said(&["mcp", "trust", "tests"]);
    insta::assert_snapshot!(said.replace("0s ago", "just now"));
    fixture.done(&["mcp", "trust", "tests", "--writes", "--yes"]);
    let known = fixture.trust().known(&entry).unwrap();
    assert_eq!((known.pending, known.tools, known.grants.writes), (None, tools("Runs\u{202e} away"), true));
}

#[test]
fn only_what_comes_with_a_project_needs_a_yes() {
    let fixture = SettingsFixture::new();
    fixture.set("[tools.mcp_servers.mine]\ncommand = \"x\"\n[tools.mcp_servers.off]\nenabled = false\n");
    assert!(fixture.done(&["mcp", "trust", "mine"]).stderr.contains("already trusted"));
    let ran = fixture.haft(&["mcp", "trust", "mine", "--writes"]);
    assert!(ran.code == 2 && ran.stderr.contains("mine is in your own settings"), "{}", ran.stderr);
    let ran = fixture.haft(&["mcp", "trust", "off"]);
    assert!(ran.code == 1 && ran.stderr.contains("disabled"), "{}", ran.stderr);
    assert_eq!(fixture.haft(&["mcp", "trust", "missing", "--yes"]).code, 4);
}
