//! The names of all tests, read from the sources.

use std::collections::BTreeSet;
use std::path::Path;

/// The name of every test of every crate: `crate::module::function`, a `mod tests` inside a file left out.
pub(crate) fn tests() -> BTreeSet<String> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(crates).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        for part in ["src", "tests"] {
            if path.join(part).is_dir() {
                look(&path.join(part), &name, &mut found);
            }
        }
    }
    found
}

fn look(dir: &Path, module: &str, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let inner = if matches!(stem, "mod" | "lib" | "main") {
            module.to_owned()
        } else {
            format!("{module}::{stem}")
        };
        if path.is_dir() {
            look(&path, &inner, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            found.extend(functions(&text).into_iter().map(|name| format!("{inner}::{name}")));
        }
    }
}

/// The functions that are marked as tests.
fn functions(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut marked = false;
    for line in text.lines().map(str::trim_start) {
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            marked = true;
        } else if let Some(rest) = line.strip_prefix("async fn ").or_else(|| line.strip_prefix("fn ")) {
            if std::mem::take(&mut marked) {
                found.push(rest.split(['(', '<']).next().unwrap_or(rest));
            }
        } else if !line.starts_with("#[") && !line.starts_with("//") {
            marked = false;
        }
    }
    found
}

#[test]
fn only_functions_that_are_marked_are_tests() {
    let text = "#[test]\nfn a() {}\nfn b() {}\n    #[tokio::test(flavor = \"multi_thread\")]\n    // why\n    #[cfg(unix)]\n    async fn c() {\n#[test]\n\nfn d() {}\n";
    assert_eq!(functions(text), ["a", "c"]);
}
