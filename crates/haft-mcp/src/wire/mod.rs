//! What both sides of the protocol share: messages, lines, protocol versions and errors.

mod broken_request;
mod error;
mod message;
pub mod meta;
mod version;

pub use error::{
    HEADER_MISMATCH, INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, MISSING_CAPABILITY,
    PARSE_ERROR, RESOURCE_NOT_FOUND, RpcError, UNSUPPORTED_VERSION,
};
pub use message::{InvalidMessage, RequestId, RpcInput, RpcMessage};
pub use version::ProtocolVersion;

pub use haft_tool::{InputLine, LineSplitter};
