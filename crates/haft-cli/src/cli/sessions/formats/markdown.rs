//! A transcript as Markdown. What was said is quoted and what tools got and gave is fenced, so that no text can look like a heading of
//! the export.

use std::fmt::Write as _;

use haft_compat::transcripts::{EntryBody, Transcript};

use super::super::super::screen;
use super::{arguments_text, facts, live, title};

pub(in super::super) fn render(transcript: &Transcript) -> String {
    let mut text = format!("# Session {}\n\n", inline(&transcript.session));
    for (name, value) in facts(transcript) {
        add(&mut text, format_args!("- {name}: {}\n", inline(&value)));
    }
    for entry in live(transcript) {
        let title = title(transcript, &entry.body);
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

fn quote(text: &mut String, said: &str) {
    for line in said.lines() {
        add(text, format_args!("{}\n", format!("> {line}").trim_end()));
    }
}

/// A block whose fence is longer than any in the text.
fn fence(text: &mut String, inside: &str) {
    const MIN_FENCE_CHARS: usize = 3;
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
