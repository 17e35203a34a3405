//! What tools do, once for all dialects.

pub(crate) mod edit;
pub(crate) mod glob;
pub(crate) mod grep;
pub(crate) mod hunk;
pub(crate) mod near;
pub(crate) mod read;
pub(crate) mod shell;
pub(crate) mod text;
pub(crate) mod write;
