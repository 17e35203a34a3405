//! The server over HTTP, with raw requests.

mod access;
mod bodies;
mod client;
mod connections;
mod sessions;
mod streams;
mod versions;
