//! Network access: HTTP for tools (`http`), the proxy that lets a command reach listed domains (`proxy`), a listener for
//! the redirect of a browser login (`proxy::RedirectListener`), and a listening HTTP server (`server`).
//!
//! A host is parsed once, its addresses are resolved once and checked, and exactly those are connected to.
//!
//! What must never be here: decisions about a call (haft-policy), knowledge of a tool, files of the workspace.
#![expect(clippy::disallowed_methods, reason = "this crate implements network access for the World")]

#[cfg(feature = "http")]
pub mod http;
mod lookup;
pub mod proxy;
#[cfg(feature = "server")]
pub mod server;

pub use lookup::special_address;
