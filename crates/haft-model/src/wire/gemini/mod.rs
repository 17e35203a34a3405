//! Gemini's generateContent.

mod request;
mod response;
mod stream;

pub(super) use request::{encode, result, tools};
pub(super) use stream::accumulator;
