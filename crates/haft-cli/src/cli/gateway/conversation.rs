//! Handles a message: continues the run of its chat and sends the reply.

use std::path::PathBuf;

use haft_agent::{RunObserver, RunStop};
use haft_ledger::{Inbox, InboxMessage, Ledger, NewSession};
use haft_tool::{Cancel, ErrorKind, Host as _, Message, ToolError};

use super::super::run::{EarlierRun, PreparedRun, ProgressLines, RunArgs};
use super::super::screen::{self, FAINT, styled};
use super::ENTRY_POINT;
use super::queue::session_key;

/// The runs of all chats.
pub(super) struct Conversations {
    args: RunArgs,
    ledger: Ledger,
    workspace: PathBuf,
    dialect: String,
}

impl Conversations {
    pub(super) fn new(args: RunArgs, ledger: Ledger, workspace: PathBuf, dialect: String) -> Self {
        Self { args, ledger, workspace, dialect }
    }

    /// Handles a message to its end. After an error it is not finished, and handled at the next start.
    pub(super) fn handle(&self, message: &InboxMessage, inbox: &Inbox) -> Result<(), ToolError> {
        let key = session_key(&message.channel, &message.chat);
        let session = self.ledger.conversation(
            &key,
            &NewSession {
                workspace: self.workspace.clone(),
                dialect: self.dialect.clone(),
                entry_point: ENTRY_POINT.to_owned(),
            },
        )?;
        let earlier = EarlierRun::of_session(&self.ledger, &session)?;
        let last_turn = earlier.as_ref().and_then(EarlierRun::last_turn).unwrap_or(0);
        // A turn behind the noted one is this message's, begun by a process that died.
        let is_said = message.begun_after.is_some_and(|after| last_turn > after);
        if !is_said {
            inbox.begin(message.id, last_turn)?;
        }
        let mut args = self.args.clone();
        args.append_to_system_prompt(&about_channel(message));
        let mut prepared = PreparedRun::in_session(&mut args, earlier.as_ref(), &session)?;
        let observer: &mut dyn RunObserver = &mut ProgressLines::new(args.verbose);
        let cancel = Cancel::new();
        let state = prepared.run.state();
        let (stop, text) = if is_said && !state.is_turn_open {
            (state.last_stop.clone().unwrap_or(RunStop::Done), state.last_text.clone())
        } else {
            let report = if is_said {
                prepared.run.proceed(observer, &cancel)
            } else {
                prepared.say(&said(message), observer, &cancel)
            };
            let collected = prepared.end(observer, &cancel);
            let report = report?;
            collected?;
            (report.stop, report.text)
        };
        let host = &prepared.setup.host;
        let reply = reply(&stop, &text);
        if !reply.is_empty() {
            host.send(&Message {
                channel: message.channel.clone(),
                chat_id: message.chat.clone(),
                content: reply,
            })?;
        }
        let mut failure = None;
        for lost in host.close() {
            screen::error(&format!(
                "{}: a message to {} was not delivered: {}",
                screen::escape(&key),
                screen::escape(&lost.message.channel),
                lost.error.message
            ));
            failure = Some(lost.error).filter(|error| !is_permanent(error.kind)).or(failure);
        }
        if let Some(error) = failure {
            return Err(error.context("the reply was not delivered"));
        }
        inbox.finish(message.id)?;
        let line = format!("{key}: message {} handled ({}), session {session}", message.message, stop.name());
        screen::note(&styled(FAINT, &screen::escape(&line)));
        Ok(())
    }
}

/// Whether the delivery would fail the same way at another time.
fn is_permanent(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::PermissionDenied | ErrorKind::InvalidArguments)
}

/// What the model is told about the chat.
fn about_channel(message: &InboxMessage) -> String {
    let InboxMessage { channel, chat, .. } = message;
    format!(
        "You talk with people in the chat {chat} of the channel {channel}. Your last text of each turn is sent there as the reply."
    )
}

/// What the model is told that was said. In a group, the sender is named.
fn said(message: &InboxMessage) -> String {
    match &message.sender {
        Some(sender) if *sender != message.chat => format!("From {sender}:\n{}", message.text),
        _ => message.text.clone(),
    }
}

/// The text of the model, and why the turn ended if it was not done.
fn reply(stop: &RunStop, text: &str) -> String {
    let explanation = stop.explanation().unwrap_or_default();
    let parts = [text.trim(), explanation.trim()];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")
}
