//! Network access: HTTP for tools (`http`) and the proxy that lets a command reach listed domains (`proxy`).
//!
//! A host is parsed once, its addresses are resolved once and judged, and exactly those are connected to.
//!
//! What must never live here: decisions about a call (haft-policy), knowledge of a tool, files of the workspace.
#![expect(clippy::disallowed_methods, reason = "this crate implements network access for the World")]

#[cfg(feature = "http")]
pub mod http;
pub mod proxy;
