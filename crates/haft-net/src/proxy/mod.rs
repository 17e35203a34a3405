//! A loopback proxy that lets the sandboxed commands of one call reach listed domains and refuses all others at once, and a listener for browser logins.
//!
//! Everything a client sends is untrusted. A host is parsed once, into one form ([`Peer`](haft_tool::net::Peer)); that form
//! is checked against the list; the addresses that it resolves to are checked one by one, and the one that passed is
//! connected to ([`upstream`]). So no second spelling, second lookup or second answer can lead elsewhere.

mod connection;
mod http;
mod lazy;
mod parent;
mod redirect_listener;
mod server;
mod settings;
mod socks;
#[cfg(test)]
mod tests;
mod tunnel;
mod upstream;
mod variables;
mod wake;

pub use lazy::LazyProxy;
pub use parent::ParentProxies;
pub use redirect_listener::{RedirectListener, RedirectReply};
pub use server::Proxy;
pub use settings::{HostAsker, ProxySettings, UnlistedHost};
pub use upstream::RefusedConnection;
pub use variables::{proxy_variables, refusal_variables};
