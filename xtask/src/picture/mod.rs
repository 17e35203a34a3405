//! `cargo xtask picture`: a new user's first hour as a script at a real terminal. Every outcome is checked; the agent's harm and its
//! undo are drawn as docs/undo.svg for the README.

#[expect(
    clippy::unwrap_used,
    dead_code,
    reason = "shared with the tests: a failure there ends the connection"
)]
#[path = "../../../crates/haft-cli/tests/it/fixture/scripted_model.rs"]
mod scripted_model;
mod svg;
mod terminal;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::process::read;
use crate::workspace::{Workspace, root};
use crate::{Done, peers};
use scripted_model::{ScriptedCall, ScriptedModel};
use terminal::{COLUMNS, TmuxShell};

const LABEL: &str = "A terminal: Claude Code discards uncommitted work, deletes a folder and overwrites a file; \
                     haft log lists its calls, haft undo restores everything";

/// The user's own settings of Claude Code, in a form that a rewrite of the file would change.
const CLAUDE_SETTINGS: &str = "{\n  \"permissions\": {\"deny\": [\"WebSearch\"]}\n}\n";

/// What the user has not committed when the agent starts.
const UNCOMMITTED: &str = "fn main() {\n    println!(\"not committed yet\");\n}\n";

/// Where the agent must not write; it does not exist, so that a broken build of Haft cannot damage this machine's own file.
const OUTSIDE: &str = "/etc/cron.d/cleanup";

pub(crate) fn run(args: &[String]) -> Done {
    let haft = match args {
        [] => Workspace::load()?.build_haft("release")?,
        [flag, path] if flag == "--haft" => {
            fs::canonicalize(path).map_err(|error| format!("{path}: {error}"))?
        }
        _ => return Err("usage: cargo xtask picture [--haft PATH]".to_owned()),
    };
    let user = NewUser::create(&haft, &peers::claude()?).map_err(|error| format!("a home: {error}"))?;
    let lines = user.first_hour()?;
    let file = root().join("docs/undo.svg");
    fs::write(&file, svg::draw(&lines, COLUMNS, LABEL))
        .map_err(|error| format!("{}: {error}", file.display()))?;
    println!("wrote {} ({} lines)", file.display(), lines.len());
    Ok(())
}

/// What the model tells the agent to do.
fn harm() -> Vec<ScriptedCall> {
    vec![
        ("Bash", json!({"command": "git reset --hard"})),
        ("Bash", json!({"command": "rm -rf src"})),
        ("Write", json!({"file_path": "README.md", "content": "TODO\n"})),
        ("Write", json!({"file_path": OUTSIDE, "content": "TODO\n"})),
    ]
}

/// Every path below the project with its mode and content.
type TreeContents = BTreeMap<PathBuf, (u32, Vec<u8>)>;

/// A home with nothing but a project, the programs and Claude Code's settings.
struct NewUser {
    directory: TempDir,
}

impl NewUser {
    fn create(haft: &Path, claude: &Path) -> std::io::Result<Self> {
        let user = Self { directory: tempfile::tempdir()? };
        user.write("project/README.md", "# My project\n")?;
        user.write("project/notes.txt", "buy tea\n")?;
        user.write("project/src/main.rs", "fn main() {}\n")?;
        user.write(".claude/settings.json", CLAUDE_SETTINGS)?;
        // A registry that the user's own settings name may have a private address, as a mirror has.
        user.write(".npmrc", "registry=https://registry.npmjs.org/\n")?;
        fs::create_dir(user.path("bin"))?;
        fs::copy(haft, user.path("bin/haft"))?;
        symlink(claude, user.path("bin/claude"))?;
        let commands = [
            "init -q",
            // Otherwise the preview of the undo is longer by git's own log.
            "config core.logAllRefUpdates false",
            "add .",
            "-c user.name=me -c user.email=me@localhost commit -qm first",
        ];
        for command in commands {
            let mut git = Command::new("git");
            git.args(command.split(' ')).current_dir(user.path("project")).env("HOME", user.path(""));
            read(&mut git).map_err(std::io::Error::other)?;
        }
        user.write("project/src/main.rs", UNCOMMITTED)?;
        Ok(user)
    }

    /// Returns the lines for the picture.
    fn first_hour(&self) -> Result<Vec<String>, String> {
        let model = ScriptedModel::start(harm());
        let mut shell = TmuxShell::start(
            &self.directory.path().join("tmux"),
            &self.path("project"),
            &self.variables(&model.url()),
        )?;
        let beginning = self.tree()?;

        shell.run("haft demo", &[])?;
        shell.run("haft call Edit file_path=notes.txt old_string=tea new_string=coffee", &[])?;
        self.expect(&shell, "notes.txt", Some("buy coffee\n"))?;
        let host = "wants to reach registry.npmjs.org:443";
        shell.run("haft sandbox npm install is-number", &[(host, "o")])?;
        let package = self.text("project/node_modules/is-number/package.json").unwrap_or_default();
        if !package.contains("\"version\"") {
            return Err(shell.failure("npm did not install the package"));
        }
        shell.run("haft mcp install claude --replace-builtin --yes", &[])?;

        let before_agent = self.tree()?;
        let mut lines = shell.run("claude -p 'Clean up this project'", &[])?;
        if model.offered().iter().any(|tool| ["Bash", "Edit", "Write"].contains(&tool.as_str())) {
            return Err(shell.failure("the agent still has tools of its own"));
        }
        if model.results().len() != harm().len() {
            return Err(shell.failure(&format!("the agent made other calls: {:?}", model.results())));
        }
        if Path::new(OUTSIDE).exists() {
            return Err(shell.failure(&format!("{OUTSIDE} was written")));
        }
        self.expect(&shell, "src/main.rs", None)?;
        self.expect(&shell, "README.md", Some("TODO\n"))?;
        self.expect(&shell, "notes.txt", Some("buy tea\n"))?;
        lines.extend(shell.run("ls", &[])?);
        let log = shell.run("haft log -n 4", &[])?;
        let expected = ["git reset --hard", "rm -rf src", "README.md", OUTSIDE];
        if let Some(call) = expected.iter().find(|call| !log.iter().any(|line| line.contains(**call))) {
            return Err(shell.failure(&format!("the log does not show {call}")));
        }
        lines.extend(log);
        lines.extend(shell.run("haft undo -n 3", &[("? [y/N]", "y")])?);
        self.compare(&shell, &before_agent)?;
        lines.extend(shell.run("ls; cat src/main.rs", &[])?);

        shell.run("haft undo 1 2 --yes", &[])?;
        self.compare(&shell, &beginning)?;
        shell.run("haft mcp uninstall claude --yes", &[])?;
        if self.text(".claude/settings.json").as_deref() != Some(CLAUDE_SETTINGS) {
            return Err(shell.failure("~/.claude/settings.json is not as it was"));
        }
        // Claude Code writes to this file itself.
        let own: Value =
            serde_json::from_str(&self.text(".claude.json").unwrap_or_default()).unwrap_or_default();
        if own["mcpServers"].get("haft").is_some() {
            return Err(shell.failure("~/.claude.json still has the entry for Haft"));
        }
        Ok(lines)
    }

    fn variables(&self, model: &str) -> Vec<(&'static str, String)> {
        let path = std::env::var("PATH").unwrap_or_default();
        vec![
            ("HOME", self.path("").display().to_string()),
            ("PATH", format!("{}:{path}", self.path("bin").display())),
            ("ANTHROPIC_BASE_URL", model.to_owned()),
            ("ANTHROPIC_API_KEY", "x".to_owned()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
            ("DISABLE_AUTOUPDATER", "1".to_owned()),
        ]
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join("home").join(name)
    }

    fn write(&self, name: &str, text: &str) -> std::io::Result<()> {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap_or(&path))?;
        fs::write(path, text)
    }

    fn text(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.path(name)).ok()
    }

    /// Checks the content of a file of the project; without a text it must not exist.
    fn expect(&self, shell: &TmuxShell, name: &str, text: Option<&str>) -> Done {
        let found = self.text(&format!("project/{name}"));
        if found.as_deref() == text {
            return Ok(());
        }
        Err(shell.failure(&format!("{name} has {found:?} instead of {text:?}")))
    }

    /// Checks that the project is as it was then, git's own files included.
    fn compare(&self, shell: &TmuxShell, then: &TreeContents) -> Done {
        let now = self.tree()?;
        let differs = |path: &&PathBuf| now.get(*path) != then.get(*path);
        let different: Vec<String> =
            now.keys().chain(then.keys()).filter(differs).map(|path| path.display().to_string()).collect();
        if different.is_empty() {
            return Ok(());
        }
        Err(shell.failure(&format!("not as before: {}", different.join(", "))))
    }

    fn tree(&self) -> Result<TreeContents, String> {
        let mut tree = TreeContents::new();
        add_to_tree(&self.path("project"), &mut tree)
            .map_err(|error| format!("reading the project: {error}"))?;
        Ok(tree)
    }
}

fn add_to_tree(path: &Path, tree: &mut TreeContents) -> std::io::Result<()> {
    let metadata = path.symlink_metadata()?;
    let content = if metadata.is_dir() {
        for entry in fs::read_dir(path)? {
            add_to_tree(&entry?.path(), tree)?;
        }
        Vec::new()
    } else if metadata.is_symlink() {
        fs::read_link(path)?.into_os_string().into_encoded_bytes()
    } else {
        fs::read(path)?
    };
    tree.insert(path.to_owned(), (metadata.permissions().mode(), content));
    Ok(())
}
