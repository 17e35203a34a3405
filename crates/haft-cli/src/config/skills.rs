//! The MCP servers that skills declare in the front matter of their `SKILL.md`, as in Omega.
//!
//! `[mcp.NAME]` with `command` and `args` where the front matter is TOML; `mcp-NAME: command arguments` where it is not.

use std::path::{Path, PathBuf};

use haft_agent::{SKILL_FOLDERS, front_matter};
use haft_files::{names_in, read_named};
use haft_tool::{Value, json};
use serde_json::Map;
use toml_edit::DocumentMut;

/// Largest number of skills read from one directory.
const MAX_SKILLS: usize = 500;
/// Largest skill file.
const MAX_SKILL_BYTES: u64 = 1 << 20;

/// The skills below `base` that declare servers: their files and entries.
pub(super) fn declared(base: &Path) -> Vec<(PathBuf, Map<String, Value>)> {
    let mut all = Vec::new();
    for folder in SKILL_FOLDERS.iter().map(|folder| base.join(folder)) {
        for name in names_in(&folder, MAX_SKILLS) {
            let path = folder.join(name).join("SKILL.md");
            // A directory without a readable skill declares nothing.
            let Ok(bytes) = read_named(&path, MAX_SKILL_BYTES) else { continue };
            let servers = servers(&String::from_utf8_lossy(&bytes));
            if !servers.is_empty() {
                all.push((path, servers));
            }
        }
    }
    all
}

/// The entries that a skill declares.
fn servers(text: &str) -> Map<String, Value> {
    let Some((front, _)) = front_matter(text) else { return Map::new() };
    if let Ok(document) = front.parse::<DocumentMut>()
        && let Some(tables) = document.get("mcp").and_then(|mcp| mcp.as_table_like())
    {
        let entry = |(name, item): (&str, &toml_edit::Item)| {
            let command = item.get("command")?.as_str()?;
            let args = item.get("args").and_then(|args| args.as_array());
            let args: Vec<&str> = args.into_iter().flatten().filter_map(|arg| arg.as_str()).collect();
            Some((name.to_owned(), json!({"command": command, "args": args})))
        };
        return tables.iter().filter_map(entry).collect();
    }
    let line = |line: &str| {
        let (name, words) = line.strip_prefix("mcp-")?.split_once(':')?;
        let mut words = words.split_whitespace();
        let command = words.next()?;
        Some((name.trim().to_owned(), json!({"command": command, "args": words.collect::<Vec<_>>()})))
    };
    front.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skill_declares_servers_in_either_form() {
        let toml = "---\nname = \"x\"\ndescription = \"y\"\n[mcp.notes]\ncommand = \"npx\"\nargs = [\"-y\", \"notes@1\"]\n---\nbody";
        let plain = "---\nname: x\nmcp-notes: npx -y notes@1\nmcp-empty:\n---\nbody\nmcp-not: in the body";
        for text in [toml, plain, &plain.replace('\n', "\r\n")] {
            let servers = servers(text);
            assert_eq!(
                Value::from(servers),
                json!({"notes": {"command": "npx", "args": ["-y", "notes@1"]}}),
                "{text}"
            );
        }
        for text in ["", "---", "---\nname: x\n---\n", "mcp-a: b", "---\n[mcp.a]\nurl = \"x\"\n---\n"] {
            assert!(servers(text).is_empty(), "{text}");
        }
    }
}
