//! Violations that existed when a check was introduced, by check and item, with their number. They can only become fewer.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// The number of violations by check and item.
type Counts = BTreeMap<String, BTreeMap<String, usize>>;

/// One violation of a check that has a debt.
pub(super) struct Violation {
    pub(super) check: &'static str,
    /// What the debt counts: a name, a word, a path.
    pub(super) item: String,
    /// `path:line`.
    pub(super) place: String,
}

const HEAD: &str = "\
# Violations of `cargo xtask tidy` that are not mended yet: how often each is found. More fail, and so do fewer, until
# `cargo xtask tidy --shrink` has lowered the number. Nothing is ever added here.
";
/// How many places an error message lists.
const MAX_PLACES: usize = 12;

/// Compares what was found with what is allowed; returns a message for each difference.
pub(super) fn compare(
    found: &[Violation],
    file: &Path,
    advice: impl Fn(&str) -> String,
) -> Result<Vec<String>, String> {
    let (allowed, counts) = (load(file)?, count(found));
    let mut problems = Vec::new();
    for (check, items) in &counts {
        for (item, number) in items {
            let limit = allowed.get(check).and_then(|items| items.get(item)).copied().unwrap_or(0);
            if *number > limit {
                let places = found
                    .iter()
                    .filter(|it| it.check == check && it.item == *item)
                    .map(|it| it.place.as_str());
                let places: Vec<&str> = places.take(MAX_PLACES).collect();
                let known =
                    if limit == 0 { String::new() } else { format!(" ({limit} of {number} are known)") };
                problems.push(format!(
                    "{check}: `{item}`{known}: {}\n      {}",
                    advice(check),
                    places.join("\n      ")
                ));
            }
        }
    }
    for (check, items) in &allowed {
        for (item, limit) in items {
            let number = counts.get(check).and_then(|items| items.get(item)).copied().unwrap_or(0);
            if number < *limit {
                problems.push(format!(
                    "{check}: `{item}` is mended ({limit} known, {number} left): `cargo xtask tidy --shrink` lowers the number"
                ));
            }
        }
    }
    Ok(problems)
}

/// Lowers every number to what was found.
pub(super) fn shrink(found: &[Violation], file: &Path) -> Result<(), String> {
    let counts = count(found);
    let mut text = HEAD.to_owned();
    for (check, items) in load(file)? {
        let left = items.iter().filter_map(|(item, limit)| {
            let number = counts.get(&check)?.get(item)?;
            Some(format!("{} = {}\n", key(item), limit.min(number)))
        });
        let left: String = left.collect();
        if !left.is_empty() {
            let _ = write!(text, "\n[{check}]\n{left}");
        }
    }
    fs::write(file, text).map_err(|error| format!("{}: {error}", file.display()))
}

fn count(found: &[Violation]) -> Counts {
    let mut counts = Counts::new();
    for violation in found {
        *counts.entry(violation.check.to_owned()).or_default().entry(violation.item.clone()).or_default() +=
            1;
    }
    counts
}

fn load(file: &Path) -> Result<Counts, String> {
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    toml_edit::de::from_str(&text).map_err(|error| format!("{}: {error}", file.display()))
}

/// A key as TOML writes it.
fn key(item: &str) -> String {
    if item.chars().all(super::source::is_word) { item.to_owned() } else { format!("\"{item}\"") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(items: &[&str]) -> Vec<Violation> {
        let of =
            |item: &&str| Violation { check: "words", item: (*item).to_owned(), place: "a.rs:1".to_owned() };
        items.iter().map(of).collect()
    }

    fn problems(debt: &str, items: &[&str]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("debt.toml");
        fs::write(&file, debt).unwrap();
        compare(&found(items), &file, |_| "choose another".to_owned()).unwrap()
    }

    #[test]
    fn only_listed_violations_pass() {
        assert_eq!(problems("[words]\nutterly = 2\n", &["utterly", "utterly"]), [""; 0]);
        assert!(problems("", &["utterly"])[0].contains("choose another"));
        assert!(problems("[words]\nutterly = 1\n", &["utterly", "utterly"])[0].contains("1 of 2 are known"));
    }

    #[test]
    fn a_mended_violation_must_leave_the_list() {
        assert!(problems("[words]\nutterly = 2\n", &["utterly"])[0].contains("--shrink"));
        assert!(problems("[words]\nutterly = 2\n", &[])[0].contains("--shrink"));
    }

    #[test]
    fn shrinking_lowers_and_never_raises() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("debt.toml");
        fs::write(&file, "[words]\n\"as it were\" = 3\nutterly = 1\ngone = 1\n").unwrap();
        shrink(&found(&["as it were", "utterly", "utterly", "new"]), &file).unwrap();
        assert_eq!(
            fs::read_to_string(&file).unwrap(),
            format!("{HEAD}\n[words]\n\"as it were\" = 1\nutterly = 1\n")
        );
    }
}
