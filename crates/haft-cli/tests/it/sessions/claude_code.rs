//! Claude Code itself goes on with an exported run, and Haft with what Claude Code has written then.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::{json_lines, run, scripted, text};
use crate::fixture::cli::CliFixture;
use crate::fixture::peers::agent;
use crate::fixture::scripted_model::ScriptedModel;

#[test]
fn a_run_goes_on_in_claude_code_and_back() {
    let cli = CliFixture::new();
    let session = run(&cli, "Make oolong.", "echo poured", "The oolong is ready.");
    let project: String = cli
        .root()
        .canonicalize()
        .unwrap()
        .to_str()
        .unwrap()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    let folder = cli.claude_config().join("projects").join(project);
    std::fs::create_dir_all(&folder).unwrap();
    let exported =
        cli.haft(&["sessions", "export", &session, "--format", "claude", "-o", folder.to_str().unwrap()]);
    assert_eq!(exported.code, 0, "{}", exported.stderr);
    let file = std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    let id = file.file_stem().unwrap().to_str().unwrap().to_owned();

    let model = ScriptedModel::start(Vec::new());
    let mut claude = Command::new(agent("HAFT_CLAUDE"));
    claude.args(["-p", "Is there more?", "--resume", &id, "--output-format", "json"]).current_dir(cli.root());
    claude
        .env_clear()
        .env("HOME", cli.config().parent().unwrap())
        .env("PATH", "/usr/local/bin:/usr/bin:/bin");
    claude.env("CLAUDE_CONFIG_DIR", cli.claude_config()).env("ANTHROPIC_BASE_URL", model.url());
    claude.env("ANTHROPIC_API_KEY", "x").env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
    let output = claude.env("DISABLE_AUTOUPDATER", "1").stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
    assert_eq!(report["result"], "That is all.", "{report}");
    let has_prompt = |request: &&Value| request["messages"].to_string().contains("Is there more?");
    let sent = model.requests().iter().rfind(has_prompt).unwrap()["messages"].to_string();
    for part in ["Make oolong.", "echo poured", "poured", "The oolong is ready."] {
        assert!(sent.contains(part), "{part}: {sent}");
    }

    let listed = json_lines(&cli.haft(&["sessions", "list", "--from", "claude", "--json"]));
    let ids: Vec<&str> = listed.iter().map(|session| text(&session["id"])).collect();
    let last = text(&report["session_id"]);
    assert!(ids.contains(&last), "{ids:?} {last}");
    let shown = cli.haft(&["sessions", "show", "--from", "claude", last]).stdout;
    assert!(shown.contains("> Make oolong.") && shown.contains("> Is there more?"), "{shown}");
    // A script begins behind the answers that the conversation has already.
    let answers = vec![json!({"text": "No more."}); 8];
    let back = scripted(&cli, &answers, &["-p", "Thanks.", "--resume", last, "--output-format", "json"]);
    let back: Value = serde_json::from_str(&back.stdout).unwrap();
    assert_eq!(back["result"], "No more.", "{back}");
    let again = cli.haft(&["sessions", "export", text(&back["session_id"])]).stdout;
    assert!(again.contains("> Is there more?") && again.contains("> Thanks."), "{again}");
}
