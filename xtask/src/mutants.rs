//! `cargo xtask mutants`: whether the test of a statement notices when the statement is no longer true.
//!
//! `xtask/mutants.toml` lists small changes of the sources, each of which breaks what one row of the statement table says. Each
//! is applied alone to a copy of the project, and the row's tests must fail there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use crate::peers::NEXTEST;
use crate::process::{output, read as read_output};
use crate::workspace::{Workspace, root};
use crate::{Done, peers};

/// Exit codes of cargo-nextest.
const NEXTEST_OK_CODE: i32 = 0;
const NEXTEST_FAILED_CODE: i32 = 100;
const NEXTEST_NOTHING_RAN_CODE: i32 = 4;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MutationTable {
    mutation: Vec<Mutation>,
}

/// A change that breaks the statement of a row.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Mutation {
    row: String,
    file: PathBuf,
    find: String,
    replace: String,
}

/// The outcome of a test run.
#[derive(Debug, PartialEq, Eq)]
enum TestRun {
    Passed,
    Failed,
    Broken(String),
}

/// Tries the mutations of the named rows, or all.
pub(crate) fn run(rows: &[String]) -> Done {
    let tests = tests_by_row(&root().join("crates"))?;
    let mutations = load()?;
    if let Some(unknown) = rows.iter().find(|row| !mutations.iter().any(|it| it.row == **row)) {
        return Err(format!("xtask/mutants.toml has no mutation of {unknown}"));
    }
    let selected: Vec<&Mutation> =
        mutations.iter().filter(|it| rows.is_empty() || rows.contains(&it.row)).collect();
    let scratch = Scratch::make()?;
    let mut problems = Vec::new();
    let mut intact = BTreeSet::new();
    for (number, mutation) in selected.iter().enumerate() {
        let row = mutation.row.as_str();
        let tests = tests.get(row).ok_or_else(|| format!("the statement table has no tests of {row}"))?;
        println!("[{}/{}] {row}: {}", number + 1, selected.len(), mutation.file.display());
        if !intact.contains(row) {
            match scratch.test(tests)? {
                TestRun::Passed => intact.insert(row),
                other => {
                    problems.push(format!("{row}: its tests do not pass without a mutation: {other:?}"));
                    continue;
                }
            };
        }
        match scratch.mutated(mutation, || scratch.test(tests))? {
            TestRun::Failed => println!("    noticed"),
            TestRun::Passed => {
                let places = tests.join(", ");
                problems.push(format!("{row}: `{}` is not noticed by {places}", mutation.replace.trim()));
            }
            TestRun::Broken(why) => problems.push(format!("{row}: the mutation cannot be tried: {why}")),
        }
    }
    if problems.is_empty() {
        println!("all {} mutations are noticed", selected.len());
        return Ok(());
    }
    Err(format!("{} of {} mutations:\n  {}", problems.len(), selected.len(), problems.join("\n  ")))
}

fn load() -> Result<Vec<Mutation>, String> {
    let path = root().join("xtask/mutants.toml");
    let table: MutationTable =
        toml_edit::de::from_str(&read(&path)?).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(table.mutation)
}

/// A copy of the project's files with a target directory of its own, both kept from run to run.
struct Scratch {
    tree: PathBuf,
    target: PathBuf,
    variables: Vec<(&'static str, PathBuf)>,
    nextest: PathBuf,
}

impl Scratch {
    fn make() -> Result<Self, String> {
        let folder = Workspace::load()?.built("mutants");
        let scratch = Self {
            tree: folder.join("tree"),
            target: folder.join("target"),
            variables: peers::variables()?,
            nextest: NEXTEST.find()?,
        };
        let listed = read_output(
            Command::new("git")
                .args(["ls-files", "--cached", "--others", "--exclude-standard"])
                .current_dir(root()),
        )?;
        let wanted: BTreeSet<&Path> =
            listed.lines().map(Path::new).filter(|path| root().join(path).is_file()).collect();
        remove_others(&scratch.tree, Path::new(""), &wanted)?;
        for path in wanted {
            scratch.write(path, &read_bytes(&root().join(path))?)?;
        }
        Ok(scratch)
    }

    /// Writes a file unless it has these bytes already, so that cargo builds only what differs.
    fn write(&self, path: &Path, bytes: &[u8]) -> Done {
        let path = self.tree.join(path);
        if fs::read(&path).is_ok_and(|there| there == bytes) {
            return Ok(());
        }
        let failed = |error: std::io::Error| format!("{}: {error}", path.display());
        fs::create_dir_all(path.parent().unwrap_or(&path)).map_err(failed)?;
        fs::write(&path, bytes).map_err(failed)
    }

    /// Applies a mutation while `action` runs.
    fn mutated(
        &self,
        mutation: &Mutation,
        action: impl FnOnce() -> Result<TestRun, String>,
    ) -> Result<TestRun, String> {
        let text = read(&self.tree.join(&mutation.file))?;
        if text.matches(&mutation.find).count() != 1 {
            let count = text.matches(&mutation.find).count();
            return Ok(TestRun::Broken(format!(
                "`{}` is found {count} times, not once",
                mutation.find.trim()
            )));
        }
        self.write(&mutation.file, text.replace(&mutation.find, &mutation.replace).as_bytes())?;
        let result = action();
        self.write(&mutation.file, text.as_bytes())?;
        result
    }

    fn test(&self, tests: &[String]) -> Result<TestRun, String> {
        let mut command = Command::new(&self.nextest);
        command.args(["nextest", "run", "--offline", "--no-fail-fast", "--final-status-level", "fail"]);
        for package in tests.iter().filter_map(|test| test.split("::").next()).collect::<BTreeSet<_>>() {
            command.args(["-p", package]);
        }
        for test in tests {
            command.args(["-E", &filter(test, &self.tree)]);
        }
        command
            .current_dir(&self.tree)
            .env("CARGO_TARGET_DIR", &self.target)
            .envs(self.variables.iter().cloned());
        let done = output(&mut command)?;
        let messages = String::from_utf8_lossy(&done.stderr);
        Ok(match done.status.code() {
            Some(NEXTEST_OK_CODE) => TestRun::Passed,
            Some(NEXTEST_FAILED_CODE) => TestRun::Failed,
            Some(NEXTEST_NOTHING_RAN_CODE) => TestRun::Broken(format!("no such test: {}", tests.join(", "))),
            _ => {
                let errors = messages.lines().filter(|line| line.starts_with("error")).take(3);
                TestRun::Broken(errors.collect::<Vec<_>>().join("; "))
            }
        })
    }
}

/// Removes files of an earlier copy that the project no longer has.
fn remove_others(tree: &Path, inner: &Path, wanted: &BTreeSet<&Path>) -> Done {
    let Ok(entries) = fs::read_dir(tree.join(inner)) else { return Ok(()) };
    for entry in entries.flatten() {
        let path = inner.join(entry.file_name());
        if entry.path().is_dir() {
            remove_others(tree, &path, wanted)?;
        } else if !wanted.contains(path.as_path()) {
            fs::remove_file(entry.path()).map_err(|error| format!("{}: {error}", path.display()))?;
        }
    }
    Ok(())
}

/// The filter of a test that the table names by crate, modules and function.
fn filter(test: &str, tree: &Path) -> String {
    let (package, rest) = test.split_once("::").unwrap_or((test, ""));
    let first = rest.split("::").next().unwrap_or(rest);
    let function = rest.rsplit("::").next().unwrap_or(rest);
    let folder = tree.join("crates").join(package).join("tests");
    let is_binary =
        folder.join(format!("{first}.rs")).is_file() || folder.join(first).join("main.rs").is_file();
    let place = if is_binary { format!("binary(={first})") } else { "(kind(lib) | kind(bin))".to_owned() };
    format!("package(={package}) & {place} & test(/(^|::){function}$/)")
}

/// The tests of each row of the statement table.
fn tests_by_row(crates: &Path) -> Result<BTreeMap<String, Vec<String>>, String> {
    #[derive(Deserialize)]
    struct Document {
        section: Vec<Section>,
    }
    #[derive(Deserialize)]
    struct Section {
        statements: Vec<Statement>,
    }
    #[derive(Deserialize)]
    struct Statement {
        id: String,
        held_by: Option<Vec<String>>,
    }
    let mut rows = BTreeMap::new();
    for package in fs::read_dir(crates).map_err(|error| error.to_string())?.flatten() {
        let Ok(files) = fs::read_dir(package.path().join("tests/statements")) else { continue };
        for file in files
            .flatten()
            .map(|file| file.path())
            .filter(|file| file.extension().is_some_and(|it| it == "toml"))
        {
            let document: Document = toml_edit::de::from_str(&read(&file)?)
                .map_err(|error| format!("{}: {error}", file.display()))?;
            for row in document.section.into_iter().flat_map(|section| section.statements) {
                rows.insert(row.id, row.held_by.unwrap_or_default());
            }
        }
    }
    Ok(rows)
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn read_bytes(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_found_in_its_binary_or_in_the_library() {
        let tree = tempfile::tempdir().unwrap();
        fs::create_dir_all(tree.path().join("crates/a/tests/it")).unwrap();
        fs::write(tree.path().join("crates/a/tests/it/main.rs"), "").unwrap();
        assert_eq!(
            filter("a::it::part::works", tree.path()),
            "package(=a) & binary(=it) & test(/(^|::)works$/)"
        );
        assert_eq!(
            filter("a::part::works", tree.path()),
            "package(=a) & (kind(lib) | kind(bin)) & test(/(^|::)works$/)"
        );
    }

    #[test]
    fn every_mutation_is_of_a_row_with_tests_and_applies_once() {
        let rows = tests_by_row(&root().join("crates")).unwrap();
        for mutation in load().unwrap() {
            assert!(rows.get(&mutation.row).is_some_and(|tests| !tests.is_empty()), "{}", mutation.row);
            let text = read(&root().join(&mutation.file)).unwrap();
            assert_eq!(text.matches(&mutation.find).count(), 1, "{}: {}", mutation.row, mutation.find);
        }
    }
}
