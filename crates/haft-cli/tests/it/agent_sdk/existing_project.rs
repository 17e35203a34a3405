//! A project with everything that people have for other agents: all of it is honoured.

use serde_json::{Value, json};

use super::turn_model::{TurnModel, text};
use crate::fixture::cli::CliFixture;
use crate::fixture::peers;

fn write(cli: &CliFixture, path: &str, content: &str) {
    std::fs::create_dir_all(cli.path(path).parent().unwrap()).unwrap();
    cli.write(path, content);
}

#[test]
fn a_project_with_files_of_several_agents_has_all_of_them_honoured() {
    let cli = CliFixture::new();
    write(&cli, "AGENTS.md", "MARK-AGENTS: use tabs.\n");
    write(&cli, "CLAUDE.md", "MARK-CLAUDE: be brief.\n");
    write(
        &cli,
        ".claude/skills/brew/SKILL.md",
        "---\nname: brew\ndescription: MARK-CLAUDE-SKILL\n---\nBrew.\n",
    );
    write(
        &cli,
        ".agents/skills/pour/SKILL.md",
        "---\nname: pour\ndescription: MARK-AGENTS-SKILL\n---\nPour.\n",
    );
    write(
        &cli,
        ".claude/agents/taster.md",
        "---\nname: taster\ndescription: MARK-AGENT-KIND\n---\nYou taste.\n",
    );
    write(&cli, ".claude/commands/serve.md", "MARK-COMMAND for $1.\n");
    let server = peers::ours("../haft-mcp/tests/fixtures/hostile_server.py");
    let servers = json!({"mcpServers": {"marks": {"command": "python3", "args": [server, "grow"]}}});
    write(&cli, ".mcp.json", &servers.to_string());
    let hook = json!({"hooks": [{"type": "command", "command": "echo MARK-HOOK"}]});
    let settings = json!({
        "permissions": {"deny": ["WebFetch"]}, "hooks": {"SessionStart": [hook]},
    });
    write(&cli, ".claude/settings.json", &settings.to_string());
    assert_eq!(cli.haft(&["trust", "--yes"]).code, 0);
    assert_eq!(cli.haft(&["mcp", "trust", "marks", "--yes"]).code, 0);

    let model = TurnModel::start(vec![vec![text("Done.")]]);
    let mut command = cli.command(&["-p", "/serve guests"]);
    command.env("ANTHROPIC_BASE_URL", model.url()).env("ANTHROPIC_API_KEY", "test");
    let ran = command.output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let request = model.requests().pop().unwrap();
    let sent = request.to_string();
    for mark in
        ["AGENTS", "CLAUDE", "CLAUDE-SKILL", "AGENTS-SKILL", "AGENT-KIND", "COMMAND for guests", "HOOK"]
    {
        assert!(sent.contains(&format!("MARK-{mark}")), "{mark}: {sent}");
    }
    let tools: Vec<&str> =
        request["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert!(tools.contains(&"mcp__marks__grow"), "{tools:?}");
    assert!(tools.contains(&"Bash") && !tools.contains(&"WebFetch"), "{tools:?}");
    assert_ne!(request["system"], Value::Null);
}
