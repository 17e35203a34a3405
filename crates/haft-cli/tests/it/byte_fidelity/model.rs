//! What an edit must make of a file, in bytes.

use super::files::TextFile;

/// What must come of an edit.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Expected {
    /// The file holds these bytes.
    Bytes(Vec<u8>),
    /// An error, and the file is as it was.
    Refused,
}

/// What must come of replacing `old` by `new`.
pub(super) fn edited(file: &TextFile, old: &str, new: &str, replace_all: bool) -> Expected {
    if old == new {
        return Expected::Refused;
    }
    let (old, new) = with_breaks_of(&file.text, old, new);
    let text: Vec<char> = file.text.chars().collect();
    let old: Vec<char> = old.chars().collect();
    let places = found(&text, &old);
    if places.is_empty() || (places.len() > 1 && !replace_all) {
        return Expected::Refused;
    }
    let encoding = file.encoding();
    let Some(new) = encoding.encode(&new) else { return Expected::Refused };
    // Where each letter starts in the file's bytes; the last entry is their end.
    let mut starts = vec![encoding.mark.len()];
    for letter in &text {
        starts.push(starts[starts.len() - 1] + encoding.encode(&letter.to_string()).unwrap().len());
    }
    let bytes = file.bytes();
    let mut made = Vec::new();
    let mut at = 0;
    for place in places {
        made.extend_from_slice(&bytes[at..starts[place]]);
        made.extend_from_slice(&new);
        at = starts[place + old.len()];
    }
    made.extend_from_slice(&bytes[at..]);
    Expected::Bytes(made)
}

/// Line ends in the arguments mean the file's own: where it has only CRLF, and where the text is found only so.
pub(super) fn with_breaks_of(text: &str, old: &str, new: &str) -> (String, String) {
    let windows = |part: &str| part.replace('\n', "\r\n");
    let (all, crlf) = (text.matches('\n').count(), text.matches("\r\n").count());
    let plain = !old.contains('\r') && !new.contains('\r');
    let only_so = old.contains('\n') && crlf > 0 && !text.contains(old);
    if plain && ((crlf > 0 && crlf == all) || only_so) {
        return (windows(old), windows(new));
    }
    (old.to_owned(), new.to_owned())
}

/// Where `wanted` starts in `text`, from left to right, no two overlapping.
fn found(text: &[char], wanted: &[char]) -> Vec<usize> {
    let mut places = Vec::new();
    let mut at = 0;
    while at + wanted.len() <= text.len() {
        let here = text[at..at + wanted.len()] == *wanted;
        if here {
            places.push(at);
        }
        at += if here { wanted.len() } else { 1 };
    }
    places
}

/// Whether `after` is `before` with the same bytes in the place of some of the stretches that are `old`.
pub(super) fn outside_is_kept(before: &[u8], after: &[u8], old: &[u8]) -> bool {
    if old.is_empty() {
        return false;
    }
    let most = before.windows(old.len()).filter(|window| window == &old).count();
    (1..=most).any(|count| {
        let grown = (after.len() + count * old.len()).checked_sub(before.len());
        grown.is_some_and(|grown| grown % count == 0 && derives(before, after, old, grown / count, None))
    })
}

/// Whether `after` comes of `before` by putting the same `length` bytes in the place of `old` here and there.
fn derives(before: &[u8], after: &[u8], old: &[u8], length: usize, new: Option<&[u8]>) -> bool {
    let same = before.iter().zip(after).take_while(|(a, b)| a == b).count();
    if same == before.len() && same == after.len() {
        return true;
    }
    (0..=same).rev().any(|at| {
        before[at..].starts_with(old)
            && after.len() >= at + length
            && new.is_none_or(|new| after[at..].starts_with(new))
            && derives(
                &before[at + old.len()..],
                &after[at + length..],
                old,
                length,
                Some(&after[at..at + length]),
            )
    })
}
