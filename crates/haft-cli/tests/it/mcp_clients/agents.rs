//! Agents of other makers with Haft's tools as their only ones, led by a scripted model: what they break comes back, and so do
//! their settings; interrupted, they leave no command behind.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::cancellation::unique_mark;
use crate::fixture::cli::is_running;
use crate::fixture::peers::{agent, node};
use crate::fixture::scripted_model::{ScriptedCall, ScriptedModel};
use crate::fixture::{haft_program, wait_until};

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

    fn haft(&self, args: &[&str]) -> String {
        let ran = self.command(&haft_program()).args(args).output().unwrap();
        assert!(ran.status.success(), "{args:?}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap()
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
        assert!(results[3].contains("To allow it: --allowedTools"), "{}", results[3]);
        assert_eq!(self.read("project/made.txt").as_deref(), Some("made\n"));
        assert_eq!(
            (self.read("project/src/main.rs"), self.read("project/notes.txt")),
            (None, Some("gone\n".to_owned()))
        );
        let log = self.haft(&["log"]);
        for (tool, what) in [("Write", "made.txt"), ("Edit", "notes.txt"), ("Bash", "rm -rf src")] {
            assert!(log.lines().any(|line| line.contains(tool) && line.contains(what)), "{tool}: {log}");
        }
        self.haft(&["undo", "--yes"]);
        assert_eq!(self.read("project/notes.txt").as_deref(), Some("edited\n"));
        self.haft(&["undo", "--yes"]);
        self.haft(&["undo", "--yes"]);
        assert_eq!(self.read("project/src/main.rs").as_deref(), Some("fn main() {}\n"));
        assert_eq!(self.read("project/notes.txt").as_deref(), Some("mine\n"));
        assert_eq!(self.read("project/made.txt"), None);
    }

    /// Presses Ctrl-C while the agent waits for a command, and undoes what the command has done until then.
    fn interrupt(&self, agent: impl FnOnce(&ScriptedModel) -> Command) -> ScriptedModel {
        let long = unique_mark();
        let command = format!("echo half > made.txt; sleep {long}");
        let model = ScriptedModel::start(vec![("Bash", json!({"command": command}))]);
        let mut agent = agent(&model);
        // A terminal sends the signal to the whole group.
        agent.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let mut agent = agent.spawn().unwrap();
        let mark = format!("sleep\0{long}");
        wait_until(|| is_running(&mark));
        let group = format!("-{}", agent.id());
        assert!(Command::new("kill").args(["-INT", "--", &group]).status().unwrap().success());
        agent.wait().unwrap();
        wait_until(|| !is_running(&mark));
        // Haft outlives the agent until it has recorded the call.
        wait_until(|| {
            self.haft(&["log"]).lines().any(|line| line.contains("interrupted") && line.contains(&long))
        });
        self.haft(&["undo", "--yes"]);
        assert_eq!(self.read("project/made.txt"), None);
        model
    }
}

/// A new file, an edit, a command that does harm, and a write that needs approval.
fn harm() -> Vec<ScriptedCall> {
    vec![
        ("Write", json!({"file_path": "made.txt", "content": "made\n"})),
        ("Edit", json!({"file_path": "notes.txt", "old_string": "mine", "new_string": "edited"})),
        ("Bash", json!({"command": "rm -rf src; echo gone > notes.txt"})),
        ("Write", json!({"file_path": "/etc/haft-test", "content": "x"})),
    ]
}

fn offers_only_haft(model: &ScriptedModel, own: &[&str]) {
    let offered = model.offered();
    assert!(offered.iter().any(|name| name.ends_with("Bash") && name.contains("haft")), "{offered:?}");
    assert!(!offered.iter().any(|name| own.contains(&name.as_str())), "{offered:?}");
}

fn claude(fixture: &AgentFixture, model: &ScriptedModel) -> Command {
    let mut claude = fixture.command(&agent("HAFT_CLAUDE"));
    claude.args(["-p", "go", "--output-format", "json"]).env("ANTHROPIC_BASE_URL", model.url());
    claude.env("ANTHROPIC_API_KEY", "x").env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
    claude.env("DISABLE_AUTOUPDATER", "1");
    claude
}

#[test]
fn claude_code_works_through_haft_alone() {
    let fixture = AgentFixture::new();
    let settings = "{\n  \"permissions\": {\"deny\": [\"WebSearch\"]}\n}\n";
    fixture.write(".claude/settings.json", settings);
    fixture.haft(&["mcp", "install", "claude", "--replace-builtin", "--yes"]);
    let model = ScriptedModel::start(harm());
    fixture.harm_and_undo(&model, claude(&fixture, &model));
    let own = ["Bash", "Edit", "Write", "Read", "Glob", "Grep", "NotebookEdit", "WebFetch"];
    offers_only_haft(&model, &own);
    offers_only_haft(&model, &["EnterWorktree", "ExitWorktree", "Workflow"]);
    fixture.haft(&["mcp", "uninstall", "claude", "--yes"]);
    assert_eq!(fixture.read(".claude/settings.json").as_deref(), Some(settings));
    // Claude Code has written to this file itself.
    let own: Value = serde_json::from_str(&fixture.read(".claude.json").unwrap()).unwrap();
    assert_eq!(own.pointer("/mcpServers/haft"), None, "{own}");
}

#[test]
fn claude_code_interrupted_ends_its_command() {
    let fixture = AgentFixture::new();
    fixture.haft(&["mcp", "install", "claude", "--replace-builtin", "--yes"]);
    fixture.interrupt(|model| claude(&fixture, model));
}

/// Codex's settings for this model; it offers more tools to models that it knows by name. With a writable /tmp it would create
/// /tmp/.git for a moment, which makes /tmp the project of other tests.
fn codex_settings(model: &ScriptedModel, name: &str) -> String {
    format!(
        "model = \"{name}\" # mine\nmodel_provider = \"local\"\nsandbox_mode = \"workspace-write\"\n\n\
         [model_providers.local]\nname = \"local\"\nbase_url = \"{}/v1\"\nwire_api = \"responses\"\nenv_key = \"LOCAL_KEY\"\n\n\
         [sandbox_workspace_write]\nexclude_slash_tmp = true\nexclude_tmpdir_env_var = true\n",
        model.url()
    )
}

fn codex(fixture: &AgentFixture) -> Command {
    let mut codex = fixture.command(&agent("HAFT_CODEX"));
    codex.args(["exec", "--skip-git-repo-check", "--json", "go"]).env("LOCAL_KEY", "x");
    codex
}

#[test]
fn codex_works_through_haft_alone() {
    let fixture = AgentFixture::new();
    let model = ScriptedModel::start(harm());
    let settings = codex_settings(&model, "m");
    fixture.write(".codex/config.toml", &settings);
    fixture.haft(&["mcp", "install", "codex", "--replace-builtin", "--yes"]);
    fixture.harm_and_undo(&model, codex(&fixture));
    offers_only_haft(&model, &["shell", "local_shell", "exec_command", "apply_patch", "view_image"]);
    fixture.haft(&["mcp", "uninstall", "codex", "--yes"]);
    assert_eq!(fixture.read(".codex/config.toml"), Some(settings));
}

#[test]
fn codex_interrupted_ends_its_command() {
    let fixture = AgentFixture::new();
    fixture.interrupt(|model| {
        fixture.write(".codex/config.toml", &codex_settings(model, "m"));
        fixture.haft(&["mcp", "install", "codex", "--replace-builtin", "--yes"]);
        codex(&fixture)
    });
}

#[test]
fn codex_keeps_apply_patch_but_cannot_write_with_it() {
    let patch = "*** Begin Patch\n*** Add File: patched.txt\n+x\n*** End Patch\n";
    for (is_installed, expected) in [(false, Some("x\n")), (true, None)] {
        let fixture = AgentFixture::new();
        let model = ScriptedModel::start(vec![("apply_patch", json!(patch))]);
        // Without a sandbox of Codex's own, which works on some machines only.
        let settings = codex_settings(&model, "gpt-5.5").replace("workspace-write", "danger-full-access");
        fixture.write(".codex/config.toml", &settings);
        if is_installed {
            fixture.haft(&["mcp", "install", "codex", "--replace-builtin", "--yes"]);
        }
        let ran = codex(&fixture).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        let (offered, results) = (model.offered(), model.results());
        assert!(offered.iter().any(|name| name == "apply_patch"), "{offered:?}\n{said}");
        assert_eq!(offered.iter().any(|name| name == "view_image"), !is_installed, "{offered:?}");
        assert_eq!(fixture.read("project/patched.txt").as_deref(), expected, "{results:?}\n{said}");
    }
}

const GEMINI_SETTINGS: &str = r#"{
  "security": {"auth": {"selectedType": "gemini-api-key"}}, // mine
  "privacy": {"usageStatisticsEnabled": false}
}
"#;

fn gemini(fixture: &AgentFixture, model: &ScriptedModel) -> Command {
    let mut gemini = fixture.command(&node());
    // Without --yolo it offers no tools that need approval, whatever the settings say. Without a model's name it asks another
    // model which one to use.
    gemini.arg(agent("HAFT_GEMINI")).args(["-p", "go", "--yolo", "-m", "gemini-2.5-pro"]);
    gemini.env("GEMINI_API_KEY", "x").env("GOOGLE_GEMINI_BASE_URL", model.url());
    gemini.env("GEMINI_CLI_TRUST_WORKSPACE", "true");
    gemini
}

#[test]
fn gemini_cli_works_through_haft_alone() {
    let fixture = AgentFixture::new();
    fixture.write(".gemini/settings.json", GEMINI_SETTINGS);
    fixture.haft(&["mcp", "install", "gemini", "--replace-builtin", "--yes"]);
    let model = ScriptedModel::start(harm());
    fixture.harm_and_undo(&model, gemini(&fixture, &model));
    offers_only_haft(&model, &["run_shell_command", "replace", "write_file", "read_file", "read_many_files"]);
    offers_only_haft(&model, &["glob", "grep_search", "list_directory", "web_fetch"]);
    fixture.haft(&["mcp", "uninstall", "gemini", "--yes"]);
    assert_eq!(fixture.read(".gemini/settings.json").as_deref(), Some(GEMINI_SETTINGS));
}

#[test]
fn gemini_cli_interrupted_ends_its_command() {
    let fixture = AgentFixture::new();
    fixture.write(".gemini/settings.json", GEMINI_SETTINGS);
    fixture.haft(&["mcp", "install", "gemini", "--replace-builtin", "--yes"]);
    fixture.interrupt(|model| gemini(&fixture, model));
}

/// opencode's settings for this model; to models of some names it offers `apply_patch` in place of `edit` and `write`. It adds
/// `$schema` itself where it is missing.
fn opencode_settings(model: &ScriptedModel, name: &str) -> String {
    let options = json!({"baseURL": format!("{}/v1", model.url()), "apiKey": "x"});
    let local = json!({"npm": "@ai-sdk/openai-compatible", "models": {name: {}}, "options": options});
    format!(
        "{{\n  \"$schema\": \"https://opencode.ai/config.json\",\n  \"model\": \"local/{name}\", // mine\n  \
         \"provider\": {{\"local\": {local}}}\n}}\n"
    )
}

fn opencode(fixture: &AgentFixture) -> Command {
    let mut opencode = fixture.command(&agent("HAFT_OPENCODE"));
    // It unpacks libraries there and leaves them.
    opencode.args(["run", "go"]).env("TMPDIR", fixture.home.path());
    for download in ["AUTOUPDATE", "DEFAULT_PLUGINS", "LSP_DOWNLOAD", "MODELS_FETCH"] {
        opencode.env(format!("OPENCODE_DISABLE_{download}"), "1");
    }
    opencode
}

#[test]
fn opencode_works_through_haft_alone() {
    let fixture = AgentFixture::new();
    let model = ScriptedModel::start(harm());
    let settings = opencode_settings(&model, "m");
    fixture.write(".config/opencode/opencode.json", &settings);
    fixture.haft(&["mcp", "install", "opencode", "--replace-builtin", "--yes"]);
    fixture.harm_and_undo(&model, opencode(&fixture));
    offers_only_haft(&model, &["bash", "edit", "write", "read", "grep", "glob", "list", "webfetch"]);
    fixture.haft(&["mcp", "uninstall", "opencode", "--yes"]);
    assert_eq!(fixture.read(".config/opencode/opencode.json"), Some(settings));
}

#[test]
fn opencode_interrupted_ends_its_command() {
    let fixture = AgentFixture::new();
    let model = fixture.interrupt(|model| {
        fixture.write(".config/opencode/opencode.json", &opencode_settings(model, "gpt-5.5"));
        fixture.haft(&["mcp", "install", "opencode", "--replace-builtin", "--yes"]);
        opencode(&fixture)
    });
    offers_only_haft(&model, &["apply_patch", "patch"]);
}
