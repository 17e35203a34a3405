//! A transcript as Markdown. What was said is quoted and what tools got and gave is fenced, so that no text can look like a heading of
//! the export, nothing in it is HTML or an image that a viewer loads, and no character reorders or hides others.

use std::borrow::Cow;
use std::fmt::Write as _;

use haft_compat::transcripts::{EntryBody, Transcript};

use super::super::super::screen;
use super::{arguments_text, facts, live, title};

/// The shortest fence.
const MIN_FENCE_CHARS: usize = 3;

pub(in super::super) fn render(transcript: &Transcript) -> String {
    let mut text = format!("# Session {}\n\n", inline(&transcript.session));
    for (name, value) in facts(transcript) {
        add(&mut text, format_args!("- {name}: {}\n", inline(&value)));
    }
    let tools = transcript.tool_names();
    for entry in live(transcript) {
        let title = title(&tools, &entry.body);
        add(&mut text, format_args!("\n## {}. {}\n\n", entry.position, inline(&title)));
        match &entry.body {
            EntryBody::User { text: said, images } => {
                quote(&mut text, said);
                add_images(&mut text, images.len());
            }
            EntryBody::Assistant { text: said } | EntryBody::Reasoning { text: said } => {
                quote(&mut text, said);
            }
            EntryBody::Notice { text: said } => fence(&mut text, said),
            EntryBody::Call { arguments, .. } => fence(&mut text, &arguments_text(arguments)),
            EntryBody::Result { text: result, images, .. } => {
                fence(&mut text, result);
                add_images(&mut text, images.len());
            }
        }
    }
    text
}

fn add(text: &mut String, more: std::fmt::Arguments<'_>) {
    // Writing to a text cannot fail.
    let _ = text.write_fmt(more);
}

/// A text on one line in which nothing is markup.
fn inline(text: &str) -> String {
    let mut escaped = String::new();
    for c in screen::escape(text).chars() {
        if c.is_ascii_punctuation() && !matches!(c, '/' | '.' | '-' | ':' | ',' | '(' | ')' | ' ') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

/// A text with the line breaks of Markdown as line feeds and no character that moves the cursor or reorders the text.
fn lines_of(text: &str) -> String {
    screen::sanitize(&text.replace("\r\n", "\n").replace('\r', "\n")).into_owned()
}

/// A quotation in which HTML and images are inert. Blocks with fences stay as they are; the fences get no indentation, because an
/// indented one may belong to a list, which the next line without indentation ends together with its block.
fn quote(text: &mut String, said: &str) {
    let mut open: Option<&str> = None;
    let said = lines_of(said);
    for line in said.lines().map(str::trim_end) {
        let unindented = line.trim_start();
        let shown = match (open, fence_of(unindented)) {
            (Some(fence), Some(found)) if found.starts_with(fence) && found == unindented => {
                open = None;
                Cow::Borrowed(unindented)
            }
            (Some(_), _) => Cow::Borrowed(line),
            (None, Some(found)) => {
                open = Some(found);
                Cow::Borrowed(unindented)
            }
            (None, None) => Cow::Owned(inert(line)),
        };
        add(text, format_args!("{}\n", format!("> {shown}").trim_end()));
    }
}

/// The fence with which a line begins.
fn fence_of(line: &str) -> Option<&str> {
    let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let rest = line.trim_start_matches(mark);
    let fence = line.strip_suffix(rest)?;
    // What has backticks behind it is code within a line.
    let is_fence = fence.len() >= MIN_FENCE_CHARS && !(mark == '`' && rest.contains('`'));
    is_fence.then_some(fence)
}

/// A line in which no HTML and no image begins. What is escaped already stays so.
fn inert(line: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    let (mut is_escaped, mut follows_mark) = (false, false);
    for c in line.chars() {
        if !is_escaped && (c == '<' || (c == '[' && follows_mark)) {
            shown.push('\\');
        }
        shown.push(c);
        is_escaped = c == '\\' && !is_escaped;
        follows_mark = c == '!';
    }
    shown
}

/// A block whose fence is longer than any in the text.
fn fence(text: &mut String, inside: &str) {
    let inside = lines_of(inside);
    let (mut longest, mut run) = (0, 0);
    for c in inside.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(MIN_FENCE_CHARS.max(longest + 1));
    let end = if inside.is_empty() || inside.ends_with('\n') { "" } else { "\n" };
    add(text, format_args!("{fence}\n{inside}{end}{fence}\n"));
}

fn add_images(text: &mut String, count: usize) {
    if count > 0 {
        add(text, format_args!("\n{}\n", screen::count(count as u64, "image")));
    }
}
