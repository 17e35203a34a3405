//! How the commands that show the ledger print: colours, the width of the terminal, and a pager.

use std::borrow::Cow;
use std::io::IsTerminal;

use clap::{Args, ValueEnum};
use unicode_width::UnicodeWidthChar;

use super::screen;

/// The pager if the user has named none.
const DEFAULT_PAGER: &str = "less";

#[derive(Debug, Clone, Args)]
pub(super) struct ViewArgs {
    /// Use colours: auto means on a terminal.
    #[arg(long, value_enum, value_name = "WHEN", default_value = "auto")]
    color: ColorWhen,
    /// Print directly, even if the text is longer than the terminal is high.
    #[arg(long)]
    no_pager: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ColorWhen {
    Auto,
    Always,
    Never,
}

impl ViewArgs {
    /// Lets all output have colours or not, as the flag says.
    pub(super) fn set_colors(&self) {
        let choice = match self.color {
            ColorWhen::Auto => anstream::ColorChoice::Auto,
            ColorWhen::Always => anstream::ColorChoice::Always,
            ColorWhen::Never => anstream::ColorChoice::Never,
        };
        choice.write_global();
    }

    /// Prints the text, in a pager if it is longer than the terminal is high.
    pub(super) fn show(&self, text: &str) {
        let lines = text.lines().count();
        match terminal_size() {
            Some((_, rows)) if !self.no_pager && lines >= rows => {
                let pager = pager();
                if pager.is_empty() || haft_sandbox::show_in_pager(&pager, &styled_text(text)).is_err() {
                    screen::out(text);
                }
            }
            _ => screen::out(text),
        }
    }
}

/// `text` without control characters of others, and without styles where the terminal gets none.
fn styled_text(text: &str) -> String {
    let text = screen::visible(text);
    match anstream::AutoStream::choice(&std::io::stdout()) {
        anstream::ColorChoice::Never => anstream::adapter::strip_str(&text).to_string(),
        _ => text.into_owned(),
    }
}

/// The user's pager; empty for none.
fn pager() -> String {
    let named = ["HAFT_PAGER", "PAGER"].into_iter().find_map(|name| std::env::var(name).ok());
    let pager = named.unwrap_or_else(|| DEFAULT_PAGER.to_owned());
    if pager.trim() == "cat" { String::new() } else { pager.trim().to_owned() }
}

/// Columns and rows of the terminal that standard output is, if it is one.
pub(super) fn terminal_size() -> Option<(usize, usize)> {
    if !std::io::stdout().is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(rustix::stdio::stdout()).ok()?;
    (size.ws_col > 0 && size.ws_row > 0).then(|| (size.ws_col.into(), size.ws_row.into()))
}

/// `text` with at most so many columns; what was cut is marked.
pub(super) fn clip_columns(text: &str, columns: usize) -> Cow<'_, str> {
    if width(text) <= columns {
        return Cow::Borrowed(text);
    }
    let mut left = columns.saturating_sub(1);
    let end = text.char_indices().find(|(_, c)| match left.checked_sub(char_width(*c)) {
        Some(rest) => (left = rest, false).1,
        None => true,
    });
    Cow::Owned(format!("{}…", &text[..end.map_or(text.len(), |(at, _)| at)]))
}

/// The columns that a text without control characters takes.
pub(super) fn width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

/// The columns of a character. A selector of the emoji form counts, because it makes many characters wider.
pub(super) fn char_width(c: char) -> usize {
    if c == '\u{fe0f}' { 1 } else { UnicodeWidthChar::width(c).unwrap_or(1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_clipped_by_columns() {
        assert_eq!(clip_columns("abcdef", 6), "abcdef");
        assert_eq!(clip_columns("abcdef", 5), "abcd…");
        assert_eq!(clip_columns("日本語", 6), "日本語");
        assert_eq!(clip_columns("日本語", 5), "日本…");
        assert_eq!(clip_columns("日本語", 4), "日…");
        assert_eq!(clip_columns("abc", 0), "…");
    }
}
