//! The sets of tools that models know. Each dialect lists all its tools in one place.

pub mod claude;
pub mod clawft;
pub mod loom;
pub mod omega;

use haft_tool::Dialect;

use crate::Settings;

/// The names of all dialects, the default first.
pub const NAMES: &[&str] = &["claude", "loom", "omega", "clawft"];

/// The dialect of that name, with its tools configured by `settings`.
pub fn by_name(name: &str, settings: &Settings) -> Option<Dialect> {
    match name {
        "claude" => Some(claude::dialect(settings)),
        "loom" => Some(loom::dialect(settings)),
        "omega" => Some(omega::dialect(settings)),
        "clawft" => Some(clawft::dialect(settings)),
        _ => None,
    }
}
