//! OpenAI's Responses, without state on the server.

mod items;
mod request;
mod response;
mod stream;

pub(super) use request::{encode, result, tools};
pub(super) use stream::accumulator;
