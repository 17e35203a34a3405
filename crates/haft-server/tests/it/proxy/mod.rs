//! Loom's proxies against upstream servers that speak the real formats.

mod complete;
mod fixture;
mod history;
mod requests;
mod search;
mod stream;
mod upstream;
