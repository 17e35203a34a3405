//! `Read`: a file's lines, numbered; pictures as pictures; the text of PDFs and notebooks.

use std::fmt::Write;
use std::path::PathBuf;

use haft_tool::{
    Bound, Content, Effect, EffectKind, ErrorKind, FileKind, JsonSchema, Output, Planned, Planning, Tool,
    ToolError, World, clip_chars, json, path_to_text,
};
use serde::Deserialize;

use crate::ops::read::{Lines, Opened, Part, read};

const DEFAULT_LINES: u64 = 2_000;
const MOST_LINE_CHARS: usize = 2_000;

/// Read a file: text, a PDF or a notebook as numbered lines, at most 2000 unless `limit` says otherwise; PNG, JPEG, GIF and WebP as pictures.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// Absolute path of the file.
    file_path: String,
    /// First line to read, counted from 1.
    #[schemars(range(min = 0))]
    offset: Option<u64>,
    /// How many lines to read.
    #[schemars(range(min = 1))]
    limit: Option<u64>,
    /// Pages of a PDF, at most 20, for example "1-5" or "2,7". Default: the first 20.
    pages: Option<String>,
}

pub(super) struct Read;

/// The file, and which part of it.
pub(super) struct ReadPlan {
    path: PathBuf,
    first: u64,
    limit: u64,
    pages: Option<String>,
}

impl Tool for Read {
    const NAME: &'static str = "Read";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Read];
    const BOUND: Bound = Bound {
        notice: |cut| {
            format!(
                "[... the rest is not shown: {} of {} characters fit; read on with offset and limit]",
                cut.shown_chars, cut.total_chars
            )
        },
        ..Bound::DEFAULT.head().chars(100_000)
    };
    type Input = Input;
    type Plan = ReadPlan;

    fn plan(&self, input: Input, at: &Planning) -> Result<Planned<ReadPlan>, ToolError> {
        let plan = ReadPlan {
            path: at.only_absolute("file_path", &input.file_path)?,
            first: input.offset.unwrap_or(1).max(1),
            limit: input.limit.unwrap_or(DEFAULT_LINES),
            pages: input.pages,
        };
        Ok(Planned::new([Effect::Read { path: plan.path.clone() }], plan))
    }

    fn perform(&self, plan: ReadPlan, world: &dyn World) -> Result<Output, ToolError> {
        let ReadPlan { path, first, limit, pages } = plan;
        let part = Part { first, limit, pages: pages.as_deref() };
        let opened = match read(world, &path, part) {
            Err(error) if error.kind == ErrorKind::FileNotFound => {
                return Err(with_near_names(error, &path, world));
            }
            Err(error) if world.files().kind(&path).is_ok_and(|kind| kind == FileKind::Dir) => {
                return Err(ToolError { message: format!("{}; list it with Glob", error.message), ..error });
            }
            other => other?,
        };
        match opened {
            Opened::Text(lines) => Ok(shown(&lines, first).with_structured(json!({
                "type": "text",
                "file": {
                    "filePath": path_to_text(&path), "numLines": lines.len(), "startLine": first,
                    "totalLines": lines.total, "encoding": lines.charset.unwrap_or("UTF-8"),
                },
            }))),
            Opened::Image { media_type, data, bytes } => Ok(Output {
                content: vec![Content::Image { media_type: media_type.to_owned(), data }],
                structured: Some(
                    json!({"type": "image", "file": {"filePath": path_to_text(&path), "originalSize": bytes, "type": media_type}}),
                ),
                ..Output::default()
            }),
            Opened::Pdf { pages, lines, bytes } => {
                let mut output = shown(&lines, first).with_structured(json!({
                    "type": "pdf",
                    "file": {
                        "filePath": path_to_text(&path), "originalSize": bytes,
                        "pages": pages.numbers, "totalPages": pages.total,
                        "numLines": lines.len(), "startLine": first, "totalLines": lines.total,
                    },
                }));
                output.content.extend(pages.scans);
                Ok(output)
            }
            Opened::Notebook { shown: notebook, lines } => {
                let mut output = shown(&lines, first).with_structured(json!({
                    "type": "notebook",
                    "file": {"filePath": path_to_text(&path), "cells": notebook.cells},
                }));
                output.content.extend(notebook.pictures);
                Ok(output)
            }
        }
    }
}

fn shown(lines: &Lines, first: u64) -> Output {
    let mut text = String::with_capacity(lines.bytes() + lines.len() * 8 + 64);
    for (number, (line, unseen)) in (first..).zip(lines.iter()) {
        push_number(&mut text, number);
        text.push('\t');
        text.push_str(&clip_chars(line, MOST_LINE_CHARS, unseen));
        text.push('\n');
    }
    let last = first + lines.len() as u64 - 1;
    match lines.total {
        Some(0) => text.push_str("(the file is empty)\n"),
        Some(total) if lines.len() == 0 => {
            let _ = writeln!(text, "(the file has only {total} lines)");
        }
        Some(total) if last < total => {
            let _ = writeln!(text, "(lines {first} to {last} of {total}; read on with offset {})", last + 1);
        }
        Some(_) => {}
        None => {
            let _ =
                writeln!(text, "(lines {first} to {last} of very many; read on with offset {})", last + 1);
        }
    }
    Output::text(text)
}

/// A number, six wide at least. There is one for every line, and `write!` would cost more than the line.
fn push_number(text: &mut String, number: u64) {
    let (mut digits, mut at, mut rest) = (['0'; 20], 20, number);
    while at > 0 && (rest > 0 || at == 20) {
        at -= 1;
        digits[at] = char::from(b'0' + u8::try_from(rest % 10).unwrap_or_default());
        rest /= 10;
    }
    text.extend((14..at).map(|_| ' ').chain(digits[at..].iter().copied()));
}

/// A path that is nearly right is the most common mistake.
fn with_near_names(mut error: ToolError, path: &std::path::Path, world: &dyn World) -> ToolError {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return error };
    let Ok(entries) = world.files().list(parent) else { return error };
    let names: Vec<String> = entries.iter().map(|entry| entry.name.to_string_lossy().into_owned()).collect();
    let near = haft_tool::close_names(&name.to_string_lossy(), names.iter().map(String::as_str));
    if !near.is_empty() {
        error.message = format!("{}; its directory has {}", error.message, near.join(", "));
    }
    error
}
