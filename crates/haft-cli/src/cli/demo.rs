//! `haft demo`: a few calls on a sample project, and their undo.

use haft_runtime::{CallOptions, CallResult, Runtime, UndoTarget};
use haft_tool::{Cancel, ToolError, Value, clip_chars, json};

use super::exit::CliExit;
use super::sample::SampleProject;
use super::screen::{self, BAD, BOLD, FAINT, GOOD, NAME, styled};
use super::{CommandResult, terminal};

const SAMPLE: &str = "fn main() {\n    let name = \"wrold\";\n    println!(\"Hello, {name}!\");\n}\n";

pub(super) fn run() -> CommandResult {
    let sample = SampleProject::new("demo")?;
    let cancel = Cancel::new();
    terminal::wait(&cancel, show(&sample.runtime))??;
    Ok(CliExit::Done)
}

async fn show(runtime: &Runtime) -> Result<(), ToolError> {
    let main = runtime.workspace().join("src/main.rs");
    screen::out(&styled(
        BOLD,
        "An agent works in a sample project. Every call is scoped, recorded and reversible.\n\n",
    ));
    let steps: [(&str, Value); 6] = [
        ("Write", json!({"file_path": main, "content": SAMPLE})),
        ("Grep", json!({"pattern": "wrold", "output_mode": "content"})),
        ("Edit", json!({"file_path": main, "old_string": "wrold", "new_string": "world"})),
        ("Bash", json!({"command": "cat src/main.rs | wc -l"})),
        ("Write", json!({"file_path": "/etc/hosts", "content": "gone"})),
        ("Read", json!({"file_path": main, "limt": 2})),
    ];
    for (tool, arguments) in steps {
        say(tool, &arguments);
        result(&runtime.call(tool, arguments).await);
    }
    screen::out(&styled(BOLD, "\nNow undo the changes, newest first, without git:\n\n"));
    for _ in 0..2 {
        let preview = runtime.undo_preview(&UndoTarget::Last)?;
        say("undo", &json!(format!("call {}", preview.receipts[0].id)));
        result(&runtime.undo(&preview, false, CallOptions::default()).await?);
    }
    let left = runtime.call("Glob", json!({"pattern": "**/*"})).await;
    let empty = left.output.as_text().starts_with("No files found");
    screen::out(&format!(
        "\n{}\n{}\n",
        if empty {
            styled(GOOD, "The project is empty again.")
        } else {
            styled(BAD, "Undo left files behind.")
        },
        styled(FAINT, "Try it in a real project: haft call Edit …, haft log, haft show ID, haft undo"),
    ));
    if empty { Ok(()) } else { Err(ToolError::internal("undo left files behind")) }
}

fn say(tool: &str, arguments: &Value) {
    let arguments = arguments.to_string();
    screen::out(&format!("{} {}\n", styled(NAME, &format!("› {tool}")), clip_chars(&arguments, 110, 0)));
}

fn result(result: &CallResult) {
    let text = result.output.as_text();
    let style = if result.output.is_error() { BAD } else { FAINT };
    for line in text.lines().take(12) {
        screen::out(&format!("    {}\n", styled(style, &screen::sanitize(line))));
    }
}
