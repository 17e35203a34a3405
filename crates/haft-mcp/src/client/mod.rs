//! Servers that others wrote, held by Haft: asked in whichever era they live, and believed in nothing.
//!
//! [`Client`] is one connection. Below it stands a `Link`: a process ([`Pipes`]) or an address ([`Endpoint`]). Every wait
//! has a limit ([`Limits`]), and so has everything that is read. What a server asks of its own accord is answered only if
//! somebody offers to ([`Handlers`]). [`portable`] makes its tools fit for every provider.

mod authorize;
mod connection;
mod conversation;
mod courier;
mod ear;
mod error;
mod greeting;
mod handlers;
mod http;
mod info;
mod link;
mod listing;
mod news;
pub mod oauth;
mod options;
mod patience;
mod pending;
pub mod portable;
mod rounds;
mod stdio;
mod subscription;
mod things;

use haft_tool::lock;

pub use authorize::Authorize;
pub use connection::{Client, Transport};
pub use error::{ClientError, Trouble};
pub use handlers::{Elicitation, Elicited, Handlers, Offered, Wanted};
pub use http::Endpoint;
pub use info::ServerInfo;
pub use listing::Listing;
pub use options::{CallOptions, Limits, Options, Progress};
pub use stdio::{Ended, Pipes};
pub use things::{Prompt, PromptArgument, Resource, ServerTool, Template};

pub use crate::serve::News;
