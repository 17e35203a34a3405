//! A stage with servers: their entries, in the user's file or the project's, and the processes that come of them.

use std::path::Path;
use std::process::Command;

use serde_json::{Map, Value, json};

use crate::house::Ran;
use crate::peers::stage::Stage;
use crate::peers::{beside_python, node, ours, script};

/// A stage with servers.
pub(crate) struct Rack {
    pub(crate) stage: Stage,
}

impl Rack {
    /// Servers in the user's own settings.
    pub(crate) fn with(servers: &[(&str, Value)]) -> Self {
        let rack = Self { stage: Stage::new() };
        rack.own(servers);
        rack
    }

    /// Writes them into the user's own settings.
    pub(crate) fn own(&self, servers: &[(&str, Value)]) {
        let all = json!({"tools": {"mcp_servers": named(servers)}});
        std::fs::write(self.stage.house.config(), toml_edit::ser::to_string(&all).unwrap()).unwrap();
    }

    /// Writes them into the project's file.
    pub(crate) fn project(&self, servers: &[(&str, Value)]) {
        self.stage.house.write(".mcp.json", &json!({"mcpServers": named(servers)}).to_string());
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        self.stage.alone(self.stage.house.command(args))
    }

    pub(crate) fn haft(&self, args: &[&str]) -> Ran {
        self.command(args).output().unwrap().into()
    }

    /// Runs it, and it must succeed; what it says.
    pub(crate) fn done(&self, args: &[&str]) -> String {
        self.stage.haft(args)
    }

    /// A call of a tool; all that came of it.
    pub(crate) fn call(&self, tool: &str, arguments: &Value) -> Value {
        self.json(&["call", tool, &arguments.to_string(), "--json"])
    }

    /// A call of a server's tool, by its own name there.
    pub(crate) fn ask(&self, server: &str, tool: &str, arguments: &Value) -> Value {
        self.json(&["mcp", "call", server, tool, &arguments.to_string(), "--json"])
    }

    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let ran = self.haft(args);
        serde_json::from_str(&ran.stdout)
            .unwrap_or_else(|_| json!({"stdout": ran.stdout, "stderr": ran.stderr}))
    }

    /// The names of all tools that are offered.
    pub(crate) fn tools(&self, flags: &[&str]) -> Vec<String> {
        let all = self.json(&[&["tools", "--format", "mcp"], flags].concat());
        let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
        all["tools"].as_array().unwrap().iter().map(name).collect()
    }

    /// A word in a server's arguments that no other process has.
    pub(crate) fn mark(&self) -> String {
        self.stage.path("mark")
    }
}

fn named(servers: &[(&str, Value)]) -> Map<String, Value> {
    servers.iter().map(|(name, entry)| ((*name).to_owned(), entry.clone())).collect()
}

/// The entry with more in it.
pub(crate) fn and(mut entry: Value, more: &[(&str, Value)]) -> Value {
    for (name, value) in more {
        entry[*name] = value.clone();
    }
    entry
}

fn of_node(package: &str, args: &[&str]) -> Value {
    let mut all = vec![script(package, "dist/index.js")];
    all.extend(args.iter().map(|&arg| arg.to_owned()));
    json!({"command": node(), "args": all})
}

pub(crate) fn everything() -> Value {
    of_node("server-everything", &[])
}

pub(crate) fn filesystem(folder: &Path) -> Value {
    of_node("server-filesystem", &[folder.to_str().unwrap()])
}

/// Keeps its graph in that file.
pub(crate) fn memory(file: &str) -> Value {
    and(of_node("server-memory", &[]), &[("env", json!({"MEMORY_FILE_PATH": file}))])
}

pub(crate) fn git(repository: &Path) -> Value {
    json!({"command": beside_python("mcp-server-git"), "args": ["--repository", repository]})
}

pub(crate) fn time() -> Value {
    json!({"command": beside_python("mcp-server-time")})
}

/// The hostile server in one of its modes; `state` is where it remembers, or only a word to find it by.
pub(crate) fn hostile(mode: &str, state: &str) -> Value {
    json!({"command": "python3", "args": [ours("../haft-mcp/tests/hostile/server.py"), mode, state]})
}

/// The processes that have this word in their command line.
pub(crate) fn processes(mark: &str) -> Vec<u32> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let ids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let has = |id: &u32| {
        std::fs::read(format!("/proc/{id}/cmdline"))
            .is_ok_and(|line| String::from_utf8_lossy(&line).split('\0').any(|word| word == mark))
    };
    ids.filter(has).collect()
}

pub(crate) fn kill(id: u32) {
    assert!(Command::new("kill").args(["-KILL", &id.to_string()]).status().unwrap().success());
}
