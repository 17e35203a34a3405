//! The turns of a run whose messages a program reads.

use std::sync::Arc;

use haft_agent::{RunStop, TurnReport};
use haft_compat::stream::UserLine;
use haft_tool::{Cancel, ToolError, json, lock};

use super::super::super::CommandResult;
use super::super::args::RunArgs;
use super::super::exit;
use super::super::prepare::PreparedRun;
use super::control::NewModel;
use super::ids::timestamp;
use super::inbox::NextInput;
use super::init::SessionFacts;
use super::observer::StreamObserver;
use super::session::HostSession;
use super::{NextModel, exit_of, result, user_content};

/// What a turn begins with.
pub(super) enum TurnInput {
    /// Words of the command line.
    Words(String),
    /// A message of the program.
    Line(UserLine),
    /// Nothing: the last turn was interrupted.
    Proceed,
}

/// A run whose messages a program reads.
pub(super) struct DrivenRun {
    pub(super) session: Arc<HostSession>,
    pub(super) prepared: PreparedRun,
    pub(super) facts: SessionFacts,
    pub(super) next_model: NextModel,
    observer: StreamObserver,
    has_host: bool,
    replays: bool,
}

impl DrivenRun {
    pub(super) fn new(
        session: &Arc<HostSession>,
        prepared: PreparedRun,
        facts: SessionFacts,
        args: &RunArgs,
    ) -> Self {
        Self {
            session: Arc::clone(session),
            prepared,
            facts,
            next_model: NextModel::default(),
            observer: StreamObserver::new(session, args.stream.include_partial_messages),
            has_host: args.stream.has_host(),
            replays: args.stream.replay_user_messages,
        }
    }

    /// The model that answers.
    pub(super) fn model(&self) -> &str {
        &self.prepared.run.state().model
    }

    /// Runs the first turn if there is one, then one for each message of the program, until it sends nothing more or `ended` fires.
    pub(super) fn run(&mut self, first: Option<TurnInput>, ended: &Cancel) -> CommandResult {
        let mut exit = exit_of(false);
        let mut next = first;
        loop {
            if let Some(input) = next.take() {
                exit = self.turn(input, ended)?;
            }
            if !self.has_host {
                return Ok(exit);
            }
            next = match self.next_line() {
                Some(line) => Some(TurnInput::Line(line)),
                None => return Ok(exit),
            };
        }
    }

    /// Waits for the next message. The session is idle when nothing runs in the background any more.
    fn next_line(&self) -> Option<UserLine> {
        let inbox = &self.session.inbox;
        let background = self.prepared.agents.background();
        let wake = || {
            let session = Arc::clone(&self.session);
            move || session.inbox.wake()
        };
        let _wakers: Vec<_> = background.iter().map(|ended| ended.on_cancel(wake())).collect();
        let has_ended = || background.iter().all(Cancel::is_cancelled);
        let mut waits_for_idle = true;
        loop {
            let is_ready: &dyn Fn() -> bool = if waits_for_idle { &has_ended } else { &|| false };
            match inbox.next_prompt(is_ready) {
                NextInput::Prompt(line) => return Some(line),
                NextInput::End => {
                    self.session.state.become_idle();
                    return None;
                }
                NextInput::Ready => {
                    self.session.state.become_idle();
                    waits_for_idle = false;
                }
            }
        }
    }

    fn turn(&mut self, input: TurnInput, ended: &Cancel) -> CommandResult {
        let cancel = self.session.begin_turn();
        let linked = cancel.clone();
        let _link = ended.on_cancel(move || linked.cancel());
        self.take_model()?;
        let uuid = match &input {
            TurnInput::Line(line) => line.uuid.clone(),
            _ => None,
        };
        self.facts.send_init(&self.session, self.model(), uuid.as_deref());
        if let (TurnInput::Line(line), Some(uuid), true) = (&input, &uuid, self.replays) {
            self.session.writer.send(json!({
                "type": "user", "message": {"role": "user", "content": line.content}, "uuid": uuid,
                "timestamp": timestamp(), "isReplay": true, "parent_tool_use_id": null,
                "session_id": self.session.id(),
            }));
        }
        let model = self.model().to_owned();
        self.observer.begin_turn(&model);
        let report = self.answer(input, uuid, &cancel);
        // What the program asks for when it has read the result, such as a rewind, must not find a turn.
        self.session.inbox.end_turn();
        match report {
            Ok(report) => {
                let message = result::message(&report, &self.observer.facts, self.prepared.run.state());
                let is_error = message["is_error"] == true;
                self.session.send(message);
                Ok(if self.has_host || report.stop == RunStop::Done {
                    exit_of(is_error)
                } else {
                    exit(&report.stop)
                })
            }
            Err(error) if self.has_host => {
                self.session.send(result::failure(&error));
                Ok(exit_of(true))
            }
            Err(error) => Err(error),
        }
    }

    /// Takes over the model that the program has chosen since the last turn.
    fn take_model(&mut self) -> Result<(), ToolError> {
        let next = lock(&self.next_model).take();
        let Some(NewModel { model, fast }) = next else { return Ok(()) };
        self.prepared.routed = None;
        self.prepared.run.change_model(model)?;
        self.prepared.run.settings_mut().fast_model = fast;
        self.prepared.agents.attach(&self.prepared.run);
        Ok(())
    }

    /// Drives the turn.
    fn answer(
        &mut self,
        input: TurnInput,
        uuid: Option<String>,
        cancel: &Cancel,
    ) -> Result<TurnReport, ToolError> {
        let prepared = &mut self.prepared;
        match input {
            TurnInput::Words(words) => prepared.say(&words, &mut self.observer, cancel),
            TurnInput::Proceed => prepared.run.proceed(&mut self.observer, cancel),
            TurnInput::Line(line) => {
                let content = user_content::parts(&line.content);
                if content.is_empty() {
                    return Err(ToolError::invalid_arguments("The message is empty."));
                }
                prepared.say_as(content, uuid, &mut self.observer, cancel)
            }
        }
    }

    /// Ends what the run has started.
    pub(super) fn close(&mut self) {
        let collected = self.prepared.end(&mut self.observer, &Cancel::new());
        self.prepared.close_channels();
        if let Err(error) = collected {
            super::super::super::screen::error(&error.message);
        }
        self.session.writer.finish();
    }
}
