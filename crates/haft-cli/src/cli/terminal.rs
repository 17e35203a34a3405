//! The user at the terminal: questions, Ctrl-C, and waiting for a call.

use std::cell::RefCell;
use std::future::Future;
use std::io::{BufRead, IsTerminal, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use haft_runtime::{Asker, DenyAll, NeverAsk, PermissionAnswer, Question};
use haft_sandbox::{
    AnswerForm, TerminationSignal, ask_at_terminal, on_continue, on_termination_signal, terminal_is_quiet,
};
use haft_tool::{Cancel, ErrorKind, ToolError, lock};

use super::config;
use super::exit::CliExit;
use super::screen::{self, FAINT, NOTE, styled};
use super::setup::Setup;
pub(super) use super::status_line::StatusLine;
use crate::host::question_text;

/// Signals that arrive so soon after the first one are the same request.
const SAME_SIGNAL_TIME: Duration = Duration::from_millis(300);

/// How many questions wait for an answer while a call runs.
static OPEN_QUESTIONS: AtomicUsize = AtomicUsize::new(0);

/// A question that is asked while a call runs: no status line is drawn over it, and Ctrl-C cancels the call.
pub(crate) struct OpenQuestion;

impl OpenQuestion {
    pub(crate) fn new() -> Self {
        OPEN_QUESTIONS.fetch_add(1, Ordering::SeqCst);
        super::status_line::clear();
        Self
    }

    /// Whether there is one.
    pub(super) fn exists() -> bool {
        OPEN_QUESTIONS.load(Ordering::SeqCst) > 0
    }
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        OPEN_QUESTIONS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Whether no one is asked, although there may be a terminal.
static NEVER_ASK: AtomicBool = AtomicBool::new(false);

/// From now on no one is asked: the person at the terminal is not the one who speaks with the model.
pub(super) fn never_ask() {
    NEVER_ASK.store(true, Ordering::Relaxed);
}

/// Whether the user can be asked: standard input and standard error are a terminal.
pub(super) fn is_interactive() -> bool {
    !NEVER_ASK.load(Ordering::Relaxed) && std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Whether a program reads single keys from the terminal, as those do that draw on the whole screen.
pub(super) fn is_drawn_on() -> bool {
    haft_sandbox::terminal_is_raw()
}

/// The question that waits for an answer.
static SHOWN_QUESTION: Mutex<Option<String>> = Mutex::new(None);

/// A question that is on the screen. It is shown again when Haft goes on after it was stopped: the user's shell has written
/// below it.
pub(crate) struct ShownQuestion;

impl ShownQuestion {
    pub(crate) fn new(text: &str) -> Self {
        *lock(&SHOWN_QUESTION) = Some(text.to_owned());
        // Before the question, because the user may answer it by Ctrl-Z at once. Without it the question is shown once.
        let _ = on_continue(|| {
            if let Some(text) = &*lock(&SHOWN_QUESTION) {
                screen::prompt(text);
            }
        });
        screen::prompt(text);
        Self
    }
}

impl Drop for ShownQuestion {
    fn drop(&mut self) {
        *lock(&SHOWN_QUESTION) = None;
    }
}

/// Asks the user yes or no; anything but yes is no.
pub(super) fn confirm(question: &str) -> bool {
    let prompt = format!("{} [y/N] ", styled(NOTE, question));
    if terminal_is_quiet() {
        return ask_user(AnswerForm::Key("yn"), &prompt, &Cancel::new()).is_ok_and(|key| key == "y");
    }
    let _shown = ShownQuestion::new(&prompt);
    matches!(answer_line().as_str(), "y" | "yes")
}

/// Asks for a change on the terminal; prints why there is no consent. Without a terminal the answer is no.
pub(super) fn confirm_change(question: &str) -> bool {
    if !is_interactive() {
        screen::error(&format!("{question} There is no terminal to ask on. To confirm: --yes"));
        return false;
    }
    let confirmed = confirm(question);
    if !confirmed {
        screen::note("nothing was changed");
    }
    confirmed
}

/// Asks the user at the terminal, or denies where there is no terminal. Rules that always hold go to the user's file.
pub(super) fn asker(setup: &Setup) -> Arc<dyn Asker> {
    if setup.claude.asks_nobody {
        return Arc::new(NeverAsk);
    }
    if !is_interactive() {
        return Arc::new(DenyAll);
    }
    let file = setup.config.path().map(|file| file.display().to_string());
    Arc::new(TerminalAsker { workspace: setup.workspace().to_owned(), file })
}

struct TerminalAsker {
    workspace: PathBuf,
    /// The user's haft.toml.
    file: Option<String>,
}

impl Asker for TerminalAsker {
    fn ask(&self, question: &Question, cancel: &Cancel) -> PermissionAnswer {
        let text = question_text(question);
        let prompt = match &question.rule {
            Some(rule) => choices(&text, rule, self.file.as_deref()),
            None => format!("{} [y/N] ", styled(NOTE, &format!("{text} Run it?"))),
        };
        let by = "the user at the terminal".to_owned();
        let form = match (&question.rule, &self.file) {
            _ if !terminal_is_quiet() => AnswerForm::Line,
            (Some(_), Some(_)) => AnswerForm::Key("ynsa"),
            (Some(_), None) => AnswerForm::Key("yns"),
            (None, _) => AnswerForm::Key("yn"),
        };
        let answer = ask_user(form, &prompt, cancel).map(|answer| answer.trim().to_ascii_lowercase());
        match (answer.as_deref(), question.rule.clone()) {
            (Ok("y" | "yes"), _) => PermissionAnswer::Allow { by },
            (Ok("s" | "session"), Some(rule)) => PermissionAnswer::AllowRule { by, rule },
            (Ok("a" | "always"), Some(rule)) if self.file.is_some() => {
                match config::add_allow_rule(&self.workspace, &rule) {
                    Ok(done) => screen::note(&done),
                    Err(error) => screen::error(&format!(
                        "the rule holds for this session only, because it was not stored: {}",
                        error.message
                    )),
                }
                PermissionAnswer::AllowRule { by, rule }
            }
            _ => PermissionAnswer::Deny { why: "The user at the terminal said no".to_owned() },
        }
    }

    fn answered_elsewhere(&self, by: &str, did: &str) {
        note_answer(by, did);
    }
}

/// Says who has answered a question that was asked here, and what they did.
pub(crate) fn note_answer(by: &str, did: &str) {
    screen::note(&format!("{} {}", screen::escape(by), screen::escape(did)));
}

/// The question with the choices that store a rule.
fn choices(text: &str, rule: &str, file: Option<&str>) -> String {
    let rule = screen::escape(rule);
    let always = file.map(|file| format!("\n  a: always, in {}", screen::escape(file))).unwrap_or_default();
    let rule_line = format!("  The rule {rule} would allow it.\n  s: for this session{always}");
    let keys = if file.is_some() { "y/N/s/a" } else { "y/N/s" };
    format!("{text}\n{}\n{} [{keys}] ", styled(FAINT, &rule_line), styled(NOTE, "Run it?"))
}

/// A line from the terminal, in lower case; empty if it does not end, as at EOF.
fn answer_line() -> String {
    let mut line = String::new();
    let is_whole = std::io::stdin().lock().read_line(&mut line).is_ok() && line.ends_with('\n');
    if is_whole { line.trim().to_ascii_lowercase() } else { String::new() }
}

/// Asks the user at the terminal; returns soon after `cancel` fires. What was typed before does not count.
pub(crate) fn ask_user(form: AnswerForm<'_>, prompt: &str, cancel: &Cancel) -> Result<String, ToolError> {
    let _open = OpenQuestion::new();
    let shown = RefCell::new(None);
    let answer = ask_at_terminal(form, || *shown.borrow_mut() = Some(ShownQuestion::new(prompt)), cancel);
    let was_shown = shown.take().is_some();
    // A line was ended by the user; a key is not shown by the terminal.
    match (&answer, form) {
        (Some(key), AnswerForm::Key(_)) => screen::prompt(&format!("{key}\n")),
        (None, _) if was_shown => screen::prompt("\n"),
        _ => {}
    }
    answer.ok_or_else(|| ToolError::new(ErrorKind::Interrupted, "The user at the terminal gave no answer"))
}

/// Runs `work` to its end. The first Ctrl-C (or TERM, HUP) cancels, the second exits at once.
pub(super) fn wait<T>(cancel: &Cancel, work: impl Future<Output = T>) -> Result<T, ToolError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .map_err(|error| ToolError::io("start the runtime", &error))?;
    cancel_on_signal(cancel, false)?;
    let done = runtime.block_on(work);
    runtime.shutdown_background();
    Ok(done)
}

/// From now on the first TERM or HUP cancels and the second exits at once. So does Ctrl-C, unless a program has the terminal: then
/// the first one is the program's.
pub(super) fn cancel_on_signal(cancel: &Cancel, program: bool) -> Result<(), ToolError> {
    let cancel = cancel.clone();
    let mut asked: Option<Instant> = None;
    let listener = move |signal| {
        // A process manager may send one request to the process and to its group.
        if asked.is_some_and(|since| since.elapsed() < SAME_SIGNAL_TIME) {
            return;
        }
        if asked.is_some() {
            #[expect(
                clippy::exit,
                reason = "the second signal means at once; the ledger is safe against it"
            )]
            std::process::exit(CliExit::Interrupted.number().into());
        }
        let is_program_s = program && signal == TerminationSignal::Interrupt && !OpenQuestion::exists();
        if !is_program_s {
            cancel.cancel();
            asked = Some(Instant::now());
        }
    };
    on_termination_signal(listener).map_err(|error| ToolError::io("listen for signals", &error))
}

/// A descriptor that becomes readable with the first Ctrl-C, TERM or HUP; the second one exits at once.
pub(super) fn readable_on_signal() -> Result<OwnedFd, ToolError> {
    let (read_end, write_end) =
        std::io::pipe().map_err(|error| ToolError::io("listen for signals", &error))?;
    let cancel = Cancel::new();
    cancel.then(move || {
        // The pipe is empty, so this fails only if the reader is gone.
        let _ = (&write_end).write_all(&[0]);
    });
    cancel_on_signal(&cancel, false)?;
    Ok(read_end.into())
}
