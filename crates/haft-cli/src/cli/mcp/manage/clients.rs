//! The programs that `haft mcp install` supports: their settings files and the entry for Haft.

use std::path::{Path, PathBuf};

use haft_files::read_named;
use haft_tool::{ErrorKind, ToolError, Value, json};

use crate::settings_edit::{json as jsonc, toml, yaml};

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

/// The format of a settings file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FileFormat {
    /// With comments and trailing commas where the program accepts them.
    Json,
    Toml,
    Yaml,
}

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
    fn file_format(self) -> FileFormat {
        match self {
            Self::Codex => FileFormat::Toml,
            Self::Goose => FileFormat::Yaml,
            _ => FileFormat::Json,
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

    /// The file's new text, with the entry that starts `program`.
    pub(super) fn installed(
        self,
        old: &str,
        name: &str,
        program: &str,
        args: &[String],
    ) -> Result<String, String> {
        let entry = self.entry(name, program, args);
        match self.file_format() {
            FileFormat::Json => jsonc::put(old, &self.path(old, name), &entry),
            FileFormat::Toml => {
                toml::put(old, &self.path(old, name), entry.as_object().unwrap_or(&serde_json::Map::new()))
            }
            FileFormat::Yaml => {
                yaml::put(old, "extensions", name, entry.as_object().unwrap_or(&serde_json::Map::new()))
            }
        }
    }

    /// The file's new text, without the entry; nothing if it is not there.
    pub(super) fn uninstalled(self, old: &str, name: &str) -> Result<Option<String>, String> {
        match self.file_format() {
            FileFormat::Json => jsonc::remove(old, &self.path(old, name)),
            FileFormat::Toml => toml::remove(old, &self.path(old, name)),
            FileFormat::Yaml => yaml::remove(old, "extensions", name),
        }
    }

    /// The tables that lead to the entry.
    fn path<'a>(self, old: &str, name: &'a str) -> Vec<&'a str> {
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
            _ => &["mcpServers"],
        };
        table.iter().copied().chain([name]).collect()
    }

    fn entry(self, name: &str, program: &str, args: &[String]) -> Value {
        match self {
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
        let new = Client::Opencode.installed(old, "haft", "/haft", &["mcp".to_owned()]).unwrap();
        let all = jsonc::read(&new).unwrap().unwrap();
        assert_eq!(all["mcp"]["servers"]["haft"]["command"], json!(["/haft", "mcp"]));
        assert_eq!(Client::Opencode.uninstalled(&new, "haft").unwrap().as_deref(), Some(old));
    }
}
