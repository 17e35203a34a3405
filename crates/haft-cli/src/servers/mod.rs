//! Holds other people's servers: which there are, whom the user trusts, and their tools as tools of the runtime.

mod entry;
mod expand;
mod ground;
mod held;
mod offers;
mod process;
mod result;
mod source;
mod tool;
mod trust;

pub use entry::{Entry, Grants, Origin, Way, entries, mcp_json};
pub use ground::OnChange;
pub use source::{Naming, Servers, Setup, Trial, with_prefix, without_prefix};
pub use trust::{Known, Trust, changed, identity};
