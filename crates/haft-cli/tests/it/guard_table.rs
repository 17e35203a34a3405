//! The table of names that make programs run is in docs/sandbox.md. `HAFT_BLESS=1` writes it.

use std::fmt::Write as _;
use std::path::Path;

use haft_policy::{NAME_RULES, RunsWhen};

/// The rows of a table by program, in the order of the source.
fn rows(when: RunsWhen) -> String {
    let rules = || NAME_RULES.iter().filter(|rule| rule.when == when);
    let mut programs: Vec<&str> = Vec::new();
    for rule in rules() {
        if !programs.contains(&rule.program) {
            programs.push(rule.program);
        }
    }
    let mut text = String::new();
    for program in programs {
        let names: Vec<String> = rules()
            .filter(|rule| rule.program == program)
            .map(|rule| format!("`{}`", rule.pattern))
            .collect();
        writeln!(text, "| {} | {program} |", names.join(" ")).unwrap();
    }
    text
}

#[test]
fn docs_list_every_name_that_makes_programs_run() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/sandbox.md");
    let old = std::fs::read_to_string(&path).unwrap();
    let mut new = old.clone();
    for (header, when) in [
        ("| runs when a folder is opened or entered | by |", RunsWhen::Opened),
        ("| runs when the project is built or run | by |", RunsWhen::Built),
    ] {
        let start = new.find(header).unwrap_or_else(|| panic!("no table {header}"));
        let start = start + header.len() + "\n|---|---|\n".len();
        let end = start + new[start..].find("\n\n").unwrap_or(0) + 1;
        let end = if new[start..].starts_with('\n') { start } else { end };
        new.replace_range(start..end, &rows(when));
    }
    if std::env::var_os("HAFT_BLESS").is_some() {
        std::fs::write(&path, &new).unwrap();
    }
    assert!(
        new == old || std::env::var_os("HAFT_BLESS").is_some(),
        "docs/sandbox.md is old: HAFT_BLESS=1 writes it"
    );
}
