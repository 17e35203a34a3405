//! Searching file contents with ripgrep's own crates, in this process.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use grep_printer::{Standard, StandardBuilder, Summary, SummaryBuilder, SummaryKind};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use haft_tool::{FileKind, ToolError, WalkRequest, World, lock};
use termcolor::NoColor;

/// How much output is held in all; the callers show far less, and what is let go is what they would not show.
const MOST_HELD_BYTES: usize = 8 << 20;

/// What is told of a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tell {
    Lines,
    Files,
    Counts,
}

/// A search, in the words of ripgrep's flags.
#[derive(Debug, Clone)]
pub(crate) struct Query {
    pub(crate) pattern: String,
    pub(crate) walk: WalkRequest,
    /// The directory that paths are shown relative to; `None` shows them whole.
    pub(crate) relative_to: Option<PathBuf>,
    pub(crate) tell: Tell,
    pub(crate) before: usize,
    pub(crate) after: usize,
    pub(crate) line_numbers: bool,
    pub(crate) ignore_case: bool,
    pub(crate) only_matching: bool,
    pub(crate) multiline: bool,
    /// How many lines of output are wanted in all, so that a file need not be searched further.
    pub(crate) wanted: Option<usize>,
}

/// What a search found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Matches {
    /// The output, files in the order of their paths.
    pub(crate) text: String,
    /// How many files matched.
    pub(crate) files: u64,
    /// Bytes of output that were not held, all of them after the ones that are.
    pub(crate) unheld: u64,
}

impl Query {
    pub(crate) fn matcher(&self) -> Result<RegexMatcher, ToolError> {
        let mut builder = RegexMatcherBuilder::new();
        // A pattern that asks for NUL bytes could only match in what is not text, which is not shown.
        builder.multi_line(true).unicode(true).case_insensitive(self.ignore_case).ban_byte(Some(0));
        if self.multiline {
            builder.dot_matches_new_line(true);
        } else {
            builder.line_terminator(Some(b'\n'));
        }
        builder.build(&self.pattern).map_err(|error| {
            ToolError::invalid_arguments(format!(
                "pattern: not a regular expression that can be used: {error}"
            ))
        })
    }

    pub(crate) fn run(&self, world: &dyn World) -> Result<Matches, ToolError> {
        let matcher = self.matcher()?;
        let one_file = world.files().kind(&self.walk.root)? != FileKind::Dir;
        let held = Held::default();
        world.files().walk(&self.walk, &mut || {
            let mut thread = Thread::new(self, &matcher, one_file);
            let held = &held;
            Box::new(move |file| {
                let searched = file.open().and_then(|open| thread.search(open, self.shown(file.path())));
                match searched {
                    Ok(Some(found)) => held.add(file.path(), found),
                    Ok(None) => {}
                    Err(error) => held.missed(error),
                }
                ControlFlow::Continue(())
            })
        })?;
        // What a search comes across and cannot read is passed over, as ripgrep does; a file that was named is not.
        if let Some(error) = held.first_missed().filter(|_| one_file) {
            return Err(error);
        }
        Ok(held.finish(self.tell == Tell::Lines && self.before + self.after > 0))
    }

    fn shown<'a>(&self, path: &'a Path) -> &'a Path {
        self.relative_to.as_ref().and_then(|base| path.strip_prefix(base).ok()).unwrap_or(path)
    }
}

/// One thread's searcher and printer, used for file after file.
struct Thread {
    matcher: RegexMatcher,
    searcher: Searcher,
    printer: Printer,
}

enum Printer {
    Lines(Standard<NoColor<Capped>>),
    Summary(Summary<NoColor<Capped>>),
}

impl Thread {
    fn new(query: &Query, matcher: &RegexMatcher, one_file: bool) -> Self {
        let mut builder = SearcherBuilder::new();
        builder
            .line_number(query.line_numbers && query.tell == Tell::Lines)
            .multi_line(query.multiline)
            // Also where no lines are shown: a file counts as binary by what the context reaches, as with ripgrep.
            .before_context(query.before)
            .after_context(query.after)
            .binary_detection(if one_file { BinaryDetection::convert(0) } else { BinaryDetection::quit(0) });
        let out = NoColor::new(Capped::default());
        let summary = |kind, path| SummaryBuilder::new().kind(kind).path(path).build(out.clone());
        let printer = match query.tell {
            Tell::Files => Printer::Summary(summary(SummaryKind::PathWithMatch, true)),
            Tell::Counts => {
                let kind = if query.only_matching { SummaryKind::CountMatches } else { SummaryKind::Count };
                Printer::Summary(summary(kind, !one_file))
            }
            Tell::Lines => {
                builder.max_matches(query.wanted.map(|lines| lines as u64));
                let mut standard = StandardBuilder::new();
                Printer::Lines(standard.path(!one_file).only_matching(query.only_matching).build(out))
            }
        };
        Self { matcher: matcher.clone(), searcher: builder.build(), printer }
    }

    /// The output for one file, if it has a match.
    fn search(&mut self, file: impl Read, shown: &Path) -> Result<Option<Capped>, ToolError> {
        let (matcher, searcher) = (&self.matcher, &mut self.searcher);
        let (searched, out) = match &mut self.printer {
            Printer::Lines(printer) => {
                let searched = searcher.search_reader(matcher, file, printer.sink_with_path(matcher, shown));
                (searched, printer.get_mut().get_mut())
            }
            Printer::Summary(printer) => {
                let searched = searcher.search_reader(matcher, file, printer.sink_with_path(matcher, shown));
                (searched, printer.get_mut().get_mut())
            }
        };
        let out = std::mem::take(out);
        searched.map_err(|error| ToolError::io(format!("search {}", shown.display()), &error))?;
        Ok((out.total > 0).then_some(out))
    }
}

/// A buffer that keeps its first bytes and counts the rest.
#[derive(Debug, Clone, Default)]
struct Capped {
    bytes: Vec<u8>,
    total: u64,
}

impl Write for Capped {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = MOST_HELD_BYTES.saturating_sub(self.bytes.len()).min(bytes.len());
        self.bytes.extend_from_slice(&bytes[..room]);
        self.total += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What all threads found, by path; when it gets too much the last paths are let go.
#[derive(Default)]
struct Held {
    files: AtomicU64,
    missed: Mutex<Option<ToolError>>,
    found: Mutex<(usize, u64, BTreeMap<PathBuf, Vec<u8>>)>,
}

impl Held {
    fn missed(&self, error: ToolError) {
        lock(&self.missed).get_or_insert(error);
    }

    fn first_missed(&self) -> Option<ToolError> {
        lock(&self.missed).clone()
    }

    fn add(&self, path: &Path, found: Capped) {
        self.files.fetch_add(1, Ordering::Relaxed);
        let mut held = lock(&self.found);
        let (size, unheld, by_path) = &mut *held;
        *size += found.bytes.len();
        *unheld += found.total - found.bytes.len() as u64;
        by_path.insert(path.to_owned(), found.bytes);
        while *size > MOST_HELD_BYTES
            && by_path.len() > 1
            && let Some((_, bytes)) = by_path.pop_last()
        {
            *size -= bytes.len();
            *unheld += bytes.len() as u64;
        }
    }

    fn finish(self, separated: bool) -> Matches {
        let (size, unheld, by_path) = self.found.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = Vec::with_capacity(size);
        for (at, found) in by_path.values().enumerate() {
            if separated && at > 0 {
                bytes.extend_from_slice(b"--\n");
            }
            bytes.extend_from_slice(found);
        }
        let text = String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        Matches { text, files: self.files.into_inner(), unheld }
    }
}
