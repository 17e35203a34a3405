//! Both SDKs from their registries drive the program; what their programs print must be the same.

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use super::turn_model::{TurnModel, call, hangs, text};
use crate::fixture::cli::CliFixture;
use crate::fixture::haft_program;
use crate::fixture::peers::{agent, node, ours};

/// The Python that has the SDK, and the packages of Node.
const PYTHON: &str = "HAFT_AGENT_SDK_PYTHON";
const MODULES: &str = "HAFT_AGENT_SDK_NODE";

/// The programs of both SDKs, which take the name of a scenario.
fn programs() -> [(&'static str, Command); 2] {
    let mut python = Command::new(agent(PYTHON));
    python.arg(ours("tests/it/agent_sdk/programs/drive.py"));
    let modules: PathBuf = agent(MODULES);
    let mut typescript = Command::new(node());
    typescript.arg(ours("tests/it/agent_sdk/programs/drive.mjs"));
    typescript.env("HAFT_AGENT_SDK_MODULE", modules.join("@anthropic-ai/claude-agent-sdk/sdk.mjs"));
    typescript.env("HAFT_AGENT_SDK_ZOD", modules.join("zod/index.js"));
    [("Python", python), ("TypeScript", typescript)]
}

/// Runs a scenario with each SDK against a model that answers with the blocks that `turns` makes for the workspace.
#[track_caller]
fn both(scenario: &str, turns: impl Fn(&CliFixture) -> Vec<Vec<Value>>, expected: &Value) {
    for (name, mut program) in programs() {
        let cli = CliFixture::new();
        let model = TurnModel::start(turns(&cli));
        let own = cli.command(&[]);
        for (variable, value) in own.get_envs() {
            program.env(variable, value.unwrap());
        }
        program.arg(scenario).current_dir(cli.root()).env("HAFT_UNDER_TEST", haft_program());
        program.env("ANTHROPIC_BASE_URL", model.url()).env("ANTHROPIC_API_KEY", "test");
        let output = program.output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        let facts: Value =
            serde_json::from_str(&printed).unwrap_or_else(|_| panic!("{name}: {printed}\n{errors}"));
        assert_eq!(facts, *expected, "{name}: {errors}");
    }
}

fn path(cli: &CliFixture, name: &str) -> String {
    cli.path(name).to_str().unwrap().to_owned()
}

#[test]
fn one_shot_query_gets_its_answer() {
    let expected = json!({
        "types": ["system/init", "assistant", "result"], "subtype": "success", "is_error": false,
        "result": "Hello back.", "denials": [],
    });
    both("one_shot", |_| vec![vec![text("Hello back.")]], &expected);
}

#[test]
fn turns_of_one_client_are_one_session() {
    let turns = |_: &CliFixture| vec![vec![text("One.")], vec![text("Two.")]];
    both("multi_turn", turns, &json!({"same": true, "texts": ["One.", "Two."]}));
}

#[test]
fn can_use_tool_allows_denies_and_changes_calls() {
    let bash = |id: &str, command: &str| call(id, "Bash", &json!({ "command": command }));
    let turns = |_: &CliFixture| {
        vec![
            vec![bash("t1", "echo plain | tee made.txt")],
            vec![bash("t2", "echo secret | tee made.txt")],
            vec![bash("t3", "echo other | tee made.txt")],
            vec![text("End.")],
        ]
    };
    let expected = json!({
        "asked": [["Bash", "echo plain | tee made.txt", "t1"], ["Bash", "echo secret | tee made.txt", "t2"], ["Bash", "echo other | tee made.txt", "t3"]],
        "results": [
            {"error": false, "text": "plain\n"},
            {"error": true, "text": "Denied: it would run: echo secret | tee made.txt (no rule allows tee made.txt). Not that one."},
            {"error": false, "text": "changed\n"},
        ],
        "subtype": "success", "is_error": false, "result": "End.", "denials": ["Bash"],
    });
    both("can_use_tool", turns, &expected);
}

#[test]
fn callbacks_are_hooks_and_a_broken_guard_blocks() {
    let turns = |cli: &CliFixture| {
        let file = json!({"file_path": path(cli, "a.txt"), "content": "x"});
        vec![
            vec![call("t1", "Bash", &json!({"command": "echo fine"}))],
            vec![call("t2", "Bash", &json!({"command": "echo forbidden"}))],
            vec![call("t3", "Write", &file)],
            vec![text("End.")],
        ]
    };
    let expected = json!({
        "seen": [["PreToolUse", "Bash", "t1"], ["PostToolUse", "Bash", "t1"], ["PreToolUse", "Bash", "t2"]],
        "results": [
            {"error": false, "text": "fine\n\nSeen by the host."},
            {"error": true, "text": "Denied: a hook denied it: The host forbids it."},
            {"error": true,
             "text": "Denied: a hook denied it: a hook of the host failed: the guard is broken"},
        ],
    });
    both("hooks", turns, &expected);
}

#[test]
fn tools_of_an_mcp_server_inside_the_program_are_called() {
    let turns = |_: &CliFixture| {
        vec![vec![call("t1", "mcp__calc__add", &json!({"a": 1, "b": 2}))], vec![text("End.")]]
    };
    let expected = json!({
        "offered": true, "results": [{"error": false, "text": "sum 3"}], "servers": [["calc", "connected"]],
    });
    both("sdk_server", turns, &expected);
}

#[test]
fn interrupt_ends_the_turn_and_the_session_goes_on() {
    let turns = |_: &CliFixture| vec![vec![text("So far"), hangs()], vec![text("Next.")]];
    both("interrupt", turns, &json!({"first": "error_during_execution", "second": "Next."}));
}

#[test]
fn resumed_session_keeps_its_id_and_a_fork_gets_another() {
    let turns = |_: &CliFixture| vec![vec![text("Yes.")]];
    both("resume", turns, &json!({"same": true, "forked": true}));
}

#[test]
fn structured_output_fits_the_schema_after_wrong_answers() {
    let turns = |_: &CliFixture| {
        vec![vec![text("no JSON")], vec![text("{\"n\": \"seven\"}")], vec![text("{\"n\": 7}")]]
    };
    both("structured_output", turns, &json!({"subtype": "success", "output": {"n": 7}}));
}

#[test]
fn max_turns_is_an_error_result() {
    let turns = |_: &CliFixture| vec![vec![call("t1", "Bash", &json!({"command": "true"}))]];
    both("max_turns", turns, &json!({"subtype": "error_max_turns", "is_error": true, "turns": 1}));
}

#[test]
fn permission_mode_holds_and_can_be_changed_between_turns() {
    let turns = |cli: &CliFixture| {
        let write =
            |id: &str| vec![call(id, "Write", &json!({"file_path": path(cli, "a.txt"), "content": "x"}))];
        vec![write("t1"), vec![text("No.")], write("t2"), vec![text("Done.")]]
    };
    let expected = json!({
        "modes": ["plan", "acceptEdits"], "errors": [true, false], "denials": [["Write"], []],
    });
    both("permission_modes", turns, &expected);
}

#[test]
fn rewound_files_include_what_commands_made() {
    let turns = |_: &CliFixture| {
        let command = json!({"command": "echo 1 > made.txt; mkdir d; echo 2 > d/x"});
        vec![vec![text("Noted.")], vec![call("t1", "Bash", &command)], vec![text("Changed.")]]
    };
    both("rewind", turns, &json!({"before": ["d", "made.txt"], "after": [], "replayed": 1}));
}

#[test]
fn output_of_a_running_command_reaches_both_sdks() {
    let turns = |_: &CliFixture| {
        vec![vec![call("t1", "Bash", &json!({"command": "echo one; echo two"}))], vec![text("End.")]]
    };
    both("live_output", turns, &json!({"output": "one\ntwo\n"}));
}
