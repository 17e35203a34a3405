//! Splits messages that are longer than a channel allows.

use haft_tool::ToolError;

/// Calls `send` for each part of `text` that has at most `max_width` by the measure of `width`. Parts of white space
/// are left out, as services reject them.
pub(crate) fn send_parts(
    text: &str,
    max_width: usize,
    width: fn(char) -> usize,
    mut send: impl FnMut(&str) -> Result<(), ToolError>,
) -> Result<(), ToolError> {
    let parts = split(text, max_width, width);
    for (sent, part) in parts.iter().enumerate().filter(|(_, part)| !part.trim().is_empty()) {
        send(part).map_err(|error| match sent {
            0 => error,
            sent => {
                let message = format!("{} (sent {sent} of {} parts)", error.message, parts.len());
                error.with_message(message)
            }
        })?;
    }
    Ok(())
}

/// Splits at the end of a line or a word if there is one in the second half of a part. The newline or space at which it
/// splits is dropped.
fn split(text: &str, max_width: usize, width: fn(char) -> usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    loop {
        let end = prefix_that_fits(rest, max_width, width);
        if end == rest.len() {
            parts.push(rest);
            return parts;
        }
        let prefix = if rest[end..].starts_with(['\n', ' ']) { &rest[..=end] } else { &rest[..end] };
        let mut separators = [prefix.rfind('\n'), prefix.rfind(' ')].into_iter().flatten();
        if let Some(at) = separators.find(|at| *at > 0 && *at >= end / 2) {
            parts.push(&rest[..at]);
            rest = &rest[at + 1..];
        } else {
            parts.push(&rest[..end]);
            rest = &rest[end..];
        }
        if rest.is_empty() {
            return parts;
        }
    }
}

/// Returns the length in bytes of the longest prefix that fits, at least one character.
fn prefix_that_fits(text: &str, max_width: usize, width: fn(char) -> usize) -> usize {
    let mut used = 0;
    for (at, character) in text.char_indices() {
        used += width(character);
        if used > max_width && at > 0 {
            return at;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_text_is_one_part() {
        assert_eq!(split("äöü", 3, |_| 1), ["äöü"]);
        assert_eq!(split("", 3, |_| 1), [""]);
    }

    #[test]
    fn text_is_split_at_lines_words_and_characters() {
        assert_eq!(split("one two\nthree four", 10, |_| 1), ["one two", "three four"]);
        assert_eq!(split("abcdef ghij", 8, |_| 1), ["abcdef", "ghij"]);
        assert_eq!(split("日本語日本語", 4, |_| 1), ["日本語日", "本語"]);
        assert_eq!(split("a😀b", 2, char::len_utf16), ["a", "😀", "b"]);
        assert_eq!(split("abc\n", 3, |_| 1), ["abc"]);
        assert_eq!(split("abc def", 3, |_| 1), ["abc", "def"]);
    }

    #[test]
    fn parts_fit_and_contain_the_whole_text() {
        let text = "wörter & <zeichen>\n".repeat(700);
        let parts = split(&text, 100, char::len_utf16);
        assert!(parts.iter().all(|part| part.encode_utf16().count() <= 100));
        let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
        assert_eq!(letters(&parts.concat()), letters(&text));
    }
}
