//! A tool of your own, in under 40 lines: it gets the schema, the checks, the policy, the ledger and undo for free.
//!
//! Run it with: `cargo run -p haft --example own_tool`

use std::path::PathBuf;

use haft::Runtime;
use haft::prelude::*;

/// Append a line to the notes of this project.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The line.
    line: String,
}

struct Note;

impl Tool for Note {
    const NAME: &'static str = "Note";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Write];
    type Input = Input;
    type Plan = (PathBuf, String);

    fn plan(&self, input: Input, at: &Planning) -> Result<Planned<(PathBuf, String)>, ToolError> {
        let path = at.absolute("NOTES.md")?;
        Ok(Planned::new([Effect::Write { path: path.clone() }], (path, input.line)))
    }

    fn perform(&self, (path, line): (PathBuf, String), world: &dyn World) -> Result<Output, ToolError> {
        let add = |old: Option<&[u8]>| Ok([old.unwrap_or_default(), line.as_bytes(), b"\n"].concat());
        world.files().update(&path, &mut { add })?;
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
