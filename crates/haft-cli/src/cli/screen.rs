//! Text for the terminal: colours only on a terminal, no control characters from files or commands.

use std::borrow::Cow;
use std::io::{IsTerminal, Write};
use std::time::{Duration, SystemTime};

use anstyle::{AnsiColor, Style};

pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const BAD: Style = AnsiColor::Red.on_default();
pub(crate) const NOTE: Style = AnsiColor::Yellow.on_default();
pub(crate) const NAME: Style = AnsiColor::Cyan.on_default();
pub(crate) const FAINT: Style = Style::new().dimmed();
pub(crate) const BOLD: Style = Style::new().bold();

/// Writes to standard output; a closed pipe is not an error.
pub(crate) fn out(text: &str) {
    let mut out = anstream::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Writes a result to standard output as it is, or without control characters on a terminal.
pub(crate) fn result(text: &str) {
    let mut out = std::io::stdout().lock();
    let text = if std::io::stdout().is_terminal() { sanitize(text) } else { Cow::Borrowed(text) };
    let end = if text.ends_with('\n') { "" } else { "\n" };
    let _ = write!(out, "{text}{end}").and_then(|()| out.flush());
}

/// Writes a line to standard error.
pub(crate) fn note(text: &str) {
    let mut err = anstream::stderr().lock();
    let _ = writeln!(err, "{text}");
}

/// Writes warnings to standard error, one line each.
pub(crate) fn warnings(warnings: &[String]) {
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

/// Replaces control characters, which could move the cursor, set a title or fill the clipboard.
pub(crate) fn sanitize(text: &str) -> Cow<'_, str> {
    let bad = |c: char| c.is_control() && c != '\n' && c != '\t';
    if text.contains(bad) {
        return Cow::Owned(text.chars().map(|c| if bad(c) { '\u{fffd}' } else { c }).collect());
    }
    Cow::Borrowed(text)
}

/// Untrusted text on one line: characters that could hide, reorder or break it are escaped.
pub(crate) fn escape(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => shown.push_str("\\n"),
            '\t' => shown.push_str("\\t"),
            c if c.is_control() || is_hidden(c) => shown.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
            c => shown.push(c),
        }
    }
    shown
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
