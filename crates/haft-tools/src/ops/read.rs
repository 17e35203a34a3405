//! Reading a file: lines of text, an image, pages of a PDF or cells of a notebook.

use std::io::Read;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use haft_tool::{Cancel, Content, ErrorKind, FileKind, OpenFile, ToolError, World, close_names};

use super::charset::{Charset, decode};
use super::notebook::{self, NotebookText};
use super::pdf;

/// How much of a line is kept; callers show less.
const MAX_LINE_BYTES: usize = 64 * 1024;
/// How much is read of files that report no size (`/proc`) and of files that are not UTF-8.
const MAX_UNSIZED_BYTES: u64 = 256 << 20;
/// After this many bytes the lines of a file are no longer counted.
const MAX_COUNTED_BYTES: u64 = 4 << 30;
/// The largest image that model providers accept.
pub(crate) const MAX_IMAGE_BYTES: u64 = 5 << 20;
/// The largest PDF or notebook, which is read as a whole.
const MAX_DOCUMENT_BYTES: u64 = 128 << 20;
const CHUNK_BYTES: usize = 256 * 1024;

/// The content of a file.
pub(crate) enum DecodedFile {
    Text(Lines),
    Image { media_type: &'static str, data: String, bytes: u64 },
    Pdf { pages: PdfPages, lines: Lines, bytes: u64 },
    Notebook { notebook: NotebookText, lines: Lines },
}

/// Some pages of a PDF.
#[derive(Debug)]
pub(crate) struct PdfPages {
    pub(crate) text: String,
    /// Images of pages that consist of one image.
    pub(crate) scans: Vec<Content>,
    pub(crate) numbers: Vec<usize>,
    pub(crate) total: usize,
}

/// The part of a file to read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadRange<'a> {
    /// The first line, counted from 1.
    pub(crate) first: u64,
    pub(crate) limit: u64,
    /// The pages of a PDF.
    pub(crate) pages: Option<&'a str>,
}

/// Some lines of a text file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Lines {
    /// The lines, concatenated without their line ends.
    text: String,
    /// Where each line ends in `text`, and how many of its characters were not kept.
    ends: Vec<(usize, u64)>,
    /// How many lines the file has, if they were counted to the end.
    pub(crate) total: Option<u64>,
    /// Its encoding, if that is not UTF-8 without a byte-order mark.
    pub(crate) charset: Option<&'static str>,
}

impl Lines {
    /// The number of lines.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Each line, or its beginning, and how many of its characters were not kept.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|(end, _)| *end));
        starts.zip(&self.ends).map(|(start, (end, dropped))| (&self.text[start..*end], *dropped))
    }
}

/// Reads a part of the file at `path`.
pub(crate) fn read(world: &dyn World, path: &Path, range: ReadRange<'_>) -> Result<DecodedFile, ToolError> {
    let ReadRange { first, limit, pages } = range;
    let OpenFile { reader: mut file, size, .. } = world.files().open(path)?;
    let failed = |error: &std::io::Error| ToolError::io(format!("read {}", path.display()), error);
    let mut start = read_first_chunk(&mut file, size).map_err(|error| failed(&error))?;
    if let Some(media_type) = image_type(&start) {
        if size > MAX_IMAGE_BYTES {
            return Err(ToolError::failed(format!(
                "{} is an image of {size} bytes; images up to {MAX_IMAGE_BYTES} bytes can be shown. Make it smaller first.",
                path.display()
            )));
        }
        file.take(MAX_IMAGE_BYTES).read_to_end(&mut start).map_err(|error| failed(&error))?;
        return Ok(DecodedFile::Image {
            media_type,
            bytes: start.len() as u64,
            data: STANDARD.encode(&start),
        });
    }
    if start.starts_with(b"%PDF-") || has_extension(path, "pdf") && !is_plain_utf8(&start) {
        let bytes = read_document(start, file, size, path)?;
        let pages = pdf::read(&bytes, pages, &path.display().to_string(), world.cancelled())?;
        let lines = select_lines(&pages.text, first, limit);
        return Ok(DecodedFile::Pdf { pages, lines, bytes: bytes.len() as u64 });
    }
    if pages.is_some() {
        return Err(ToolError::invalid_arguments(format!("pages: {} is not a PDF", path.display())));
    }
    if has_extension(path, "ipynb") {
        let bytes = read_document(start, file, size, path)?;
        if let Some(notebook) = notebook::read(&bytes) {
            let lines = select_lines(&notebook.text, first, limit);
            return Ok(DecodedFile::Notebook { notebook, lines });
        }
        // A broken notebook is shown as text, so that it can be repaired.
        return decode_lines(&bytes, path, first, limit);
    }
    let rest = file.take(size.max(MAX_UNSIZED_BYTES).saturating_sub(start.len() as u64));
    if is_plain_utf8(&start) {
        let mut selector = LineSelector::new(first, limit);
        let complete = stream_lines(&mut selector, &start, rest, world.cancelled());
        if !complete.map_err(|error| failed(&error))? {
            let message = format!("reading {} was cancelled", path.display());
            return Err(ToolError::new(ErrorKind::Interrupted, message));
        }
        return Ok(DecodedFile::Text(selector.finish()));
    }
    rest.take(MAX_UNSIZED_BYTES).read_to_end(&mut start).map_err(|error| failed(&error))?;
    decode_lines(&start, path, first, limit)
}

/// Adds to the error of [`read`] what the caller can do: similar names in the directory, or `lister`, which lists it.
pub(crate) fn explain_missing(
    mut error: ToolError,
    path: &Path,
    lister: &str,
    world: &dyn World,
) -> ToolError {
    if error.kind == ErrorKind::FileNotFound {
        let similar = similar_names(path, world);
        if !similar.is_empty() {
            error.message.push_str(&format!("; its directory has {}", similar.join(", ")));
        }
    } else if world.files().kind(path).is_ok_and(|kind| kind == FileKind::Dir) {
        error.message.push_str(&format!("; list it with {lister}"));
    }
    error
}

fn similar_names(path: &Path, world: &dyn World) -> Vec<String> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Vec::new() };
    let Ok(entries) = world.files().list(parent) else { return Vec::new() };
    let names: Vec<_> = entries.iter().map(|entry| entry.name.to_string_lossy()).collect();
    let similar = close_names(&name.to_string_lossy(), names.iter().map(|name| &**name));
    similar.into_iter().map(str::to_owned).collect()
}

/// The first [`CHUNK_BYTES`] of a file, or all of it.
fn read_first_chunk(file: &mut impl Read, size: u64) -> std::io::Result<Vec<u8>> {
    let chunk = CHUNK_BYTES as u64;
    let mut start = Vec::with_capacity(usize::try_from(size.min(chunk)).unwrap_or(CHUNK_BYTES) + 1);
    file.take(chunk).read_to_end(&mut start)?;
    Ok(start)
}

/// All of a file, of which `start` has been read.
fn read_document(mut start: Vec<u8>, rest: impl Read, size: u64, path: &Path) -> Result<Vec<u8>, ToolError> {
    if size > MAX_DOCUMENT_BYTES {
        return Err(ToolError::failed(format!(
            "{} has {size} bytes; documents up to {MAX_DOCUMENT_BYTES} bytes can be read. Split it first.",
            path.display()
        )));
    }
    rest.take(MAX_DOCUMENT_BYTES)
        .read_to_end(&mut start)
        .map_err(|error| ToolError::io(format!("read {}", path.display()), &error))?;
    Ok(start)
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found.eq_ignore_ascii_case(extension))
}

fn select_lines(text: &str, first: u64, limit: u64) -> Lines {
    let mut selector = LineSelector::new(first, limit);
    selector.feed(text.as_bytes());
    selector.finish()
}

fn decode_lines(bytes: &[u8], path: &Path, first: u64, limit: u64) -> Result<DecodedFile, ToolError> {
    let Some(decoded) = decode(bytes) else {
        return Err(ToolError::failed(format!(
            "{} is a binary file ({} bytes), not text",
            path.display(),
            bytes.len()
        )));
    };
    let mut lines = select_lines(&decoded.text, first, limit);
    let plain = decoded.charset == Charset::Utf8 && !decoded.bom;
    lines.charset = (!plain).then(|| decoded.charset.name());
    Ok(DecodedFile::Text(lines))
}

/// Whether the start of a file is UTF-8 without a byte-order mark, so that the rest can be streamed.
fn is_plain_utf8(start: &[u8]) -> bool {
    let valid = match std::str::from_utf8(start) {
        Ok(_) => true,
        // The chunk may end inside a character.
        Err(error) => error.error_len().is_none(),
    };
    valid && !start.starts_with(b"\xef\xbb\xbf") && memchr::memchr(0, start).is_none()
}

/// Feeds a file to `selector`. Returns `false` if the call was cancelled.
fn stream_lines(
    selector: &mut LineSelector,
    start: &[u8],
    mut rest: impl Read,
    cancel: &Cancel,
) -> std::io::Result<bool> {
    selector.feed(start);
    if start.len() < CHUNK_BYTES {
        return Ok(true);
    }
    let mut buffer = Vec::with_capacity(CHUNK_BYTES);
    let mut counted = 0;
    while !cancel.is_cancelled() {
        buffer.clear();
        let read = rest.by_ref().take(CHUNK_BYTES as u64).read_to_end(&mut buffer)?;
        selector.feed(&buffer);
        counted += read as u64;
        selector.count_stopped = selector.is_full() && counted > MAX_COUNTED_BYTES;
        if read == 0 || selector.count_stopped {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Selects lines from a stream of chunks and counts the others.
#[derive(Default)]
struct LineSelector {
    first: u64,
    limit: u64,
    /// Line breaks so far.
    breaks: u64,
    /// The selected lines, including the one being read.
    text: Vec<u8>,
    /// See [`Lines::ends`].
    ends: Vec<(usize, u64)>,
    /// How many characters of the line being read were not kept.
    dropped: u64,
    /// Whether the last line has no line break yet.
    open: bool,
    count_stopped: bool,
}

impl LineSelector {
    fn new(first: u64, limit: u64) -> Self {
        Self { first, limit, ..Self::default() }
    }

    fn is_full(&self) -> bool {
        self.ends.len() as u64 >= self.limit
    }

    fn feed(&mut self, mut chunk: &[u8]) {
        while !chunk.is_empty() {
            if self.is_full() {
                self.breaks += memchr::memchr_iter(b'\n', chunk).count() as u64;
                self.open = chunk.last() != Some(&b'\n');
                return;
            }
            let end = memchr::memchr(b'\n', chunk);
            let piece = &chunk[..end.unwrap_or(chunk.len())];
            let selected = self.breaks + 1 >= self.first;
            if selected {
                let free = MAX_LINE_BYTES.saturating_sub(self.text.len() - self.line_start());
                let (kept, dropped) = piece.split_at(free.min(piece.len()));
                self.text.extend_from_slice(kept);
                self.dropped += dropped.iter().filter(|byte| **byte & 0xc0 != 0x80).count() as u64;
            }
            self.open = end.is_none();
            let Some(end) = end else { return };
            if selected {
                self.end_line();
            }
            self.breaks += 1;
            chunk = &chunk[end + 1..];
        }
    }

    fn line_start(&self) -> usize {
        self.ends.last().map_or(0, |(end, _)| *end)
    }

    fn end_line(&mut self) {
        if self.text[self.line_start()..].last() == Some(&b'\r') {
            self.text.pop();
        }
        self.ends.push((self.text.len(), std::mem::take(&mut self.dropped)));
    }

    fn finish(mut self) -> Lines {
        if self.open && !self.is_full() && self.breaks + 1 >= self.first {
            self.end_line();
        }
        let total = (!self.count_stopped).then_some(self.breaks + u64::from(self.open));
        let (text, ends) = match String::from_utf8(self.text) {
            Ok(text) => (text, self.ends),
            Err(error) => decode_lossy(error.as_bytes(), &self.ends),
        };
        Lines { text, ends, total, charset: None }
    }
}

/// Decodes each line on its own, because invalid bytes change the lengths.
fn decode_lossy(bytes: &[u8], ends: &[(usize, u64)]) -> (String, Vec<(usize, u64)>) {
    let (mut text, mut new_ends, mut start) = (String::new(), Vec::new(), 0);
    for (end, dropped) in ends {
        text.push_str(&String::from_utf8_lossy(&bytes[start..*end]));
        new_ends.push((text.len(), *dropped));
        start = *end;
    }
    (text, new_ends)
}

/// The media type of an image that model providers accept, by its first bytes.
pub(crate) fn image_type(start: &[u8]) -> Option<&'static str> {
    match start {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, chunk: usize, first: u64, limit: u64) -> (Vec<String>, Option<u64>) {
        let mut selector = LineSelector::new(first, limit);
        text.as_bytes().chunks(chunk).for_each(|chunk| selector.feed(chunk));
        let found = selector.finish();
        (found.iter().map(|(line, _)| line.to_owned()).collect(), found.total)
    }

    #[test]
    fn chunk_size_does_not_change_the_lines() {
        for chunk in [1, 2, 3, 100] {
            assert_eq!(lines("a\r\nb\nc", chunk, 1, 10), (vec!["a".into(), "b".into(), "c".into()], Some(3)));
            assert_eq!(lines("a\nb\nc\n", chunk, 2, 1), (vec!["b".into()], Some(3)));
            assert_eq!(lines("a\n\n", chunk, 2, 5), (vec![String::new()], Some(2)));
            assert_eq!(lines("a\nb", chunk, 3, 5), (vec![], Some(2)));
            assert_eq!(lines("", chunk, 1, 5), (vec![], Some(0)));
        }
    }

    #[test]
    fn long_line_is_kept_in_part() {
        let mut selector = LineSelector::new(1, 5);
        for _ in 0..100 {
            selector.feed(&vec![b'x'; 10_000]);
        }
        let found = selector.finish();
        let dropped = 1_000_000 - MAX_LINE_BYTES as u64;
        assert_eq!(found.iter().collect::<Vec<_>>(), [("x".repeat(MAX_LINE_BYTES).as_str(), dropped)]);
    }

    #[test]
    fn invalid_bytes_are_replaced_in_their_line_only() {
        let mut selector = LineSelector::new(1, 5);
        selector.feed(b"\xc3\xa4\n\xff\r\nb\xc3\n\xa4");
        let found = selector.finish();
        let lines: Vec<_> = found.iter().map(|(line, _)| line).collect();
        assert_eq!(lines, ["\u{e4}", "\u{fffd}", "b\u{fffd}", "\u{fffd}"]);
    }
}
