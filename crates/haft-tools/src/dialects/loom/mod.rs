//! The `loom` dialect: the tools of Loom.

use haft_tool::{Dialect, Reads};

use crate::Settings;

/// The dialect and all its tools.
pub fn dialect(settings: &Settings) -> Dialect {
    let _ = settings;
    Dialect { name: "loom", tools: Vec::new(), aliases: &[], any_case: false, reads: Reads::Roots }
}
