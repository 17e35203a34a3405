//! Text for the terminal: colours only on a terminal, no control characters from files or commands.

use std::borrow::Cow;
use std::io::{Error, IsTerminal, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use anstyle::{AnsiColor, Style};

pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const BAD: Style = AnsiColor::Red.on_default();
pub(crate) const NOTE: Style = AnsiColor::Yellow.on_default();
pub(crate) const NAME: Style = AnsiColor::Cyan.on_default();
pub(crate) const FAINT: Style = Style::new().dimmed();
pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const ITALIC: Style = Style::new().italic();

/// The only styles that reach the terminal.
const STYLES: [Style; 7] = [GOOD, BAD, NOTE, NAME, FAINT, BOLD, ITALIC];

/// Why standard output could not be written.
static OUTPUT_ERROR: OnceLock<Error> = OnceLock::new();

/// Why something that was meant for standard output is not there, which makes the exit code a failure.
pub(crate) fn output_error() -> Option<&'static Error> {
    OUTPUT_ERROR.get()
}

/// Whether the user asked for output without colours and without lines that change.
static IS_PLAIN: AtomicBool = AtomicBool::new(false);

/// From now on there are no colours, and no line is changed after it was written.
pub(crate) fn be_plain() {
    IS_PLAIN.store(true, Ordering::Relaxed);
    anstream::ColorChoice::Never.write_global();
}

/// Whether lines on standard error can be changed after they were written.
pub(crate) fn moves_cursor() -> bool {
    let is_dumb = || std::env::var_os("TERM").is_none_or(|name| name.is_empty() || name == "dumb");
    !IS_PLAIN.load(Ordering::Relaxed) && std::io::stderr().is_terminal() && !is_dumb()
}

/// Whether text on standard error may have colours.
pub(crate) fn has_colors() -> bool {
    anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never
}

fn note_output_error(written: std::io::Result<()>) {
    if let Err(error) = written {
        let _ = OUTPUT_ERROR.set(error);
    }
}

/// Writes to standard output.
pub(crate) fn out(text: &str) {
    note_output_error(print(anstream::stdout().lock(), text));
}

/// Writes a result to standard output as it is, or without control characters on a terminal.
pub(crate) fn result(text: &str) {
    let mut out = std::io::stdout().lock();
    let text = if std::io::stdout().is_terminal() { sanitize(text) } else { Cow::Borrowed(text) };
    let end = if text.ends_with('\n') { "" } else { "\n" };
    note_output_error(write!(out, "{text}{end}").and_then(|()| out.flush()));
}

/// Writes a line to standard error.
pub(crate) fn note(text: &str) {
    let _ = print(anstream::stderr().lock(), &format!("{text}\n"));
}

/// Writes the words before an answer to standard error.
pub(crate) fn prompt(text: &str) {
    let _ = print(anstream::stderr().lock(), text);
}

/// The width of the terminal at standard error, in columns.
pub(crate) fn width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stderr()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// The one place where text for people is written. A file's name, a command's output or an error may contain anything, so
/// every control character that is not part of one of our styles is escaped here.
fn print(mut stream: impl Write, text: &str) -> std::io::Result<()> {
    stream.write_all(visible(text).as_bytes()).and_then(|()| stream.flush())
}

/// `text` with our own styles; all other control characters are escaped.
pub(super) fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let styles: Vec<String> =
        STYLES.iter().flat_map(|style| [format!("{style}"), format!("{style:#}")]).collect();
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(is_unsafe) {
        let (before, from) = rest.split_at(at);
        shown.push_str(before);
        let style = styles.iter().find(|style| !style.is_empty() && from.starts_with(style.as_str()));
        let mut chars = from.chars();
        match (style, chars.next()) {
            (Some(style), _) => {
                shown.push_str(style);
                rest = &from[style.len()..];
            }
            (None, first) => {
                shown.extend(first.map(code_point));
                rest = chars.as_str();
            }
        }
    }
    shown.push_str(rest);
    Cow::Owned(shown)
}

/// Characters that move the cursor, set a title, fill the clipboard or reorder what is shown.
fn is_unsafe(c: char) -> bool {
    let reorders =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    reorders || c.is_control() && c != '\n' && c != '\t'
}

/// Whether warnings are no longer written.
static SILENT: AtomicBool = AtomicBool::new(false);

/// Writes no more warnings, for a process that reads the settings again and again.
pub(super) fn silence_warnings() {
    SILENT.store(true, Ordering::Relaxed);
}

/// Writes warnings to standard error, one line each.
pub(crate) fn warnings(warnings: &[String]) {
    if SILENT.load(Ordering::Relaxed) {
        return;
    }
    for warning in warnings {
        note(&format!("{}: {}", styled(NOTE, "note"), escape(warning)));
    }
}

/// Writes an error to standard error.
pub(crate) fn error(text: &str) {
    note(&format!("{}: {}", styled(BAD, "error"), sanitize(text)));
}

/// `text` in a colour.
pub(crate) fn styled(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// Untrusted text of several lines: characters that could move the cursor or reorder the text are escaped.
pub(crate) fn sanitize(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_unsafe(c) { shown.push_str(&code_point(c)) } else { shown.push(c) }
    }
    Cow::Owned(shown)
}

/// Untrusted text on one line: characters that could hide, reorder or break it are escaped.
pub(crate) fn escape(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => shown.push_str("\\n"),
            '\t' => shown.push_str("\\t"),
            c if is_unsafe(c) || is_hidden(c) => shown.push_str(&code_point(c)),
            c => shown.push(c),
        }
    }
    shown
}

fn code_point(c: char) -> String {
    format!("\\u{{{:x}}}", u32::from(c))
}

/// Characters without width or that change the direction of others: soft hyphens, marks, joiners, tags, variation selectors.
fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// A count with its noun: `1 call`, `3 calls`.
pub(crate) fn count(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Bytes in the unit that reads best.
pub(crate) fn bytes(count: u64) -> String {
    let units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let mut unit = 0;
    let mut whole = count;
    while whole >= 10_240 && unit + 1 < units.len() {
        whole /= 1024;
        unit += 1;
    }
    format!("{whole} {}", units[unit])
}

/// How long ago, in the unit that reads best.
pub(crate) fn ago(at_ms: u64) -> String {
    let at = SystemTime::UNIX_EPOCH + Duration::from_millis(at_ms);
    let seconds = SystemTime::now().duration_since(at).unwrap_or_default().as_secs();
    match seconds {
        0..=59 => format!("{seconds}s ago"),
        60..=3_599 => format!("{}m ago", seconds / 60),
        3_600..=86_399 => format!("{}h ago", seconds / 3_600),
        _ => format!("{}d ago", seconds / 86_400),
    }
}

/// Microseconds in the unit that reads best.
pub(crate) fn took(microseconds: u64) -> String {
    match microseconds {
        0..=9_999 => format!("{}.{} ms", microseconds / 1_000, microseconds % 1_000 / 100),
        10_000..=9_999_999 => format!("{} ms", microseconds / 1_000),
        _ => format!("{} s", microseconds / 1_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_styles_reach_the_terminal() {
        let hostile = "a\x1b[2J\x1b[8mb\rc\u{9b}d\u{202e}e\x07\n";
        let escaped = "a\\u{1b}[2J\\u{1b}[8mb\\u{d}c\\u{9b}d\\u{202e}e\\u{7}\n";
        assert_eq!(visible(hostile), escaped);
        assert_eq!(sanitize(hostile), escaped);
        for style in STYLES {
            let text = styled(style, "plain");
            assert_eq!(visible(&text), text);
            assert_eq!(visible(&styled(style, "\x1b]0;x\x07")), styled(style, "\\u{1b}]0;x\\u{7}"));
        }
        assert_eq!(escape("a\nb\t\u{200b}"), "a\\nb\\t\\u{200b}");
    }
}
