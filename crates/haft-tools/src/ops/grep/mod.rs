//! Searching file contents with ripgrep's libraries.

mod report;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use grep_printer::{Standard, StandardBuilder, Summary, SummaryBuilder, SummaryKind};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use haft_tool::{FileKind, ToolError, WalkRequest, World, lock};
use termcolor::NoColor;

pub(crate) use report::{GrepReport, PageRange};

/// How much output is kept; callers show less.
const MAX_KEPT_BYTES: usize = 8 << 20;

/// What is printed of a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GrepMode {
    Lines,
    Files,
    Counts,
}

/// A search, with the meaning of ripgrep's flags.
#[derive(Debug, Clone)]
pub(crate) struct GrepQuery {
    pub(crate) pattern: String,
    pub(crate) walk: WalkRequest,
    /// The directory that printed paths are relative to; `None` prints them absolute.
    pub(crate) relative_to: Option<PathBuf>,
    pub(crate) mode: GrepMode,
    pub(crate) before: usize,
    pub(crate) after: usize,
    pub(crate) line_numbers: bool,
    pub(crate) ignore_case: bool,
    pub(crate) only_matching: bool,
    pub(crate) multiline: bool,
    /// The number of output lines after which a file need not be searched further.
    pub(crate) max_lines: Option<usize>,
}

/// The output of a search.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct GrepOutput {
    /// Files by path; in [`GrepMode::Files`] newest first.
    pub(crate) text: String,
    /// How many files matched.
    pub(crate) files: u64,
    /// Bytes of output after `text` that were not kept.
    pub(crate) dropped_bytes: u64,
    /// The files that were not searched because they may hold secrets, as they are shown.
    pub(crate) secrets: Vec<String>,
}

/// Splits a comma-separated list of globs; commas in braces and brackets are part of a glob.
pub(crate) fn split_globs(list: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let separator = |c: char| {
        match c {
            '{' | '[' => depth += 1,
            '}' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    };
    list.split(separator).map(str::trim).filter(|glob| !glob.is_empty()).map(str::to_owned).collect()
}

impl GrepQuery {
    fn matcher(&self) -> Result<RegexMatcher, ToolError> {
        let mut builder = RegexMatcherBuilder::new();
        // NUL bytes occur only in binary files, which are not searched.
        builder.multi_line(true).unicode(true).case_insensitive(self.ignore_case).ban_byte(Some(0));
        if self.multiline {
            builder.dot_matches_new_line(true);
        } else {
            builder.line_terminator(Some(b'\n'));
        }
        builder.build(&self.pattern).map_err(|error| {
            ToolError::invalid_arguments(format!("pattern: this regular expression cannot be used: {error}"))
        })
    }

    pub(crate) fn run(&self, world: &dyn World) -> Result<GrepOutput, ToolError> {
        let matcher = self.matcher()?;
        let one_file = world.files().kind(&self.walk.root)? != FileKind::Dir;
        let collector = Mutex::new(MatchCollector::default());
        world.files().walk(&self.walk, &mut || {
            let mut searcher = FileSearcher::new(self, &matcher, one_file);
            let collector = &collector;
            Box::new(move |file| {
                match file.open().and_then(|open| searcher.search(open, self.shown(file.path()))) {
                    Ok(Some(output)) => {
                        let modified = if self.mode == GrepMode::Files { file.modified_ns() } else { 0 };
                        lock(collector).add(modified, file.path(), output);
                    }
                    Ok(None) => {}
                    Err(_) if file.is_secret() => {
                        lock(collector).secrets.push(self.shown(file.path()).to_owned());
                    }
                    Err(error) => drop(lock(collector).first_error.get_or_insert(error)),
                }
                ControlFlow::Continue(())
            })
        })?;
        let collector = collector.into_inner().unwrap_or_else(PoisonError::into_inner);
        match collector.first_error {
            // As in ripgrep, files that cannot be read are skipped, but a file that was named is an error.
            Some(error) if one_file => Err(error),
            _ => Ok(collector.finish(self.mode == GrepMode::Lines && self.before + self.after > 0)),
        }
    }

    fn shown<'a>(&self, path: &'a Path) -> &'a Path {
        self.relative_to.as_ref().and_then(|base| path.strip_prefix(base).ok()).unwrap_or(path)
    }
}

/// The searcher and printer of one thread.
struct FileSearcher {
    matcher: RegexMatcher,
    searcher: Searcher,
    printer: Printer,
}

enum Printer {
    Lines(Standard<NoColor<CappedBuffer>>),
    Summary(Summary<NoColor<CappedBuffer>>),
}

impl FileSearcher {
    fn new(query: &GrepQuery, matcher: &RegexMatcher, one_file: bool) -> Self {
        let mut builder = SearcherBuilder::new();
        builder
            .line_number(query.line_numbers && query.mode == GrepMode::Lines)
            .multi_line(query.multiline)
            // In all modes: as in ripgrep, the context decides how far a file is checked for NUL bytes.
            .before_context(query.before)
            .after_context(query.after)
            .binary_detection(if one_file { BinaryDetection::convert(0) } else { BinaryDetection::quit(0) });
        let out = NoColor::new(CappedBuffer::default());
        let summary = |kind, path| SummaryBuilder::new().kind(kind).path(path).build(out.clone());
        let printer = match query.mode {
            GrepMode::Files => Printer::Summary(summary(SummaryKind::PathWithMatch, true)),
            GrepMode::Counts => {
                let kind = if query.only_matching { SummaryKind::CountMatches } else { SummaryKind::Count };
                Printer::Summary(summary(kind, !one_file))
            }
            GrepMode::Lines => {
                builder.max_matches(query.max_lines.map(|lines| lines as u64));
                let mut standard = StandardBuilder::new();
                Printer::Lines(standard.path(!one_file).only_matching(query.only_matching).build(out))
            }
        };
        Self { matcher: matcher.clone(), searcher: builder.build(), printer }
    }

    /// The output for one file, if it has a match.
    fn search(&mut self, file: impl Read, shown: &Path) -> Result<Option<CappedBuffer>, ToolError> {
        let (matcher, searcher) = (&self.matcher, &mut self.searcher);
        let (result, out) = match &mut self.printer {
            Printer::Lines(printer) => {
                let result = searcher.search_reader(matcher, file, printer.sink_with_path(matcher, shown));
                (result, printer.get_mut().get_mut())
            }
            Printer::Summary(printer) => {
                let result = searcher.search_reader(matcher, file, printer.sink_with_path(matcher, shown));
                (result, printer.get_mut().get_mut())
            }
        };
        let out = std::mem::take(out);
        result.map_err(|error| ToolError::io(format!("search {}", shown.display()), &error))?;
        Ok((out.total_bytes > 0).then_some(out))
    }
}

/// A buffer that keeps its first [`MAX_KEPT_BYTES`] and counts the rest.
#[derive(Debug, Clone, Default)]
struct CappedBuffer {
    bytes: Vec<u8>,
    total_bytes: u64,
}

impl Write for CappedBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let free = MAX_KEPT_BYTES.saturating_sub(self.bytes.len()).min(bytes.len());
        self.bytes.extend_from_slice(&bytes[..free]);
        self.total_bytes += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The output of all threads, in order. Above [`MAX_KEPT_BYTES`] the last files are dropped.
#[derive(Default)]
struct MatchCollector {
    files: u64,
    first_error: Option<ToolError>,
    secrets: Vec<PathBuf>,
    kept_bytes: usize,
    dropped_bytes: u64,
    /// By modification time, newest first, then by path.
    outputs: BTreeMap<(Reverse<i64>, PathBuf), Vec<u8>>,
}

impl MatchCollector {
    fn add(&mut self, modified: i64, path: &Path, output: CappedBuffer) {
        self.files += 1;
        self.kept_bytes += output.bytes.len();
        self.dropped_bytes += output.total_bytes - output.bytes.len() as u64;
        self.outputs.insert((Reverse(modified), path.to_owned()), output.bytes);
        while self.kept_bytes > MAX_KEPT_BYTES
            && self.outputs.len() > 1
            && let Some((_, bytes)) = self.outputs.pop_last()
        {
            self.kept_bytes -= bytes.len();
            self.dropped_bytes += bytes.len() as u64;
        }
    }

    fn finish(self, separate_files: bool) -> GrepOutput {
        let outputs: Vec<Vec<u8>> = self.outputs.into_values().collect();
        let bytes = outputs.join(if separate_files { &b"--\n"[..] } else { b"" });
        let text = String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        let mut secrets: Vec<String> =
            self.secrets.iter().map(|path| path.to_string_lossy().into_owned()).collect();
        secrets.sort_unstable();
        GrepOutput { text, files: self.files, dropped_bytes: self.dropped_bytes, secrets }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn glob_list_is_split_at_commas_outside_braces() {
        for (list, globs) in [
            ("*.rs", &["*.rs"][..]),
            ("*.rs,*.toml", &["*.rs", "*.toml"]),
            ("*.{ts,tsx}, !*.d.ts,", &["*.{ts,tsx}", "!*.d.ts"]),
            ("a[,]b,c d", &["a[,]b", "c d"]),
            ("{a", &["{a"]),
            (" ,", &[]),
        ] {
            assert_eq!(split_globs(list), globs, "{list}");
        }
    }
}
