//! Cutting a message into pieces that a channel takes.

/// `text` in pieces of at most `most` by the measure of `width`, cut at the end of a line or a word where one is near.
/// Nothing is lost but the blank at which a cut falls.
pub(crate) fn pieces(text: &str, most: usize, width: fn(char) -> usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    loop {
        let end = end_of(rest, most, width);
        if end == rest.len() {
            pieces.push(rest);
            return pieces;
        }
        let near = end / 2;
        let fits = if rest[end..].starts_with(['\n', ' ']) { &rest[..=end] } else { &rest[..end] };
        let mut cuts = [fits.rfind('\n'), fits.rfind(' ')].into_iter().flatten();
        if let Some(at) = cuts.find(|at| *at > 0 && *at >= near) {
            pieces.push(&rest[..at]);
            rest = &rest[at + 1..];
        } else {
            pieces.push(&rest[..end]);
            rest = &rest[end..];
        }
        if rest.is_empty() {
            return pieces;
        }
    }
}

/// Where the longest beginning that fits ends; at least one character does.
fn end_of(text: &str, most: usize, width: fn(char) -> usize) -> usize {
    let mut used = 0;
    for (at, character) in text.char_indices() {
        used += width(character);
        if used > most && at > 0 {
            return at;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_one_piece() {
        assert_eq!(pieces("äöü", 3, |_| 1), ["äöü"]);
        assert_eq!(pieces("", 3, |_| 1), [""]);
    }

    #[test]
    fn cuts_fall_on_lines_words_and_characters() {
        assert_eq!(pieces("one two\nthree four", 10, |_| 1), ["one two", "three four"]);
        assert_eq!(pieces("abcdef ghij", 8, |_| 1), ["abcdef", "ghij"]);
        assert_eq!(pieces("日本語日本語", 4, |_| 1), ["日本語日", "本語"]);
        assert_eq!(pieces("a😀b", 2, char::len_utf16), ["a", "😀", "b"]);
        assert_eq!(pieces("abc\n", 3, |_| 1), ["abc"]);
        assert_eq!(pieces("abc def", 3, |_| 1), ["abc", "def"]);
    }

    #[test]
    fn nothing_gets_lost_and_nothing_is_too_long() {
        let text = "wörter & <zeichen>\n".repeat(700);
        let parts = pieces(&text, 100, char::len_utf16);
        assert!(parts.iter().all(|part| part.encode_utf16().count() <= 100));
        let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
        assert_eq!(letters(&parts.concat()), letters(&text));
    }
}
