//! Loom's proxies: models and a search engine for clients that hold no keys.
//!
//! [`Proxies::respond`] answers everything below `/proxy/`. It blocks and knows nothing about connections: an HTTP server calls it
//! on a blocking thread.

mod failure;
mod fields;
mod history;
mod model;
mod request;
mod response;
mod search;

use haft_net::server::WholeResponse;
use haft_tool::Cancel;

pub use model::{ProxyFamily, ProxyModel, ProxyModels};
pub use search::{SearchProxy, SearchSource};

use failure::ProxyFailure;

/// The longest request body that is accepted.
pub const MAX_PROXY_BODY_BYTES: usize = 8 << 20;

/// The paths, for messages.
const PATHS: &str = "openai/complete, openai/stream, anthropic/complete, anthropic/stream, vertex/complete, vertex/stream and cse";

/// A request for a path below `/proxy/`.
#[derive(Debug, Clone, Copy)]
pub struct LoomRequest<'a> {
    /// The method, for example `POST`.
    pub method: &'a str,
    /// The path after `/proxy/`, for example `openai/complete`.
    pub path: &'a str,
    /// The body.
    pub body: &'a [u8],
}

/// How a request was answered.
#[derive(Debug, PartialEq, Eq)]
pub enum LoomReply {
    /// With this response; nothing was sent before it.
    Whole(WholeResponse),
    /// With the events that were sent, as the body of a response with status 200 and type `text/event-stream`.
    Streamed,
}

/// The proxies of one server.
pub struct Proxies {
    models: ProxyModels,
    search: SearchProxy,
}

/// What a path stands for.
enum Target {
    Complete(ProxyFamily),
    Stream(ProxyFamily),
    Search,
}

impl Target {
    fn of(path: &str) -> Option<Self> {
        if path == "cse" {
            return Some(Self::Search);
        }
        let (family, operation) = path.split_once('/')?;
        let family = ProxyFamily::named(family)?;
        match operation {
            "complete" => Some(Self::Complete(family)),
            "stream" => Some(Self::Stream(family)),
            _ => None,
        }
    }
}

impl Proxies {
    /// Proxies for these models and this search engine.
    pub fn new(models: ProxyModels, search: SearchProxy) -> Self {
        Self { models, search }
    }

    /// Answers a request. Blocks until the answer is complete.
    ///
    /// `send` gets each event of a stream, ready to be written, and returns whether the client is still connected. `cancel` ends the
    /// request to the provider early; it is also set here when `send` returns false.
    pub fn respond(
        &self,
        request: &LoomRequest<'_>,
        cancel: &Cancel,
        send: &mut dyn FnMut(String) -> bool,
    ) -> LoomReply {
        let answered = match Self::target(request) {
            Ok(Target::Complete(family)) => self.models.complete(family, request.body, cancel),
            Ok(Target::Search) => self.search.search(request.body),
            Ok(Target::Stream(family)) => match self.models.stream(family, request.body, cancel, send) {
                Ok(()) => return LoomReply::Streamed,
                Err(failure) => Err(failure),
            },
            Err(failure) => Err(failure),
        };
        LoomReply::Whole(match answered {
            Ok(body) => WholeResponse { status: 200, headers: Vec::new(), body: body.to_string() },
            Err(failure) => failure.into_response(),
        })
    }

    fn target(request: &LoomRequest<'_>) -> Result<Target, ProxyFailure> {
        let target = Target::of(request.path).ok_or_else(|| {
            ProxyFailure::new(404, format!("There is nothing at this path. Below /proxy/ there are {PATHS}"))
        })?;
        if request.method != "POST" {
            return Err(ProxyFailure::new(405, "Requests to a proxy are sent by POST"));
        }
        if request.body.len() > MAX_PROXY_BODY_BYTES {
            let message = format!("The body has more than {MAX_PROXY_BODY_BYTES} bytes; send less");
            return Err(ProxyFailure::new(413, message));
        }
        Ok(target)
    }
}
