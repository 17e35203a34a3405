//! The line editor: several lines, history, completion of commands and of files after `@`.

use std::borrow::Cow;
use std::io::{BufRead, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use haft_files::{LocalFiles, Root};
use haft_tool::{Cancel, ErrorKind, Files, ReadOnlyRecord, Scope, ToolError, WalkRequest, lock};
use rustyline::completion::Completer;
use rustyline::config::Configurer;
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{
    Cmd, CompletionType, ConditionalEventHandler, Config, Context, Editor, Event, EventContext, EventHandler,
    Helper, KeyCode, KeyEvent, Modifiers, RepeatCount,
};

use super::super::screen::{self, NAME, styled};
use super::commands::COMMANDS;
use super::history::PromptHistory;

/// The words before what the user types.
const PROMPT: &str = "> ";
/// Files that are looked at for a completion.
const MAX_WALKED_FILES: usize = 50_000;
/// Completions that are offered.
const MAX_COMPLETIONS: usize = 200;
/// Longest message.
const MAX_INPUT_BYTES: usize = 1 << 20;

/// What the user did at the prompt.
pub(super) enum PromptInput {
    /// Ctrl-O: the last call is to be shown in full. What was typed is kept.
    Expand,
    /// A message or command, without the marks of continued lines.
    Text(String),
    /// Ctrl-C.
    Interrupted,
    /// Ctrl-D, or the terminal is gone.
    End,
}

/// Reads what the user types.
pub(super) struct PromptEditor {
    /// `None` where the terminal itself edits the line, as screen readers and terminals without a cursor need it.
    editor: Option<Editor<PromptHelper, DefaultHistory>>,
    history: PromptHistory,
    /// Whether the line was ended by the key that expands a call.
    expands: Arc<AtomicBool>,
    /// What was typed before that.
    kept: String,
}

/// Ends the line and notes why.
struct ExpandKey(Arc<AtomicBool>);

impl ConditionalEventHandler for ExpandKey {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, _: &EventContext<'_>) -> Option<Cmd> {
        self.0.store(true, Ordering::Relaxed);
        Some(Cmd::AcceptLine)
    }
}

impl PromptEditor {
    pub(super) fn new(workspace: &Path, is_plain: bool) -> Result<Self, ToolError> {
        let history = PromptHistory::new();
        let (expands, kept) = (Arc::new(AtomicBool::new(false)), String::new());
        if is_plain {
            return Ok(Self { editor: None, history, expands, kept });
        }
        let broken =
            |error: ReadlineError| ToolError::failed(format!("the terminal cannot be used: {error}"));
        let config = Config::builder()
            .completion_type(CompletionType::List)
            .completion_show_all_if_ambiguous(true)
            .auto_add_history(false)
            .bracketed_paste(true)
            .build();
        let mut editor = Editor::with_config(config).map_err(broken)?;
        if !screen::has_colors() {
            editor.set_color_mode(rustyline::ColorMode::Disabled);
        }
        editor.set_helper(Some(PromptHelper { workspace: workspace.to_owned() }));
        for modifiers in [Modifiers::ALT, Modifiers::SHIFT] {
            let key = KeyEvent(KeyCode::Enter, modifiers);
            editor.bind_sequence(key, EventHandler::Simple(Cmd::Newline));
        }
        let expand = EventHandler::Conditional(Box::new(ExpandKey(Arc::clone(&expands))));
        editor.bind_sequence(KeyEvent::ctrl('o'), expand);
        // The line editor writes an entry to the terminal as it is.
        for entry in history.entries().into_iter().filter(|entry| screen::sanitize(entry) == **entry) {
            let _ = editor.add_history_entry(entry);
        }
        Ok(Self { editor: Some(editor), history, expands, kept })
    }

    /// Reads until the user has pressed Enter.
    pub(super) fn read(&mut self) -> Result<PromptInput, ToolError> {
        let kept = std::mem::take(&mut self.kept);
        let read = match &mut self.editor {
            Some(editor) => editor.readline_with_initial(PROMPT, (&kept, "")),
            None => plain_lines(),
        };
        match read {
            Ok(text) if self.expands.swap(false, Ordering::Relaxed) => {
                self.kept = text;
                Ok(PromptInput::Expand)
            }
            Ok(text) if text.len() > MAX_INPUT_BYTES => {
                screen::error(&format!(
                    "the message has more than {MAX_INPUT_BYTES} bytes, which is the limit. Write it to a file and name that"
                ));
                Ok(PromptInput::Text(String::new()))
            }
            Ok(text) => Ok(PromptInput::Text(text.replace("\\\n", "\n"))),
            Err(ReadlineError::Interrupted) => Ok(PromptInput::Interrupted),
            Err(ReadlineError::Eof) => Ok(PromptInput::End),
            // The next attempt works with the new size.
            Err(ReadlineError::Signal(_)) => Ok(PromptInput::Text(String::new())),
            Err(error) => {
                let message = format!("the terminal cannot be read: {error}");
                Err(ToolError::new(ErrorKind::Io, message))
            }
        }
    }

    /// Keeps a message or command for later.
    pub(super) fn remember(&mut self, text: &str) {
        if let Some(editor) = &mut self.editor {
            let _ = editor.add_history_entry(text);
        }
        self.history.add(text);
    }
}

/// Reads a line as the terminal edits it, and further ones as long as a line ends with a backslash.
fn plain_lines() -> rustyline::Result<String> {
    let mut text = String::new();
    screen::prompt(PROMPT);
    loop {
        let most = u64::try_from(MAX_INPUT_BYTES + 2 - text.len().min(MAX_INPUT_BYTES)).unwrap_or(u64::MAX);
        let mut bytes = Vec::new();
        if std::io::stdin().lock().take(most).read_until(b'\n', &mut bytes)? == 0 {
            return if text.is_empty() { Err(ReadlineError::Eof) } else { Ok(text) };
        }
        text.push_str(String::from_utf8_lossy(&bytes).trim_end_matches(['\n', '\r']));
        if text.len() > MAX_INPUT_BYTES || !text.ends_with('\\') {
            return Ok(text);
        }
        text.push('\n');
    }
}

struct PromptHelper {
    workspace: PathBuf,
}

impl Helper for PromptHelper {}

impl Hinter for PromptHelper {
    type Hint = String;
}

impl Highlighter for PromptHelper {
    /// Pasted text may contain control characters, which the terminal must not get.
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        if !has_control(line) {
            return Cow::Borrowed(line);
        }
        let shown = |c: char| if c.is_control() && c != '\n' { char::REPLACEMENT_CHARACTER } else { c };
        Cow::Owned(line.chars().map(shown).collect())
    }

    fn highlight_char(&self, line: &str, _: usize, _: CmdKind) -> bool {
        has_control(line)
    }

    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _: bool) -> Cow<'b, str> {
        Cow::Owned(styled(NAME, prompt))
    }
}

fn has_control(line: &str) -> bool {
    line.contains(|c: char| c.is_control() && c != '\n')
}

impl Validator for PromptHelper {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let goes_on = context.input().ends_with('\\');
        Ok(if goes_on { ValidationResult::Incomplete } else { ValidationResult::Valid(None) })
    }
}

impl Completer for PromptHelper {
    type Candidate = String;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        let before = line.get(..at).unwrap_or_default();
        if before.starts_with('/') && !before.contains(char::is_whitespace) {
            let names = COMMANDS.iter().map(|command| format!("/{}", command.name));
            return Ok((0, names.filter(|name| name.starts_with(before)).collect()));
        }
        let start = before.rfind(char::is_whitespace).map_or(0, |at| at + 1);
        // A space may have several bytes, so the word is looked for behind it.
        let start = (start..=before.len()).find(|at| before.is_char_boundary(*at)).unwrap_or(before.len());
        match before.get(start..).and_then(|word| word.strip_prefix('@')) {
            Some(word) => Ok((start, files_like(&self.workspace, word))),
            None => Ok((at, Vec::new())),
        }
    }
}

/// The files of the workspace whose path begins with a word, or else contains it, as they are completed. Ignored files are left out, and
/// those whose names have control characters.
fn files_like(workspace: &Path, word: &str) -> Vec<String> {
    let found = Arc::new(Mutex::new(Vec::new()));
    let Ok(root) = Root::open(workspace) else { return Vec::new() };
    let root_path = root.path.clone();
    let files = LocalFiles::new(
        Arc::new(Scope::of(workspace)),
        Arc::from(vec![Arc::new(root)]),
        Arc::new(ReadOnlyRecord),
        Cancel::new(),
    );
    let request = WalkRequest { root: root_path.clone(), ..WalkRequest::default() };
    // What was found until an error counts.
    let _ = files.walk(&request, &mut || {
        let (found, root) = (Arc::clone(&found), root_path.clone());
        Box::new(move |file| {
            let path = file.path().strip_prefix(&root).unwrap_or(file.path());
            let mut found = lock(&found);
            if let Some(path) = path.to_str().filter(|path| screen::escape(path) == **path) {
                found.push(path.to_owned());
            }
            if found.len() < MAX_WALKED_FILES { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })
    });
    let mut all = std::mem::take(&mut *lock(&found));
    all.sort_unstable();
    let lower = word.to_lowercase();
    let begins = |path: &&String| path.starts_with(word);
    let contains = |path: &&String| path.to_lowercase().contains(&lower);
    let mut like: Vec<&String> = all.iter().filter(begins).take(MAX_COMPLETIONS).collect();
    if like.is_empty() {
        like = all.iter().filter(contains).take(MAX_COMPLETIONS).collect();
    }
    like.into_iter().map(|path| format!("@{path}")).collect()
}
