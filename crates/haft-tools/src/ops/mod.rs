//! The operations behind the tools, shared by all dialects.

pub(crate) mod api;
pub(crate) mod charset;
pub(crate) mod denylist;
pub(crate) mod edit;
pub(crate) mod fetch;
#[cfg(test)]
mod fuzz;
pub(crate) mod glob;
pub(crate) mod grep;
pub(crate) mod hunks;
pub(crate) mod list;
pub(crate) mod markdown;
pub(crate) mod memory;
pub(crate) mod near_miss;
pub(crate) mod notebook;
pub(crate) mod numbered;
pub(crate) mod oracle;
#[cfg_attr(not(feature = "pdf"), path = "no_pdf.rs")]
pub(crate) mod pdf;
pub(crate) mod prefix;
pub(crate) mod read;
pub(crate) mod shell;
pub(crate) mod spawn;
pub(crate) mod tasks;
pub(crate) mod web_search;
pub(crate) mod working_dir;
pub(crate) mod write;
