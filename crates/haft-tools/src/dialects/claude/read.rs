//! `Read`: numbered lines of a file, an image, the text of a PDF or a notebook.

use std::path::PathBuf;

use haft_tool::prelude::*;
use haft_tool::{Content, path_to_text};

use crate::ops::numbered::numbered_lines;
use crate::ops::read::{DecodedFile, ReadRange, explain_missing, read};

const DEFAULT_LINES: u64 = 2_000;
const MAX_CHARS: usize = 100_000;

/// Read a file: text, a PDF or a notebook as numbered lines, at most 2000 unless `limit` says otherwise; PNG, JPEG, GIF and WebP as images.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// Absolute path of the file.
    #[schemars(extend("format" = "path"))]
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
        ..Bound::DEFAULT.head().chars(MAX_CHARS)
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
        let range = ReadRange { first, limit, pages: pages.as_deref() };
        let content =
            read(world, &path, range).map_err(|error| explain_missing(error, &path, "Glob", world))?;
        let path = path_to_text(&path);
        let (lines, kind, file, images) = match content {
            DecodedFile::Image { media_type, data, bytes } => {
                let file = json!({"filePath": path, "originalSize": bytes, "type": media_type});
                let image = Content::Image { media_type: media_type.to_owned(), data };
                let structured = json!({"type": "image", "file": file});
                return Ok(Output::pieces(vec![image]).with_structured(structured));
            }
            DecodedFile::Text(lines) => {
                let file = json!({
                    "filePath": path, "numLines": lines.len(), "startLine": first, "totalLines": lines.total,
                    "encoding": lines.charset.unwrap_or("UTF-8"),
                });
                (lines, "text", file, Vec::new())
            }
            DecodedFile::Pdf { pages, lines, bytes } => {
                let file = json!({
                    "filePath": path, "originalSize": bytes, "pages": pages.numbers, "totalPages": pages.total,
                    "numLines": lines.len(), "startLine": first, "totalLines": lines.total,
                });
                (lines, "pdf", file, pages.scans)
            }
            DecodedFile::Notebook { notebook, lines } => {
                let file = json!({"filePath": path, "cells": notebook.cells});
                (lines, "notebook", file, notebook.images)
            }
        };
        let mut output = Output::text(numbered_lines(&lines, first));
        output.content.extend(images);
        Ok(output.with_structured(json!({"type": kind, "file": file})))
    }
}
