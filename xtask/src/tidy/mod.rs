//! `cargo xtask tidy`: rules of this project that no other tool checks. `xtask/tidy.toml` has their words and limits.

mod layout;
mod names;
mod source;
mod words;

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::Done;
use crate::workspace::root;
use names::TypeNames;
use source::Source;

const LONG_FILES: &str = "long-files";

/// One violation of a rule.
struct Violation {
    check: &'static str,
    /// A name, a word or a path.
    item: String,
    /// `path:line`.
    place: String,
}

/// The contents of `xtask/tidy.toml`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    max_file_lines: usize,
    crates: Vec<String>,
    shared_type_names: Vec<String>,
    banned_phrases: Vec<String>,
    may_quote_phrases: Vec<String>,
    vague_constants: Vec<String>,
    unit_words: Vec<String>,
    external_prefixes: Vec<String>,
}

impl Settings {
    fn load() -> Result<Self, String> {
        let path = root().join("xtask/tidy.toml");
        let text = read(&path)?;
        toml_edit::de::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Whether a constant's name is, or begins with, a word that names no quantity.
    fn is_vague(&self, name: &str) -> bool {
        self.vague_constants.iter().any(|word| name == word) || name.starts_with("MOST_")
    }

    /// Whether a constant's name has a unit or the kind of bound in it, or comes from a system's headers.
    fn has_unit(&self, name: &str) -> bool {
        name.split('_').any(|part| self.unit_words.iter().any(|word| word == part))
            || self.external_prefixes.iter().any(|prefix| name.starts_with(prefix.as_str()))
    }

    fn advice(&self, check: &str) -> String {
        match check {
            names::DUPLICATE_TYPES => {
                "type names are unique in the workspace; name each after what it is".to_owned()
            }
            names::VAGUE_CONSTANTS => {
                "say what the constant bounds, such as MAX_LINE_BYTES or CONNECT_TIMEOUT".to_owned()
            }
            names::CONSTANTS_WITHOUT_UNIT => {
                "put the unit or the kind of bound into the name (BYTES, COUNT, MAX, …; see xtask/tidy.toml)"
                    .to_owned()
            }
            words::BANNED_WORDS => {
                "use the technical word, and correct plurals (\"1 path\", \"3 paths\")".to_owned()
            }
            _ => format!("one file, one idea: divide it (limit {} lines)", self.max_file_lines),
        }
    }
}

pub(crate) fn run() -> Done {
    let settings = Settings::load()?;
    let mut problems = layout::check(root(), &settings)?;
    for Violation { check, item, place } in look(&settings, &mut problems)? {
        problems.push(format!("{place}: {check}: `{item}`: {}", settings.advice(check)));
    }
    if problems.is_empty() { Ok(()) } else { Err(format!("not tidy:\n  {}", problems.join("\n  "))) }
}

/// Goes through every source file and document.
fn look(settings: &Settings, problems: &mut Vec<String>) -> Result<Vec<Violation>, String> {
    let mut found = Vec::new();
    let mut types = TypeNames::default();
    for path in files(&["crates", "xtask"], "rs")? {
        let (name, text) = (relative(&path), read(&path)?);
        let source = Source::parse(&text);
        let is_library = name.starts_with("crates/") && name.contains("/src/");
        problems.extend(oddities(&name, &text, is_library));
        if text.lines().count() > settings.max_file_lines {
            found.push(Violation { check: LONG_FILES, item: name.clone(), place: name.clone() });
        }
        let is_test = name.contains("/tests/") || name.ends_with("/tests.rs");
        // Scripts in the tests' strings have calls that look like a plural in brackets.
        let phrases = settings.banned_phrases.iter().filter(|phrase| !is_test || !phrase.starts_with('('));
        found.extend(words::banned(&name, &source.prose, &phrases.cloned().collect::<Vec<_>>()));
        if !is_test {
            found.extend(names::constants(&name, source.code_without_tests(), settings));
        }
        if is_library && !is_test {
            types.add(&name, source.code_without_tests());
        }
    }
    for path in files(&["", "docs"], "md")? {
        let name = relative(&path);
        if !settings.may_quote_phrases.contains(&name) {
            found.extend(words::banned(&name, &read(&path)?, &settings.banned_phrases));
        }
    }
    found.extend(types.duplicates(settings));
    Ok(found)
}

/// What no source file may have.
fn oddities(name: &str, text: &str, is_library: bool) -> Vec<String> {
    let mut problems = Vec::new();
    if !text.starts_with("//!") && !text.starts_with("#![doc = include_str!(") {
        problems.push(format!("{name} does not say on its first line what it is about (`//! …`)"));
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
    // One file may: it waits for a lock that another process holds.
    if is_library && text.contains(concat!("thread::", "sleep")) && !name.ends_with("place.rs") {
        problems.push(format!("{name} sleeps; wait for the event itself"));
    }
    problems
}

fn relative(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// The files with this extension in these directories of the project. The project's own directory is not descended into.
fn files(directories: &[&str], extension: &str) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for directory in directories {
        let path = root().join(directory);
        collect(&path, extension, !directory.is_empty(), &mut found)
            .map_err(|error| format!("{}: {error}", path.display()))?;
    }
    found.sort_unstable();
    Ok(found)
}

fn collect(
    directory: &Path,
    extension: &str,
    descend: bool,
    found: &mut Vec<PathBuf>,
) -> std::io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            if descend && path.file_name().is_none_or(|name| name != "target") {
                collect(&path, extension, true, found)?;
            }
        } else if path.extension().is_some_and(|it| it == extension) {
            found.push(path);
        }
    }
    Ok(())
}
