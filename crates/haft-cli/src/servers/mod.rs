//! The MCP servers that the user configured: their entries, the user's consent, and their tools as tools of the runtime.

mod arguments;
mod client_features;
mod context;
mod entry;
mod expand;
mod handle;
mod package_runner;
mod process;
mod refusals;
mod source;
mod state;
mod tool;
mod tool_result;
mod trust;

pub use context::{HostLinks, OnChange};
pub use entry::{ServerEntry, ServerGrants, ServerLocation, ServerOrigin, mcp_json};
pub(crate) use package_runner::PackageRunner;
pub use source::{Naming, ServerReport, Servers, ServersSetup, with_prefix, without_prefix};
pub use state::{ServerConnectionState, ServerSnapshot};
pub use trust::{KnownServer, TrustStore, changed_tools, identity};
