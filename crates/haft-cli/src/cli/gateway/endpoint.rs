//! The address that channels post to: checks requests and accepts messages.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use haft_bus::{ChannelSettings, InboundChannel, InboundMessage, InboundRequest, InboundVerdict};
use haft_net::server::{WholeRequest, WholeResponse, own_hosts};
use haft_tool::{ToolError, Value, json, now_ms};

use super::super::screen;
use super::queue::{Acceptance, MessageQueue};

/// The path of a channel, before its name.
const PATH: &str = "/channels/";
/// When a message may be sent again, in seconds, if too many wait.
const RETRY_AFTER_SECS: u32 = 5;

/// The channels that receive messages.
pub(super) struct MessageEndpoint {
    channels: BTreeMap<String, InboundChannel>,
}

impl MessageEndpoint {
    pub(super) fn new(
        settings: &BTreeMap<String, ChannelSettings>,
        address: SocketAddr,
    ) -> Result<Self, ToolError> {
        let var = |name: &str| std::env::var(name).ok();
        let mut channels = BTreeMap::new();
        for (name, settings) in settings {
            let Some(channel) = settings.inbound(name, &var)? else { continue };
            if !channel.is_signed() && !address.ip().is_loopback() {
                return Err(ToolError::invalid_arguments(format!(
                    "channels.{name} is unsigned, and {address} can be reached from other machines. Set its signing_secret, or \
                     listen on 127.0.0.1."
                )));
            }
            channels.insert(name.clone(), channel);
        }
        if channels.is_empty() {
            return Err(ToolError::invalid_arguments(
                "no channel receives messages. Set the secret of one in [channels.NAME] of haft.toml: signing_secret (webhook, slack), \
                 secret_token (telegram) or public_key (discord)",
            ));
        }
        Ok(Self { channels })
    }

    /// The names of the channels.
    pub(super) fn names(&self) -> Vec<String> {
        self.channels.keys().cloned().collect()
    }

    /// Answers a request. A message that is answered with success is in the ledger.
    pub(super) fn answer(&self, request: &WholeRequest, queue: &MessageQueue) -> WholeResponse {
        let Some(name) = request.path.strip_prefix(PATH).filter(|name| !name.is_empty()) else {
            return refusal(404, &format!("There is nothing at this path; messages go to {PATH}NAME"));
        };
        let Some(channel) = self.channels.get(name) else {
            return refusal(404, "There is no channel of this name that receives messages");
        };
        if request.method != "POST" {
            let mut response = refusal(405, "Messages are sent by POST");
            response.headers.push(("allow", "POST".to_owned()));
            return response;
        }
        let response = match check_client(request, channel) {
            Ok(()) => receive(name, channel, request, queue),
            Err(response) => response,
        };
        if response.status >= 400 {
            let body: Value = serde_json::from_str(&response.body).unwrap_or_default();
            let why = body["error"].as_str().unwrap_or_default().to_owned();
            screen::note(&screen::escape(&format!("{name}: refused with {}: {why}", response.status)));
        }
        response
    }
}

/// Refuses web pages, which can reach local ports. Services are no web pages; their signatures are checked later.
fn check_client(request: &WholeRequest, channel: &InboundChannel) -> Result<(), WholeResponse> {
    if request.header("origin").is_some() {
        return Err(refusal(403, "Web pages cannot send messages"));
    }
    if channel.is_signed() {
        return Ok(());
    }
    let host = request.header("host").unwrap_or_default();
    if !own_hosts(request.server).iter().any(|own| own.eq_ignore_ascii_case(host)) {
        return Err(refusal(403, "An unsigned channel is reached only by the names of this machine"));
    }
    let content_type = request.header("content-type").unwrap_or_default();
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case("application/json") {
        return Err(refusal(415, "Content-Type must be application/json"));
    }
    Ok(())
}

fn receive(
    name: &str,
    channel: &InboundChannel,
    request: &WholeRequest,
    queue: &MessageQueue,
) -> WholeResponse {
    let header = |name: &str| request.header(name);
    let received =
        channel.receive(&InboundRequest { header: &header, body: &request.body, now: now_ms() / 1_000 });
    match received {
        Err(error) => refusal(error.status, &error.message),
        Ok(InboundVerdict::Answer(body)) => success(&body),
        Ok(InboundVerdict::Ignored(why)) => success(&json!({"status": "ignored", "reason": why})),
        Ok(InboundVerdict::NotAllowed(sender, body)) => {
            let sender = sender.as_deref().unwrap_or("without a name");
            screen::note(&screen::escape(&format!("{name}: the sender {sender} is not in allow_from")));
            body.map_or_else(|| refusal(403, "The sender is not in allow_from"), |body| success(&body))
        }
        Ok(InboundVerdict::Message(message, body)) => accept(name, &message, &body, queue),
    }
}

fn accept(name: &str, message: &InboundMessage, body: &Value, queue: &MessageQueue) -> WholeResponse {
    match queue.accept(name, message) {
        Ok(Acceptance::Accepted | Acceptance::Duplicate) => success(body),
        Ok(Acceptance::ChatFull) => retry_later(429, "Too many messages of this chat wait"),
        Ok(Acceptance::Full) => retry_later(503, "Too many messages wait"),
        Err(error) => {
            screen::error(&format!("a message could not be stored: {}", error.message));
            retry_later(503, "The message could not be stored")
        }
    }
}

fn success(body: &Value) -> WholeResponse {
    WholeResponse { status: 200, headers: Vec::new(), body: body.to_string() }
}

fn refusal(status: u16, why: &str) -> WholeResponse {
    WholeResponse { status, headers: Vec::new(), body: json!({ "error": why }).to_string() }
}

fn retry_later(status: u16, why: &str) -> WholeResponse {
    let mut response = refusal(status, &format!("{why}; send it again later"));
    response.headers.push(("retry-after", RETRY_AFTER_SECS.to_string()));
    response
}
