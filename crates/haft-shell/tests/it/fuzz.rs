//! Random hostile input.

use haft_shell::{Invocation, MAX_COMMANDS_COUNT};

use crate::fixture::table;

#[test]
fn mutated_scripts_neither_panic_nor_exceed_the_bounds() {
    let sources: Vec<String> =
        table().into_iter().map(|row| row.source).filter(|source| !source.is_empty()).collect();
    let seeds: Vec<&[u8]> = sources.iter().map(String::as_bytes).collect();
    haft_fuzz::check(&seeds, |bytes| {
        let source = String::from_utf8_lossy(bytes);
        let script = haft_shell::parse(&source);
        assert!(script.commands.len() <= MAX_COMMANDS_COUNT);
        assert!(script.complete || !script.unclear.is_empty());
        for command in &script.commands {
            assert!(!command.text().contains('\n'));
            assert!(source.get(command.range.clone()).is_some());
            assert!(command.wrapped_by.is_none_or(|wrapping| wrapping.by < script.commands.len()));
            // Looks at the words without a panic.
            let _ = (haft_shell::is_read_only(command), command.program_text());
        }
        for unclear in &script.unclear {
            assert!(source.get(unclear.range.clone()).is_some(), "{unclear:?}");
        }
        assert!(script.to_cover().map(Invocation::text).all(|text| !text.is_empty()));
    });
}
