//! The MCP servers that are configured for a workspace: by flags, in the user's file, in the project's `.mcp.json`, by skills.
//!
//! Of two servers with one name the first counts: flags, then the user's file, then the project's. Nothing is started here.

use std::path::Path;

use crate::servers::{ServerEntry, ServerOrigin, mcp_json};
use haft_files::read_named;
use haft_tool::{ErrorKind, ToolError, Value, close_names};

use super::pinned::unpinned;
use super::{Config, skills};

/// The project's file of servers.
pub(crate) const PROJECT_SERVERS: &str = ".mcp.json";
/// Largest file of servers.
const MAX_FILE_BYTES: u64 = 4 << 20;
/// The keys of an entry in haft.toml.
const KEYS: &[&str] = &[
    "args",
    "command",
    "cwd",
    "disabled",
    "enabled",
    "env",
    "headers",
    "network",
    "oauth",
    "offers",
    "sandbox",
    "timeout",
    "tools",
    "transport",
    "type",
    "url",
    "writes",
];

/// A server as written in a file or a flag, not yet validated.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ConfiguredServer {
    /// Its name.
    pub name: String,
    /// The entry as written.
    pub written: Value,
    /// Where it was configured.
    pub origin: ServerOrigin,
}

impl ConfiguredServer {
    /// The entry; `None` if it is disabled, an error if it is invalid.
    pub(crate) fn entry(&self) -> Result<Option<ServerEntry>, String> {
        ServerEntry::read(&self.name, &self.written, self.origin.clone(), &|name| std::env::var(name).ok())
    }
}

/// The configured servers and warnings about them.
#[derive(Debug, Default)]
pub(crate) struct ConfiguredServers {
    /// One server per name.
    pub all: Vec<ConfiguredServer>,
    /// Warnings about invalid entries.
    pub warnings: Vec<String>,
}

impl Config {
    /// The servers for calls in `workspace`. Each of `flags` is a file or its JSON; with `strict` nothing else counts. A flag
    /// that cannot be understood is an error; what is wrong in files is a warning.
    pub(crate) fn servers(
        &self,
        workspace: &Path,
        flags: &[String],
        strict: bool,
    ) -> Result<ConfiguredServers, ToolError> {
        let mut servers = ConfiguredServers::default();
        for flag in flags {
            servers.add_all(&ServerOrigin::Flag, from_flag(flag)?);
        }
        if strict {
            return Ok(servers);
        }
        let own = &self.values.tools.mcp_servers;
        if let Some(path) = self.path().filter(|_| !own.is_empty()) {
            for (name, written) in own {
                servers.warnings.extend(unknown_keys(path, name, written));
            }
            servers.add_all(&ServerOrigin::User(path.to_owned()), own.clone());
        }
        let project = workspace.join(PROJECT_SERVERS);
        match project_servers(&project) {
            Ok(all) => servers.add_all(&ServerOrigin::Project(project), all),
            Err(why) => servers.warnings.push(why),
        }
        // The author of a skill may not be its user, so its servers need consent.
        let home = std::env::home_dir().filter(|home| home.is_absolute() && home != workspace);
        for base in std::iter::once(workspace).chain(home.as_deref()) {
            for (skill, declared) in skills::declared(base) {
                servers.add_all(&ServerOrigin::Project(skill), declared);
            }
        }
        Ok(servers)
    }
}

impl ConfiguredServers {
    fn add_all(&mut self, origin: &ServerOrigin, all: serde_json::Map<String, Value>) {
        for (name, written) in all {
            if let Some(first) = self.all.iter().find(|first| first.name == name) {
                // A disabled entry is meant to hide others of its name.
                if is_enabled(&first.written) {
                    self.warnings.push(format!(
                        "the server {name:?} of {origin} is ignored: {} has one of that name",
                        first.origin
                    ));
                }
                continue;
            }
            if matches!(origin, ServerOrigin::Project(_)) && is_enabled(&written) {
                self.warnings.extend(unpinned(&written).map(|(program, package)| {
                    format!(
                        "the server {name:?} of {origin} runs the newest {package:?} that {program} finds. Name a version to \
                         pin it"
                    )
                }));
            }
            self.all.push(ConfiguredServer { name, written, origin: origin.clone() });
        }
    }
}

/// Whether an entry is enabled.
fn is_enabled(written: &Value) -> bool {
    written["disabled"] != true && written["enabled"] != false
}

fn from_flag(flag: &str) -> Result<serde_json::Map<String, Value>, ToolError> {
    let (bytes, place) = if flag.trim_start().starts_with('{') {
        (flag.as_bytes().to_vec(), "--mcp-config".to_owned())
    } else {
        let bytes =
            read_named(Path::new(flag), MAX_FILE_BYTES).map_err(|error| error.context("--mcp-config"))?;
        (bytes, format!("--mcp-config: {flag}"))
    };
    let all = mcp_json(&bytes, &place).map_err(ToolError::invalid_arguments)?;
    // SDKs send an empty list where a program has no servers.
    let is_list = |bytes: &[u8]| {
        serde_json::from_slice::<Value>(bytes).is_ok_and(|file| file.get("mcpServers").is_some())
    };
    if all.is_empty() && !is_list(&bytes) {
        return Err(ToolError::invalid_arguments(format!(
            "{place} names no server; expected {{\"mcpServers\": {{\"NAME\": {{…}}}}}}"
        )));
    }
    Ok(all)
}

fn project_servers(path: &Path) -> Result<serde_json::Map<String, Value>, String> {
    match read_named(path, MAX_FILE_BYTES) {
        Ok(bytes) => mcp_json(&bytes, &path.display().to_string())
            .map_err(|why| format!("{why}; its servers are ignored")),
        Err(error) if error.kind == ErrorKind::FileNotFound => Ok(serde_json::Map::new()),
        Err(error) => Err(format!("{}; its servers are ignored", error.message)),
    }
}

fn unknown_keys(path: &Path, name: &str, written: &Value) -> Vec<String> {
    let keys = written.as_object().into_iter().flatten().map(|(key, _)| key);
    keys.filter(|key| !KEYS.contains(&key.as_str()))
        .map(|key| {
            let near = close_names(key, KEYS.iter().copied());
            let hint = near.first().map(|near| format!(". Did you mean {near}?")).unwrap_or_default();
            format!("{}: the server {name:?} has no setting {key}{hint}", path.display())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    struct Fixture {
        folder: tempfile::TempDir,
    }

    #[expect(clippy::disallowed_methods, reason = "the test lays out files for the code to read")]
    impl Fixture {
        fn new(own: &str, project: &str) -> Self {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join("own.toml"), own).unwrap();
            std::fs::create_dir(folder.path().join("w")).unwrap();
            if !project.is_empty() {
                std::fs::write(folder.path().join("w/.mcp.json"), project).unwrap();
            }
            Self { folder }
        }

        fn servers(&self, flags: &[&str], strict: bool) -> Result<ConfiguredServers, ToolError> {
            let workspace = self.folder.path().join("w");
            let config = Config::read(Some(self.folder.path().join("own.toml")), &workspace, &|_| None)?;
            let flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
            config.servers(&workspace, &flags, strict)
        }
    }

    fn commands(servers: &ConfiguredServers) -> Vec<(&str, &str)> {
        servers
            .all
            .iter()
            .map(|one| (one.name.as_str(), one.written["command"].as_str().unwrap_or("-")))
            .collect()
    }

    const OWN: &str = "[tools.mcp_servers.a]\ncommand = \"own\"\n[tools.mcp_servers.off]\nenabled = false\n";

    #[test]
    fn flags_count_before_the_user_and_the_user_before_the_project() {
        let project = json!({"mcpServers": {
            "a": {"command": "project"}, "b": {"command": "project"}, "off": {"command": "project"},
        }});
        let fixture = Fixture::new(OWN, &project.to_string());
        let flag = r#"{"mcpServers": {"b": {"command": "flag"}}}"#;
        let servers = fixture.servers(&[flag], false).unwrap();
        assert_eq!(commands(&servers), [("b", "flag"), ("a", "own"), ("off", "-")]);
        let ignored: Vec<_> = servers.warnings.iter().map(|said| said.contains("is ignored")).collect();
        assert_eq!(
            ignored,
            [true, true],
            "a disabled entry hides others without a warning: {:?}",
            servers.warnings
        );
        assert!(servers.all[2].entry().unwrap().is_none());
        assert_eq!(commands(&fixture.servers(&[flag], true).unwrap()), [("b", "flag")]);
        assert!(fixture.servers(&[], true).unwrap().all.is_empty());
    }

    #[test]
    fn a_bad_file_is_a_warning_and_a_bad_flag_an_error() {
        for bad in ["{", "[]", "{\"mcpServers\": 1}", &"[".repeat(200_000)] {
            let servers = Fixture::new(OWN, bad).servers(&[], false).unwrap();
            assert_eq!((servers.all.len(), servers.warnings.len()), (2, 1), "{:?}", servers.warnings);
            assert!(servers.warnings[0].contains(".mcp.json") && servers.warnings[0].contains("ignored"));
        }
        let fixture = Fixture::new("", "");
        for bad in ["{", "{}", "/nowhere/x.json", ""] {
            let error = fixture.servers(&[bad], false).unwrap_err();
            assert!(error.message.starts_with("--mcp-config"), "{error}");
        }
        assert!(fixture.servers(&["{\"mcpServers\": {}}"], false).unwrap().all.is_empty());
        let none = fixture.servers(&[], false).unwrap();
        assert!(none.all.is_empty() && none.warnings.is_empty());
    }

    #[test]
    fn misspelt_key_is_reported() {
        let fixture = Fixture::new("[tools.mcp_servers.a]\ncommand = \"x\"\nnetwrok = \"all\"\n", "");
        let said = fixture.servers(&[], false).unwrap().warnings.concat();
        assert!(said.contains("\"a\" has no setting netwrok. Did you mean network?"), "{said}");
    }
}
