//! A tool of your own, in under 40 lines: it gets the schema, the checks, the policy, the ledger and undo for free.
//!
//! Run it with: `cargo run -p haft --example own_tool`

use haft::{Effect, JsonSchema, Output, Planning, Runtime, SideEffect, Tool, ToolError, World, json};
use serde::Deserialize;

/// Append a line to the notes of this project.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The line.
    line: String,
}

struct Note;

impl Tool for Note {
    type Input = Input;

    fn name(&self) -> &'static str {
        "Note"
    }

    fn side_effect(&self) -> SideEffect {
        SideEffect::Mutating
    }

    fn plan(&self, _input: &Input, planning: &Planning) -> Result<Vec<Effect>, ToolError> {
        Ok(vec![Effect::Write { path: planning.absolute("NOTES.md")? }])
    }

    async fn perform(&self, input: Input, world: &dyn World) -> Result<Output, ToolError> {
        let notes = world.planning().absolute("NOTES.md")?;
        let add = |old: Option<&[u8]>| Ok([old.unwrap_or_default(), input.line.as_bytes(), b"\n"].concat());
        world.files().update(&notes, &mut { add })?;
        Ok(Output::text("noted"))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (folder, home) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let runtime = Runtime::builder().workspace(folder.path()).home(home.path()).tool(Note).build()?;
    let result = runtime.call("Note", json!({"line": "buy milk"})).await;
    assert_eq!(result.output.as_text(), "noted");
    let wrong = runtime.call("Note", json!({"text": "buy milk"})).await;
    assert_eq!(
        wrong.output.as_text(),
        "Note: text: unknown field; there are: line; line: required but missing (string)"
    );
    assert_eq!(result.receipt.changes[0].path, runtime.workspace().join("NOTES.md"));
    runtime.shutdown().await;
    Ok(())
}
