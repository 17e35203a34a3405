//! What Codex itself has written is listed, searched and shown.

use std::process::{Command, Stdio};

use super::{json_lines, text};
use crate::fixture::cli::CliFixture;
use crate::fixture::peers::agent;
use crate::fixture::scripted_model::ScriptedModel;

#[test]
fn a_session_of_codex_is_read_as_codex_writes_it() {
    let cli = CliFixture::new();
    let home = cli.config().with_file_name("codex");
    std::fs::create_dir(&home).unwrap();
    let model = ScriptedModel::start(vec![("exec_command", serde_json::json!({"cmd": "echo from-codex"}))]);
    let settings = format!(
        "model = \"m\"\nmodel_provider = \"local\"\nsandbox_mode = \"danger-full-access\"\n\n[model_providers.local]\nname = \"local\"\n\
         base_url = \"{}/v1\"\nwire_api = \"responses\"\nenv_key = \"LOCAL_KEY\"\n",
        model.url()
    );
    std::fs::write(home.join("config.toml"), settings).unwrap();
    let mut codex = Command::new(agent("HAFT_CODEX"));
    codex.args(["exec", "--skip-git-repo-check", "--json", "Make sencha."]).current_dir(cli.root());
    codex.env_clear().env("HOME", cli.config().parent().unwrap()).env("PATH", "/usr/local/bin:/usr/bin:/bin");
    codex.env("CODEX_HOME", &home).env("LOCAL_KEY", "x").stdin(Stdio::null());
    let output = codex.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let haft = |args: &[&str]| cli.command(args).env("CODEX_HOME", &home).output().unwrap().into();
    let listed = json_lines(&haft(&["sessions", "list", "--from", "codex", "--json"]));
    assert_eq!(listed.len(), 1);
    assert_eq!(text(&listed[0]["first_words"]), "Make sencha.");
    let exported = json_lines(&haft(&["sessions", "export", "--from", "codex", "--format", "jsonl"]));
    assert_eq!(exported[0]["invalid_lines"], 0);
    let said: Vec<&str> = exported
        .iter()
        .filter(|entry| matches!(text(&entry["type"]), "user" | "assistant"))
        .map(|entry| text(&entry["text"]))
        .collect();
    assert_eq!(said, ["Make sencha.", "That is all."], "{exported:#?}");
    let is_result = |entry: &&serde_json::Value| text(&entry["type"]) == "result";
    assert_eq!(exported.iter().filter(is_result).count(), 1, "{exported:#?}");
}
