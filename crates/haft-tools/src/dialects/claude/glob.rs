//! `Glob`: files by a pattern of their path.

use haft_tool::prelude::*;

use crate::ops::glob::{GlobQuery, path_lines};

const MAX_CHARS: usize = 50_000;
/// How much text is produced, since a character has at least one byte.
const MAX_BYTES: usize = 2 * MAX_CHARS;

/// Find files by pattern, newest first: `*` within a name, `**` across directories, `{a,b}` for choices. Ignored files and `.git` are left out.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// For example `**/*.rs` or `src/**/*.{ts,tsx}`.
    pattern: String,
    /// Absolute path of the directory to look in; the workspace if left out.
    #[schemars(extend("format" = "path"))]
    path: Option<String>,
}

pub(super) struct Glob;

impl Tool for Glob {
    const NAME: &'static str = "Glob";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Read];
    const BOUND: Bound = Bound {
        notice: |cut| {
            let hidden = cut.total_chars - cut.shown_chars;
            format!("[... {hidden} of {} characters not shown; use a narrower pattern]", cut.total_chars)
        },
        ..Bound::DEFAULT.head().chars(MAX_CHARS)
    };
    type Input = Input;
    type Plan = GlobQuery;

    fn plan(&self, input: Input, at: &Planning) -> Result<Planned<GlobQuery>, ToolError> {
        let root = super::directory_or_workspace(input.path.as_deref(), at)?;
        let query = GlobQuery::new(&root, &input.pattern)?;
        Ok(Planned::new([Effect::Read { path: query.root.clone() }], query))
    }

    fn perform(&self, query: GlobQuery, world: &dyn World) -> Result<Output, ToolError> {
        let files = query.run(world)?;
        let text = if files.is_empty() { "No files found\n".into() } else { path_lines(&files, MAX_BYTES) };
        Ok(Output::text(text).with_structured(json!({"numFiles": files.len()})))
    }
}
