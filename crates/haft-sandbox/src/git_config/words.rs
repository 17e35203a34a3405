//! Paths in command lines.

use std::collections::BTreeSet;

/// The words of a command line that may be paths of files. A shell may run it, so each word counts with its quotes removed, and
/// so does each part of one.
pub(super) fn paths_in(line: &[u8]) -> BTreeSet<Vec<u8>> {
    let parts = line.split(|byte| ends_word(*byte) || matches!(byte, b'\'' | b'"' | b'=' | b'!'));
    let words = words(line).into_iter().chain(parts.map(<[u8]>::to_vec));
    words.filter(|word| is_path(word)).collect()
}

/// The words of a command line, without quotes and backslashes.
fn words(line: &[u8]) -> Vec<Vec<u8>> {
    let line = line.strip_prefix(b"!").unwrap_or(line);
    let (mut words, mut word, mut quote) = (Vec::new(), Vec::new(), None);
    let mut rest = line.iter().copied();
    while let Some(byte) = rest.next() {
        match (byte, quote) {
            (b'\\', None | Some(b'"')) => word.extend(rest.next()),
            (b'\'' | b'"', None) => quote = Some(byte),
            (_, Some(open)) if byte == open => quote = None,
            (_, None) if ends_word(byte) => words.push(std::mem::take(&mut word)),
            _ => word.push(byte),
        }
    }
    words.push(word);
    words
}

fn ends_word(byte: u8) -> bool {
    byte.is_ascii_whitespace() || b";&|()<>`".contains(&byte)
}

/// Whether a word has a directory or looks like the name of a script: `tools/clean`, `clean.py`.
fn is_path(word: &[u8]) -> bool {
    let has_suffix = || {
        let dot = word.iter().rposition(|byte| *byte == b'.').filter(|dot| *dot > 0);
        dot.is_some_and(|dot| word.get(dot + 1).is_some_and(u8::is_ascii_alphabetic))
    };
    word.contains(&b'/') || has_suffix()
}
