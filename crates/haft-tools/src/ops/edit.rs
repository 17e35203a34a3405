//! Replacing text in files. Every byte outside the replaced spans stays as it is.

use std::path::Path;

use haft_tool::{ErrorKind, ToolError, World, Written};

use super::charset::{Charset, DecodedText, decode, encode};
use super::hunks::ReplacedSpan;
use super::near_miss::nearest_text;

/// How many line numbers an error about an ambiguous match lists.
const MAX_LISTED_LINES: usize = 10;

/// Which occurrences of a text are replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Occurrence {
    /// Exactly one must exist; the error suggests `replace_all`.
    UniqueOrAll,
    /// Exactly one must exist.
    Unique,
    First,
    All,
}

/// A literal replacement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Replacement<'a> {
    pub(crate) old: &'a str,
    pub(crate) new: &'a str,
    pub(crate) occurrence: Occurrence,
    /// The name of the parameter that holds the old text.
    pub(crate) field: &'static str,
}

/// The result of a replacement.
#[derive(Debug)]
pub(crate) struct EditedText {
    pub(crate) bytes: Vec<u8>,
    pub(crate) old_text: String,
    pub(crate) spans: Vec<ReplacedSpan>,
    /// How often the old text occurred.
    pub(crate) found: usize,
    /// Remarks for the caller.
    notes: Vec<String>,
}

impl EditedText {
    /// The remarks, each after a semicolon.
    pub(crate) fn notes(&self) -> String {
        self.notes.iter().map(|note| format!("; {note}")).collect()
    }
}

/// Updates an existing file with what `edit` returns beside a result; `creator` is the tool that makes new files.
pub(crate) fn update_existing<T>(
    world: &dyn World,
    path: &Path,
    creator: &str,
    mut edit: impl FnMut(&[u8]) -> Result<(Vec<u8>, T), ToolError>,
) -> Result<(Written, T), ToolError> {
    let mut result = None;
    let written = world.files().update(path, &mut |current| {
        let Some(bytes) = current else {
            let message = format!("{} does not exist; to make a new file use {creator}", path.display());
            return Err(ToolError::new(ErrorKind::FileNotFound, message));
        };
        let (bytes, edited) = edit(bytes)?;
        result = Some(edited);
        Ok(bytes)
    })?;
    result.map(|result| (written, result)).ok_or_else(|| ToolError::internal("the edit was not called"))
}

/// Replaces text in an existing file.
pub(crate) fn edit_file(
    world: &dyn World,
    path: &Path,
    creator: &str,
    replacement: &Replacement<'_>,
) -> Result<(Written, EditedText), ToolError> {
    update_existing(world, path, creator, |bytes| {
        let mut edited = replace(bytes, path, replacement)?;
        Ok((std::mem::take(&mut edited.bytes), edited))
    })
}

/// The result of several replacements.
#[derive(Debug, Default)]
pub(crate) struct EditedBatch {
    /// How many places were changed.
    pub(crate) replaced: usize,
    pub(crate) old_bytes: usize,
    pub(crate) new_bytes: usize,
}

/// Makes all replacements in order, or none. An empty old text appends; as the first one it also creates a missing file.
pub(crate) fn edit_batch(
    world: &dyn World,
    path: &Path,
    replacements: &[Replacement<'_>],
) -> Result<(Written, EditedBatch), ToolError> {
    let mut batch = EditedBatch::default();
    let written = world.files().update(path, &mut |current| {
        if current.is_none() && replacements.first().is_none_or(|first| !first.old.is_empty()) {
            let field = replacements.first().map_or("old text", |first| first.field);
            let message = format!(
                "{} does not exist, so there is nothing to replace; an empty {field} makes it",
                path.display()
            );
            return Err(ToolError::new(ErrorKind::TargetNotFound, message));
        }
        let mut bytes = current.unwrap_or_default().to_vec();
        batch = EditedBatch { old_bytes: bytes.len(), ..EditedBatch::default() };
        for (at, replacement) in replacements.iter().enumerate() {
            let (new, replaced) = replace_or_append(&bytes, path, replacement).map_err(|mut error| {
                if replacements.len() > 1 {
                    error.message = format!("edits[{at}]: {} None of the edits was made.", error.message);
                }
                error
            })?;
            bytes = new;
            batch.replaced += replaced;
        }
        batch.new_bytes = bytes.len();
        Ok(bytes)
    })?;
    Ok((written, batch))
}

fn replace_or_append(
    bytes: &[u8],
    path: &Path,
    replacement: &Replacement<'_>,
) -> Result<(Vec<u8>, usize), ToolError> {
    if replacement.old.is_empty() {
        return Ok((append(bytes, path, replacement.new)?, 1));
    }
    let edited = replace(bytes, path, replacement)?;
    Ok((edited.bytes, edited.spans.len()))
}

/// Replaces text in a file's bytes.
fn replace(bytes: &[u8], path: &Path, replacement: &Replacement<'_>) -> Result<EditedText, ToolError> {
    let decoded = decode(bytes).ok_or_else(|| not_text(path))?;
    let mut notes = Vec::new();
    let mut spans = find(&decoded.text, replacement.old, replacement.new, &mut notes);
    let found = spans.len();
    match (found, replacement.occurrence) {
        (0, _) => return Err(not_found(path, &decoded.text, replacement)),
        (1, _) | (_, Occurrence::All) => {}
        (_, Occurrence::First) => spans.truncate(1),
        (_, Occurrence::Unique | Occurrence::UniqueOrAll) => {
            return Err(ambiguous(path, &decoded.text, &spans, replacement));
        }
    }
    let bytes = splice(bytes, path, &decoded, &spans)?;
    if decoded.charset != Charset::Utf8 {
        notes.push(format!("the file is {}, and stays so", decoded.charset.name()));
    }
    Ok(EditedText { bytes, old_text: decoded.text, spans, found, notes })
}

/// Appends `new` to the text of a file's bytes.
fn append(bytes: &[u8], path: &Path, new: &str) -> Result<Vec<u8>, ToolError> {
    let decoded = decode(bytes).ok_or_else(|| not_text(path))?;
    let end = decoded.text.len();
    let crlf = !new.contains('\r') && has_only_crlf(&decoded.text);
    let new = if crlf { new.replace('\n', "\r\n") } else { new.to_owned() };
    splice(bytes, path, &decoded, &[ReplacedSpan { start: end, end, new }])
}

fn not_text(path: &Path) -> ToolError {
    ToolError::failed(format!("{} is not a text file; nothing was changed", path.display()))
}

/// The spans to replace. Line feeds in `old` also match the CRLF of the file, and `new` is given CRLF then.
fn find(text: &str, old: &str, new: &str, notes: &mut Vec<String>) -> Vec<ReplacedSpan> {
    let all = |wanted: &str| -> Vec<(usize, usize)> {
        let starts = memchr::memmem::find_iter(text.as_bytes(), wanted.as_bytes());
        starts.map(|start| (start, start + wanted.len())).collect()
    };
    let unix = !old.contains('\r') && !new.contains('\r');
    // If every line ends with CRLF, a lone line feed must not match the second half of one.
    let mut crlf = unix && has_only_crlf(text);
    let mut ranges = if crlf { all(&old.replace('\n', "\r\n")) } else { all(old) };
    if ranges.is_empty() && !crlf && unix && old.contains('\n') && text.contains("\r\n") {
        crlf = true;
        ranges = all(&old.replace('\n', "\r\n"));
    }
    let new = if crlf && new.contains('\n') { &new.replace('\n', "\r\n") } else { new };
    if crlf && !ranges.is_empty() && (old.contains('\n') || new.contains('\n')) {
        notes.push("the file has CRLF line ends, and the new text was given them too".to_owned());
    }
    ranges.into_iter().map(|(start, end)| ReplacedSpan { start, end, new: new.to_owned() }).collect()
}

/// Whether the text has line ends and all of them are CRLF.
fn has_only_crlf(text: &str) -> bool {
    let mut breaks = memchr::memchr_iter(b'\n', text.as_bytes()).peekable();
    breaks.peek().is_some() && breaks.all(|at| at > 0 && text.as_bytes()[at - 1] == b'\r')
}

/// Encodes the text with the spans replaced.
fn splice(
    bytes: &[u8],
    path: &Path,
    decoded: &DecodedText,
    spans: &[ReplacedSpan],
) -> Result<Vec<u8>, ToolError> {
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
    let encoded = encode(&text, decoded.charset, decoded.bom).map_err(|missing| {
        ToolError::invalid_arguments(format!(
            "{} is {name}, which has no character {missing:?}; nothing was changed",
            path.display()
        ))
    })?;
    // A stateful encoding could change other bytes too; such an edit is refused.
    let head = &decoded.text[..spans.first().map_or(0, |span| span.start)];
    let head = encode(head, decoded.charset, decoded.bom);
    let tail = encode(tail, decoded.charset, false);
    let kept = head.is_ok_and(|head| bytes.starts_with(&head) && encoded.starts_with(&head))
        && tail.is_ok_and(|tail| bytes.ends_with(&tail) && encoded.ends_with(&tail));
    if !kept {
        return Err(ToolError::failed(format!(
            "{} is {name} text that cannot be edited without touching other bytes; nothing was changed",
            path.display()
        )));
    }
    Ok(encoded)
}

fn not_found(path: &Path, text: &str, replacement: &Replacement<'_>) -> ToolError {
    let Replacement { old, field, .. } = replacement;
    let mut message = format!("{field} was not found in {}.", path.display());
    if old.contains('\r') && !text.contains('\r') {
        message.push_str(" It has carriage returns (CRLF); the file has none.");
    }
    let hint = nearest_text(text, old);
    message.push(' ');
    message.push_str(hint.as_deref().unwrap_or("Nothing in the file is similar; read the file again."));
    ToolError::new(ErrorKind::TargetNotFound, message)
}

fn ambiguous(path: &Path, text: &str, spans: &[ReplacedSpan], replacement: &Replacement<'_>) -> ToolError {
    let mut lines = Vec::new();
    let (mut line, mut counted) = (1, 0);
    for span in spans.iter().take(MAX_LISTED_LINES) {
        line += memchr::memchr_iter(b'\n', &text.as_bytes()[counted..span.start]).count();
        counted = span.start;
        lines.push(line.to_string());
    }
    let more = if spans.len() > lines.len() { ", …" } else { "" };
    let field = replacement.field;
    let all = if replacement.occurrence == Occurrence::UniqueOrAll { ", or set replace_all" } else { "" };
    ToolError::new(
        ErrorKind::TargetNotFound,
        format!(
            "{field} was found {} times in {}, at lines {}{more}. Give more of the text around the one you mean{all}.",
            spans.len(),
            path.display(),
            lines.join(", ")
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(file: &[u8], old: &str, new: &str, occurrence: Occurrence) -> Result<Vec<u8>, String> {
        replace(file, Path::new("/f"), &Replacement { old, new, occurrence, field: "old_string" })
            .map(|edited| edited.bytes)
            .map_err(|error| error.message)
    }

    #[test]
    fn replacement_is_literal() {
        assert_eq!(
            edit(b"a b c", "b", "$& $1 \\1 $$", Occurrence::UniqueOrAll).unwrap(),
            b"a $& $1 \\1 $$ c"
        );
        assert_eq!(edit(b"aXbXc", "X", "", Occurrence::All).unwrap(), b"abc");
        assert_eq!(edit(b"aaaa", "aa", "b", Occurrence::All).unwrap(), b"bb");
    }

    #[test]
    fn first_of_several_is_replaced() {
        assert_eq!(edit(b"x y x", "x", "z", Occurrence::First).unwrap(), b"z y x");
        let message = edit(b"x y x", "x", "z", Occurrence::Unique).unwrap_err();
        assert!(
            message.ends_with("at lines 1, 1. Give more of the text around the one you mean."),
            "{message}"
        );
    }

    #[test]
    fn append_keeps_encoding_and_line_ends() {
        let appended = |file: &[u8], new| append(file, Path::new("/f"), new).unwrap();
        assert_eq!(appended(b"", "a\n"), b"a\n");
        assert_eq!(appended(b"a\r\n", "b\n"), b"a\r\nb\r\n");
        assert_eq!(appended(b"\xff\xfea\0", "b"), b"\xff\xfea\0b\0");
        assert!(append(b"\x7fELF\0\0a", Path::new("/f"), "x").is_err());
    }

    #[test]
    fn ambiguous_match_lists_lines() {
        let message = edit(b"x\ny\nx\n", "x", "z", Occurrence::UniqueOrAll).unwrap_err();
        assert_eq!(
            message,
            "old_string was found 2 times in /f, at lines 1, 3. Give more of the text around the one you mean, or set replace_all."
        );
    }

    #[test]
    fn crlf_files_stay_crlf() {
        assert_eq!(
            edit(b"a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", Occurrence::UniqueOrAll).unwrap(),
            b"x\r\ny\r\nz\r\nc\r\n"
        );
        assert_eq!(edit(b"a\r\nb\r\n", "b", "x\ny", Occurrence::UniqueOrAll).unwrap(), b"a\r\nx\r\ny\r\n");
        assert_eq!(
            edit(b"a\r\nb\r\n", "\nb", "\nx", Occurrence::UniqueOrAll).unwrap(),
            b"a\r\nx\r\n",
            "no line end is split"
        );
        assert_eq!(
            edit(b"a\r\nb\nc", "b", "x\ny", Occurrence::UniqueOrAll).unwrap(),
            b"a\r\nx\ny\nc",
            "mixed files: as given"
        );
        let message = edit(b"a\nb\n", "a\r\nb", "x", Occurrence::UniqueOrAll).unwrap_err();
        assert!(message.contains("It has carriage returns (CRLF); the file has none."), "{message}");
    }

    #[test]
    fn legacy_encoding_is_kept_or_edit_refused() {
        let file = b"Gr\xfc\xdfe aus K\xf6ln, sch\xf6ne Gr\xfc\xdfe\n";
        assert_eq!(
            edit(file, "Köln", "Münster", Occurrence::UniqueOrAll).unwrap(),
            b"Gr\xfc\xdfe aus M\xfcnster, sch\xf6ne Gr\xfc\xdfe\n"
        );
        let message = edit(file, "Köln", "日本", Occurrence::UniqueOrAll).unwrap_err();
        assert!(message.contains("is windows-1252, which has no character '日'"), "{message}");
        assert!(
            edit(b"\x7fELF\0\0a", "a", "b", Occurrence::UniqueOrAll).unwrap_err().contains("not a text file")
        );
    }
}
