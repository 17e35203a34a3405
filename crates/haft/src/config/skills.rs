//! Servers that skills declare in the head of their `SKILL.md`, as Omega's do: a table `[mcp.NAME]` where the head is TOML, a
//! line `mcp-NAME: COMMAND ARGUMENTS` where it is not.
//!
//! A skill comes from somebody else, wherever it lies: what it declares needs the user's yes like a project's servers.

use std::path::{Path, PathBuf};

use haft_tool::{Value, json};
use haft_world::{list_named, read_named};
use serde_json::Map;

/// Where skills lie, below the workspace and below the user's home.
const FOLDERS: &[&str] = &[".claude/skills", ".agents/skills", ".haft/skills"];
/// The most skills of one folder that are looked at.
const MOST: usize = 500;
/// No skill is longer than this.
const MOST_BYTES: u64 = 1 << 20;

/// The servers of each skill that declares some, with the file that does; `home` is the user's.
pub(super) fn servers(workspace: &Path, home: Option<&Path>) -> Vec<(PathBuf, Map<String, Value>)> {
    let bases = std::iter::once(workspace).chain(home);
    let folders = bases.flat_map(|base| FOLDERS.iter().map(move |folder| base.join(folder)));
    let mut all = Vec::new();
    for folder in folders {
        // Where there is no folder there are no skills.
        for name in list_named(&folder, MOST).unwrap_or_default() {
            let file = folder.join(name).join("SKILL.md");
            let Ok(bytes) = read_named(&file, MOST_BYTES) else { continue };
            let declared = declared(&String::from_utf8_lossy(&bytes));
            if !declared.is_empty() {
                all.push((file, declared));
            }
        }
    }
    all
}

/// The servers that a skill declares.
fn declared(skill: &str) -> Map<String, Value> {
    let Some(head) = head(skill) else { return Map::new() };
    match toml_edit::de::from_str::<Value>(&head) {
        Ok(head) => head.get("mcp").and_then(Value::as_object).cloned().unwrap_or_default(),
        Err(_) => head.lines().filter_map(line).collect(),
    }
}

/// What stands between the first two lines of three dashes.
fn head(skill: &str) -> Option<String> {
    let mut lines = skill.strip_prefix('\u{feff}').unwrap_or(skill).lines();
    if lines.next()?.trim_end() != "---" {
        return None;
    }
    let mut head = String::new();
    for line in lines {
        if line.trim_end() == "---" {
            return Some(head);
        }
        head.push_str(line);
        head.push('\n');
    }
    None
}

/// `mcp-NAME: COMMAND ARGUMENTS`; spaces part the words, and no shell reads them.
fn line(line: &str) -> Option<(String, Value)> {
    let (name, words) = line.strip_prefix("mcp-")?.split_once(':')?;
    let mut words = words.split_whitespace();
    let command = words.next()?;
    Some((name.trim().to_owned(), json!({"command": command, "args": words.collect::<Vec<_>>()})))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skill_declares_servers_in_either_form_of_its_head() {
        let toml = "---\nname = \"web\"\n[mcp.browser]\ncommand = \"npx\"\nargs = [\"@playwright/mcp@1\"]\n---\nBody\n";
        let browser = json!({"command": "npx", "args": ["@playwright/mcp@1"]});
        assert_eq!(Value::Object(declared(toml)), json!({"browser": browser}));
        let lines = "---\r\nname: web\r\nmcp-browser: npx @playwright/mcp@1\r\nmcp-: x\r\nmcp-none:\r\n---\r\nmcp-body: no\r\n";
        let found = declared(lines);
        assert_eq!(found["browser"], browser);
        assert!(!found.contains_key("none") && !found.contains_key("body"), "{found:?}");
        for none in ["", "---", "---\nname: x\n---\n", "mcp-x: y\n", "---\nmcp-x: y\n", "---\nmcp = 5\n---\n"]
        {
            assert_eq!(declared(none), Map::new(), "{none:?}");
        }
    }
}
