//! Servers that others wrote, held by Haft.

mod authorize;
mod error;

pub use authorize::Authorize;
pub use error::{ClientError, Trouble};
