//! The crates, their order, and the documents of the project.

use std::fs;
use std::path::Path;

use super::Settings;

/// Crates that reach the machine and the ledger only through the World that they are given.
const WITHOUT_IO: [&str; 6] =
    ["haft-tools", "haft-model", "haft-policy", "haft-shell", "haft-compat", "haft-tool"];
const WITH_IO: [&str; 4] = ["haft-files", "haft-net", "haft-sandbox", "haft-ledger"];

const DOCUMENTS: [&str; 6] =
    ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// Commands that the README promises.
const COMMANDS: [&str; 2] = ["cargo run --release -- demo", "cargo xtask test"];

/// Returns a message for each violation.
pub(super) fn check(root: &Path, settings: &Settings) -> Result<Vec<String>, String> {
    let mut problems = Vec::new();
    let architecture = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap_or_default();
    for name in crates(root)? {
        if !settings.crates.contains(&name) {
            problems
                .push(format!("{name} has no place in the order of crates (`crates` in xtask/tidy.toml)"));
        }
        if !architecture.contains(&format!("`{name}`")) {
            problems.push(format!("ARCHITECTURE.md does not mention `{name}`"));
        }
        let path = root.join("crates").join(&name).join("Cargo.toml");
        let manifest = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        problems.extend(dependencies(&name, &manifest, &settings.crates));
    }
    for name in DOCUMENTS.iter().filter(|name| !root.join(name).is_file()) {
        problems.push(format!("{name} is missing"));
    }
    let readme = fs::read_to_string(root.join("README.md")).unwrap_or_default();
    for command in COMMANDS.iter().filter(|command| !readme.contains(**command)) {
        problems.push(format!("README.md does not show `{command}`"));
    }
    Ok(problems)
}

fn crates(root: &Path) -> Result<Vec<String>, String> {
    let entries = fs::read_dir(root.join("crates")).map_err(|error| format!("crates: {error}"))?;
    let names = entries.flatten().filter(|entry| entry.path().join("Cargo.toml").is_file());
    Ok(names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect())
}

/// Dependencies point downward only, and some crates must not know the machine.
fn dependencies(name: &str, manifest: &str, order: &[String]) -> Vec<String> {
    let height = |name: &str| order.iter().position(|it| it == name);
    let mut problems = Vec::new();
    let mut section = "";
    for line in manifest.lines() {
        if line.starts_with('[') {
            section = line;
        }
        let used = line.split(['.', ' ', '=']).next().unwrap_or_default();
        if !section.contains("dependencies") || !used.starts_with("haft") {
            continue;
        }
        if height(used) >= height(name) {
            problems.push(format!("{name} depends on {used}, which is not below it in the order of crates"));
        }
        if WITHOUT_IO.contains(&name) && WITH_IO.contains(&used) && !section.contains("dev-") {
            problems
                .push(format!("{name} depends on {used}; it must reach the machine through the World only"));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_point_downward() {
        let order = ["haft-tool", "haft-files", "haft-tools"].map(str::to_owned);
        let of = |name: &str, section: &str, used: &str| {
            dependencies(
                name,
                &format!("[package]\nname = \"{name}\"\n[{section}]\n{used}.workspace = true\n"),
                &order,
            )
            .len()
        };
        assert_eq!(of("haft-files", "dependencies", "haft-tool"), 0);
        assert_eq!(of("haft-tool", "dependencies", "haft-files"), 2);
        assert_eq!(of("haft-tools", "dependencies", "haft-files"), 1);
        assert_eq!(of("haft-tools", "dev-dependencies", "haft-files"), 0);
        assert_eq!(of("haft-files", "target.'cfg(unix)'.dependencies", "haft-tools"), 1);
    }
}
