//! The proxies for models.

use std::sync::Arc;

use haft_model::{Model, ModelError, ModelEvent, ModelResponse, TurnRequest};
use haft_tool::{Cancel, Value, json};

use super::failure::ProxyFailure;
use super::request::LlmRequest;
use super::response::{answer, call_delta};

/// A comment that tells the client that the provider has begun to answer.
const BEGIN: &str = ": the answer begins\n\n";

/// A group of paths for models, named after a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyFamily {
    /// `/proxy/openai/…`
    Openai,
    /// `/proxy/anthropic/…`
    Anthropic,
    /// `/proxy/vertex/…`
    Vertex,
}

impl ProxyFamily {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Openai, Self::Anthropic, Self::Vertex];

    /// The name in paths and settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Openai => "openai",
            Self::Anthropic => "anthropic",
            Self::Vertex => "vertex",
        }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|family| family.name() == name)
    }
}

/// The provider behind a family.
pub struct ProxyModel {
    /// The provider. It should make only one attempt per request, because clients retry.
    pub model: Arc<dyn Model>,
    /// The model that answers every request, whichever model it names.
    pub own_model: Option<String>,
}

/// The providers of a server, or the reasons why they are not set up.
pub struct ProxyModels {
    /// For `/proxy/openai/…`.
    pub openai: Result<ProxyModel, String>,
    /// For `/proxy/anthropic/…`.
    pub anthropic: Result<ProxyModel, String>,
    /// For `/proxy/vertex/…`.
    pub vertex: Result<ProxyModel, String>,
}

impl ProxyModels {
    /// The provider of a family.
    pub fn of(&self, family: ProxyFamily) -> &Result<ProxyModel, String> {
        match family {
            ProxyFamily::Openai => &self.openai,
            ProxyFamily::Anthropic => &self.anthropic,
            ProxyFamily::Vertex => &self.vertex,
        }
    }

    /// Answers a request as a whole.
    pub(super) fn complete(
        &self,
        family: ProxyFamily,
        body: &[u8],
        cancel: &Cancel,
    ) -> Result<Value, ProxyFailure> {
        let proxy = self.configured(family)?;
        let mut request = LlmRequest::parse(body, proxy.own_model.as_deref())?;
        request.options.stream = false;
        let mut notes = std::mem::take(&mut request.notes);
        let mut on_event = |event| {
            if let ModelEvent::Notice { text } = event {
                notes.push(text);
            }
        };
        let response = proxy.ask(&request, &mut on_event, cancel);
        Ok(answer(&response.map_err(|error| ProxyFailure::of_model(&error))?, notes))
    }

    /// Answers a request with events. A failure before the first event is returned instead.
    pub(super) fn stream(
        &self,
        family: ProxyFamily,
        body: &[u8],
        cancel: &Cancel,
        send: &mut dyn FnMut(String) -> bool,
    ) -> Result<(), ProxyFailure> {
        let proxy = self.configured(family)?;
        let mut request = LlmRequest::parse(body, proxy.own_model.as_deref())?;
        let mut notes = std::mem::take(&mut request.notes);
        let mut events = EventSender { send, cancel, has_sent: false, is_gone: false };
        let mut begins_again = false;
        let mut on_event = |event| match event {
            ModelEvent::Started { .. } => events.send(BEGIN.to_owned()),
            ModelEvent::Text { delta } => events.event(&json!({"type": "text_delta", "content": delta})),
            ModelEvent::CallComplete(call) => events.event(&call_delta(&call)),
            ModelEvent::Notice { text } => notes.push(text),
            // The client already has a part of the answer, which would be repeated.
            ModelEvent::Restarted => {
                begins_again = true;
                cancel.cancel();
            }
            _ => {}
        };
        let result = proxy.ask(&request, &mut on_event, cancel);
        match result {
            Ok(response) => {
                events.event(&json!({"type": "completed", "response": answer(&response, notes)}));
            }
            Err(error) if !events.has_sent => return Err(ProxyFailure::of_model(&error)),
            Err(error) => {
                let broken =
                    "The connection to the provider broke, and a part of the answer was sent already";
                let message = if begins_again { broken } else { &error.message };
                events.event(&json!({"type": "error", "message": message}));
            }
        }
        Ok(())
    }

    fn configured(&self, family: ProxyFamily) -> Result<&ProxyModel, ProxyFailure> {
        self.of(family).as_ref().map_err(|why| {
            let message = format!("{} is not configured on this server: {why}", family.name());
            ProxyFailure::new(503, message)
        })
    }
}

impl ProxyModel {
    fn ask(
        &self,
        request: &LlmRequest,
        on_event: &mut dyn FnMut(ModelEvent),
        cancel: &Cancel,
    ) -> Result<ModelResponse, ModelError> {
        let LlmRequest { conversation, tools, options, .. } = request;
        self.model.respond(&TurnRequest { conversation, tools, options }, on_event, cancel)
    }
}

/// Sends events while the client is connected.
struct EventSender<'a> {
    send: &'a mut dyn FnMut(String) -> bool,
    /// Ends the request to the provider when the client has gone.
    cancel: &'a Cancel,
    has_sent: bool,
    is_gone: bool,
}

impl EventSender<'_> {
    fn event(&mut self, payload: &Value) {
        self.send(format!("event: llm\ndata: {payload}\n\n"));
    }

    fn send(&mut self, text: String) {
        if self.is_gone {
            return;
        }
        self.has_sent = true;
        if !(self.send)(text) {
            self.is_gone = true;
            self.cancel.cancel();
        }
    }
}
