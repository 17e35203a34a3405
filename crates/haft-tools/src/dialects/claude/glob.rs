//! `Glob`: files by the pattern of their path.

use haft_tool::{Bound, Effect, JsonSchema, Output, Planning, SideEffect, Tool, ToolError, World, json};
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

fn search(input: &Input, planning: &Planning) -> Result<Search, ToolError> {
    let root = match &input.path {
        Some(path) => planning.only_absolute("path", path)?,
        None => planning.workspace.clone(),
    };
    Search::new(&root, &input.pattern)
}

impl Tool for Glob {
    type Input = Input;

    fn name(&self) -> &'static str {
        "Glob"
    }

    fn side_effect(&self) -> SideEffect {
        SideEffect::ReadOnly
    }

    fn plan(&self, input: &Input, planning: &Planning) -> Result<Vec<Effect>, ToolError> {
        Ok(vec![Effect::Read { path: search(input, planning)?.root }])
    }

    async fn perform(&self, input: Input, world: &dyn World) -> Result<Output, ToolError> {
        let files = search(&input, world.planning())?.run(world)?;
        let count = files.count();
        let text = if count == 0 { "No files found\n".into() } else { files.into_text(2 * MOST_CHARS) };
        Ok(Output::text(text).with_structured(json!({"numFiles": count})))
    }

    fn bound(&self) -> Bound {
        Bound {
            notice: |cut| {
                format!(
                    "[... {} of {} characters not shown; use a narrower pattern]",
                    cut.total_chars - cut.shown_chars,
                    cut.total_chars
                )
            },
            ..Bound::default().head().chars(MOST_CHARS)
        }
    }
}
