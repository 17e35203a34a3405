//! The oldest servers over HTTP: one stream for all that they say, and an address of its own for what is said to them.

use std::sync::Arc;
use std::time::Duration;

use haft_tool::{Cancel, HttpStream};
use serde_json::Value;
use url::Url;

use super::super::ear::Ear;
use super::super::link::{Asked, Link};
use super::super::patience::Patience;
use super::super::pending::PendingRequests;
use super::super::{ClientError, ClientLimits, McpError};
use super::HttpEndpoint;
use super::door::{Door, Sent, next};
use super::events::Events;
use crate::wire::{RpcInput, RpcMessage};

/// The way to a server of revision 2024-11-05.
pub(in crate::client) struct OldStream {
    shared: Arc<Shared>,
    /// Where messages go.
    target: Url,
}

struct Shared {
    door: Door,
    ear: Arc<Ear>,
    pending: PendingRequests,
    closed: Cancel,
}

impl OldStream {
    /// Opens the stream and waits to be told where messages go.
    pub(in crate::client) fn open(
        endpoint: HttpEndpoint,
        limits: &ClientLimits,
        ear: &Arc<Ear>,
        patience: &Patience<'_>,
    ) -> Result<Self, ClientError> {
        let door = Door::new(endpoint, limits)?;
        let headers = vec![("Accept".to_owned(), "text/event-stream".to_owned())];
        let what = "a stream of events";
        let sent = Sent { method: "GET", url: &door.url, headers, body: None, what };
        let mut stream = door.open(&sent, patience)?;
        let is_stream =
            stream.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
        if stream.status != 200 || !is_stream {
            return Err(door.refusal(stream, what, patience));
        }
        let mut events = Events::new(limits.max_message_bytes);
        let target = loop {
            let taken =
                events.take().map_err(|_| ClientError::too_large("the server's first event is too long"))?;
            match taken {
                Some(event) if event.kind == "endpoint" => break read_target(&door.url, &event.data)?,
                Some(_) => {}
                None => match next(&mut stream, "endpoint", patience)? {
                    Some(chunk) => events.push(&chunk),
                    None => {
                        return Err(ClientError::new(
                            McpError::Disconnected,
                            "the stream ended without an endpoint",
                        ));
                    }
                },
            }
        };
        let shared =
            Shared { door, ear: Arc::clone(ear), pending: PendingRequests::default(), closed: Cancel::new() };
        let shared = Arc::new(shared);
        let own = Arc::clone(&shared);
        let read = move || {
            let why = own.read(stream, events);
            own.pending.close(why);
        };
        std::thread::Builder::new().name("mcp-reader".to_owned()).spawn(read).map_err(|error| {
            ClientError::unreachable(format!("a thread for the server cannot be had: {error}"))
        })?;
        Ok(Self { shared, target })
    }

    fn post(&self, message: &RpcMessage, what: &str, patience: &Patience<'_>) -> Result<(), ClientError> {
        let headers = vec![("Content-Type".to_owned(), "application/json".to_owned())];
        let body = Some(message.to_line());
        let sent = Sent { method: "POST", url: &self.target, headers, body, what };
        let stream = self.shared.door.open(&sent, patience)?;
        match stream.status {
            200..=299 => Ok(()),
            _ => Err(self.shared.door.refusal(stream, what, patience)),
        }
    }
}

/// The address that messages go to, which must be the same server's.
fn read_target(url: &Url, data: &str) -> Result<Url, ClientError> {
    let target = url.join(data.trim()).ok().filter(|target| target.origin() == url.origin());
    target.ok_or_else(|| {
        let data = super::super::portable::clean_line(data, 200);
        ClientError::invalid_message(format!(
            "the server wants messages at {data:?}, which is not its own ground"
        ))
    })
}

impl Shared {
    /// Reads until the stream ends; why it did.
    fn read(&self, mut stream: HttpStream, mut events: Events) -> ClientError {
        let patience = Patience::without_end(&self.closed);
        loop {
            loop {
                match events.take() {
                    Ok(Some(event)) if event.kind == "message" => match RpcInput::read(event.data.as_bytes())
                    {
                        Ok(RpcInput::Single(message)) => self.pending.route(message, &self.ear),
                        Ok(RpcInput::Batch(all)) => {
                            all.into_iter()
                                .flatten()
                                .for_each(|message| self.pending.route(message, &self.ear));
                        }
                        Err(error) => self.pending.fail_all(&ClientError::invalid_message(format!(
                            "{} sent an event that is no message ({}); it may have been the answer",
                            self.door.shown, error.message
                        ))),
                    },
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                    Err(_) => {
                        let most = self.door.limits.max_message_bytes;
                        return ClientError::too_large(format!(
                            "{} sent an event of more than {most} bytes",
                            self.door.shown
                        ));
                    }
                }
            }
            match next(&mut stream, "the stream", &patience) {
                Ok(Some(chunk)) => events.push(&chunk),
                Ok(None) => {
                    return ClientError::new(
                        McpError::Disconnected,
                        format!("{} ended its stream", self.door.shown),
                    );
                }
                Err(error) => return error,
            }
        }
    }
}

impl Link for OldStream {
    fn ask(&self, asked: &Asked, patience: &Patience<'_>) -> Result<Value, ClientError> {
        let response = self.shared.pending.register(&asked.id)?;
        self.post(&asked.message(), asked.method, patience)?;
        response.wait(asked.method, patience)
    }

    fn tell(&self, message: &RpcMessage, limit: Duration) -> Result<(), ClientError> {
        self.post(message, "a notification", &Patience::of(limit, &self.shared.closed))
    }

    fn close(&self) {
        self.shared
            .pending
            .close(ClientError::new(McpError::Closed, "the connection to the server was closed"));
        self.shared.closed.cancel();
    }
}

impl Drop for OldStream {
    fn drop(&mut self) {
        self.close();
    }
}
