//! The network as a tool reaches it: one request, one bounded answer, and no address that the scope does not allow.
//!
//! A host is read once, into the form that is judged ([`limits`]); a name is looked up once, its addresses are judged, and
//! exactly those are connected to ([`exchange`]). A redirect is a new host to judge ([`travel`]). Nothing is set up before
//! the first request. A conversation, read as it comes, has a door of its own on the same checks ([`streams`]).

mod address;
mod cache;
mod door;
mod exchange;
mod failure;
mod inflow;
mod limits;
mod proxies;
mod streams;
#[cfg(test)]
mod tests;
mod travel;
mod web;

pub use door::Door;
pub use web::Web;
