//! The server over standard input and output.

mod client;
mod input;
mod requests;
mod shutdown;
