//! Claude Code's settings files and hooks, as Haft applies them.

use serde_json::{Value, json};

use crate::fixture::cli::{CliFixture, RunOutput};

/// A workspace in which the user has these settings.
fn with_user_settings(settings: &Value) -> CliFixture {
    let cli = CliFixture::new();
    std::fs::create_dir_all(cli.claude_config()).unwrap();
    std::fs::write(cli.claude_config().join("settings.json"), settings.to_string()).unwrap();
    cli
}

fn project_settings(cli: &CliFixture, name: &str, text: &str) {
    std::fs::create_dir_all(cli.path(".claude")).unwrap();
    std::fs::write(cli.path(&format!(".claude/{name}")), text).unwrap();
}

fn bash(cli: &CliFixture, command: &str) -> RunOutput {
    cli.call("Bash", &json!({"command": command}))
}

/// Settings with one hook.
fn hook(event: &str, matcher: &str, command: &str) -> Value {
    let handler = json!({"type": "command", "command": command});
    json!({"hooks": {event: [{"matcher": matcher, "hooks": [handler]}]}})
}

#[test]
fn rules_of_all_files_hold_and_cite_file_and_line() {
    let cli = with_user_settings(&json!({"permissions": {"deny": ["Bash(git push:*)"]}}));
    project_settings(&cli, "settings.json", "{\"permissions\": {\n\"deny\": [\"Bash(rm:*)\"]}}");
    let pushed = bash(&cli, "git push");
    assert_eq!(pushed.code, 3, "{}", pushed.stdout);
    assert!(pushed.stdout.contains("settings.json:1"), "{}", pushed.stdout);
    let removed = bash(&cli, "rm a");
    assert!(removed.stdout.contains(".claude/settings.json:2"), "{}", removed.stdout);
    let explained = cli.haft(&["rules", "explain", "Bash(git push origin)", "--json"]);
    let explained: Value = serde_json::from_str(&explained.stdout).unwrap();
    assert_eq!((&explained["verdict"], &explained["would_allow"]), (&json!("deny"), &Value::Null));
    // Without the sources their rules do not hold.
    let none = cli.haft(&["rules", "list", "--setting-sources", "project"]);
    assert!(!none.stdout.contains("git push") && none.stdout.contains("Bash(rm:*)"), "{}", none.stdout);
    let flag = json!({"permissions": {"deny": ["Bash(ls:*)"]}}).to_string();
    let listed = cli.haft(&["rules", "list", "--settings", &flag]);
    assert!(listed.stdout.contains("Bash(ls:*)  # --settings:1"), "{}", listed.stdout);
}

#[test]
fn broken_settings_that_may_deny_stop_everything() {
    let cli = with_user_settings(&json!({}));
    project_settings(&cli, "settings.local.json", "{\"permissions\": {\"deny\": [");
    let refused = bash(&cli, "touch made");
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("settings.local.json:1:"), "{}", refused.stderr);
    assert!(!cli.path("made").exists());
    project_settings(&cli, "settings.local.json", "{\"model\": ");
    let warned = bash(&cli, "true");
    assert!(warned.code == 0 && warned.stderr.contains("the file is not used"), "{}", warned.stderr);
    for lost in [json!({"permissions": {"deny": "Bash"}}), json!({"hooks": {"PreToolUse": "x"}})] {
        project_settings(&cli, "settings.local.json", &lost.to_string());
        assert_eq!(bash(&cli, "true").code, 2, "{lost}");
    }
}

#[test]
fn what_a_project_allows_and_runs_needs_trust_that_is_bound_to_its_content() {
    let cli = with_user_settings(&json!({}));
    let settings = |command: &str| {
        let mut settings = hook("PreToolUse", "*", command);
        settings["permissions"] = json!({"allow": ["WebFetch(domain:example.com)"], "ask": ["Bash(make:*)"]});
        settings["env"] = json!({"FROM_PROJECT": "yes"});
        project_settings(&cli, "settings.json", &settings.to_string());
    };
    let verdict = |call: &str| {
        let explained = cli.haft(&["rules", "explain", call, "--json"]);
        serde_json::from_str::<Value>(&explained.stdout).unwrap()["verdict"].as_str().unwrap().to_owned()
    };
    settings("touch ran");
    let run = bash(&cli, "echo $FROM_PROJECT");
    assert!(run.stdout == "\n" && run.stderr.contains("haft trust"), "{}{}", run.stdout, run.stderr);
    assert!(!cli.path("ran").exists());
    assert_eq!(
        (verdict("WebFetch(https://example.com)").as_str(), verdict("Bash(make)").as_str()),
        ("ask", "ask")
    );

    assert_eq!(cli.haft(&["trust"]).code, 3, "without a terminal nothing is trusted");
    let trusted = cli.haft(&["trust", "--yes"]);
    for line in ["allows WebFetch(domain:example.com)", "touch ran", "FROM_PROJECT=yes"] {
        assert!(trusted.stdout.contains(line), "{}", trusted.stdout);
    }
    assert_eq!(verdict("WebFetch(https://example.com)"), "allow");
    let run = bash(&cli, "echo $FROM_PROJECT");
    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("yes\n", ""));
    assert!(cli.path("ran").exists());

    settings("touch other");
    assert!(bash(&cli, "true").stderr.contains("haft trust"));
    assert!(!cli.path("other").exists());
    settings("touch ran");
    assert!(bash(&cli, "true").stderr.is_empty(), "the trusted content is trusted");
    cli.haft(&["trust", "--revoke"]);
    assert!(bash(&cli, "true").stderr.contains("haft trust"));
}

#[test]
fn a_hook_before_a_call_can_refuse_it_and_a_failing_one_does() {
    for (command, said) in [
        ("echo 'not today' >&2; exit 2", "not today"),
        ("exit 1", "exited with code 1"),
        ("no-such-program-of-the-test", "exited with code 127"),
        ("echo '{\"hookSpecificOutput\": '", "JSON"),
        ("kill -9 $$", "signal 9"),
        (
            "echo '{\"hookSpecificOutput\": {\"hookEventName\": \"PreToolUse\", \"permissionDecision\": \"deny\", \
             \"permissionDecisionReason\": \"by decision\"}}'",
            "by decision",
        ),
        ("head -c 3000000 /dev/zero", "more than 1 MiB"),
    ] {
        let cli = with_user_settings(&hook("PreToolUse", "Bash", command));
        let denied = bash(&cli, "touch made");
        assert_eq!(denied.code, 3, "{command}: {}", denied.stdout);
        assert!(denied.stdout.contains(said), "{command}: {}", denied.stdout);
        assert!(!cli.path("made").exists(), "{command}");
        // Another tool is not its subject.
        let written = cli.call("Write", &json!({"file_path": cli.path("a.txt"), "content": "x"}));
        assert_eq!(written.code, 0, "{}", written.stdout);
    }
    let mut settings = hook("PreToolUse", "Bash", "exit 1");
    settings["hooks"]["PreToolUse"][0]["hooks"][0]["onFailure"] = json!("continue");
    let cli = with_user_settings(&settings);
    assert_eq!(bash(&cli, "true").code, 0, "the user said so");
    let mut settings = hook("PreToolUse", "Bash", "sleep 1000");
    settings["hooks"]["PreToolUse"][0]["hooks"][0]["timeout"] = json!(0.2);
    let denied = bash(&with_user_settings(&settings), "true");
    assert!(denied.code == 3 && denied.stdout.contains("took too long"), "{}", denied.stdout);
}

#[test]
fn arguments_from_a_hook_are_decided_like_the_calls_own() {
    let answer = |command: &str| {
        let output = json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": {"command": command}}});
        format!("cat > seen.json; echo '{output}'")
    };
    let mut settings = hook("PreToolUse", "Bash", &answer("echo replaced"));
    settings["permissions"] = json!({"deny": ["Bash(touch:*)"]});
    let cli = with_user_settings(&settings);
    assert_eq!(bash(&cli, "echo original").stdout, "replaced\n");
    let seen: Value = serde_json::from_str(&cli.read("seen.json")).unwrap();
    assert_eq!((&seen["hook_event_name"], &seen["tool_name"]), (&json!("PreToolUse"), &json!("Bash")));
    assert_eq!(seen["tool_input"]["command"], "echo original");
    let shown = cli.haft(&["show", "2"]);
    assert!(shown.stdout.contains("echo replaced"), "what ran is on the receipt: {}", shown.stdout);
    let mut settings = hook("PreToolUse", "Bash", &answer("touch made"));
    settings["permissions"] = json!({"deny": ["Bash(touch:*)"]});
    let cli = with_user_settings(&settings);
    assert_eq!(bash(&cli, "echo original").code, 3, "a hook passes no rule");
    assert!(!cli.path("made").exists());
}

#[test]
fn a_permission_from_a_hook_answers_the_mode_and_no_rule() {
    let output =
        json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"}});
    let mut settings = hook("PreToolUse", "Bash", &format!("echo '{output}'"));
    settings["permissions"] = json!({"ask": ["Bash(make:*)"], "deny": ["Bash(rm:*)"]});
    let cli = with_user_settings(&settings);
    let call = |command: &str| {
        let arguments = json!({"command": command}).to_string();
        // The command line names the tool, which allows it; --permission-mode plan does not.
        cli.haft(&["call", "Bash", &arguments, "--permission-mode", "default"])
    };
    assert_eq!(call("echo x").code, 0);
    assert_eq!(call("make").code, 3, "an ask rule asks, and there is no terminal");
    assert_eq!(call("rm x").code, 3);
    let asks = json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "ask",
        "permissionDecisionReason": "is this wise?"}});
    let cli = with_user_settings(&hook("PreToolUse", "Bash", &format!("echo '{asks}'")));
    let asked = bash(&cli, "true");
    assert!(asked.code == 3 && asked.stdout.contains("is this wise?"), "{}", asked.stdout);
}

#[test]
fn a_hook_after_a_call_adds_to_its_result_and_its_changes_can_be_undone() {
    let context =
        json!({"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "run the tests"}});
    let command = format!("cat > after.json; echo formatted > a.txt; echo '{context}'");
    let cli = with_user_settings(&hook("PostToolUse", "Write|Edit", &command));
    let written = cli.call("Write", &json!({"file_path": cli.path("a.txt"), "content": "x"}));
    assert!(written.code == 0 && written.stdout.contains("run the tests"), "{}", written.stdout);
    assert_eq!(cli.read("a.txt"), "formatted\n");
    let seen: Value = serde_json::from_str(&cli.read("after.json")).unwrap();
    assert_eq!(seen["hook_event_name"], "PostToolUse");
    assert!(seen["tool_response"].is_object() && seen["duration_ms"].is_number(), "{seen}");
    let undone = cli.haft(&["undo", "--yes", "-n", "2"]);
    assert_eq!(undone.code, 0, "{}", undone.stderr);
    assert!(!cli.path("a.txt").exists() && !cli.path("after.json").exists());
    // It runs in the sandbox.
    let outside = tempfile::tempdir_in("/var/tmp").unwrap();
    let path = outside.path().join("escaped");
    let cli = with_user_settings(&hook("PostToolUse", "*", &format!("touch {}", path.display())));
    assert_eq!(bash(&cli, "true").code, 0);
    assert!(!path.exists());
}

#[test]
fn hooks_hold_for_the_tools_of_every_dialect() {
    let cli = with_user_settings(&hook("PreToolUse", "Bash", "echo 'no commands' >&2; exit 2"));
    for (dialect, tool, arguments) in [
        ("loom", "bash", json!({"command": "true"})),
        ("omega", "bash", json!({"command": "true"})),
        ("clawft", "exec_shell", json!({"command": "true"})),
    ] {
        let denied = cli.haft(&["call", "--dialect", dialect, tool, &arguments.to_string()]);
        assert!(denied.code == 3 && denied.stdout.contains("no commands"), "{dialect}: {}", denied.stdout);
    }
}

#[test]
fn every_value_is_shown_with_file_and_line_and_what_has_no_effect_says_so() {
    let cli =
        with_user_settings(&json!({"permissions": {"deny": ["Bash(rm:*)"]}, "env": {"TOKEN": "s3cret"}}));
    project_settings(
        &cli,
        "settings.json",
        "{\n\"model\": \"opus\",\n\"sandbox\": {\"filesystem\": {\"denyRead\": [\"./x\"]}},\n\"spinnerTipsEnabled\": false,\n\"permisions\": {}\n}",
    );
    let shown = cli.haft(&["config", "show", "--origin"]);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    for line in [
        "permissions.deny = \"Bash(rm:*)\"  # ",
        "settings.json:2 (no effect here)",
        "sandbox.filesystem.denyRead = \"./x\"  # ",
        ".claude/settings.json:3\n",
        "spinnerTipsEnabled = -  # ",
        "settings.json:5 (there is no such key; permissions?)",
    ] {
        assert!(shown.stdout.contains(line), "{line}: {}", shown.stdout);
    }
    assert!(!shown.stdout.contains("s3cret"), "{}", shown.stdout);
    let doctor = cli.haft(&["doctor"]);
    assert!(doctor.stdout.contains("settings  ") && doctor.stdout.contains("rules"), "{}", doctor.stdout);
    project_settings(&cli, "settings.local.json", "{\"permissions\": {\"deny\": [");
    let doctor = cli.haft(&["doctor"]);
    assert!(doctor.code == 1 && doctor.stdout.contains("settings.local.json:1:"), "{}", doctor.stdout);
}

#[test]
fn servers_that_the_settings_deny_are_not_used() {
    let server = |name: &str| json!({name: {"command": "no-such-server", "args": [name]}});
    let cli = with_user_settings(&json!({
        "deniedMcpServers": [{"serverName": "one"}], "disabledMcpjsonServers": ["two"],
    }));
    cli.write(
        ".mcp.json",
        &json!({"mcpServers": {
            "one": server("one")["one"], "two": server("two")["two"], "three": server("three")["three"],
        }})
        .to_string(),
    );
    let called = cli.call("Read", &json!({"file_path": cli.path(".mcp.json")}));
    for (name, is_refused) in [("one", true), ("two", true), ("three", false)] {
        let said = called.stderr.contains(&format!("the server {name} is not used"));
        assert_eq!(said, is_refused, "{name}: {}", called.stderr);
    }
    let cli =
        with_user_settings(&json!({"allowedMcpServers": [{"serverCommand": ["no-such-server", "one"]}]}));
    cli.write(
        ".mcp.json",
        &json!({"mcpServers": {
            "one": server("one")["one"], "two": server("two")["two"],
        }})
        .to_string(),
    );
    let called = cli.call("Read", &json!({"file_path": cli.path(".mcp.json")}));
    assert!(called.stderr.contains("the server two is not used: allowedMcpServers"), "{}", called.stderr);
    assert!(!called.stderr.contains("the server one is not used"), "{}", called.stderr);
}

#[test]
fn a_hook_opens_no_path_guard_or_secret_and_its_script_is_changed_only_after_a_question() {
    let output =
        json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"}});
    let cli = CliFixture::new();
    std::fs::create_dir_all(cli.path("scripts")).unwrap();
    cli.write("scripts/guard.sh", &format!("echo '{output}'\n"));
    cli.write(".env", "SECRET=1");
    let settings = hook("PreToolUse", "*", "sh \"$CLAUDE_PROJECT_DIR\"/scripts/guard.sh");
    project_settings(&cli, "settings.json", &settings.to_string());
    assert_eq!(cli.haft(&["trust", "--yes"]).code, 0);
    let outside = tempfile::tempdir_in(crate::fixture::sandbox::base()).unwrap();
    for path in
        [outside.path().join("a.txt"), cli.path(".git/hooks/pre-commit"), cli.path("scripts/guard.sh")]
    {
        let written = cli.call("Write", &json!({"file_path": path, "content": "echo"}));
        assert_eq!(written.code, 3, "{}: {}", path.display(), written.stdout);
    }
    assert_eq!(cli.call("Read", &json!({"file_path": cli.path(".env")})).code, 3);
    let done = bash(
        &cli,
        "echo exit > scripts/guard.sh; cp scripts/guard.sh x; mv x scripts/guard.sh; mv scripts s",
    );
    assert!(done.stdout.contains("rule denies"), "{}", done.stdout);
    assert!(cli.read("scripts/guard.sh").contains("permissionDecision"));
}

#[test]
fn a_trusted_project_does_not_drop_rules_of_the_user() {
    let cli = with_user_settings(&json!({"permissions": {"deny": ["Bash"]}}));
    project_settings(
        &cli,
        "settings.json",
        &json!({"permissions": {"allow": ["mcp__haft__Read"], "deny": ["Grep"]}}).to_string(),
    );
    assert_eq!(cli.haft(&["trust", "--yes"]).code, 0);
    assert_eq!(bash(&cli, "true").code, 3);
    let rules = cli.haft(&["rules", "list"]).stdout;
    assert!(rules.contains("Bash") && !rules.contains("Grep"), "{rules}");
}

#[test]
fn trust_tells_apart_what_runs_in_a_shell_and_what_does_not() {
    let cli = CliFixture::new();
    let handler = |handler: Value| json!({"hooks": {"PreToolUse": [{"matcher": "*", "hooks": [handler]}]}});
    let plain = handler(json!({"type": "command", "command": "echo", "args": ["$(touch hooked)"]}));
    project_settings(&cli, "settings.json", &plain.to_string());
    cli.haft(&["trust", "--yes"]);
    assert!(!bash(&cli, "true").stderr.contains("haft trust"));
    for other in ["echo \"$(touch hooked)\"", "echo $(touch hooked)"] {
        let shell = handler(json!({"type": "command", "command": other}));
        project_settings(&cli, "settings.json", &shell.to_string());
        assert!(bash(&cli, "true").stderr.contains("haft trust"), "{other}");
    }
    assert!(!cli.path("hooked").exists());
    for option in
        [json!({"if": "Bash(npm:*)"}), json!({"async": true}), json!({"once": true}), json!({"timeout": 1})]
    {
        let mut hook = json!({"type": "command", "command": "true"});
        project_settings(&cli, "settings.json", &handler(hook.clone()).to_string());
        cli.haft(&["trust", "--yes"]);
        hook.as_object_mut().unwrap().extend(option.as_object().unwrap().clone());
        project_settings(&cli, "settings.json", &handler(hook).to_string());
        assert!(bash(&cli, "true").stderr.contains("haft trust"), "{option}");
    }
    let allow = |rules: &[&str]| json!({"permissions": {"allow": rules}}).to_string();
    project_settings(&cli, "settings.json", &allow(&["Bash(touch:*)\0allows Bash(make:*)"]));
    cli.haft(&["trust", "--yes"]);
    project_settings(&cli, "settings.json", &allow(&["Bash(touch:*)", "Bash(make:*)"]));
    assert!(bash(&cli, "true").stderr.contains("haft trust"));
}
