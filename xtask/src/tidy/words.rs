//! Words that say less than the technical one.

use super::Violation;
use super::source::is_word;

pub(super) const BANNED_WORDS: &str = "banned-words";

/// Every occurrence of a phrase in comments, strings or documents.
pub(super) fn banned(path: &str, prose: &str, phrases: &[String]) -> Vec<Violation> {
    let mut found = Vec::new();
    for (number, line) in prose.lines().enumerate() {
        let line = line.to_lowercase();
        for phrase in phrases {
            let occurrences =
                line.match_indices(phrase.as_str()).filter(|(at, _)| is_whole(&line, *at, phrase)).count();
            found.extend((0..occurrences).map(|_| Violation {
                check: BANNED_WORDS,
                item: phrase.clone(),
                place: format!("{path}:{}", number + 1),
            }));
        }
    }
    found
}

/// Whether a phrase stands alone. One that begins with a bracket is a suffix: it follows a word or a placeholder.
fn is_whole(line: &str, at: usize, phrase: &str) -> bool {
    let before = line[..at].chars().next_back();
    let after = line[at + phrase.len()..].chars().next();
    let is_suffix = phrase.starts_with('(');
    before.is_some_and(|char| char.is_alphabetic() || is_suffix && char == '}' || !is_suffix && char == '_')
        == is_suffix
        && !after.is_some_and(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(prose: &str) -> usize {
        banned("a.md", prose, &["utterly".to_owned(), "as it were".to_owned(), concat!("(", "s)").to_owned()])
            .len()
    }

    #[test]
    fn whole_words_are_found() {
        assert_eq!(count("Utterly, and as it were: utterly"), 3);
        assert_eq!(count("preutterly utterlyx _utterly as  it were"), 0);
    }

    #[test]
    fn bracketed_plurals_are_found() {
        let plural = concat!("(", "s)");
        assert_eq!(count(&format!("1 path{plural}, {{count}}{plural}")), 2);
        assert_eq!(count(&format!("a {plural} b")), 0);
    }
}
