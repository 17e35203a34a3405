//! Every line of the table in `commands.txt`.

use std::collections::BTreeSet;

use haft_shell::{Invocation, ShellScript};

use crate::fixture::table;

/// The fewest commands that the table is meant to have.
const MIN_ROWS_COUNT: usize = 450;

#[test]
fn every_command_of_the_table_is_understood_as_expected() {
    let rows = table();
    assert!(rows.len() >= MIN_ROWS_COUNT);
    let mut failures = String::new();
    for row in rows {
        let script = haft_shell::parse(&row.source);
        let commands: Vec<String> =
            script.commands.iter().map(Invocation::text).filter(|text| !text.is_empty()).collect();
        let verdict = verdict(&script);
        let is_expected = verdict == row.verdict || verdict == "invalid" && row.verdict == "refused";
        if !is_expected || commands != row.commands {
            failures += &format!(
                "commands.txt:{}: {:?}\n  expected {} {:?}\n  found    {verdict} {commands:?}\n",
                row.line, row.source, row.verdict, row.commands
            );
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

#[test]
fn ranges_are_inside_the_source_and_on_character_boundaries() {
    for row in table() {
        let script = haft_shell::parse(&row.source);
        let commands = script.commands.iter().map(|command| &command.range);
        let words = script.commands.iter().flat_map(|command| command.words.iter().map(|word| &word.range));
        let unclear = script.unclear.iter().map(|unclear| &unclear.range);
        for range in commands.chain(words).chain(unclear) {
            assert!(row.source.get(range.clone()).is_some(), "{range:?} in {:?}", row.source);
        }
    }
}

#[test]
fn a_command_is_listed_after_the_one_that_wraps_it() {
    for row in table() {
        let script = haft_shell::parse(&row.source);
        for (index, command) in script.commands.iter().enumerate() {
            assert!(command.wrapped_by.is_none_or(|wrapping| wrapping.by < index), "{:?}", row.source);
        }
    }
}

#[test]
fn the_text_of_a_clear_command_is_understood_as_the_same_command() {
    for row in table().into_iter().filter(|row| row.verdict == "clear" || row.verdict == "read-only") {
        for text in row.commands {
            let again = haft_shell::parse(&text);
            // A here-document in a substitution is not on one line, and `\time` is not the reserved word.
            if !text.contains("<<") && !text.starts_with("time ") {
                assert_eq!(again.commands.first().map(Invocation::text), Some(text));
            }
        }
    }
}

fn verdict(script: &ShellScript) -> String {
    if !script.complete {
        return "invalid".to_owned();
    }
    if script.is_clear() {
        return if script.is_read_only() { "read-only" } else { "clear" }.to_owned();
    }
    let reasons: BTreeSet<String> =
        script.unclear.iter().map(|unclear| format!("{:?}", unclear.reason)).collect();
    format!("unclear:{}", reasons.into_iter().collect::<Vec<_>>().join(","))
}
