//! Rules of the house that no compiler checks.

use std::path::{Path, PathBuf};

use crate::Done;

/// One file, one idea: beyond this many lines it is probably two.
const MOST_LINES: usize = 500;

pub(crate) fn run() -> Done {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("the project has no root")?;
    let mut problems = Vec::new();
    let mut sources = Vec::new();
    for top in ["crates", "xtask"] {
        collect(&root.join(top), &mut sources).map_err(|error| format!("{top}: {error}"))?;
    }
    for path in &sources {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let name = path.strip_prefix(root).unwrap_or(path).display().to_string();
        source(&name, &text, &mut problems);
    }
    crates(root, &mut problems)?;
    documents(root, &mut problems);
    if problems.is_empty() { Ok(()) } else { Err(format!("not tidy:\n  {}", problems.join("\n  "))) }
}

fn source(name: &str, text: &str, problems: &mut Vec<String>) {
    let lines = text.lines().count();
    if lines > MOST_LINES {
        problems.push(format!("{name} has {lines} lines; would two rooms be better? (limit {MOST_LINES})"));
    }
    if !text.starts_with("//!") {
        problems.push(format!("{name} does not say on its first line what it is about"));
    }
    // Written in two parts, so that this file does not find itself.
    for word in [
        concat!("#[ig", "nore"),
        concat!("todo", "!("),
        concat!("unimpl", "emented!("),
        concat!("FIX", "ME"),
        concat!("XX", "X"),
    ] {
        if text.contains(word) {
            problems.push(format!("{name} contains {word}"));
        }
    }
    let library = name.starts_with("crates/") && name.contains("/src/");
    if library && text.contains(concat!("thread::", "sleep")) && !name.ends_with("place.rs") {
        problems.push(format!("{name} sleeps"));
    }
}

/// Dependencies point downward only.
fn crates(root: &Path, problems: &mut Vec<String>) -> Done {
    const DOWNWARD: [&str; 14] = [
        "haft-fuzz",
        "haft-tool",
        "haft-pdf",
        "haft-policy",
        "haft-files",
        "haft-net",
        "haft-sandbox",
        "haft-ledger",
        "haft-bus",
        "haft-tools",
        "haft-runtime",
        "haft-mcp",
        "haft",
        "haft-cli",
    ];
    let architecture = std::fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap_or_default();
    for (height, name) in DOWNWARD.iter().enumerate() {
        let manifest = root.join("crates").join(name).join("Cargo.toml");
        let manifest =
            std::fs::read_to_string(&manifest).map_err(|error| format!("{}: {error}", manifest.display()))?;
        let used = manifest
            .lines()
            .filter_map(|line| line.split(['.', ' ', '=']).next())
            .filter(|line| line.starts_with("haft"));
        for used in used {
            match DOWNWARD.iter().position(|other| *other == used) {
                Some(other) if other < height => {}
                _ => problems.push(format!("{name} depends on {used}, which does not lie below it")),
            }
        }
        if !architecture.contains(&format!("`{name}`")) {
            problems.push(format!("ARCHITECTURE.md does not speak of {name}"));
        }
    }
    // The built-ins and the policy reach the machine through the World they are given, so they cannot name it.
    for name in ["haft-tools", "haft-policy", "haft-tool"] {
        let manifest =
            std::fs::read_to_string(root.join("crates").join(name).join("Cargo.toml")).unwrap_or_default();
        let normal = manifest.split("[dev-dependencies]").next().unwrap_or_default();
        if ["haft-files", "haft-net", "haft-sandbox", "haft-ledger"].iter().any(|used| normal.contains(used))
        {
            problems.push(format!("{name} must not depend on the machine or the ledger"));
        }
    }
    Ok(())
}

fn documents(root: &Path, problems: &mut Vec<String>) {
    for name in
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"]
    {
        if !root.join(name).is_file() {
            problems.push(format!("{name} is missing"));
        }
    }
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap_or_default();
    for command in ["cargo run --release -- demo", "cargo xtask test"] {
        if !readme.contains(command) {
            problems.push(format!("README.md does not show `{command}`"));
        }
    }
}

fn collect(dir: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            if path.file_name().is_none_or(|name| name != "target") {
                collect(&path, found)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    Ok(())
}
