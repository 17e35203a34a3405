//! Servers come into a file and out of it.

use serde_json::Value;

use crate::fixture::settings::SettingsFixture;
use crate::fixture::terminal::Terminal;

#[test]
fn every_form_of_add_is_understood() {
    let fixture = SettingsFixture::new();
    let all = [
        &["one", "--", "npx", "-y", "server@1.0.0"][..],
        &["two", "npx", "-y", "server@1.0.0", "--env", "is-the-server's"],
        &[
            "-e",
            "A=1",
            "--env",
            "B=x=y",
            "three",
            "--writes",
            "--network",
            "a.org,*.b.org",
            "--",
            "./serve r",
            "it's",
        ],
        &["four", "--network", "all", "--timeout", "5000", "--tool", "x", "--tool", "y", "serve"],
        &["five", "https://x.org/mcp", "--header", "Authorization: Bearer ${TOKEN}", "-H", "X-Y:z"],
        &["--transport", "sse", "six", "http://127.0.0.1:8080/sse"],
        &["--transport", "stdio", "seven", "--", "https://odd"],
    ];
    let said: Vec<String> =
        all.iter().map(|args| fixture.said(&[&["mcp", "add"][..], args].concat())).collect();
    insta::assert_snapshot!(said.join("\n"));
    insta::assert_snapshot!(fixture.said(&["mcp", "list"]));
    for _ in all {
        fixture.done(&["undo", "--yes"]);
    }
    assert!(!fixture.cli.config().exists(), "{}", fixture.settings());
}

#[test]
fn what_cannot_be_meant_is_refused_and_nothing_changes() {
    let fixture = SettingsFixture::new();
    fixture.set("# mine\n[tools.mcp_servers.there]\ncommand = \"x\"\n");
    let before = fixture.settings();
    for (args, code, words) in [
        (&["add", "there", "x"][..], 1, "already"),
        (&["add", "a b", "x"], 2, "is not a valid server name"),
        (&["add", "../x", "x"], 2, "is not a valid server name"),
        (&["add", &"x".repeat(65), "x"], 2, "is not a valid server name"),
        (&["add", "x"], 2, "required"),
        (&["add", "x", "-e", "A", "--", "x"], 2, "NAME=VALUE"),
        (&["add", "x", "-H", "A\nB: c", "--", "x"], 2, "NAME: VALUE"),
        (&["add", "x", "-H", "A: b", "--", "x"], 2, "--header"),
        (&["add", "x", "-e", "A=b", "https://x.org"], 2, "--env"),
        (&["add", "x", "-t", "http", "--", "npx"], 2, "URL"),
        (&["add", "x", "https://x.org", "more"], 2, "\"more\""),
        (&["add", "x", "https://x.org", "--nonsense"], 2, "--nonsense"),
        (&["add", "x", "https://"], 2, "URL"),
        (&["add", "x", "--network", "all,a.org", "x"], 2, "use none, all"),
        (&["add", "x", "--network", "http://a/b", "x"], 2, "a/b"),
        (&["add", "x", "--project", "--writes", "x"], 2, "haft mcp trust"),
        (&["add-json", "x", "[]"], 2, "object"),
        (&["add-json", "x", "{"], 2, "JSON"),
        (&["add-json", "x", "{}"], 2, "neither"),
        (&["remove", "missing"], 4, "no MCP server"),
        (&["remove", "there", "--project"], 4, "no server"),
    ] {
        let ran = fixture.haft(&[&["mcp"][..], args].concat());
        assert_eq!(ran.code, code, "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{args:?}: {}", ran.stderr);
        assert_eq!(fixture.settings(), before, "{args:?}");
        assert!(!fixture.cli.path(".mcp.json").exists(), "{args:?}");
    }
    assert_eq!(fixture.done(&["log"]).stdout, "", "nothing was called");
    fixture.set("[tools.mcp_servers]\nx = \n");
    let ran = fixture.haft(&["mcp", "add", "y", "x"]);
    assert_eq!((ran.code, fixture.settings().as_str()), (1, "[tools.mcp_servers]\nx = \n"), "{}", ran.stderr);
    assert!(ran.stderr.contains("line 2") && ran.stderr.contains("Fix it first"), "{}", ran.stderr);
}

#[test]
fn the_rest_of_the_settings_stays_and_undo_brings_the_old_bytes_back() {
    let fixture = SettingsFixture::new();
    let old = "# mine\r\ndialect = \"claude\" # and me\r\n\r\n[tools.mcp_servers.a]\r\ncommand = \"a\"\r\n# the end\r\n";
    fixture.set(old);
    fixture.done(&[
        "mcp",
        "add-json",
        "b",
        r#"{"command": "b", "args": ["x"], "env": {"K": "v"}, "cwd": null}"#,
    ]);
    let new = fixture.settings();
    let added = "\r\n[tools.mcp_servers.b]\r\ncommand = \"b\"\r\nargs = [\"x\"]\r\nenv = { K = \"v\" }\r\n";
    assert!(new.contains(added), "{new:?}");
    assert_eq!(new.replacen(added, "", 1), old);
    insta::assert_snapshot!(fixture.said(&["mcp", "remove", "a"]));
    assert!(
        fixture.settings().contains("# the end\r\n") && !fixture.settings().contains(".a]"),
        "{}",
        fixture.settings()
    );
    fixture.done(&["undo", "--yes"]);
    assert_eq!(fixture.settings(), new);
    fixture.done(&["mcp", "remove", "b"]);
    assert_eq!(fixture.settings(), old, "what was added goes without a trace");
    fixture.done(&["undo", "--yes"]);
    fixture.done(&["redo", "--yes"]);
    assert_eq!(fixture.settings(), old);
}

#[test]
fn a_secret_is_not_on_the_ledger_in_words() {
    let fixture = SettingsFixture::new();
    fixture.done(&["mcp", "add", "a", "-e", "TOKEN=s3cr3t", "--", "x"]);
    fixture.done(&["mcp", "add", "b", "https://x.org", "-H", "Authorization: s3cr3t"]);
    let log = fixture.done(&["log", "--json"]).stdout;
    assert!(log.contains("tools.mcp_servers.b") && !log.contains("s3cr3t"), "{log}");
}

#[test]
fn a_project_s_file_is_asked_about_and_keeps_its_layout() {
    let fixture = SettingsFixture::new();
    let old = "{\n\t\"mcpServers\": {\n\t\t\"b\": { \"command\": \"b\" }\n\t},\n\t\"other\": [1,  2]\n}";
    fixture.cli.write(".mcp.json", old);
    let add = ["mcp", "add", "a", "--project", "--", "npx", "server@1.0.0"];
    let said = fixture.said(&add);
    assert!(said.contains("exit 3") && fixture.cli.read(".mcp.json") == old, "{said}");
    insta::assert_snapshot!(said);
    for (answer, code) in [("n", 3), ("y", 0)] {
        let mut terminal = Terminal::run(fixture.command(&add));
        terminal.sees(".mcp.json? [y/N]");
        terminal.types(answer);
        let (ended, said) = terminal.ends();
        assert_eq!((ended, fixture.cli.read(".mcp.json") == old), (code, code != 0), "{said}");
    }
    let new = fixture.cli.read(".mcp.json");
    insta::assert_snapshot!(new);
    let said = fixture.said(&["mcp", "list"]);
    assert!(said.contains("a  untrusted"), "what a user adds to the project is the project's: {said}");
    fixture.done(&["mcp", "remove", "a", "--yes"]);
    assert_eq!(fixture.cli.read(".mcp.json"), old);
    fixture.done(&["undo", "--yes"]);
    fixture.done(&["undo", "--yes"]);
    assert_eq!(fixture.cli.read(".mcp.json"), old);

    std::fs::remove_file(fixture.cli.path(".mcp.json")).unwrap();
    let preview = fixture.done(&["mcp", "add", "a", "--project", "--dry-run", "x"]).stdout;
    assert!(preview.contains("+  \"mcpServers\": {") && !fixture.cli.path(".mcp.json").exists(), "{preview}");
    fixture.done(&["mcp", "add", "a", "--project", "--yes", "x"]);
    let file: Value = serde_json::from_str(&fixture.cli.read(".mcp.json")).unwrap();
    assert_eq!(file["mcpServers"]["a"]["command"], "x");
    fixture.done(&["undo", "--yes"]);
    assert!(!fixture.cli.path(".mcp.json").exists());
}

#[test]
fn a_project_s_file_that_leads_elsewhere_is_left_alone() {
    let fixture = SettingsFixture::new();
    let elsewhere = fixture.plant("precious.json", "{}");
    std::os::unix::fs::symlink(&elsewhere, fixture.cli.path(".mcp.json")).unwrap();
    let ran = fixture.haft(&["mcp", "add", "a", "--project", "--yes", "x"]);
    assert!(ran.code != 0 && ran.stderr.contains("leads out of the workspace"), "{}", ran.stderr);
    assert_eq!(std::fs::read_to_string(elsewhere).unwrap(), "{}");
}

#[test]
fn settings_that_are_a_link_are_changed_where_they_lie() {
    let fixture = SettingsFixture::new();
    let real = fixture.plant("dotfiles/haft.toml", "# mine\n");
    std::os::unix::fs::symlink(&real, fixture.cli.config()).unwrap();
    fixture.done(&["mcp", "add", "a", "x"]);
    assert!(std::fs::read_to_string(&real).unwrap().starts_with("# mine\n\n[tools.mcp_servers.a]\n"));
    fixture.done(&["config", "set", "dialect", "loom"]);
    assert!(fixture.cli.config().is_symlink());
    for _ in 0..2 {
        fixture.done(&["undo", "--yes"]);
    }
    assert_eq!(std::fs::read_to_string(&real).unwrap(), "# mine\n");
    let folder = real.parent().unwrap().to_str().unwrap();
    let ran = fixture.haft(&["call", "Read", &serde_json::json!({"file_path": real}).to_string()]);
    assert!(ran.code != 0 && ran.stdout.contains("protected"), "{}", ran.stdout);
    let ran = fixture.haft(&["tools", "--workspace", folder]);
    assert_eq!(ran.code, 0);
    let ran = fixture.haft(&["call", "Glob", "{\"pattern\": \"*\"}", "--workspace", folder]);
    assert!(ran.code != 0 && ran.stderr.contains("which calls may change"), "{}", ran.stderr);
}
