//! Anthropic's Messages.

mod blocks;
mod request;
mod response;
mod stream;

pub(super) use request::{encode, refused_fields, result, tools};
pub(super) use stream::accumulator;

/// The version of the protocol that the vendor's own host gets.
pub const ANTHROPIC_VERSION: &str = "2026-10-21";
/// The version that every server of this format knows.
pub const OLD_ANTHROPIC_VERSION: &str = "2023-06-01";
