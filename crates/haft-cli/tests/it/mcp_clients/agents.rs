//! Agents of other makers with Haft's tools as their only ones, led by a scripted model: what they break comes back, and so do
//! their settings.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fixture::haft_program;
use crate::fixture::peers::agent;
use crate::fixture::scripted_model::{ScriptedCall, ScriptedModel};

/// The user's home, with a project in it. Everything else is at its default place below the home.
struct AgentFixture {
    home: TempDir,
}

impl AgentFixture {
    fn new() -> Self {
        let fixture = Self { home: tempfile::tempdir().unwrap() };
        fixture.write("project/src/main.rs", "fn main() {}\n");
        fixture.write("project/notes.txt", "mine\n");
        fixture
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        std::fs::write(self.path(name), text).unwrap();
    }

    fn read(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.path(name)).ok()
    }

    /// The program in the project, with nothing of this machine's user.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.path("project")).env_clear().stdin(Stdio::null());
        command.env("HOME", self.home.path()).env("PATH", "/usr/local/bin:/usr/bin:/bin");
        command
    }

    fn haft(&self, args: &[&str]) {
        let ran = self.command(&haft_program()).args(args).output().unwrap();
        assert!(ran.status.success(), "{args:?}: {}", String::from_utf8_lossy(&ran.stderr));
    }

    /// Breaks things as the script says, and restores them.
    fn harm_and_undo(&self, model: &ScriptedModel, mut agent: Command) {
        let ran = agent.output().unwrap();
        let said =
            format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        assert!(ran.status.success(), "{said}");
        let results = model.results();
        assert_eq!(results.len(), harm().len(), "{results:?}\n{said}");
        assert!(results[0].contains("Created"), "{}", results[0]);
        assert!(results[2].contains("To allow it: --allowedTools"), "{}", results[2]);
        assert_eq!(self.read("project/made.txt").as_deref(), Some("made\n"));
        assert_eq!(
            (self.read("project/src/main.rs"), self.read("project/notes.txt")),
            (None, Some("gone\n".to_owned()))
        );
        self.haft(&["undo", "--yes"]);
        self.haft(&["undo", "--yes"]);
        assert_eq!(self.read("project/src/main.rs").as_deref(), Some("fn main() {}\n"));
        assert_eq!(self.read("project/notes.txt").as_deref(), Some("mine\n"));
        assert_eq!(self.read("project/made.txt"), None);
    }
}

/// A file, a command that does harm, and a write that needs approval.
fn harm() -> Vec<ScriptedCall> {
    vec![
        ("Write", json!({"file_path": "made.txt", "content": "made\n"})),
        ("Bash", json!({"command": "rm -rf src; echo gone > notes.txt"})),
        ("Write", json!({"file_path": "/etc/haft-test", "content": "x"})),
    ]
}

fn offers_only_haft(model: &ScriptedModel, own: &[&str]) {
    let offered = model.offered();
    assert!(
        offered.iter().any(|name| name.ends_with("Bash") && name.starts_with("mcp__haft")),
        "{offered:?}"
    );
    assert!(!offered.iter().any(|name| own.contains(&name.as_str())), "{offered:?}");
}

#[test]
fn claude_code_works_through_haft_alone() {
    let fixture = AgentFixture::new();
    let settings = "{\n  \"permissions\": {\"deny\": [\"WebSearch\"]}\n}\n";
    fixture.write(".claude/settings.json", settings);
    fixture.haft(&["mcp", "install", "claude", "--replace-builtin", "--yes"]);
    let model = ScriptedModel::start(harm());
    let mut claude = fixture.command(&agent("HAFT_CLAUDE"));
    claude.args(["-p", "go", "--output-format", "json"]).env("ANTHROPIC_BASE_URL", model.url());
    claude.env("ANTHROPIC_API_KEY", "x").env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
    claude.env("DISABLE_AUTOUPDATER", "1");
    fixture.harm_and_undo(&model, claude);
    let own = ["Bash", "Edit", "Write", "Read", "Glob", "Grep", "NotebookEdit", "WebFetch"];
    offers_only_haft(&model, &own);
    offers_only_haft(&model, &["EnterWorktree", "ExitWorktree", "Workflow"]);
    fixture.haft(&["mcp", "uninstall", "claude", "--yes"]);
    assert_eq!(fixture.read(".claude/settings.json").as_deref(), Some(settings));
    // Claude Code has written to this file itself.
    let own: Value = serde_json::from_str(&fixture.read(".claude.json").unwrap()).unwrap();
    assert_eq!(own.pointer("/mcpServers/haft"), None, "{own}");
}

/// Codex's settings for this model; it offers more tools to models that it knows by name.
fn codex_settings(model: &ScriptedModel, name: &str) -> String {
    format!(
        "model = \"{name}\" # mine\nmodel_provider = \"local\"\nsandbox_mode = \"workspace-write\"\n\n\
         [model_providers.local]\nname = \"local\"\nbase_url = \"{}/v1\"\nwire_api = \"responses\"\nenv_key = \"LOCAL_KEY\"\n",
        model.url()
    )
}

#[test]
fn codex_works_through_haft_alone() {
    let fixture = AgentFixture::new();
    let model = ScriptedModel::start(harm());
    let settings = codex_settings(&model, "m");
    fixture.write(".codex/config.toml", &settings);
    fixture.haft(&["mcp", "install", "codex", "--replace-builtin", "--yes"]);
    let mut codex = fixture.command(&agent("HAFT_CODEX"));
    codex.args(["exec", "--skip-git-repo-check", "--json", "go"]).env("LOCAL_KEY", "x");
    fixture.harm_and_undo(&model, codex);
    offers_only_haft(&model, &["shell", "local_shell", "exec_command", "apply_patch", "view_image"]);
    fixture.haft(&["mcp", "uninstall", "codex", "--yes"]);
    assert_eq!(fixture.read(".codex/config.toml"), Some(settings));
}

#[test]
fn codex_keeps_apply_patch_but_cannot_write_with_it() {
    let patch = "*** Begin Patch\n*** Add File: patched.txt\n+x\n*** End Patch\n";
    for (is_installed, expected) in [(false, Some("x\n")), (true, None)] {
        let fixture = AgentFixture::new();
        let model = ScriptedModel::start(vec![("apply_patch", json!(patch))]);
        fixture.write(".codex/config.toml", &codex_settings(&model, "gpt-5.5"));
        if is_installed {
            fixture.haft(&["mcp", "install", "codex", "--replace-builtin", "--yes"]);
        }
        let mut codex = fixture.command(&agent("HAFT_CODEX"));
        codex.args(["exec", "--skip-git-repo-check", "--json", "go"]).env("LOCAL_KEY", "x");
        let ran = codex.output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        let (offered, results) = (model.offered(), model.results());
        assert!(offered.iter().any(|name| name == "apply_patch"), "{offered:?}\n{said}");
        assert_eq!(offered.iter().any(|name| name == "view_image"), !is_installed, "{offered:?}");
        assert_eq!(fixture.read("project/patched.txt").as_deref(), expected, "{results:?}\n{said}");
    }
}
