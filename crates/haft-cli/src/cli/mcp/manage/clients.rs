//! The programs that `haft mcp install` supports: their settings files and the entry for Haft.

use std::path::{Path, PathBuf};

use haft_files::read_named;
use haft_tool::{ErrorKind, ToolError, Value, json};

use crate::settings_edit::{SettingChange, SettingsFormat, json as jsonc};

/// A program that can use MCP servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(in super::super) enum Client {
    Claude,
    ClaudeDesktop,
    Codex,
    Cursor,
    Vscode,
    Zed,
    Gemini,
    Opencode,
    Goose,
    Windsurf,
}

/// Haft's entry in a program's settings.
#[derive(Clone, Copy)]
pub(super) struct ClientEntry<'a> {
    pub(super) name: &'a str,
    /// The path of Haft.
    pub(super) program: &'a str,
    pub(super) args: &'a [String],
    /// Whether the settings are those of a project.
    pub(super) is_project: bool,
    /// Whether Haft's tools become the only ones, and need no approval.
    pub(super) replaces_builtin: bool,
}

/// Claude Code's own tools that read, change or run something.
const CLAUDE_TOOLS: &[&str] = &[
    "Bash",
    "BashOutput",
    "KillShell",
    "Edit",
    "Write",
    "NotebookEdit",
    "Read",
    "Glob",
    "Grep",
    "WebFetch",
    "EnterWorktree",
    "ExitWorktree",
    "Workflow",
];
/// The same of Gemini CLI.
const GEMINI_TOOLS: &[&str] = &[
    "run_shell_command",
    "replace",
    "write_file",
    "read_file",
    "read_many_files",
    "glob",
    "grep_search",
    "list_directory",
    "web_fetch",
];
/// The same of opencode.
const OPENCODE_TOOLS: &[&str] =
    &["bash", "edit", "write", "patch", "read", "grep", "glob", "list", "webfetch"];

/// The directories of settings, from the environment.
pub(super) struct SettingsDirs<'a> {
    /// Looks up a variable.
    pub(super) var: &'a dyn Fn(&str) -> Option<PathBuf>,
    pub(super) mac: bool,
}

impl SettingsDirs<'_> {
    fn home(&self) -> Result<PathBuf, ToolError> {
        self.absolute("HOME").ok_or_else(|| ToolError::failed("cannot locate the settings: set HOME"))
    }

    fn absolute(&self, name: &str) -> Option<PathBuf> {
        (self.var)(name).filter(|path| path.is_absolute())
    }

    /// The directory of settings.
    fn config(&self) -> Result<PathBuf, ToolError> {
        match self.absolute("XDG_CONFIG_HOME") {
            Some(config) => Ok(config),
            None => Ok(self.home()?.join(".config")),
        }
    }

    /// The directory of settings of desktop programs.
    fn application(&self) -> Result<PathBuf, ToolError> {
        if self.mac { Ok(self.home()?.join("Library/Application Support")) } else { self.config() }
    }
}

impl Client {
    pub(super) fn file_format(self) -> SettingsFormat {
        match self {
            Self::Codex => SettingsFormat::Toml,
            Self::Goose => SettingsFormat::Yaml,
            _ => SettingsFormat::Json,
        }
    }

    /// The user's settings file.
    pub(super) fn file(self, dirs: &SettingsDirs<'_>) -> Result<PathBuf, ToolError> {
        let or_home = |name: &str, folder: &str| match dirs.absolute(name) {
            Some(named) => Ok::<_, ToolError>(named),
            None => Ok(dirs.home()?.join(folder)),
        };
        Ok(match self {
            Self::Claude => or_home("CLAUDE_CONFIG_DIR", "")?.join(".claude.json"),
            Self::ClaudeDesktop => dirs.application()?.join("Claude/claude_desktop_config.json"),
            Self::Codex => or_home("CODEX_HOME", ".codex")?.join("config.toml"),
            Self::Cursor => dirs.home()?.join(".cursor/mcp.json"),
            Self::Vscode => dirs.application()?.join("Code/User/mcp.json"),
            Self::Zed => dirs.config()?.join("zed/settings.json"),
            Self::Gemini => dirs.home()?.join(".gemini/settings.json"),
            Self::Opencode => opencode(&dirs.config()?.join("opencode")),
            Self::Goose => dirs.config()?.join("goose/config.yaml"),
            Self::Windsurf => dirs.home()?.join(".codeium/windsurf/mcp_config.json"),
        })
    }

    /// The project's settings file, relative to the workspace.
    pub(super) fn project_file(self, workspace: &Path) -> Result<String, ToolError> {
        let name = match self {
            Self::Claude => ".mcp.json",
            Self::Codex => ".codex/config.toml",
            Self::Cursor => ".cursor/mcp.json",
            Self::Vscode => ".vscode/mcp.json",
            Self::Zed => ".zed/settings.json",
            Self::Gemini => ".gemini/settings.json",
            Self::Opencode => match opencode(workspace).extension() {
                Some(ext) if ext == "jsonc" => "opencode.jsonc",
                _ => "opencode.json",
            },
            Self::ClaudeDesktop | Self::Goose | Self::Windsurf => {
                return Err(ToolError::invalid_arguments(
                    "this program has no project settings. Leave out --project",
                ));
            }
        };
        Ok(name.to_owned())
    }

    /// The changes of the settings file that add the entry, given its text.
    pub(super) fn entry_changes(self, old: &str, entry: &ClientEntry<'_>) -> Vec<SettingChange> {
        let mut changes =
            vec![SettingChange::Set { path: self.entry_path(old, entry.name), value: self.entry(entry) }];
        if entry.replaces_builtin && self != Self::Claude {
            changes.extend(self.builtin_changes());
        }
        changes
    }

    /// What of the program's own tools no setting turns off.
    pub(super) fn remaining_tools(self) -> Option<&'static str> {
        (self == Self::Codex).then_some(
            "No setting turns off Codex's apply_patch. With sandbox_mode = \"read-only\" it writes only what you approve; \
             Haft neither sees nor undoes that.",
        )
    }

    /// Whether the settings can turn off the program's own tools; if not, why.
    pub(super) fn check_replaceable(self) -> Result<(), ToolError> {
        let why = match self {
            Self::Claude | Self::Codex | Self::Gemini | Self::Opencode => return Ok(()),
            Self::ClaudeDesktop => "it has no tools of its own that work on files",
            Self::Goose => "turn off its developer extension with `goose configure`",
            Self::Zed => "choose a profile without its own tools in the agent panel",
            Self::Cursor | Self::Vscode | Self::Windsurf => {
                "its own tools can only be turned off in its window"
            }
        };
        Err(ToolError::invalid_arguments(format!("--replace-builtin does not work with this program: {why}")))
    }

    /// A second settings file, in which built-in tools are turned off: in the project's directory, else the user's.
    pub(super) fn permissions_file(
        self,
        dirs: &SettingsDirs<'_>,
        is_project: bool,
    ) -> Result<Option<PathBuf>, ToolError> {
        Ok(match self {
            Self::Claude if is_project => Some(PathBuf::from(".claude/settings.json")),
            Self::Claude => Some(match dirs.absolute("CLAUDE_CONFIG_DIR") {
                Some(directory) => directory.join("settings.json"),
                None => dirs.home()?.join(".claude/settings.json"),
            }),
            _ => None,
        })
    }

    /// The changes of that file.
    pub(super) fn permissions_changes(self, name: &str) -> Vec<SettingChange> {
        let mut changes = self.builtin_changes();
        changes.push(SettingChange::add(&["permissions", "allow"], &[&format!("mcp__{name}")]));
        changes
    }

    /// The changes that turn off built-in tools, in the permissions file if there is one.
    pub(super) fn builtin_changes(self) -> Vec<SettingChange> {
        match self {
            Self::Claude => vec![SettingChange::add(&["permissions", "deny"], CLAUDE_TOOLS)],
            Self::Codex => vec![
                // Nothing turns off apply_patch; in a read-only sandbox it does not write without approval.
                SettingChange::set(&["sandbox_mode"], json!("read-only")),
                SettingChange::set(&["features", "shell_tool"], json!(false)),
                SettingChange::set(&["features", "unified_exec"], json!(false)),
                SettingChange::set(&["features", "view_image"], json!(false)),
            ],
            Self::Gemini => vec![SettingChange::add(&["tools", "exclude"], GEMINI_TOOLS)],
            Self::Opencode => {
                OPENCODE_TOOLS.iter().map(|tool| SettingChange::set(&["tools", tool], json!(false))).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The path of the entry in the settings file.
    pub(super) fn entry_path(self, old: &str, name: &str) -> Vec<String> {
        let table: &[&str] = match self {
            Self::Vscode => &["servers"],
            Self::Zed => &["context_servers"],
            Self::Codex => &["mcp_servers"],
            // Newer versions keep the servers one table deeper.
            Self::Opencode => match jsonc::read(old) {
                Ok(Some(all))
                    if all["mcp"]["servers"].is_object() && !all["mcp"]["servers"]["type"].is_string() =>
                {
                    &["mcp", "servers"]
                }
                _ => &["mcp"],
            },
            Self::Goose => &["extensions"],
            _ => &["mcpServers"],
        };
        table.iter().copied().chain([name]).map(str::to_owned).collect()
    }

    fn entry(self, entry: &ClientEntry<'_>) -> Value {
        let ClientEntry { name, program, args, is_project, replaces_builtin } = *entry;
        let mut args = args.to_vec();
        let chooses = |arg: &String| arg == "--workspace" || arg.starts_with("--workspace=");
        // These start servers elsewhere, and expand the variable in a project's file.
        if is_project && matches!(self, Self::Vscode | Self::Cursor) && !args.iter().any(chooses) {
            args.extend(["--workspace".to_owned(), "${workspaceFolder}".to_owned()]);
        }
        match self {
            Self::Codex if replaces_builtin => {
                json!({"command": program, "args": args, "default_tools_approval_mode": "approve"})
            }
            Self::Gemini if replaces_builtin => json!({"command": program, "args": args, "trust": true}),
            Self::Claude | Self::Vscode => json!({"type": "stdio", "command": program, "args": args}),
            Self::Opencode => {
                let command: Vec<&str> =
                    std::iter::once(program).chain(args.iter().map(String::as_str)).collect();
                json!({"type": "local", "command": command, "enabled": true})
            }
            Self::Goose => json!({
                "enabled": true, "type": "stdio", "name": name, "description": "Scoped, recorded and reversible tools",
                "cmd": program, "args": args, "envs": {}, "timeout": 300,
            }),
            _ => json!({"command": program, "args": args}),
        }
    }
}

/// Whether two entries start the same program; of YAML, the old one is a text.
pub(super) fn starts_same_program(old: &Value, new: &Value) -> bool {
    let program = |entry: &Value| {
        let command = entry.get("command").or_else(|| entry.get("cmd"))?;
        command.get(0).unwrap_or(command).as_str().map(str::to_owned)
    };
    program(new).is_some_and(|new| match old.as_str() {
        Some(text) => text.contains(&new),
        None => program(old) == Some(new),
    })
}

/// The existing one of the two file names.
fn opencode(folder: &Path) -> PathBuf {
    let commented = folder.join("opencode.jsonc");
    match read_named(&commented, 0) {
        Err(error) if error.kind == ErrorKind::FileNotFound => folder.join("opencode.json"),
        _ => commented,
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn the_environment_says_where_the_files_are() {
        let file = |client: Client, set: &[(&str, &str)], mac: bool| {
            let var = |name: &str| {
                let found = set.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| PathBuf::from(value))
            };
            client.file(&SettingsDirs { var: &var, mac }).map(|path| path.display().to_string())
        };
        let home = [("HOME", "/h")];
        let shown: Vec<String> = Client::value_variants()
            .iter()
            .map(|client| {
                format!("{} {}", file(*client, &home, false).unwrap(), file(*client, &home, true).unwrap())
            })
            .collect();
        insta::assert_snapshot!("client_files", shown.join("\n"));
        let set =
            [("HOME", "/h"), ("XDG_CONFIG_HOME", "/c"), ("CODEX_HOME", "/x"), ("CLAUDE_CONFIG_DIR", "/k")];
        assert_eq!(file(Client::Zed, &set, false).unwrap(), "/c/zed/settings.json");
        assert_eq!(file(Client::Codex, &set, false).unwrap(), "/x/config.toml");
        assert_eq!(file(Client::Claude, &set, false).unwrap(), "/k/.claude.json");
        assert_eq!(
            file(Client::Goose, &[("HOME", "/h"), ("XDG_CONFIG_HOME", "c")], false).unwrap(),
            "/h/.config/goose/config.yaml"
        );
        assert!(file(Client::Cursor, &[], false).is_err());
    }

    #[test]
    fn servers_that_lie_deeper_are_found_there() {
        let old = "{\n  \"mcp\": {\n    \"servers\": {\n      \"x\": {\"type\": \"local\", \"command\": [\"x\"]}\n    }\n  }\n}\n";
        let args = ["mcp".to_owned()];
        let entry = ClientEntry {
            name: "haft",
            program: "/haft",
            args: &args,
            is_project: false,
            replaces_builtin: false,
        };
        let changes = Client::Opencode.entry_changes(old, &entry);
        let new = SettingsFormat::Json.apply(old, &changes).unwrap();
        let all = jsonc::read(&new).unwrap().unwrap();
        assert_eq!(all["mcp"]["servers"]["haft"]["command"], json!(["/haft", "mcp"]));
        assert_eq!(SettingsFormat::Json.revert(&new, &changes, old, &[]).unwrap(), old);
    }
}
