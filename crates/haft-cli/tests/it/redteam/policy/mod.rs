//! Judgement outside the command sandbox: settings, rules, paths, secrets, questions, the terminal, the record.

mod denylist;
mod links;
mod modes;
mod questions;
mod record;
mod repositories;
mod rules;
mod secrets;
mod settings;
mod terminal;

use std::path::Path;

use haft::{Builder, CallOptions, CallResult, Runtime, Value, json};

use crate::fixture::runtime::Directories;

/// Makes a call and waits for its result.
fn call(haft: &Runtime, tool: &str, arguments: Value) -> CallResult {
    let call = haft::Call::new("call_1", tool, arguments);
    haft.run_blocking(call, CallOptions::default())
}

/// The text of a call that is denied.
#[track_caller]
fn denied(haft: &Runtime, tool: &str, arguments: Value) -> String {
    let result = call(haft, tool, arguments);
    let text = result.output.as_text();
    assert_eq!(result.output.error_kind, Some(haft::ErrorKind::PermissionDenied), "{tool}: {text}");
    assert!(result.receipt.changes.is_empty(), "{tool}");
    text
}

/// The dialects, each with a builder for a runtime.
fn dialects(directories: &Directories) -> [(&'static str, Builder); 4] {
    let builder = |dialect| {
        let builder = Runtime::builder().workspace(directories.folder.path()).home(directories.home.path());
        builder.dialect(dialect)
    };
    [
        ("claude", builder(haft::claude())),
        ("loom", builder(haft::loom())),
        ("omega", builder(haft::omega())),
        ("clawft", builder(haft::clawft())),
    ]
}

/// Calls of the dialect that return parts of the file at `path`, which contains `needle`.
fn reads(dialect: &str, path: &Path) -> Vec<(&'static str, Value)> {
    match dialect {
        "claude" => vec![
            ("Read", json!({"file_path": path})),
            ("Grep", json!({"pattern": "needle", "path": path, "output_mode": "content"})),
            ("Edit", json!({"file_path": path, "old_string": "needle", "new_string": "x"})),
        ],
        "loom" => vec![
            ("read_file", json!({"path": path})),
            ("edit_file", json!({"path": path, "edits": [{"old_str": "needle", "new_str": "x"}]})),
        ],
        "omega" => vec![
            ("read", json!({"file_path": path})),
            ("edit", json!({"file_path": path, "old_string": "needle", "new_string": "x"})),
        ],
        _ => vec![
            ("read_file", json!({"path": path})),
            ("edit_file", json!({"path": path, "old_text": "needle", "new_text": "x"})),
        ],
    }
}

/// Calls of the dialect that change the file at `path`, which contains `needle`.
fn writes(dialect: &str, path: &Path) -> Vec<(&'static str, Value)> {
    match dialect {
        "claude" => vec![
            ("Write", json!({"file_path": path, "content": "x"})),
            ("Edit", json!({"file_path": path, "old_string": "needle", "new_string": "x"})),
            ("Bash", json!({"command": "sed", "_simulatedSedEdit": {"filePath": path, "newContent": "x"}})),
        ],
        "loom" => {
            vec![("edit_file", json!({"path": path, "edits": [{"old_str": "needle", "new_str": "x"}]}))]
        }
        "omega" => vec![
            ("write", json!({"file_path": path, "content": "x"})),
            ("edit", json!({"file_path": path, "old_string": "needle", "new_string": "x"})),
        ],
        _ => vec![
            ("write_file", json!({"path": path, "content": "x"})),
            ("edit_file", json!({"path": path, "old_text": "needle", "new_text": "x"})),
        ],
    }
}
