//! What contradicts the obvious reading of the protocol: each of these would break programs that are built on the SDKs.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::stream::{StreamHost, command, order};
use super::turn_model::{TurnModel, call, hangs, text};
use crate::fixture::cli::CliFixture;
use crate::fixture::haft_program;

const ASKS_HOST: [&str; 2] = ["--permission-prompt-tool", "stdio"];
const ASKS_NOBODY: [&str; 2] = ["--permission-mode", "bypassPermissions"];

fn bash(id: &str, command: &str) -> Value {
    call(id, "Bash", &json!({ "command": command }))
}

/// Answers what an MCP server with one tool is asked, until the result.
fn serve_until_result(host: &mut StreamHost) -> Vec<Value> {
    let mut seen = Vec::new();
    loop {
        let message = host.next().unwrap();
        if message["request"]["subtype"] == "mcp_message" {
            let asked = &message["request"]["message"];
            let result = match asked["method"].as_str() {
                Some("initialize") => json!({
                    "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                    "serverInfo": {"name": "calc", "version": "1"},
                }),
                Some("tools/list") => json!({"tools": [
                    {"name": "add", "description": "adds", "inputSchema": {"type": "object"}},
                ]}),
                _ => json!({}),
            };
            let mut response = json!({"jsonrpc": "2.0", "result": result});
            if let Some(id) = asked.get("id") {
                response["id"] = id.clone();
            }
            let id = message["request_id"].as_str().unwrap().to_owned();
            host.reply(&id, &json!({ "mcp_response": response }));
        }
        let is_last = message["type"] == "result";
        seen.push(message);
        if is_last {
            return seen;
        }
    }
}

#[test]
fn flags_of_python_and_initialize_of_typescript_mean_the_same() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let servers = json!({"mcpServers": {"calc": {"type": "sdk", "name": "calc"}}}).to_string();
    let asked = |flags: &[&str], initialize: &Value| {
        let cli = CliFixture::new();
        let model = TurnModel::start(vec![vec![text("{\"n\": 1}")]]);
        let mut host = StreamHost::start(&cli, &model, flags);
        let id = host.request(initialize);
        host.say("Go");
        let seen = serve_until_result(&mut host);
        assert!(seen.iter().any(|message| message["response"]["request_id"] == id.as_str()));
        assert_eq!(seen.last().unwrap()["structured_output"], json!({"n": 1}));
        let mut request = model.requests().remove(0);
        request.as_object_mut().unwrap().remove("metadata");
        request
    };
    let python = asked(
        &[
            "--system-prompt",
            "",
            "--append-system-prompt",
            "Be brief.",
            "--json-schema",
            &schema.to_string(),
            "--mcp-config",
            &servers,
        ],
        &json!({"subtype": "initialize", "hooks": null}),
    );
    let typescript = asked(
        &[],
        &json!({
            "subtype": "initialize", "systemPrompt": [""], "appendSystemPrompt": "Be brief.",
            "jsonSchema": schema, "sdkMcpServers": ["calc"],
        }),
    );
    assert_eq!(python["system"], typescript["system"]);
    assert!(python["system"].to_string().contains("Be brief."), "{}", python["system"]);
    assert_eq!(python["tools"], typescript["tools"]);
    assert!(python["tools"].to_string().contains("mcp__calc__add"));
    assert_eq!(python["output_config"], typescript["output_config"]);
}

#[test]
fn live_output_is_a_system_message_for_python_and_tool_progress_for_others() {
    for (entry_point, own, others) in
        [("sdk-py", "haft_tool_output", "tool_progress"), ("sdk-ts", "tool_progress", "haft_tool_output")]
    {
        let cli = CliFixture::new();
        let model = TurnModel::start(vec![vec![bash("t1", "echo live")], vec![text("End.")]]);
        let mut command = command(&cli, &model, &ASKS_NOBODY);
        command.env("CLAUDE_CODE_ENTRYPOINT", entry_point);
        let mut host = StreamHost::spawn(command);
        host.say("Go");
        let seen = host.until_result();
        let of = |name: &str| -> Vec<&Value> {
            seen.iter().filter(|message| message["type"] == name || message["subtype"] == name).collect()
        };
        let output: String = of(own).iter().filter_map(|message| message["output"].as_str()).collect();
        assert_eq!((output.as_str(), of(others).len()), ("live\n", 0), "{entry_point}");
        let first = of(own)[0];
        assert_eq!((&first["tool_use_id"], &first["tool_name"]), (&json!("t1"), &json!("Bash")));
    }
}

#[test]
fn rewind_is_addressed_by_the_users_uuid_and_takes_back_what_commands_changed() {
    let cli = CliFixture::new();
    cli.write("kept.txt", "one\ntwo\n");
    let path = |name: &str| cli.path(name).to_str().unwrap().to_owned();
    let write = json!({"file_path": path("written.txt"), "content": "new\n"});
    let edit = json!({"file_path": path("kept.txt"), "old_string": "two", "new_string": "three"});
    let model = TurnModel::start(vec![
        vec![text("Noted.")],
        vec![call("t0", "Read", &json!({"file_path": path("kept.txt")}))],
        vec![call("t1", "Write", &write)],
        vec![call("t2", "Edit", &edit)],
        vec![bash("t3", "mkdir -p d && echo deep > d/deep.txt && chmod 700 d/deep.txt")],
        vec![bash("t4", "mv kept.txt moved.txt")],
        vec![text("Done.")],
    ]);
    let flags = [&ASKS_NOBODY[..], &["--replay-user-messages"]].concat();
    let mut host = StreamHost::start(&cli, &model, &flags);
    let uuid = "0b6e3f0e-58a5-4f1c-8b3a-1f2c3d4e5f60";
    host.say("Note");
    let replayed = host.until_result().into_iter().find(|message| message["isReplay"] == true).unwrap();
    assert_eq!(replayed["message"]["content"], "Note");
    assert!(replayed["uuid"].as_str().is_some_and(|uuid| uuid.len() == 36), "{replayed}");
    host.say_as(uuid, "Change");
    assert!(host.until_result().iter().any(|message| message["isReplay"] == true && message["uuid"] == uuid));
    let rewind = |dry_run| json!({"subtype": "rewind_files", "user_message_id": uuid, "dry_run": dry_run});
    let dry = host.ask(&rewind(true));
    assert!(cli.path("moved.txt").exists(), "a dry run changes nothing");
    assert_eq!(dry["canRewind"], true, "{dry}");
    let listed = dry["filesChanged"].to_string();
    for name in ["written.txt", "kept.txt", "moved.txt", "d/deep.txt"] {
        assert!(listed.contains(name), "{name} in {listed}");
    }
    assert_eq!(host.ask(&rewind(false)), dry);
    assert_eq!(cli.read("kept.txt"), "one\ntwo\n");
    let left: Vec<String> = std::fs::read_dir(cli.root())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(left, ["kept.txt"]);
    let unknown =
        json!({"subtype": "rewind_files", "user_message_id": "0b6e3f0e-0000-0000-0000-000000000000"});
    assert_eq!(host.ask(&unknown)["canRewind"], false);
}

#[test]
fn idle_comes_after_the_result_and_no_state_where_none_is_asked_for() {
    let cli = CliFixture::new();
    let model = TurnModel::start(vec![vec![text("Hi.")]]);
    let mut host = StreamHost::reading_state(&cli, &model, &[]);
    host.say("Go");
    let seen = host.until(|message| message["state"] == "idle");
    let expected = [
        "system/session_state_changed/running",
        "system/init",
        "assistant",
        "result",
        "system/session_state_changed/idle",
    ];
    assert_eq!(order(&seen), expected);
    assert!(seen.iter().filter(|it| it["state"].is_string()).all(|it| it["sdk_host_only"] == true));
    let mut host = StreamHost::start(&cli, &model, &[]);
    host.say("Go");
    host.until_result();
    let (rest, code, errors) = host.end();
    assert_eq!((rest, code), (vec![], Some(0)), "{errors}");
}

#[test]
fn session_is_not_idle_while_an_agent_runs_in_the_background() {
    let cli = CliFixture::new();
    let agent = json!({
        "description": "look", "prompt": "Look.", "subagent_type": "general-purpose", "run_in_background": true,
    });
    let turns = [
        json!({"calls": [{"name": "Agent", "arguments": agent}]}),
        json!({"text": "It runs."}),
        json!({"agent": "general-purpose",
               "calls": [{"name": "Bash", "arguments": {"command": "touch made.txt"}}]}),
        json!({"agent": "general-purpose", "text": "Looked."}),
    ];
    let script = cli.config().with_file_name("script.jsonl");
    std::fs::write(&script, turns.map(|turn| format!("{turn}\n")).concat()).unwrap();
    let model = TurnModel::start(vec![vec![]]);
    let flags = ["--provider", "script", "--script", script.to_str().unwrap(), "--allowedTools", "Agent"];
    let mut host = StreamHost::reading_state(&cli, &model, &[&flags[..], &ASKS_HOST].concat());
    host.say("Go");
    // Two things happen at the same time: the turn ends, and the agent asks.
    let (mut question, mut has_result, mut seen) = (None, false, Vec::new());
    while question.is_none() || !has_result {
        let message = host.next().unwrap();
        has_result |= message["type"] == "result";
        if message["request"]["subtype"] == "can_use_tool" {
            question = Some(message["request_id"].as_str().unwrap().to_owned());
        }
        seen.push(message);
    }
    assert!(seen.iter().all(|message| message["state"] != "idle"), "{:?}", order(&seen));
    host.reply(&question.unwrap(), &json!({"behavior": "allow"}));
    host.until(|message| message["state"] == "idle");
}

#[test]
fn interrupt_is_answered_before_the_result_of_the_turn() {
    let cli = CliFixture::new();
    let model = TurnModel::start(vec![vec![text("So far"), hangs()], vec![text("Later.")]]);
    let mut host = StreamHost::start(&cli, &model, &["--include-partial-messages"]);
    host.say("Go");
    host.until(|message| message["event"]["type"] == "content_block_delta");
    let later = "3f2504e0-4f89-41d3-9a0c-0305e82c3301";
    host.say_as(later, "Later");
    let id = host.request(&json!({"subtype": "interrupt"}));
    let seen = host.until_result();
    let at = |is_it: &dyn Fn(&Value) -> bool| seen.iter().position(is_it).unwrap();
    let answer = at(&|message| message["response"]["request_id"] == id.as_str());
    assert!(answer < at(&|message| message["type"] == "result"), "{:?}", order(&seen));
    assert_eq!(seen[answer]["response"]["response"], json!({"still_queued": [later]}));
    assert_eq!(seen.last().unwrap()["subtype"], "error_during_execution");
    assert_eq!(host.until_result().last().unwrap()["result"], "Later.");
}

#[test]
fn interrupt_can_drop_the_messages_that_wait() {
    let cli = CliFixture::new();
    let model = TurnModel::start(vec![vec![text("So far"), hangs()], vec![text("Later.")]]);
    let mut host = StreamHost::start(&cli, &model, &["--include-partial-messages"]);
    host.say("Go");
    host.until(|message| message["event"]["type"] == "content_block_delta");
    let later = "3f2504e0-4f89-41d3-9a0c-0305e82c3301";
    host.say_as(later, "Later");
    let answer = host.ask(&json!({"subtype": "interrupt", "cancel_queued": true}));
    assert_eq!(answer, json!({"still_queued": [], "cancelled": [later]}));
    host.until_result();
    let (rest, code, errors) = host.end();
    assert_eq!((rest, code), (vec![], Some(1)), "{errors}");
    assert_eq!(model.requests().len(), 1);
}

#[test]
fn initialize_says_that_hooks_are_applied_and_that_failing_ones_block() {
    let cli = CliFixture::new();
    let model = TurnModel::start(vec![vec![bash("t1", "echo x > made.txt")], vec![text("End.")]]);
    let mut host = StreamHost::start(&cli, &model, &ASKS_NOBODY);
    let hooks = json!({"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["h0"], "onFailure": "block"}]});
    let answer = host.initialize(&json!({ "hooks": hooks }));
    assert_eq!(
        (&answer["hook_on_failure_supported"], &answer["hooks_applied"]),
        (&json!(true), &json!(true))
    );
    host.say("Go");
    let (id, request) = host.question("hook_callback");
    assert_eq!((&request["callback_id"], &request["tool_use_id"]), (&json!("h0"), &json!("t1")));
    assert_eq!(request["input"]["hook_event_name"], "PreToolUse");
    let error = json!({"subtype": "error", "request_id": id, "error": "the guard is broken"});
    host.send(&json!({"type": "control_response", "response": error}));
    let result = host.until_result().pop().unwrap();
    assert_eq!(result["permission_denials"][0]["tool_use_id"], "t1", "{result}");
    assert!(!cli.path("made.txt").exists());
}

#[test]
fn sandbox_in_the_settings_flag_is_never_read_as_wider_than_it_is() {
    let cli = CliFixture::new();
    cli.write("locked.txt", "as it was");
    let write = json!({"file_path": cli.path("locked.txt"), "content": "changed"});
    let escapes = json!({"command": "echo out > out.txt", "dangerouslyDisableSandbox": true});
    let model = TurnModel::start(vec![
        vec![call("t0", "Read", &json!({"file_path": cli.path("locked.txt")}))],
        vec![call("t1", "Write", &write)],
        vec![bash("t2", "echo changed > locked.txt")],
        vec![call("t3", "Bash", &escapes)],
        vec![bash("t4", "echo \"<$SECRET_TOKEN>\"")],
        vec![text("End.")],
    ]);
    let settings = json!({"sandbox": {
        "enabled": true, "failIfUnavailable": true, "allowUnsandboxedCommands": false,
        "filesystem": {"denyWrite": ["./locked.txt"]},
        "credentials": {"envVars": [{"name": "SECRET_TOKEN", "mode": "deny"}]},
    }});
    let flags = ["--settings", &settings.to_string()];
    let mut command = command(&cli, &model, &[&flags[..], &ASKS_NOBODY].concat());
    command.env("SECRET_TOKEN", "s3cret");
    let mut host = StreamHost::spawn(command);
    host.say("Go");
    let seen = host.until_result();
    let results: Vec<&Value> = seen
        .iter()
        .filter(|message| message["type"] == "user")
        .map(|message| &message["message"]["content"][0])
        .collect();
    assert_eq!(cli.read("locked.txt"), "as it was", "{results:#?}");
    assert_eq!(results[1]["is_error"], true, "{results:#?}");
    assert_eq!(results[3]["is_error"], true, "{results:#?}");
    assert!(!cli.path("out.txt").exists());
    assert_eq!(results[4]["content"], "<>\n");
}

#[test]
fn mode_auto_is_haft_s_own_and_said_so_once() {
    let cli = CliFixture::new();
    let model = TurnModel::start(vec![vec![text("Hi.")]]);
    for (mode, shown) in [
        ("default", "default"),
        ("acceptEdits", "acceptEdits"),
        ("bypassPermissions", "bypassPermissions"),
        ("plan", "plan"),
        ("dontAsk", "dontAsk"),
        ("auto", "auto"),
    ] {
        let mut host = StreamHost::start(&cli, &model, &["--permission-mode", mode]);
        host.say("Go");
        assert_eq!(host.until_result()[0]["permissionMode"], shown);
        let (_, _, errors) = host.end();
        let said = errors.matches("scoped").count();
        assert_eq!(said, usize::from(mode == "auto"), "{mode}: {errors}");
    }
}

#[test]
fn version_is_in_init_and_in_the_answer_of_a_program_called_claude() {
    let cli = CliFixture::new();
    let model = TurnModel::start(vec![vec![text("Hi.")]]);
    let mut host = StreamHost::start(&cli, &model, &[]);
    host.say("Go");
    assert_eq!(host.until_result()[0]["claude_code_version"], "2.1.325");
    let claude = cli.path("claude");
    std::os::unix::fs::symlink(haft_program(), &claude).unwrap();
    for flag in ["-v", "--version"] {
        let output = Command::new(&claude).arg(flag).stdin(Stdio::null()).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "2.1.325 (Claude Code)\n");
    }
    assert!(cli.haft(&["--version"]).stdout.starts_with("haft "));
}
