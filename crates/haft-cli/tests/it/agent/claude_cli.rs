//! The `claude` program as a provider, with a scripted model behind it.

use std::process::Command;

use serde_json::{Value, json};

use super::{json_of, output, without_models};
use crate::fixture::cli::CliFixture;
use crate::fixture::peers::agent;
use crate::fixture::scripted_model::{ScriptedCall, ScriptedModel};
use crate::fixture::tree::walk;

/// A home with nothing in it, and a PATH with `claude`.
struct ClaudeFixture {
    cli: CliFixture,
    home: tempfile::TempDir,
    model: ScriptedModel,
}

impl ClaudeFixture {
    fn new(script: Vec<ScriptedCall>) -> Self {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("bin")).unwrap();
        std::os::unix::fs::symlink(agent("HAFT_CLAUDE"), home.path().join("bin/claude")).unwrap();
        Self { cli: CliFixture::new(), home, model: ScriptedModel::start(script) }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = without_models(&self.cli, args);
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", self.home.path().join("bin").display());
        command.env("HOME", self.home.path()).env("PATH", path).env("ANTHROPIC_BASE_URL", self.model.url());
        command.env("ANTHROPIC_API_KEY", "x").env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
        command
    }

    fn ask(&self, prompt: &str, more: &[&str]) -> (Value, String) {
        let flags = ["-p", prompt, "--provider", "claude-cli", "--output-format", "json"];
        let run = output(self.command(&[&flags[..], more].concat()));
        (json_of(&run), run.stderr)
    }
}

#[test]
fn the_claude_program_works_with_haft_s_tools_alone_and_goes_on_with_its_session() {
    let fixture = ClaudeFixture::new(vec![
        ("Bash", json!({"command": "echo tea > a.txt"})),
        ("Write", json!({"file_path": "/etc/haft-test", "content": "x"})),
        ("Bash", json!({"command": "cat secret.txt"})),
    ]);
    // A project's settings must not start anything.
    std::fs::create_dir(fixture.cli.path(".claude")).unwrap();
    let hook =
        json!({"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "touch hooked"}]}]}});
    fixture.cli.write(".claude/settings.json", &hook.to_string());
    fixture.cli.write("secret.txt", "hidden\n");
    let (report, said) = fixture.ask("Make tea.", &["--disallowedTools", "Bash(cat *)"]);
    assert_eq!(
        (&report["result"], &report["provider"]),
        (&json!("That is all."), &json!("claude-cli")),
        "{said}"
    );
    assert!(said.contains("Haft's tools in place of its own"), "{said}");
    assert_eq!(fixture.cli.read("a.txt"), "tea\n");
    let results = fixture.model.results();
    assert!(results[1].contains("Denied"), "{}", results[1]);
    assert!(results[2].contains("Denied") && !results[2].contains("hidden"), "rules hold: {}", results[2]);
    let offered = fixture.model.offered();
    assert!(offered.len() > 5 && offered.iter().all(|name| name.starts_with("mcp__haft__")), "{offered:?}");
    let names: Vec<_> = walk(fixture.cli.root(), &[]).into_keys().collect();
    assert_eq!(names.len(), 5, "nothing else was written: {names:?}");
    // The calls are in the ledger, in the run's own session.
    let session = report["session_id"].as_str().unwrap();
    assert_eq!(output(fixture.command(&["undo", "-n", "1", "--yes"])).code, 0);
    let log = output(fixture.command(&["log"]));
    assert!(
        log.stdout.lines().any(|line| line.contains("echo tea") && line.contains(session)),
        "{}",
        log.stdout
    );

    let before = fixture.model.requests().len();
    let more = output(fixture.command(&["-p", "--continue", "Thanks."]));
    assert_eq!((more.code, more.stdout.as_str()), (0, "That is all.\n"), "{}", more.stderr);
    let last = fixture.model.requests()[before..].iter().map(Value::to_string).collect::<String>();
    assert!(last.contains("Make tea.") && last.contains("Thanks."), "it goes on with the session of claude");
}

#[test]
fn the_claude_program_gets_no_tools_if_none_are_allowed_and_the_model_that_is_named() {
    let fixture = ClaudeFixture::new(vec![("Bash", json!({"command": "echo tea > a.txt"}))]);
    let (report, said) = fixture.ask("Hello.", &["--allowedTools", "", "--model", "haiku"]);
    assert_eq!((&report["result"], &report["model"]), (&json!("That is all."), &json!("haiku")), "{said}");
    assert!(fixture.model.offered().is_empty(), "{:?}", fixture.model.offered());
    assert!(!fixture.cli.path("a.txt").exists());
}

#[test]
fn sonnet_is_the_fast_model_of_the_claude_program_and_opus_the_complex_one() {
    let fixture = ClaudeFixture::new(Vec::new());
    let (report, said) = fixture.ask("Hello.", &["--route"]);
    assert_eq!(report["model"], "opus", "{said}");
    let asked: Vec<String> = fixture
        .model
        .requests()
        .iter()
        .filter_map(|request| Some(request.get("model")?.as_str()?.to_owned()))
        .collect();
    let first_of = |name: &str| asked.iter().position(|model| model.contains(name));
    let (fast, complex) = (first_of("sonnet").unwrap(), first_of("opus").unwrap());
    assert!(fast < complex, "{asked:?}");
}

#[test]
fn a_missing_claude_program_is_said_with_what_to_do() {
    let cli = CliFixture::new();
    let mut command = without_models(&cli, &["-p", "Hello.", "--provider", "claude-cli"]);
    let run = output({
        command.env("PATH", "/nonexistent");
        command
    });
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("`claude` was not found. Install Claude Code"), "{}", run.stderr);
}
