//! Every statement of the five source documents has a test that holds it, or says what will deliver it; `docs/dialects.md`
//! is made from the same rows.
//!
//! After a change of the rows: `HAFT_BLESS=1 cargo test -p haft-cli --test it statements`.

mod page;
mod sources;

use std::collections::BTreeSet;
use std::path::Path;

use serde::Deserialize;

/// One document.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    document: String,
    dialect: String,
    title: String,
    section: Vec<Section>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    name: String,
    statements: Vec<Statement>,
}

/// One thing that a document says.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Statement {
    id: String,
    says: String,
    /// The tests that fail when it is no longer true: crate, modules, function.
    held_by: Option<Vec<String>>,
    /// What will deliver it.
    later: Option<String>,
    /// Haft's equivalent of a thing that has another name in the document.
    equivalent: Option<String>,
}

const DOCUMENTS: [&str; 5] = [
    include_str!("../../statements/000.toml"),
    include_str!("../../statements/001.toml"),
    include_str!("../../statements/002.toml"),
    include_str!("../../statements/003.toml"),
    include_str!("../../statements/004.toml"),
];

fn documents() -> Vec<Document> {
    DOCUMENTS
        .iter()
        .map(|text| toml_edit::de::from_str(text).unwrap_or_else(|error| panic!("{error}")))
        .collect()
}

fn each(documents: &[Document]) -> impl Iterator<Item = (&Document, &Statement)> {
    documents.iter().flat_map(|document| {
        let rows = document.section.iter().flat_map(|section| &section.statements);
        rows.map(move |row| (document, row))
    })
}

#[test]
fn every_statement_has_its_tests_or_says_what_delivers_it() {
    let tests = sources::tests();
    let mut wrong = Vec::new();
    for (_, row) in each(&documents()) {
        match (&row.held_by, &row.later) {
            (Some(held_by), None) if !held_by.is_empty() => {
                let missing = held_by.iter().filter(|test| !tests.contains(*test));
                wrong.extend(missing.map(|test| format!("{}: there is no test {test}", row.id)));
            }
            (None, Some(later)) if !later.is_empty() => {}
            _ => wrong.push(format!("{}: it needs one of held_by and later", row.id)),
        }
    }
    assert!(wrong.is_empty(), "{} rows are not held:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_row_is_a_sentence_with_an_id_of_its_own() {
    let documents = documents();
    let mut seen = BTreeSet::new();
    for (document, row) in each(&documents) {
        assert!(seen.insert(&row.id), "{} twice", row.id);
        assert!(row.id.starts_with(&format!("{}-", document.document)), "{}", row.id);
        assert!(row.says.ends_with('.'), "{}: {}", row.id, row.says);
        assert!(row.equivalent.as_ref().is_none_or(|name| !name.is_empty()), "{}", row.id);
    }
    assert!(seen.len() > 500, "{} rows are fewer than the documents say", seen.len());
}

#[test]
fn the_page_of_dialects_says_the_same() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/dialects.md");
    let page = page::of(&documents());
    if std::env::var_os("HAFT_BLESS").is_some() {
        std::fs::write(&file, &page).unwrap();
    }
    let there = std::fs::read_to_string(&file).unwrap_or_default();
    let differ = there.lines().zip(page.lines()).position(|(a, b)| a != b);
    assert!(
        there == page,
        "docs/dialects.md is not what its rows say (first at line {}); `HAFT_BLESS=1 cargo test -p haft-cli --test it statements` writes it",
        differ.unwrap_or(there.lines().count().min(page.lines().count())) + 1
    );
}
