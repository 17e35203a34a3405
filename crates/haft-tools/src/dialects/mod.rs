//! The vocabularies that models know. Each dialect lists all its tools in one place.

pub mod claude;

use haft_tool::Dialect;

/// The names of all dialects, the default first.
pub const NAMES: &[&str] = &["claude"];

/// The dialect of that name.
pub fn by_name(name: &str) -> Option<Dialect> {
    match name {
        "claude" => Some(claude::dialect()),
        _ => None,
    }
}
