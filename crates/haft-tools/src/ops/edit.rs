//! Replacing text in a file's bytes. Every byte outside the replaced stretches stays what it was.

use std::path::Path;

use haft_tool::{ErrorKind, ToolError};

use super::hunk::Span;
use super::near::nearest;
use super::text::{Charset, Decoded, decode, encode};

/// Which of several matches is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    /// There must be exactly one, unless the caller asks for all.
    Only,
    /// There must be exactly one, and nothing else can be asked for.
    Once,
    /// The first one, however many there are.
    First,
    /// All of them.
    All,
}

/// What to replace, and by what, both taken literally.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) old: &'a str,
    pub(crate) new: &'a str,
    pub(crate) which: Which,
    /// What the caller calls the old text.
    pub(crate) field: &'static str,
}

/// What an edit made of a file.
#[derive(Debug)]
pub(crate) struct Edited {
    pub(crate) bytes: Vec<u8>,
    pub(crate) old_text: String,
    pub(crate) spans: Vec<Span>,
    /// How often the old text was there.
    pub(crate) found: usize,
    /// What the caller should know besides.
    pub(crate) notes: Vec<String>,
}

/// Replaces text in a file's bytes.
pub(crate) fn replace(bytes: &[u8], path: &Path, wanted: &Wanted<'_>) -> Result<Edited, ToolError> {
    let decoded = decode(bytes).ok_or_else(|| no_text(path))?;
    let mut notes = Vec::new();
    let mut spans = find(&decoded.text, wanted.old, wanted.new, &mut notes);
    let found = spans.len();
    match (found, wanted.which) {
        (0, _) => return Err(not_found(path, &decoded.text, wanted)),
        (1, _) | (_, Which::All) => {}
        (_, Which::First) => spans.truncate(1),
        (count, Which::Only | Which::Once) => {
            return Err(ambiguous(path, &decoded.text, &spans, count, wanted));
        }
    }
    let bytes = splice(bytes, path, &decoded, &spans)?;
    if decoded.charset != Charset::Utf8 {
        notes.push(format!("the file is {}, and stays so", decoded.charset.name()));
    }
    Ok(Edited { bytes, old_text: decoded.text, spans, found, notes })
}

/// Puts `new` behind all the text of a file's bytes.
pub(crate) fn append(bytes: &[u8], path: &Path, new: &str) -> Result<Vec<u8>, ToolError> {
    let decoded = decode(bytes).ok_or_else(|| no_text(path))?;
    let end = decoded.text.len();
    let crlf = !new.contains('\r') && only_crlf(&decoded.text);
    let new = if crlf { new.replace('\n', "\r\n") } else { new.to_owned() };
    splice(bytes, path, &decoded, &[Span { start: end, end, new }])
}

fn no_text(path: &Path) -> ToolError {
    ToolError::failed(format!("{} is not a text file; nothing was changed", path.display()))
}

/// The places to replace. Line breaks in `old` also match the file's own kind, and `new` is given that kind.
fn find(text: &str, old: &str, new: &str, notes: &mut Vec<String>) -> Vec<Span> {
    let all = |wanted: &str| -> Vec<(usize, usize)> {
        let starts = memchr::memmem::find_iter(text.as_bytes(), wanted.as_bytes());
        starts.map(|start| (start, start + wanted.len())).collect()
    };
    let unix = !old.contains('\r') && !new.contains('\r');
    // Where every line ends with CRLF, a lone line feed could only match the second half of one.
    let mut crlf = unix && only_crlf(text);
    let mut ranges = if crlf { all(&old.replace('\n', "\r\n")) } else { all(old) };
    if ranges.is_empty() && !crlf && unix && old.contains('\n') && text.contains("\r\n") {
        crlf = true;
        ranges = all(&old.replace('\n', "\r\n"));
    }
    let new = if crlf && new.contains('\n') { &new.replace('\n', "\r\n") } else { new };
    if crlf && !ranges.is_empty() && (old.contains('\n') || new.contains('\n')) {
        notes.push("the file has CRLF line ends, and the new text was given them too".to_owned());
    }
    ranges.into_iter().map(|(start, end)| Span { start, end, new: new.to_owned() }).collect()
}

/// Whether every line of the text (there is more than one) ends with CRLF.
fn only_crlf(text: &str) -> bool {
    let mut breaks = memchr::memchr_iter(b'\n', text.as_bytes()).peekable();
    breaks.peek().is_some() && breaks.all(|at| at > 0 && text.as_bytes()[at - 1] == b'\r')
}

/// Puts the new stretches between the old bytes.
fn splice(bytes: &[u8], path: &Path, decoded: &Decoded, spans: &[Span]) -> Result<Vec<u8>, ToolError> {
    let mut text = String::with_capacity(decoded.text.len());
    let mut at = 0;
    for span in spans {
        text.push_str(&decoded.text[at..span.start]);
        text.push_str(&span.new);
        at = span.end;
    }
    let tail = &decoded.text[at..];
    text.push_str(tail);
    let name = decoded.charset.name();
    let made = encode(&text, decoded.charset, decoded.bom).map_err(|missing| {
        ToolError::invalid_arguments(format!(
            "{} is {name}, which has no character {missing:?}; nothing was changed",
            path.display()
        ))
    })?;
    // Encodings with a state could change bytes that were not meant; then the edit is not made.
    let head =
        encode(&decoded.text[..spans.first().map_or(0, |span| span.start)], decoded.charset, decoded.bom);
    let tail = encode(tail, decoded.charset, false);
    let kept = head.is_ok_and(|head| bytes.starts_with(&head) && made.starts_with(&head))
        && tail.is_ok_and(|tail| bytes.ends_with(&tail) && made.ends_with(&tail));
    if !kept {
        return Err(ToolError::failed(format!(
            "{} is {name} text that cannot be edited without touching other bytes; nothing was changed",
            path.display()
        )));
    }
    Ok(made)
}

fn not_found(path: &Path, text: &str, wanted: &Wanted<'_>) -> ToolError {
    let Wanted { old, field, .. } = wanted;
    let mut message = format!("{field} was not found in {}.", path.display());
    if old.contains('\r') && !text.contains('\r') {
        message.push_str(" It has carriage returns (CRLF); the file has none.");
    }
    if let Some(near) = nearest(text, old) {
        message.push(' ');
        message.push_str(&near);
    } else {
        message.push_str(" Nothing in the file comes near it; read the file again.");
    }
    ToolError::new(ErrorKind::TargetNotFound, message)
}

fn ambiguous(path: &Path, text: &str, spans: &[Span], count: usize, wanted: &Wanted<'_>) -> ToolError {
    let mut lines = Vec::new();
    let (mut line, mut counted) = (1, 0);
    for span in spans.iter().take(10) {
        line += memchr::memchr_iter(b'\n', &text.as_bytes()[counted..span.start]).count();
        counted = span.start;
        lines.push(line.to_string());
    }
    let more = if count > lines.len() { ", …" } else { "" };
    let field = wanted.field;
    let all = if wanted.which == Which::Only { ", or set replace_all" } else { "" };
    ToolError::new(
        ErrorKind::TargetNotFound,
        format!(
            "{field} was found {count} times in {}, at lines {}{more}. Give more of the text around the one you mean{all}.",
            path.display(),
            lines.join(", ")
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(file: &[u8], old: &str, new: &str, which: Which) -> Result<Vec<u8>, String> {
        replace(file, Path::new("/f"), &Wanted { old, new, which, field: "old_string" })
            .map(|edited| edited.bytes)
            .map_err(|error| error.message)
    }

    #[test]
    fn one_match_is_replaced_literally() {
        assert_eq!(edit(b"a b c", "b", "$& $1 \\1 $$", Which::Only).unwrap(), b"a $& $1 \\1 $$ c");
        assert_eq!(edit(b"aXbXc", "X", "", Which::All).unwrap(), b"abc");
        assert_eq!(edit(b"aaaa", "aa", "b", Which::All).unwrap(), b"bb");
    }

    #[test]
    fn the_first_of_several_is_replaced_where_that_is_asked_for() {
        assert_eq!(edit(b"x y x", "x", "z", Which::First).unwrap(), b"z y x");
        let said = edit(b"x y x", "x", "z", Which::Once).unwrap_err();
        assert!(said.ends_with("at lines 1, 1. Give more of the text around the one you mean."), "{said}");
    }

    #[test]
    fn what_is_appended_takes_the_files_ways() {
        let after = |file: &[u8], new| append(file, Path::new("/f"), new).unwrap();
        assert_eq!(after(b"", "a\n"), b"a\n");
        assert_eq!(after(b"a\r\n", "b\n"), b"a\r\nb\r\n");
        assert_eq!(after(b"\xff\xfea\0", "b"), b"\xff\xfea\0b\0");
        assert!(append(b"\x7fELF\0\0a", Path::new("/f"), "x").is_err());
    }

    #[test]
    fn several_matches_are_an_error_that_says_where() {
        let said = edit(b"x\ny\nx\n", "x", "z", Which::Only).unwrap_err();
        assert_eq!(
            said,
            "old_string was found 2 times in /f, at lines 1, 3. Give more of the text around the one you mean, or set replace_all."
        );
    }

    #[test]
    fn crlf_files_stay_crlf() {
        assert_eq!(
            edit(b"a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", Which::Only).unwrap(),
            b"x\r\ny\r\nz\r\nc\r\n"
        );
        assert_eq!(edit(b"a\r\nb\r\n", "b", "x\ny", Which::Only).unwrap(), b"a\r\nx\r\ny\r\n");
        assert_eq!(
            edit(b"a\r\nb\r\n", "\nb", "\nx", Which::Only).unwrap(),
            b"a\r\nx\r\n",
            "no line end is split"
        );
        assert_eq!(
            edit(b"a\r\nb\nc", "b", "x\ny", Which::Only).unwrap(),
            b"a\r\nx\ny\nc",
            "mixed files: as given"
        );
        let said = edit(b"a\nb\n", "a\r\nb", "x", Which::Only).unwrap_err();
        assert!(said.contains("It has carriage returns (CRLF); the file has none."), "{said}");
    }

    #[test]
    fn legacy_files_keep_their_encoding_or_refuse() {
        let file = b"Gr\xfc\xdfe aus K\xf6ln, sch\xf6ne Gr\xfc\xdfe\n";
        assert_eq!(
            edit(file, "Köln", "Münster", Which::Only).unwrap(),
            b"Gr\xfc\xdfe aus M\xfcnster, sch\xf6ne Gr\xfc\xdfe\n"
        );
        let said = edit(file, "Köln", "日本", Which::Only).unwrap_err();
        assert!(said.contains("is windows-1252, which has no character '日'"), "{said}");
        assert!(edit(b"\x7fELF\0\0a", "a", "b", Which::Only).unwrap_err().contains("not a text file"));
    }
}
