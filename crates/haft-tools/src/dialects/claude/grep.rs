//! `Grep`: file contents by regular expression, with ripgrep's flags.

use haft_tool::{
    Bound, Effect, EffectKind, JsonSchema, Output, Planned, Planning, Text, Tool, ToolError, WalkRequest,
    World, json,
};
use serde::{Deserialize, Serialize};

use crate::ops::grep::{Query, Tell};

/// Search file contents by regular expression (ripgrep's syntax). Ignored, hidden and binary files are left out.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    pattern: String,
    /// Absolute path to search; the workspace if left out.
    path: Option<String>,
    /// Only files that match, for example `*.{ts,tsx}`.
    glob: Option<String>,
    /// What to show: lines, files (default), or matches per file.
    output_mode: Option<OutputMode>,
    /// Lines before each match.
    #[serde(rename = "-B")]
    before: Option<u32>,
    /// Lines after each match.
    #[serde(rename = "-A")]
    after: Option<u32>,
    /// Lines around each match.
    #[serde(rename = "-C")]
    around: Option<u32>,
    /// The same as -C.
    context: Option<u32>,
    /// Show line numbers (default true).
    #[serde(rename = "-n")]
    line_numbers: Option<bool>,
    /// Ignore case.
    #[serde(rename = "-i")]
    ignore_case: Option<bool>,
    /// Only the matching part of a line.
    #[serde(rename = "-o")]
    only_matching: Option<bool>,
    /// Only files of a type, for example `rust` or `py`.
    #[serde(rename = "type")]
    file_type: Option<String>,
    /// Show at most this many lines or files; 0 for all.
    head_limit: Option<usize>,
    /// Leave out this many lines or files first.
    offset: Option<usize>,
    /// Let matches span lines, and `.` match line ends.
    multiline: Option<bool>,
}

#[derive(Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum OutputMode {
    Content,
    FilesWithMatches,
    Count,
}

pub(super) struct Grep;

impl Input {
    fn limit(&self) -> Option<usize> {
        self.head_limit.filter(|limit| *limit > 0)
    }

    fn mode(&self) -> OutputMode {
        self.output_mode.unwrap_or(OutputMode::FilesWithMatches)
    }

    fn query(&self, planning: &Planning) -> Result<Query, ToolError> {
        let root = match &self.path {
            Some(path) => planning.only_absolute("path", path)?,
            None => planning.workspace.clone(),
        };
        let around = self.around.or(self.context);
        let lines = |own: Option<u32>| own.or(around).unwrap_or(0) as usize;
        Ok(Query {
            pattern: self.pattern.clone(),
            relative_to: self.path.is_none().then(|| root.clone()),
            walk: WalkRequest {
                root,
                globs: self.glob.iter().cloned().collect(),
                file_type: self.file_type.clone(),
                hidden: false,
            },
            tell: match self.mode() {
                OutputMode::Content => Tell::Lines,
                OutputMode::FilesWithMatches => Tell::Files,
                OutputMode::Count => Tell::Counts,
            },
            before: lines(self.before),
            after: lines(self.after),
            line_numbers: self.line_numbers.unwrap_or(true),
            ignore_case: self.ignore_case.unwrap_or(false),
            only_matching: self.only_matching.unwrap_or(false),
            multiline: self.multiline.unwrap_or(false),
            wanted: self.limit().map(|limit| limit.saturating_add(self.offset.unwrap_or(0))),
        })
    }
}

/// The query, and which of its lines are shown.
pub(super) struct GrepPlan {
    query: Query,
    mode: OutputMode,
    limit: Option<usize>,
    offset: Option<usize>,
}

impl Tool for Grep {
    const NAME: &'static str = "Grep";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Read];
    const BOUND: Bound = Bound {
        notice: |cut| {
            format!(
                "[... {} of {} characters not shown; narrow the search or page with head_limit and offset]",
                cut.total_chars - cut.shown_chars,
                cut.total_chars
            )
        },
        ..Bound::DEFAULT.head().chars(100_000)
    };
    type Input = Input;
    type Plan = GrepPlan;

    fn plan(&self, input: Input, at: &Planning) -> Result<Planned<GrepPlan>, ToolError> {
        let query = input.query(at)?;
        let effect = Effect::Read { path: query.walk.root.clone() };
        let plan = GrepPlan { query, mode: input.mode(), limit: input.limit(), offset: input.offset };
        Ok(Planned::new([effect], plan))
    }

    fn perform(&self, plan: GrepPlan, world: &dyn World) -> Result<Output, ToolError> {
        let GrepPlan { query, mode, limit, offset } = plan;
        let found = query.run(world)?;
        let structured = json!({
            "mode": mode, "numFiles": found.files,
            "appliedLimit": limit, "appliedOffset": offset.filter(|offset| *offset > 0),
        });
        if found.files == 0 {
            return Ok(Output::text("No matches found\n").with_structured(structured));
        }
        let mut text = found.text;
        let mut missing_bytes = found.unheld;
        if limit.is_some() || offset.is_some() {
            let lines = text.split_inclusive('\n').skip(offset.unwrap_or(0));
            text = lines.take(limit.unwrap_or(usize::MAX)).collect();
            missing_bytes = 0;
            if text.is_empty() {
                text.push_str("No matches found that far\n");
            }
        }
        let tail = String::new();
        Ok(Output::text(Text { head: text, missing_bytes, tail }).with_structured(structured))
    }
}
