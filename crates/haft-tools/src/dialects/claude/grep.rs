//! `Grep`: file contents by regular expression, with ripgrep's flags.

use haft_tool::WalkRequest;
use haft_tool::prelude::*;

use crate::ops::grep::{GrepMode, GrepQuery, GrepReport, PageRange, split_globs};

const MAX_CHARS: usize = 100_000;

/// Search file contents by regular expression (ripgrep's syntax). Ignored and binary files are left out.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    pattern: String,
    /// Absolute path to search; the workspace if left out.
    #[schemars(extend("format" = "path"))]
    path: Option<String>,
    /// For example `*.{ts,tsx}` or `*.c,*.h`.
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

#[derive(Clone, Copy, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum OutputMode {
    Content,
    #[default]
    FilesWithMatches,
    Count,
}

pub(super) struct Grep;

pub(super) struct GrepPlan {
    query: GrepQuery,
    output_mode: OutputMode,
    range: PageRange,
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
        ..Bound::DEFAULT.head().chars(MAX_CHARS)
    };
    type Input = Input;
    type Plan = GrepPlan;

    fn plan(&self, input: Input, at: &Planning) -> Result<Planned<GrepPlan>, ToolError> {
        let root = super::directory_or_workspace(input.path.as_deref(), at)?;
        let effect = Effect::Read { path: root.clone() };
        let context = input.around.or(input.context);
        let lines = |own: Option<u32>| own.or(context).unwrap_or(0) as usize;
        let output_mode = input.output_mode.unwrap_or_default();
        let range = PageRange {
            offset: input.offset.unwrap_or(0),
            limit: input.head_limit.filter(|limit| *limit > 0),
        };
        let query = GrepQuery {
            pattern: input.pattern,
            relative_to: input.path.is_none().then(|| root.clone()),
            walk: WalkRequest {
                root,
                globs: input.glob.as_deref().map(split_globs).unwrap_or_default(),
                file_type: input.file_type,
                hidden: true,
            },
            mode: match output_mode {
                OutputMode::Content => GrepMode::Lines,
                OutputMode::FilesWithMatches => GrepMode::Files,
                OutputMode::Count => GrepMode::Counts,
            },
            before: lines(input.before),
            after: lines(input.after),
            line_numbers: input.line_numbers.unwrap_or(true),
            ignore_case: input.ignore_case.unwrap_or(false),
            only_matching: input.only_matching.unwrap_or(false),
            multiline: input.multiline.unwrap_or(false),
            max_lines: range.max_lines(),
        };
        Ok(Planned::new([effect], GrepPlan { query, output_mode, range }))
    }

    fn perform(&self, plan: GrepPlan, world: &dyn World) -> Result<Output, ToolError> {
        let output = plan.query.run(world)?;
        let report = GrepReport::new(&output, plan.query.mode, plan.range);
        Ok(Output::text(report.text).with_structured(json!({
            "mode": plan.output_mode, "numFiles": output.files, "numLines": report.lines, "numMatches": report.matches,
            "appliedLimit": report.applied_limit,
            "appliedOffset": Some(plan.range.offset).filter(|offset| *offset > 0),
        })))
    }
}
