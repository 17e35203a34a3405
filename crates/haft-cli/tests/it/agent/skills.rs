//! Skills, instructions below the workspace, and MCP servers whose tools appear while the run goes on.

use haft_agent::read_run;
use haft_ledger::{EventLog, Ledger};
use serde_json::{Value, json};

use super::{json_of, says, scripted, scripted_command};
use crate::fixture::cli::{CliFixture, RunOutput};
use crate::fixture::peers;

const YAML: &str = "---\nname: release\ndescription: How to publish a version.\ntriggers:\n  - new release\nallowed-tools: Bash Read\n---\nTag it with $ARGUMENTS.\n";
const TOML: &str = "+++\nname = \"review\"\ndescription = \"How to review.\"\ntrigger = \"code review|pull request\"\n+++\nBe kind.\n";

fn skill(cli: &CliFixture, folder: &str, text: &str) {
    std::fs::create_dir_all(cli.path(folder)).unwrap();
    cli.write(&format!("{folder}/SKILL.md"), text);
}

/// What a run with this prompt says to the model first.
fn first_message(cli: &CliFixture, prompt: &str) -> (String, String) {
    let report = json_of(&scripted(cli, &[says("Done.")], &["-p", prompt, "--output-format", "json"]));
    let session = report["session_id"].as_str().unwrap();
    let ledger = Ledger::open(cli.home()).unwrap();
    let system = read_run(&ledger, session).unwrap().unwrap().conversation.system.join("\n\n");
    (system, ledger.read(session, 2, 1).unwrap()[0].body["content"].to_string())
}

#[test]
fn the_model_is_told_of_skills_and_a_trigger_adds_the_whole_text() {
    let cli = CliFixture::new();
    skill(&cli, ".agents/skills/release", YAML);
    skill(&cli, ".claude/skills/review", TOML);
    skill(
        &cli,
        ".haft/skills/hidden",
        "---\nname: hidden\ndescription: x\ndisable-model-invocation: true\n---\nHidden text.\n",
    );
    skill(&cli, ".haft/skills/broken", "no front matter");
    let (system, message) = first_message(&cli, "Hello.");
    for line in ["- release: How to publish a version. (", "- review: How to review. ("] {
        assert!(system.contains(line), "{line}: {system}");
    }
    assert!(!system.contains("hidden") && !system.contains("broken"), "{system}");
    assert!(!message.contains("Tag it") && !message.contains("Be kind"), "{message}");
    let (_, message) = first_message(&cli, "Make a NEW RELEASE today.");
    assert!(message.contains("The skill release") && message.contains("Tag it with"), "{message}");
    assert!(message.contains("Its tools: Bash, Read."), "{message}");
    assert!(first_message(&cli, "Look at this pull request!").1.contains("Be kind."));
    assert!(!first_message(&cli, "A new released thing").1.contains("Tag it"));
    assert!(first_message(&cli, "/release v1.2").1.contains("Tag it with v1.2."));
    assert!(first_message(&cli, "/hidden").1.contains("Hidden text."));
}

#[test]
fn skills_and_agents_of_a_project_show_nothing_from_elsewhere() {
    let cli = CliFixture::new();
    let outside = tempfile::tempdir().unwrap();
    let text = "---\nname: linked\ndescription: CANARY\n---\nCANARY\n";
    std::fs::write(outside.path().join("SKILL.md"), text).unwrap();
    for folder in [".claude/skills/linked", ".claude/agents"] {
        std::fs::create_dir_all(cli.path(folder)).unwrap();
    }
    let link = |name: &str| {
        std::os::unix::fs::symlink(outside.path().join("SKILL.md"), cli.path(name)).unwrap();
    };
    link(".claude/skills/linked/SKILL.md");
    link(".claude/agents/linked.md");
    std::os::unix::fs::symlink(outside.path(), cli.path(".claude/skills/other")).unwrap();
    let (system, message) = first_message(&cli, "/linked");
    assert!(!system.contains("CANARY") && !message.contains("CANARY"), "{system}{message}");
}

#[test]
fn a_skill_allows_nothing() {
    let cli = CliFixture::new();
    skill(
        &cli,
        ".claude/skills/w",
        "---\nname: w\ndescription: x\nallowed-tools: Write(//**)\n---\nWrite it.\n",
    );
    let outside = tempfile::tempdir().unwrap();
    let path = outside.path().join("a.txt");
    let script = [
        json!({"calls": [{"name": "Write", "arguments": {"file_path": path, "content": "x"}}]}),
        json!({"expect": {"is_error": true}, "text": "Denied."}),
    ];
    let run = scripted(&cli, &script, &["-p", "/w"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "Denied.\n"), "{}", run.stderr);
    assert!(!path.exists());
}

#[test]
fn instructions_of_a_directory_count_once_when_calls_work_there() {
    let cli = CliFixture::new();
    for folder in ["app/api", "other", "node_modules/x"] {
        std::fs::create_dir_all(cli.path(folder)).unwrap();
    }
    cli.write("app/AGENTS.md", "Use tabs. @api/style.md\n");
    cli.write("app/api/style.md", "No globals.\n");
    cli.write("app/api/CLAUDE.md", "Version the routes.\n");
    cli.write("other/AGENTS.md", "Of another part.\n");
    cli.write("node_modules/x/AGENTS.md", "Of another project.\n");
    cli.write("node_modules/x/a.txt", "x");
    cli.write("app/api/a.txt", "x");
    let read = |path: &str| json!({"name": "Read", "arguments": {"file_path": cli.path(path)}});
    let script = [
        json!({"calls": [read("app/api/a.txt"), read("node_modules/x/a.txt")]}),
        json!({"calls": [read("app/api/a.txt")]}),
        says("Done."),
    ];
    let report = json_of(&scripted(&cli, &script, &["-p", "Go.", "--output-format", "json"]));
    assert_eq!(report["stop"], "done", "{report}");
    let ledger = Ledger::open(cli.home()).unwrap();
    let state = read_run(&ledger, report["session_id"].as_str().unwrap()).unwrap().unwrap();
    let said = serde_json::to_string(&state.conversation.messages).unwrap();
    for text in ["Use tabs.", "No globals.", "Version the routes."] {
        assert_eq!(said.matches(text).count(), 1, "{text}: {said}");
    }
    assert!(!said.contains("Of another"), "{said}");
    let system = state.conversation.system.join("\n");
    assert!(!system.contains("Use tabs."), "{system}");
}

#[test]
fn a_server_that_fails_or_changes_is_reported_and_the_run_goes_on() {
    let cli = CliFixture::new();
    let server = peers::ours("../haft-mcp/tests/fixtures/hostile_server.py");
    let settings = format!(
        "[tools.mcp_servers.grows]\ncommand = \"python3\"\nargs = [\"{server}\", \"grow\"]\n\n\
         [tools.mcp_servers.fails]\ncommand = \"/nothing/here\"\n"
    );
    std::fs::write(cli.config(), settings).unwrap();
    let call = |name: &str| json!({"calls": [{"name": name, "arguments": {}}]});
    let mut last = call("mcp__grows__grown");
    last["expect"] = json!({"is_error": false, "contains": "grown"});
    let script: Vec<Value> =
        vec![call("mcp__grows__grow"), last, json!({"expect": {"is_error": true}, "text": "Done."})];
    let run = RunOutput::from(
        scripted_command(&cli, &script, &["-p", "Go.", "--allowedTools", "mcp__grows"]).output().unwrap(),
    );
    assert_eq!((run.code, run.stdout.as_str()), (0, "Done.\n"), "{}", run.stderr);
    assert!(run.stderr.contains("fails"), "{}", run.stderr);
}

#[test]
fn commands_of_claude_code_are_called_by_their_names() {
    let cli = CliFixture::new();
    std::fs::create_dir_all(cli.path(".claude/commands/git")).unwrap();
    cli.write(
        ".claude/commands/fix.md",
        "---\ndescription: Fix an issue.\nallowed-tools: Bash(git *)\n---\nFix issue $1 in $2 ($ARGUMENTS), for 5$.\n",
    );
    cli.write(".claude/commands/git/tidy.md", "Tidy the branch.\n");
    let (system, message) = first_message(&cli, "/fix 12 parser");
    assert!(message.contains("Fix issue 12 in parser (12 parser), for 5$."), "{message}");
    assert!(!system.contains("Fix an issue"), "only the user calls for it: {system}");
    assert!(first_message(&cli, "/tidy").1.contains("Tidy the branch."));
    assert!(!first_message(&cli, "tidy").1.contains("Tidy the branch."));
}
