//! Reading a file: as text by lines, as a picture, as the pages of a PDF or the cells of a notebook.

use std::io::Read;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use haft_tool::{Cancel, ErrorKind, OpenFile, ToolError, World};

use super::notebook::{self, Shown};
use super::pdf::{self, Pages};
use super::text::{Charset, decode};

/// How much of a line is held; callers show less.
const MOST_LINE_BYTES: usize = 64 * 1024;
/// Files that know no size (`/proc`) and files that are not UTF-8 are read up to here.
const MOST_WHOLE_BYTES: u64 = 256 << 20;
/// After this many bytes the count of a file's lines is given up.
const MOST_COUNTED_BYTES: u64 = 4 << 30;
/// The largest picture that providers take.
pub(crate) const MOST_IMAGE_BYTES: u64 = 5 << 20;
/// A PDF or a notebook is held in memory as a whole.
const MOST_DOCUMENT_BYTES: u64 = 128 << 20;
const CHUNK: usize = 256 * 1024;

/// What a file turned out to be.
pub(crate) enum Opened {
    Text(Lines),
    Image { media_type: &'static str, data: String, bytes: u64 },
    Pdf { pages: Pages, lines: Lines, bytes: u64 },
    Notebook { shown: Shown, lines: Lines },
}

/// Which part of a file is wanted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part<'a> {
    /// The first line, counted from 1.
    pub(crate) first: u64,
    pub(crate) limit: u64,
    /// The pages of a PDF.
    pub(crate) pages: Option<&'a str>,
}

/// Some lines of a text file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Lines {
    /// The lines asked for, one behind the other without their ends.
    text: String,
    /// Where each ends in the text, and how many characters of it were not held.
    ends: Vec<(usize, u64)>,
    /// How many lines the file has, where they could be counted.
    pub(crate) total: Option<u64>,
    /// Its encoding, where that is not plain UTF-8.
    pub(crate) charset: Option<&'static str>,
}

impl Lines {
    /// How many lines these are.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// How many bytes they have.
    pub(crate) fn bytes(&self) -> usize {
        self.text.len()
    }

    /// Each line, or its beginning, and how many characters of it were not held.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|(end, _)| *end));
        starts.zip(&self.ends).map(|(start, (end, unseen))| (&self.text[start..*end], *unseen))
    }
}

/// Opens `path` and reads a part of it.
pub(crate) fn read(world: &dyn World, path: &Path, part: Part<'_>) -> Result<Opened, ToolError> {
    let Part { first, limit, pages } = part;
    let OpenFile { reader: mut file, size, .. } = world.files().open(path)?;
    let failed = |error: &std::io::Error| ToolError::io(format!("read {}", path.display()), error);
    let mut start = beginning(&mut file, size).map_err(|error| failed(&error))?;
    if let Some(media_type) = image_type(&start) {
        if size > MOST_IMAGE_BYTES {
            return Err(ToolError::failed(format!(
                "{} is a picture of {size} bytes; pictures up to {MOST_IMAGE_BYTES} bytes can be shown. Make it smaller first.",
                path.display()
            )));
        }
        file.take(MOST_IMAGE_BYTES).read_to_end(&mut start).map_err(|error| failed(&error))?;
        return Ok(Opened::Image { media_type, bytes: start.len() as u64, data: STANDARD.encode(&start) });
    }
    if start.starts_with(b"%PDF-") || is_named(path, "pdf") && !plain_utf8(&start) {
        let bytes = whole(start, file, size, path)?;
        let pages = pdf::read(&bytes, pages, &path.display().to_string(), world.cancelled())?;
        let lines = lines_of(&pages.text, first, limit);
        return Ok(Opened::Pdf { pages, lines, bytes: bytes.len() as u64 });
    }
    if pages.is_some() {
        return Err(ToolError::invalid_arguments(format!("pages: {} is not a PDF", path.display())));
    }
    if is_named(path, "ipynb") {
        let bytes = whole(start, file, size, path)?;
        if let Some(shown) = notebook::show(&bytes) {
            let lines = lines_of(&shown.text, first, limit);
            return Ok(Opened::Notebook { shown, lines });
        }
        // What is no notebook may still be text that somebody has to repair.
        return as_text(&bytes, path, first, limit);
    }
    let rest = file.take(size.max(MOST_WHOLE_BYTES).saturating_sub(start.len() as u64));
    if plain_utf8(&start) {
        let mut taker = Taker::new(first, limit);
        stream(&mut taker, &start, rest, world.cancelled()).map_err(|error| match error {
            Stopped::Io(error) => failed(&error),
            Stopped::Cancelled => {
                ToolError::new(ErrorKind::Interrupted, format!("reading {} was cancelled", path.display()))
            }
        })?;
        return Ok(Opened::Text(taker.finish(None)));
    }
    rest.take(MOST_WHOLE_BYTES).read_to_end(&mut start).map_err(|error| failed(&error))?;
    as_text(&start, path, first, limit)
}

/// The first [`CHUNK`] of a file, or all of it.
fn beginning(file: &mut impl Read, size: u64) -> std::io::Result<Vec<u8>> {
    // One byte more than it has shows its end in the same read.
    let room = usize::try_from(size).unwrap_or(CHUNK).saturating_add(1).min(CHUNK);
    let mut start = vec![0; room];
    let read = loop {
        match file.read(&mut start) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            read => break read?,
        }
    };
    start.truncate(read);
    // A file that has grown, that a signal came between, or that knows no size (`/proc`) has more.
    if read as u64 != size || room == CHUNK {
        file.take((CHUNK - read) as u64).read_to_end(&mut start)?;
    }
    Ok(start)
}

/// All of a file, of which `start` has been read.
fn whole(mut start: Vec<u8>, rest: impl Read, size: u64, path: &Path) -> Result<Vec<u8>, ToolError> {
    if size > MOST_DOCUMENT_BYTES {
        return Err(ToolError::failed(format!(
            "{} has {size} bytes; documents up to {MOST_DOCUMENT_BYTES} bytes can be read. Split it first.",
            path.display()
        )));
    }
    rest.take(MOST_DOCUMENT_BYTES)
        .read_to_end(&mut start)
        .map_err(|error| ToolError::io(format!("read {}", path.display()), &error))?;
    Ok(start)
}

fn is_named(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found.eq_ignore_ascii_case(extension))
}

fn lines_of(text: &str, first: u64, limit: u64) -> Lines {
    let mut taker = Taker::new(first, limit);
    taker.feed(text.as_bytes());
    taker.finish(None)
}

fn as_text(bytes: &[u8], path: &Path, first: u64, limit: u64) -> Result<Opened, ToolError> {
    let Some(decoded) = decode(bytes) else {
        return Err(ToolError::failed(format!(
            "{} is a binary file ({} bytes), not text",
            path.display(),
            bytes.len()
        )));
    };
    let mut taker = Taker::new(first, limit);
    taker.feed(decoded.text.as_bytes());
    let plain = decoded.charset == Charset::Utf8 && !decoded.bom;
    Ok(Opened::Text(taker.finish((!plain).then(|| decoded.charset.name()))))
}

/// Whether the start of a file is UTF-8 without marks, so that the rest can be streamed.
fn plain_utf8(start: &[u8]) -> bool {
    let valid = match std::str::from_utf8(start) {
        Ok(_) => true,
        // The chunk may end inside a character.
        Err(error) => error.error_len().is_none(),
    };
    valid && !start.starts_with(b"\xef\xbb\xbf") && memchr::memchr(0, start).is_none()
}

enum Stopped {
    Io(std::io::Error),
    Cancelled,
}

fn stream(taker: &mut Taker, start: &[u8], mut rest: impl Read, cancel: &Cancel) -> Result<(), Stopped> {
    taker.feed(start);
    if start.len() < CHUNK {
        return Ok(());
    }
    let mut buffer = vec![0; CHUNK];
    let mut counted = 0;
    loop {
        if cancel.is_cancelled() {
            return Err(Stopped::Cancelled);
        }
        let got = match rest.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(got) => got,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Stopped::Io(error)),
        };
        taker.feed(&buffer[..got]);
        counted += got as u64;
        if taker.full() && counted > MOST_COUNTED_BYTES {
            taker.given_up = true;
            return Ok(());
        }
    }
}

/// Takes the wanted lines out of a stream of chunks and counts the rest.
struct Taker {
    first: u64,
    limit: u64,
    /// Line breaks seen so far.
    breaks: u64,
    /// The wanted lines, the one being read included, and where those end that have been read.
    held: Vec<u8>,
    ends: Vec<(usize, u64)>,
    /// How many characters of the line being read were not held.
    unseen: u64,
    open: bool,
    given_up: bool,
}

impl Taker {
    fn new(first: u64, limit: u64) -> Self {
        Self {
            first,
            limit,
            breaks: 0,
            held: Vec::new(),
            ends: Vec::new(),
            unseen: 0,
            open: false,
            given_up: false,
        }
    }

    fn full(&self) -> bool {
        self.ends.len() as u64 >= self.limit
    }

    fn feed(&mut self, mut chunk: &[u8]) {
        while !chunk.is_empty() {
            if self.full() {
                self.breaks += memchr::memchr_iter(b'\n', chunk).count() as u64;
                self.open = chunk.last() != Some(&b'\n');
                return;
            }
            let end = memchr::memchr(b'\n', chunk);
            let piece = &chunk[..end.unwrap_or(chunk.len())];
            let wanted = self.breaks + 1 >= self.first;
            if wanted {
                if self.held.is_empty() {
                    self.held.reserve(chunk.len().min(MOST_LINE_BYTES));
                    self.ends.reserve(64);
                }
                let room = MOST_LINE_BYTES.saturating_sub(self.held.len() - self.start()).min(piece.len());
                self.held.extend_from_slice(&piece[..room]);
                self.unseen += piece[room..].iter().filter(|byte| **byte & 0xc0 != 0x80).count() as u64;
            }
            self.open = end.is_none();
            let Some(end) = end else { return };
            if wanted {
                self.take_line();
            }
            self.breaks += 1;
            chunk = &chunk[end + 1..];
        }
    }

    /// Where the line being read begins.
    fn start(&self) -> usize {
        self.ends.last().map_or(0, |(end, _)| *end)
    }

    fn take_line(&mut self) {
        if self.held[self.start()..].last() == Some(&b'\r') {
            self.held.pop();
        }
        self.ends.push((self.held.len(), std::mem::take(&mut self.unseen)));
    }

    fn finish(mut self, charset: Option<&'static str>) -> Lines {
        if self.open && !self.full() && self.breaks + 1 >= self.first {
            self.take_line();
        }
        let total = (!self.given_up).then_some(self.breaks + u64::from(self.open));
        let (text, ends) = match String::from_utf8(self.held) {
            Ok(text) => (text, self.ends),
            Err(error) => mended(error.as_bytes(), &self.ends),
        };
        Lines { text, ends, total, charset }
    }
}

/// Lines of which some are no text, or end inside a character.
fn mended(held: &[u8], ends: &[(usize, u64)]) -> (String, Vec<(usize, u64)>) {
    let (mut text, mut mended, mut start) = (String::new(), Vec::new(), 0);
    for (end, unseen) in ends {
        text.push_str(&String::from_utf8_lossy(&held[start..*end]));
        mended.push((text.len(), *unseen));
        start = *end;
    }
    (text, mended)
}

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
        let mut taker = Taker::new(first, limit);
        text.as_bytes().chunks(chunk).for_each(|chunk| taker.feed(chunk));
        let found = taker.finish(None);
        (found.iter().map(|(line, _)| line.to_owned()).collect(), found.total)
    }

    #[test]
    fn lines_are_taken_alike_however_the_file_arrives() {
        for chunk in [1, 2, 3, 100] {
            assert_eq!(lines("a\r\nb\nc", chunk, 1, 10), (vec!["a".into(), "b".into(), "c".into()], Some(3)));
            assert_eq!(lines("a\nb\nc\n", chunk, 2, 1), (vec!["b".into()], Some(3)));
            assert_eq!(lines("a\n\n", chunk, 2, 5), (vec![String::new()], Some(2)));
            assert_eq!(lines("a\nb", chunk, 3, 5), (vec![], Some(2)));
            assert_eq!(lines("", chunk, 1, 5), (vec![], Some(0)));
        }
    }

    #[test]
    fn an_endless_line_is_held_only_in_part() {
        let mut taker = Taker::new(1, 5);
        for _ in 0..100 {
            taker.feed(&vec![b'x'; 10_000]);
        }
        let found = taker.finish(None);
        let unseen = 1_000_000 - MOST_LINE_BYTES as u64;
        assert_eq!(found.iter().collect::<Vec<_>>(), [("x".repeat(MOST_LINE_BYTES).as_str(), unseen)]);
    }

    #[test]
    fn what_is_no_text_is_marked_in_its_line_and_nowhere_else() {
        let mut taker = Taker::new(1, 5);
        taker.feed(b"\xc3\xa4\n\xff\r\nb\xc3\n\xa4");
        let found = taker.finish(None);
        let lines: Vec<_> = found.iter().map(|(line, _)| line).collect();
        assert_eq!(lines, ["\u{e4}", "\u{fffd}", "b\u{fffd}", "\u{fffd}"]);
    }
}
