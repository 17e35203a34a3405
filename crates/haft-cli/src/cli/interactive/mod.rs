//! `haft` at a terminal: an interactive session. Text is written inline, so that scrolling back and copying work as for any program.

mod commands;
mod editor;
mod history;
mod live;
mod markdown;
mod signals;
mod todos;
mod turn_view;

use std::path::PathBuf;

use haft_agent::{NoObserver, RunStop, TurnReport};
use haft_model::{ChatMessage, ContentPart};
use haft_sandbox::{QuietTerminal, note_terminal_modes, restore_terminal};
use haft_tool::{Cancel, ToolError, clip_chars};

use super::exit::CliExit;
use super::run::{PreparedRun, RunArgs};
use super::screen::{self, BOLD, FAINT, NAME, styled};
use super::{CommandResult, housekeeping};
use crate::config::Config;
use editor::{PromptEditor, PromptInput};
use signals::SessionSignals;
use turn_view::TurnView;

/// How much of the last messages is shown when a run is continued.
const MAX_EARLIER_CHARS: usize = 2_000;

/// Whether the session goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SessionFlow {
    GoOn,
    End,
}

/// An interactive session.
struct InteractiveSession {
    args: RunArgs,
    workspace: PathBuf,
    is_plain: bool,
    signals: SessionSignals,
    /// The run; none before there is a model.
    prepared: Option<PreparedRun>,
    /// The number of the last call in the ledger.
    last_call: Option<i64>,
}

pub(super) fn run(mut args: RunArgs) -> CommandResult {
    let is_plain = args.is_plain() || !screen::moves_cursor();
    if is_plain {
        screen::be_plain();
    }
    let workspace = args.workspace().folder()?;
    Config::load(&workspace)?;
    restore_on_panic();
    let first = args.take_first_message()?;
    let mut editor = PromptEditor::new(&workspace, is_plain)?;
    let mut session = InteractiveSession {
        args,
        workspace,
        is_plain,
        signals: SessionSignals::default(),
        prepared: None,
        last_call: None,
    };
    session.signals.listen()?;
    session.greet();
    if let Some(message) = first {
        editor.remember(&message);
        screen::note(&format!("{} {}", styled(NAME, ">"), screen::sanitize(&message)));
        session.answer(&message);
    }
    let done = session.read_all(&mut editor);
    session.close();
    restore_terminal();
    done
}

/// A panic must not leave the terminal without echo.
fn restore_on_panic() {
    note_terminal_modes();
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        restore_terminal();
        before(info);
    }));
}

impl InteractiveSession {
    /// Reads and answers until the user leaves.
    fn read_all(&mut self, editor: &mut PromptEditor) -> CommandResult {
        let mut was_interrupted = false;
        loop {
            if self.signals.must_end() {
                return Ok(CliExit::Interrupted);
            }
            let text = match editor.read()? {
                PromptInput::Text(text) => text,
                PromptInput::Expand => {
                    self.answer("/show");
                    continue;
                }
                PromptInput::End => return Ok(CliExit::Done),
                PromptInput::Interrupted if was_interrupted => return Ok(CliExit::Interrupted),
                PromptInput::Interrupted => {
                    was_interrupted = true;
                    screen::note(&styled(FAINT, signals::AGAIN));
                    continue;
                }
            };
            was_interrupted = false;
            self.signals.end_turn();
            let text = text.trim();
            if text.is_empty() {
                continue;
            }
            editor.remember(text);
            if self.answer(text) == SessionFlow::End {
                return Ok(CliExit::Done);
            }
        }
    }

    /// Does what a line says; errors are shown.
    fn answer(&mut self, text: &str) -> SessionFlow {
        let done = match text.strip_prefix('!').map(str::trim) {
            Some("") => Ok(SessionFlow::GoOn),
            Some(command) => commands::run_shell(self, command),
            None if commands::is_command(text) => commands::run(self, text),
            None => self.say(text).map(|()| SessionFlow::GoOn),
        };
        done.unwrap_or_else(|error| {
            screen::error(&error.message);
            SessionFlow::GoOn
        })
    }

    /// Shows where the session is. Without a model it says how to get one, and goes on.
    fn greet(&mut self) {
        let place = screen::escape(&self.workspace.display().to_string());
        screen::note(&format!("{} in {}", styled(BOLD, "Haft"), styled(NAME, &place)));
        match self.prepare() {
            Ok(()) => {
                screen::note(&self.model_words());
                self.show_earlier();
            }
            Err(error) => {
                screen::error(&error.message);
                screen::note("/model PROVIDER NAME chooses a model in this session.");
            }
        }
        screen::note(&styled(FAINT, "/help lists the commands; Ctrl-C stops a turn; Ctrl-D leaves"));
    }

    /// Prepares the run, if that is still to be done.
    fn prepare(&mut self) -> Result<(), ToolError> {
        if self.prepared.is_none() {
            self.prepared = Some(self.args.prepare()?);
        }
        Ok(())
    }

    /// Prepares the run that the flags mean now, in place of the other one.
    fn prepare_again(&mut self) -> Result<(), ToolError> {
        let prepared = self.args.prepare()?;
        self.close();
        self.prepared = Some(prepared);
        self.last_call = None;
        Ok(())
    }

    fn say(&mut self, text: &str) -> Result<(), ToolError> {
        let report = self.with_turn(|prepared, view, cancel| prepared.say(text, view, cancel))?;
        self.show_status(Some(&report));
        Ok(())
    }

    /// Goes on with a turn that was interrupted by the death of its process.
    fn proceed(&mut self) -> Result<(), ToolError> {
        let report = self.with_turn(|prepared, view, cancel| prepared.run.proceed(view, cancel))?;
        self.show_status(Some(&report));
        Ok(())
    }

    /// Drives the run with a view and a terminal that is quiet.
    fn with_turn<T>(
        &mut self,
        drive: impl FnOnce(&mut PreparedRun, &mut TurnView, &Cancel) -> Result<T, ToolError>,
    ) -> Result<T, ToolError> {
        self.prepare()?;
        let Some(prepared) = &mut self.prepared else {
            return Err(ToolError::internal("the run is not prepared"));
        };
        let cancel = self.signals.begin_turn()?;
        let quiet = QuietTerminal::new();
        let mut view =
            TurnView::new(prepared.runtime.ledger().ok(), prepared.runtime.workspace(), self.is_plain);
        let done = drive(prepared, &mut view, &cancel);
        self.last_call = view.last_call().or(self.last_call);
        drop(view);
        drop(quiet);
        self.signals.end_turn();
        if done.is_err() {
            // What is in the log counts, whatever the run had in mind.
            prepared.run.reload()?;
        }
        done
    }

    /// The line below a turn: why it ended if it was not done, the model, the context and the cost.
    fn show_status(&self, report: Option<&TurnReport>) {
        let Some(prepared) = &self.prepared else { return };
        if let Some(explanation) = report.and_then(|report| report.stop.explanation()) {
            if report.is_some_and(|report| report.stop == RunStop::Interrupted) {
                screen::note(&styled(BOLD, "Stopped. The conversation is kept; say what to do next."));
            } else {
                screen::error(&explanation);
            }
        }
        let state = prepared.run.state();
        let (used, window) = prepared.run.context_use();
        let percent = used.saturating_mul(100).checked_div(window).unwrap_or_default();
        let cost = state.totals.cost_usd;
        let cost = cost.map_or_else(|| "cost unknown".to_owned(), |cost| format!("${cost:.4}"));
        let mut facts =
            vec![screen::escape(&state.model), format!("context {percent}% of {}k", window / 1_000), cost];
        facts.extend(
            report.map(|report| screen::took(u64::try_from(report.elapsed.as_micros()).unwrap_or(u64::MAX))),
        );
        screen::note(&styled(FAINT, &facts.join(", ")));
    }

    /// The model and the session, on one line.
    fn model_words(&self) -> String {
        match &self.prepared {
            Some(prepared) => {
                let state = prepared.run.state();
                let (model, provider) = (screen::escape(&state.model), screen::escape(&state.provider));
                format!("{} of {provider}, session {}", styled(NAME, &model), prepared.run.session())
            }
            None => "no model; /model PROVIDER NAME chooses one".to_owned(),
        }
    }

    /// The id of the run's session.
    fn run_session(&self) -> Option<String> {
        self.prepared.as_ref().map(|prepared| prepared.run.session().to_owned())
    }

    /// The last messages of a run that is continued.
    fn show_earlier(&self) {
        let Some(prepared) = &self.prepared else { return };
        let state = prepared.run.state();
        if state.turns.is_empty() {
            return;
        }
        screen::note(&styled(
            FAINT,
            &format!("{} so far; the last:", screen::count(state.turns.len() as u64, "turn")),
        ));
        let said = state.conversation.messages.iter().rev().find_map(|message| match message {
            ChatMessage::User { content } => content.iter().find_map(|part| match part {
                ContentPart::Text { text } => Some(text.as_str()),
                ContentPart::Image { .. } => None,
            }),
            _ => None,
        });
        let shown = |text: &str| screen::sanitize(&clip_chars(text, MAX_EARLIER_CHARS, 0)).into_owned();
        if let Some(said) = said {
            screen::note(&format!("{} {}", styled(NAME, ">"), shown(said)));
        }
        if !state.last_text.is_empty() {
            screen::note(&shown(&state.last_text));
        }
        if state.is_turn_open {
            screen::note("The last turn was interrupted. /continue goes on with it.");
        }
    }

    /// Ends the run's processes and says what was not delivered.
    fn close(&mut self) {
        let Some(mut prepared) = self.prepared.take() else { return };
        if let Err(error) = prepared.end(&mut NoObserver, &Cancel::new()) {
            screen::error(&error.message);
        }
        prepared.close_channels();
        if !prepared.run.state().turns.is_empty() {
            let session = prepared.run.session();
            screen::note(&styled(FAINT, &format!("to continue: haft --resume {session}")));
        }
        housekeeping::run_if_due(prepared.runtime.ledger(), &prepared.setup.config.values.ledger);
    }
}
