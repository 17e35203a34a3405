//! Text patterns with `*`.

/// `*` matches any run of characters; everything else matches itself.
pub fn wildcard(pattern: &str, text: &str) -> bool {
    let Some((first, mut pattern)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(first) else { return false };
    while let Some((piece, rest)) = pattern.split_once('*') {
        let Some(at) = text.find(piece) else { return false };
        (text, pattern) = (&text[at + piece.len()..], rest);
    }
    text.ends_with(pattern)
}
