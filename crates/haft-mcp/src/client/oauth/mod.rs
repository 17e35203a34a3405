//! Tokens for servers that do not answer everybody: OAuth 2.1 as every revision of MCP wants it.
//!
//! A server that turns a request down says who gives out its tokens ([`discovery`]); Haft makes itself known there
//! ([`registration`]), sends the user there with the browser and takes the answer on loopback ([`flow`]), changes the code
//! for tokens ([`grant`]) and keeps them for this user alone ([`store`]). [`Authorizer`] holds them, [`renewal`] gets others.
//!
//! Everything a server or an authorization server says is hostile until it is checked: where it may send Haft and the
//! browser ([`home`]), for whom a token is, and who gave it out.

mod authorizer;
mod callback;
mod challenge;
mod discovery;
mod fetch;
mod flow;
mod grant;
mod home;
mod metadata;
mod opener;
mod proof;
mod registration;
mod renewal;
mod scopes;
mod store;
#[cfg(test)]
mod tests;
mod words;

pub use authorizer::{Authorizer, OAuthOptions};
pub use fetch::HttpFactory;
pub use opener::BrowserOpener;
pub use registration::RegisteredClient;
