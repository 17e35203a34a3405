//! What both sides of the protocol say.

mod error;
mod lines;
mod message;
pub mod meta;
mod version;
mod writing;

pub use error::{
    HEADER_MISMATCH, INTERNAL, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, MISSING_CAPABILITY, PARSE,
    RESOURCE_NOT_FOUND, RpcError, UNSUPPORTED_VERSION,
};
pub use lines::{Line, Lines};
pub use message::{Id, Incoming, Message};
pub use version::Version;
