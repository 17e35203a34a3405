//! HTTP for tools: one request, one bounded response, and no address that the scope does not allow.
//!
//! A host is parsed once, into the form that is checked ([`reach`]); a name is resolved once, its addresses are checked, and
//! exactly those are connected to ([`exchange`]). A redirect is checked like a new request ([`redirects`]). Nothing is set
//! up before the first request.

mod cache;
mod client;
mod error;
mod exchange;
mod proxy_env;
mod reach;
mod redirects;
mod runtime;
mod service;
mod streams;
mod target;
#[cfg(test)]
mod tests;

pub use client::HttpClient;
pub use service::HttpService;
