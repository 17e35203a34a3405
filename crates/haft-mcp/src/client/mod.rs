//! Servers that others wrote, held by Haft.

mod authorize;
mod error;
pub mod oauth;

pub use authorize::Authorize;
pub use error::{ClientError, Trouble};
