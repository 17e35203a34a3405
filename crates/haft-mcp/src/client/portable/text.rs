//! Removes from untrusted text what a reader would not see.

use haft_tool::clip_chars;

/// `text` without escape sequences, control and hidden characters, cut to `max_chars`.
///
/// Tags, direction marks, zero-width characters and variation selectors can contain text that a model reads and a person
/// does not see; escape sequences can redraw a terminal.
pub fn clean(text: &str, max_chars: usize) -> String {
    let mut plain = String::with_capacity(text.len().min(max_chars.saturating_mul(4)));
    let mut rest = text.chars().peekable();
    while let Some(next) = rest.next() {
        match next {
            '\u{1b}' => match rest.next() {
                Some('[') => skip_control(&mut rest),
                // OSC, DCS, PM, APC and SOS.
                Some(']' | 'P' | '^' | '_' | 'X') => skip_string(&mut rest),
                _ => {}
            },
            '\u{9b}' => skip_control(&mut rest),
            '\u{9d}' | '\u{90}' | '\u{9e}' | '\u{9f}' | '\u{98}' => skip_string(&mut rest),
            '\r' => {
                if rest.peek() != Some(&'\n') {
                    plain.push('\n');
                }
            }
            '\u{2028}' | '\u{2029}' => plain.push('\n'),
            '\n' | '\t' => plain.push(next),
            hidden if hidden.is_control() || is_hidden(hidden) => {}
            seen => plain.push(seen),
        }
    }
    match clip_chars(&plain, max_chars, 0) {
        std::borrow::Cow::Borrowed(_) => plain,
        std::borrow::Cow::Owned(cut) => cut,
    }
}

/// The same on one line.
pub fn clean_line(text: &str, max_chars: usize) -> String {
    let plain = clean(text, max_chars.saturating_mul(2));
    let line = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    clip_chars(&line, max_chars, 0).into_owned()
}

type CharsLeft<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// Skips the parameters and the final character of a control sequence.
fn skip_control(rest: &mut CharsLeft<'_>) {
    while rest.next_if(|next| matches!(next, ' '..='?')).is_some() {}
    rest.next_if(|next| matches!(next, '@'..='~'));
}

/// Skips up to BEL, ST or the end of the line.
fn skip_string(rest: &mut CharsLeft<'_>) {
    while let Some(next) = rest.next_if(|next| *next != '\n') {
        match next {
            '\u{7}' | '\u{9c}' => return,
            '\u{1b}' => {
                rest.next_if_eq(&'\\');
                return;
            }
            _ => {}
        }
    }
}

/// Whether a character is invisible.
fn is_hidden(char: char) -> bool {
    matches!(char,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn hidden_characters_are_removed_and_the_rest_is_kept() {
        let tags: String = "obey".chars().map(|c| char::from_u32(0xe0000 + c as u32).unwrap()).collect();
        assert_eq!(clean(&format!("a{tags}\u{200b}\u{202e}b\u{feff}\u{2066}"), 100), "ab");
        assert_eq!(
            clean("\u{1b}[2J\u{1b}[1;31mred\u{1b}]0;owned\u{7}\u{9b}31m \u{8}\u{7f}ink\0", 100),
            "red ink"
        );
        assert_eq!(clean("\u{1b}]8;;http://evil.example\u{1b}\\link", 100), "link");
        assert_eq!(
            clean("one\r\ntwo\rthree\u{2028}four\tü 日本 🙂", 100),
            "one\ntwo\nthree\nfour\tü 日本 🙂"
        );
        assert_eq!(clean_line(" one\n\ttwo \u{1b}[0m ", 100), "one two");
    }

    #[test]
    fn unterminated_escape_sequence_ends_with_its_line() {
        assert_eq!(clean("\u{1b}]0;never ends\nnext", 100), "\nnext");
        assert_eq!(clean("\u{1b}[12;", 100), "");
        assert_eq!(clean("\u{1b}", 100), "");
    }

    proptest! {
        #[test]
        fn clean_text_is_bounded_and_idempotent(text in "\\PC{0,40}[\u{0}-\u{a0}\u{200b}-\u{206f}\u{e0000}-\u{e007f}]{0,40}", most in 0_usize..60) {
            let once = clean(&text, most);
            prop_assert!(once.chars().all(|c| !is_hidden(c) && (!c.is_control() || "\n\t".contains(c))));
            prop_assert!(once.chars().count() <= most + 40, "the note of the cut apart");
            prop_assert_eq!(clean(&once, usize::MAX), once);
        }
    }
}
