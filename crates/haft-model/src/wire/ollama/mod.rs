//! Ollama's `/api/chat`. A response that is not streamed is one line of a stream, so there is one way to read both.

mod request;
mod stream;

pub(super) use request::{encode, result, tools};
pub(super) use stream::accumulator;
