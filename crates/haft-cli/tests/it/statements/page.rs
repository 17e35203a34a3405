//! The page `docs/dialects.md`, made from the rows.

use crate::statements::{Document, Statement, each};

const HEAD: &str = "\
# The dialects, statement by statement

Haft is built from five documents that describe the tool systems of four agents. It speaks each of them as a dialect:
`haft tools --dialect D` prints a dialect's tools, `haft call --dialect D` runs them. This page lists what the documents
say, in Haft's own words, and next to each statement the test that fails when it is no longer true. Where a document
speaks of its own code, the row names what Haft has in its place. A row without a test says what will deliver it.

This page is generated from the rows in `crates/haft-cli/tests/statements/`; change it there and run
`HAFT_BLESS=1 cargo test -p haft-cli --test it statements`.
";

pub(crate) fn of(documents: &[Document]) -> String {
    let mut page = format!(
        "{HEAD}\n| document | dialect | statements | held by tests | later |\n|---|---|---:|---:|---:|\n"
    );
    for document in documents {
        let rows = || each(std::slice::from_ref(document));
        let held = rows().filter(|(_, row)| row.held_by.is_some()).count();
        let Document { document, dialect, title, .. } = document;
        let all = rows().count();
        page += &format!("| {document}: {title} | `{dialect}` | {all} | {held} | {} |\n", all - held);
    }
    for document in documents {
        page += &format!("\n## {}: {}\n", document.document, document.title);
        for section in &document.section {
            page += &format!("\n### {}\n\n| | statement | held by |\n|---|---|---|\n", section.name);
            page.extend(section.statements.iter().map(line));
        }
    }
    page
}

fn line(row: &Statement) -> String {
    let equivalent = row.equivalent.as_ref().map(|name| format!(" *Here: {name}.*")).unwrap_or_default();
    let held = match (&row.held_by, &row.later) {
        (Some(tests), _) => tests.iter().map(|test| format!("`{test}`")).collect::<Vec<_>>().join("<br>"),
        (None, later) => format!("later: {}", later.as_deref().unwrap_or_default()),
    };
    let cell = |text: String| text.replace('|', "\\|");
    format!("| {} | {} | {} |\n", row.id, cell(row.says.clone() + &equivalent), cell(held))
}
