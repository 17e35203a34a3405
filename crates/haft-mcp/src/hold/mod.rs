//! Holds other people's servers: which there are, whom the user trusts, and their tools as tools of the runtime.

mod entry;
mod expand;
mod trust;

pub use entry::{Entry, Grants, Origin, Way, entries, mcp_json};
pub use trust::{Known, Trust, changed, identity};
