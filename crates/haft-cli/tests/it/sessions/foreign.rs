//! Transcripts of Claude Code and Codex: listed, searched, exported, continued, and never written.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::{json_lines, scripted, text};
use crate::fixture::cli::{CliFixture, RunOutput};

const CLAUDE_ID: &str = "0193a1b2-c3d4-4e5f-8a9b-0c1d2e3f4a5b";
const CODEX_ID: &str = "0199b1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5c";

fn root(cli: &CliFixture) -> String {
    cli.root().canonicalize().unwrap().to_str().unwrap().to_owned()
}

/// Writes a transcript of Claude Code for the workspace.
fn claude_transcript(cli: &CliFixture) -> PathBuf {
    let cwd = root(cli);
    let project: String = cwd.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let folder = cli.claude_config().join("projects").join(project);
    std::fs::create_dir_all(&folder).unwrap();
    let line = |n: u32, kind: &str, content: Value| {
        let parent = (n > 1).then(|| format!("u{}", n - 1));
        json!({
            "type": kind, "uuid": format!("u{n}"), "parentUuid": parent, "sessionId": CLAUDE_ID, "cwd": cwd,
            "timestamp": format!("2026-11-18T09:30:0{n}.000Z"), "isSidechain": false, "version": "2.1.325",
            "userType": "external", "gitBranch": "",
            "message": {"role": kind, "content": content, "id": format!("m{n}"), "model": "claude-x"},
        })
    };
    let call =
        json!([{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "boil water"}}]);
    let result =
        json!([{"type": "tool_result", "tool_use_id": "toolu_1", "content": "It boils.", "is_error": false}]);
    let lines = [
        line(1, "user", json!("Make some oolong.")),
        line(2, "assistant", call),
        line(3, "user", result),
        line(4, "assistant", json!([{"type": "text", "text": "The oolong is ready."}])),
        json!({"type": "unheard-of", "uuid": "x"}),
    ];
    let path = folder.join(format!("{CLAUDE_ID}.jsonl"));
    std::fs::write(&path, lines.iter().map(|line| format!("{line}\n")).collect::<String>() + "{broken\n")
        .unwrap();
    path
}

/// Writes a rollout of Codex for the workspace; returns the variable that leads to it.
fn codex_transcript(cli: &CliFixture) -> PathBuf {
    let home = cli.config().with_file_name("codex");
    let folder = home.join("sessions/2026/11/18");
    std::fs::create_dir_all(&folder).unwrap();
    let item = |kind: &str, payload: Value| json!({"timestamp": "2026-11-18T09:30:05.000Z", "type": kind, "payload": payload});
    let said = |role: &str, text: &str| {
        let kind = if role == "user" { "input_text" } else { "output_text" };
        item(
            "response_item",
            json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]}),
        )
    };
    let meta = json!({"id": CODEX_ID, "cwd": root(cli), "timestamp": "2026-11-18T09:30:05.000Z"});
    let lines = [
        item("session_meta", meta),
        said("user", "Make some sencha."),
        said("assistant", "The sencha is ready."),
    ];
    let path = folder.join(format!("rollout-2026-11-18T09-30-05-{CODEX_ID}.jsonl"));
    std::fs::write(path, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    home
}

fn haft(cli: &CliFixture, args: &[&str]) -> RunOutput {
    let mut command = cli.command(args);
    command.env("CODEX_HOME", cli.config().with_file_name("codex")).output().unwrap().into()
}

#[test]
fn transcripts_of_other_agents_are_listed_searched_and_exported_and_left_alone() {
    let cli = CliFixture::new();
    let file = claude_transcript(&cli);
    codex_transcript(&cli);
    let before = std::fs::read(&file).unwrap();
    for (agent, id, tea) in [("claude", CLAUDE_ID, "oolong"), ("codex", CODEX_ID, "sencha")] {
        let listed = json_lines(&haft(&cli, &["sessions", "list", "--from", agent, "--json"]));
        assert_eq!(listed.len(), 1);
        assert_eq!(
            (text(&listed[0]["id"]), text(&listed[0]["first_words"])),
            (id, format!("Make some {tea}.").as_str())
        );
        assert_eq!(text(&listed[0]["workspace"]), root(&cli));
        let plain = haft(&cli, &["sessions", "list", "--from", agent]).stdout;
        assert!(plain.contains(id) && plain.contains(tea), "{plain}");

        let found =
            json_lines(&haft(&cli, &["sessions", "search", &tea.to_uppercase(), "--from", agent, "--json"]));
        let kinds: Vec<&str> = found.iter().map(|hit| text(&hit["kind"])).collect();
        assert_eq!(kinds, ["assistant", "user"]);
        assert_eq!((text(&found[0]["session"]), text(&found[0]["from"])), (id, agent));

        let exported =
            json_lines(&haft(&cli, &["sessions", "export", "--from", agent, &id[..8], "--format", "jsonl"]));
        assert_eq!((text(&exported[0]["source"]), text(&exported[0]["session"])), (agent, id));
        assert!(text(&exported.last().unwrap()["text"]).contains(tea), "{exported:?}");
        let shown = haft(&cli, &["sessions", "show", "--from", agent]).stdout;
        assert!(shown.contains(&format!("> The {tea} is ready.")), "{shown}");
        assert_eq!(haft(&cli, &["sessions", "export", "--from", agent, "ffffffff"]).code, 4);
    }
    let exported = haft(&cli, &["sessions", "export", "--from", "claude"]);
    assert!(exported.stderr.contains("1 line of the transcript could not be read"), "{}", exported.stderr);
    assert_eq!(std::fs::read(&file).unwrap(), before);
    // Those of another folder are not listed, unless all are.
    let elsewhere = tempfile::tempdir().unwrap();
    for agent in ["claude", "codex"] {
        let list = |more: &[&str]| {
            let mut command = cli.command(&[&["sessions", "list", "--from", agent, "--json"], more].concat());
            command.env("CODEX_HOME", cli.config().with_file_name("codex")).current_dir(elsewhere.path());
            json_lines(&command.output().unwrap().into()).len()
        };
        assert_eq!((list(&[]), list(&["--all"])), (0, 1), "{agent}");
    }
}

#[test]
fn a_session_of_claude_code_goes_on_as_a_run_of_its_own() {
    let cli = CliFixture::new();
    let file = claude_transcript(&cli);
    let before = std::fs::read(&file).unwrap();
    let script = [
        json!({"calls": [{"name": "Bash", "arguments": {"command": "touch cup"}}]}),
        json!({"text": "More is ready."}),
    ];
    // A script begins behind the answers that the conversation has already: two.
    let script = [&[json!({"text": "old"}), json!({"text": "old"})], &script[..]].concat();
    let resume = |prompt: &str, script: &[Value]| {
        let args = ["-p", prompt, "--resume", CLAUDE_ID, "--output-format", "json"];
        serde_json::from_str::<Value>(&scripted(&cli, script, &args).stdout).unwrap()
    };
    let first = resume("More, please.", &script);
    assert_eq!(text(&first["result"]), "More is ready.");
    let session = text(&first["session_id"]).to_owned();
    let ledger = haft_ledger::Ledger::open(cli.home()).unwrap();
    let run = ledger.session_in(&session, cli.root()).unwrap().id;
    let state = haft_agent::read_run(&ledger, &run).unwrap().unwrap();
    let roles: Vec<&str> = state
        .conversation
        .messages
        .iter()
        .map(|message| match message {
            haft_model::ChatMessage::User { .. } => "user",
            haft_model::ChatMessage::Assistant(_) => "model",
            haft_model::ChatMessage::ToolResults { .. } => "results",
        })
        .collect();
    assert_eq!(roles, ["user", "model", "results", "model", "user", "model", "results", "model"]);
    assert!(serde_json::to_string(&state.conversation).unwrap().contains("It boils."));
    // From then on the id means that run.
    let second = resume("Even more.", &[&script[..], &[json!({"text": "Enough."})]].concat());
    assert_eq!((text(&second["session_id"]), text(&second["result"])), (CLAUDE_ID, "Enough."));
    // What was taken over is a part of the run's export.
    let exported = json_lines(&cli.haft(&["sessions", "export", CLAUDE_ID, "--format", "jsonl"]));
    assert_eq!(text(&exported[1]["text"]), "Make some oolong.");
    assert_eq!(std::fs::read(&file).unwrap(), before);
    assert_eq!(cli.haft(&["-p", "x", "--resume", "0193a1b2-c3d4-4e5f-8a9b-000000000000"]).code, 4);
}
