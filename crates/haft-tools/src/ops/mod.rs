//! What tools do, once for all dialects.

pub(crate) mod api;
pub(crate) mod contents;
pub(crate) mod denylist;
pub(crate) mod edit;
pub(crate) mod fetch;
pub(crate) mod glob;
pub(crate) mod grep;
pub(crate) mod hunk;
pub(crate) mod list;
pub(crate) mod markdown;
pub(crate) mod memory;
pub(crate) mod near;
pub(crate) mod notebook;
pub(crate) mod oracle;
pub(crate) mod pdf;
pub(crate) mod read;
pub(crate) mod search;
pub(crate) mod shell;
pub(crate) mod text;
pub(crate) mod write;
