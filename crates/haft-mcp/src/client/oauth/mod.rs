//! Access tokens by OAuth 2.1, as all versions of MCP specify it.
//!
//! A server that rejects a request names its authorization server ([`discovery`]). Haft registers there
//! ([`registration`]), sends the user's browser there and receives the code on loopback ([`flow`]), exchanges the code for
//! tokens ([`grant`]) and stores them in a private file ([`store`]). [`Authorizer`] holds them, [`renewal`] replaces them.
//!
//! Everything that servers say is untrusted until it is checked: the URLs that Haft and the browser are sent to
//! ([`resource`]), whom a token is for, and who issued it.

mod authorizer;
mod browser;
mod callback;
mod challenge;
mod discovery;
mod errors;
mod fetch;
mod flow;
mod grant;
mod metadata;
mod pkce;
mod registration;
mod renewal;
mod resource;
mod scopes;
mod store;

pub use authorizer::{Authorizer, OAuthOptions};
pub use browser::BrowserOpener;
pub use fetch::HttpFactory;
pub use registration::RegisteredClient;
