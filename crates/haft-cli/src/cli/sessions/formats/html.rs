//! A transcript as one HTML page without scripts and without requests. Every text is escaped, and the page's policy forbids everything
//! but its own style and images that are part of it.

use std::collections::HashMap;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use haft_compat::transcripts::{EntryBody, Transcript, TranscriptEntry, TranscriptImage};
use sha2::{Digest as _, Sha256};

use super::super::super::local_time::local_time_with_offset;
use super::super::super::screen;
use super::{arguments_text, facts, live, title};

const STYLE: &str = "
:root { color-scheme: light dark; font-family: system-ui, sans-serif; line-height: 1.5; }
body { max-width: 60rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.3rem; overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.1rem 1rem; }
dd { margin: 0; overflow-wrap: anywhere; }
article, details { border-left: 0.25rem solid #8888; margin: 0.75rem 0; padding: 0.1rem 0.75rem; }
.user { border-color: #2a7; }
.assistant { border-color: #37b; }
.failed { border-color: #c33; }
header, summary { font-weight: 600; overflow-wrap: anywhere; }
summary { cursor: pointer; }
time, .at { font-weight: 400; font-size: 0.85rem; opacity: 0.7; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: plaintext; margin: 0.4rem 0; }
.user pre, .assistant pre { font-family: inherit; }
img { max-width: 100%; }
";

/// The images that a browser is shown; others, such as SVG, could do more than be seen.
const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

pub(in super::super) fn render(transcript: &Transcript) -> String {
    let name = transcript.name.as_deref().unwrap_or(&transcript.session);
    let mut page = String::from("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    let style_hash = STANDARD.encode(Sha256::digest(STYLE));
    add(
        &mut page,
        format_args!(
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{style_hash}'; img-src data:; \
             base-uri 'none'; form-action 'none'\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n<style>{STYLE}</style>\n\
             </head>\n<body>\n<h1>{}</h1>\n<dl>\n",
            escaped(name),
            escaped(name),
        ),
    );
    for (name, value) in facts(transcript) {
        add(&mut page, format_args!("<dt>{name}</dt><dd>{}</dd>\n", escaped(&value)));
    }
    page.push_str("</dl>\n<main>\n");
    let tools = transcript.tool_names();
    for entry in live(transcript) {
        add_entry(&mut page, &tools, entry);
    }
    page.push_str("</main>\n</body>\n</html>\n");
    page
}

fn add(page: &mut String, more: std::fmt::Arguments<'_>) {
    // Writing to a text cannot fail.
    let _ = page.write_fmt(more);
}

fn add_entry(page: &mut String, tools: &HashMap<&str, &str>, entry: &TranscriptEntry) {
    let body = &entry.body;
    let title = escaped(&title(tools, body));
    let at = entry
        .at
        .map(local_time_with_offset)
        .map(|at| format!(" <span class=\"at\">{at}</span>"))
        .unwrap_or_default();
    let class = match body {
        EntryBody::Result { is_error: true, .. } => "result failed",
        body => body.kind(),
    };
    let (text, images): (String, &[TranscriptImage]) = match body {
        EntryBody::User { text, images } | EntryBody::Result { text, images, .. } => (text.clone(), images),
        EntryBody::Assistant { text } | EntryBody::Reasoning { text } | EntryBody::Notice { text } => {
            (text.clone(), &[])
        }
        EntryBody::Call { arguments, .. } => (arguments_text(arguments), &[]),
    };
    // The line break behind a pre tag is not a part of its text.
    let content = format!("<pre>\n{}</pre>{}", escaped(&text), images.iter().map(image).collect::<String>());
    match body {
        EntryBody::User { .. } | EntryBody::Assistant { .. } => {
            add(
                page,
                format_args!("<article class=\"{class}\"><header>{title}{at}</header>{content}</article>\n"),
            );
        }
        _ => {
            let first = text.lines().next().unwrap_or_default();
            let first: String = first.chars().take(100).collect();
            add(
                page,
                format_args!(
                    "<details class=\"{class}\"><summary>{title} <span class=\"at\">{}</span>{at}</summary>{content}</details>\n",
                    escaped(&first)
                ),
            );
        }
    }
}

fn image(image: &TranscriptImage) -> String {
    let is_shown = IMAGE_TYPES.contains(&image.media_type.as_str()) && STANDARD.decode(&image.data).is_ok();
    if is_shown {
        format!("<p><img alt=\"image\" src=\"data:{};base64,{}\"></p>", image.media_type, image.data)
    } else {
        format!("<p>[{} that is not shown]</p>", escaped(&image.media_type))
    }
}

/// A text in which nothing is markup, and no character reorders or hides others.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in screen::sanitize(text).chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}
