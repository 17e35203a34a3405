//! `Glob`: files by the pattern of their path.

use haft_tool::{
    Bound, Effect, EffectKind, JsonSchema, Output, Planned, Planning, Tool, ToolError, World, json,
};
use serde::Deserialize;

use crate::ops::glob::Search;

/// How much of a long list is shown.
const MOST_CHARS: usize = 50_000;

/// Find files by pattern, newest first: `*` within a name, `**` across directories, `{a,b}` for choices. Ignored and hidden files are left out.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// For example `**/*.rs` or `src/**/*.{ts,tsx}`.
    pattern: String,
    /// Absolute path of the directory to look in; the workspace if left out.
    path: Option<String>,
}

pub(super) struct Glob;

impl Tool for Glob {
    const NAME: &'static str = "Glob";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Read];
    const BOUND: Bound = Bound {
        notice: |cut| {
            format!(
                "[... {} of {} characters not shown; use a narrower pattern]",
                cut.total_chars - cut.shown_chars,
                cut.total_chars
            )
        },
        ..Bound::DEFAULT.head().chars(MOST_CHARS)
    };
    type Input = Input;
    type Plan = Search;

    fn plan(&self, input: Input, at: &Planning) -> Result<Planned<Search>, ToolError> {
        let root = match &input.path {
            Some(path) => at.only_absolute("path", path)?,
            None => at.workspace.clone(),
        };
        let search = Search::new(&root, &input.pattern)?;
        Ok(Planned::new([Effect::Read { path: search.root.clone() }], search))
    }

    fn perform(&self, search: Search, world: &dyn World) -> Result<Output, ToolError> {
        let files = search.run(world)?;
        let count = files.count();
        let text = if count == 0 { "No files found\n".into() } else { files.into_text(2 * MOST_CHARS) };
        Ok(Output::text(text).with_structured(json!({"numFiles": count})))
    }
}
