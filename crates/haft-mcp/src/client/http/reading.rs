//! The answer to one request: a body, or a stream of events with other messages before it.

use std::time::Duration;

use haft_tool::HttpStream;
use serde_json::Value;

use super::super::link::Asked;
use super::super::patience::Patience;
use super::super::{ClientError, McpError, portable};
use super::Inner;
use super::door::{Sent, next};
use super::events::{Event, Events};
use crate::wire::{RequestId, RpcInput, RpcMessage};

/// How long to wait before a broken stream is asked for again, if its server does not say.
const RETRY: u64 = 1000;
/// How often one stream is asked for again.
const MOST_RETRIES: usize = 100;

impl Inner {
    /// Reads the answer to `asked`.
    pub(super) fn read(
        &self,
        stream: HttpStream,
        asked: &Asked,
        patience: &Patience<'_>,
    ) -> Result<Value, ClientError> {
        let kind = stream.header("content-type").unwrap_or_default().to_ascii_lowercase();
        match kind.split(';').next().unwrap_or_default().trim() {
            "application/json" => {
                let body =
                    self.door.body(stream, self.door.limits.max_message_bytes, asked.method, patience)?;
                self.answer_in(&body, asked)
            }
            "text/event-stream" => self.follow(stream, asked, patience),
            _ => {
                let status = stream.status;
                let what = portable::clean_line(&kind, 60);
                Err(ClientError::invalid_message(format!(
                    "{} answered `{}` with status {status} and {what:?}, which is neither JSON nor a stream of events",
                    self.door.shown, asked.method
                )))
            }
        }
    }

    fn answer_in(&self, body: &[u8], asked: &Asked) -> Result<Value, ClientError> {
        let garbled = |why: &str| {
            ClientError::invalid_message(format!(
                "the answer of {} to `{}` makes no sense: {why}",
                self.door.shown, asked.method
            ))
        };
        let all = match RpcInput::read(body).map_err(|error| garbled(&error.message))? {
            RpcInput::Single(message) => vec![Ok(message)],
            RpcInput::Batch(all) => all,
        };
        let mut nameless = None;
        for message in all.into_iter().flatten() {
            match message {
                RpcMessage::Response { id: Some(id), outcome } if id == asked.id => return Ok(outcome?),
                RpcMessage::Response { id: None, outcome: Err(error) } => nameless = Some(error),
                RpcMessage::Response { .. } => {}
                message => self.hear(message, asked, None),
            }
        }
        // An error without an id can only be about the one request that was sent.
        Err(nameless.map_or_else(|| garbled("it answers something else"), ClientError::from))
    }

    /// Reads events until the answer is among them.
    fn follow(
        &self,
        mut stream: HttpStream,
        asked: &Asked,
        patience: &Patience<'_>,
    ) -> Result<Value, ClientError> {
        let mut events = Events::new(self.door.limits.max_message_bytes);
        for _ in 0..MOST_RETRIES {
            let broken = match self.events(&mut stream, &mut events, asked, patience) {
                Ok(Some(answer)) => return answer,
                Ok(None) => "its stream ended without it".to_owned(),
                Err(error) if error.kind == McpError::Disconnected => error.message,
                Err(error) => return Err(error),
            };
            let ended = || {
                ClientError::new(
                    McpError::Disconnected,
                    format!("`{}` was not answered: {broken}", asked.method),
                )
            };
            // In the new era a stream that is broken is gone.
            let last = events.last_id.clone().filter(|_| asked.version.is_none()).ok_or_else(ended)?;
            drop(stream);
            let pause = Duration::from_millis(events.retry.unwrap_or(RETRY).clamp(50, 60_000));
            patience.cancel.wait(pause.min(patience.left(asked.method)?));
            stream = self.again(&last, asked.method, patience)?;
            events.reconnected();
        }
        Err(ClientError::new(
            McpError::Disconnected,
            format!("`{}` was not answered: its stream broke off {MOST_RETRIES} times", asked.method),
        ))
    }

    /// Asks for the rest of a stream.
    pub(super) fn again(
        &self,
        last: &str,
        what: &str,
        patience: &Patience<'_>,
    ) -> Result<HttpStream, ClientError> {
        let mut headers = self.headers(None);
        headers.push(("Accept".to_owned(), "text/event-stream".to_owned()));
        if !last.is_empty() {
            headers.push(("Last-Event-ID".to_owned(), last.to_owned()));
        }
        let sent = Sent { method: "GET", url: &self.door.url, headers, body: None, what };
        let stream = self.door.open(&sent, patience)?;
        let events = stream.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
        match stream.status {
            200 if events => Ok(stream),
            200 => Err(ClientError::invalid_message(format!("{} gave no stream of events", self.door.shown))),
            _ => Err(self.door.refusal(stream, what, patience)),
        }
    }

    /// Reads events of one stream; none if it ends without the answer.
    fn events(
        &self,
        stream: &mut HttpStream,
        events: &mut Events,
        asked: &Asked,
        patience: &Patience<'_>,
    ) -> Result<Option<Result<Value, ClientError>>, ClientError> {
        loop {
            while let Some(event) = events.take().map_err(|_| self.too_long())? {
                if let Some(answer) = self.event(&event, asked, patience)? {
                    return Ok(Some(answer));
                }
            }
            match next(stream, asked.method, patience)? {
                Some(chunk) => events.push(&chunk),
                None => return Ok(None),
            }
        }
    }

    pub(super) fn too_long(&self) -> ClientError {
        let most = self.door.limits.max_message_bytes;
        ClientError::too_large(format!(
            "{} sent an event of more than {most} bytes, the most that is read",
            self.door.shown
        ))
    }

    fn event(
        &self,
        event: &Event,
        asked: &Asked,
        patience: &Patience<'_>,
    ) -> Result<Option<Result<Value, ClientError>>, ClientError> {
        if event.kind != "message" || event.data.trim().is_empty() {
            return Ok(None);
        }
        let read = RpcInput::read(event.data.as_bytes());
        if read.is_err() && is_for_another(&event.data, &asked.id) {
            return Ok(None);
        }
        let incoming = read.map_err(|error| {
            ClientError::invalid_message(format!(
                "{} sent an event that is no message: {}",
                self.door.shown, error.message
            ))
        })?;
        let all = match incoming {
            RpcInput::Single(message) => vec![Ok(message)],
            RpcInput::Batch(all) => all,
        };
        for message in all.into_iter().flatten() {
            match message {
                RpcMessage::Response { id: Some(id), outcome } if id == asked.id => {
                    return Ok(Some(outcome.map_err(ClientError::from)));
                }
                message => self.hear(message, asked, Some(patience)),
            }
        }
        Ok(None)
    }

    /// Takes what is no answer.
    fn hear(&self, message: RpcMessage, asked: &Asked, patience: Option<&Patience<'_>>) {
        match message {
            RpcMessage::Notification { method, params } if method == "notifications/progress" => {
                let token = params.get("progressToken").and_then(RequestId::read);
                if let Some(patience) = patience.filter(|_| token.as_ref() == Some(&asked.id)) {
                    patience.hear(&params);
                }
            }
            RpcMessage::Notification { method, params } => self.ear.note(&method, &params),
            RpcMessage::Request { id, method, params } => self.ear.request(id, method, params),
            RpcMessage::Response { .. } => {}
        }
    }
}

/// Whether this is JSON, and nothing that could be meant for this request.
fn is_for_another(data: &str, id: &RequestId) -> bool {
    let value = serde_json::from_str::<Value>(data);
    value.is_ok_and(|value| value.get("id").and_then(RequestId::read).as_ref() != Some(id))
}
