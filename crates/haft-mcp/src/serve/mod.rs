//! Answers clients: what a [`Service`] offers, in whichever revision they speak.
//!
//! A transport reads messages and gives each to [`Server::handle`] with an [`Outbox`] for what is to be said about it. The
//! call blocks until the message is dealt with, so a transport gives each a thread on which it may wait.

mod asking;
mod exchange;
mod http;
mod hub;
mod methods;
mod peer;
mod server;
mod service;
mod stdio;
mod stdout;
mod workers;

pub use asking::{Ask, Unanswered};
pub use exchange::{Exchange, Level};
pub use http::{HttpOptions, Limits, ResourceMetadata, Running, Token, serve_http};
pub use hub::{Hub, News};
pub use peer::{Outbox, Peer};
pub use server::{PendingRequest, Server};
pub use service::{Cached, Identity, Offers, Page, Service};
pub use stdio::{serve_stdio, stdio};
