//! MCP servers, popular and hostile, used by the built program: permissions, trust and lifecycle.

mod end_to_end;
mod lifecycle;
mod popular;
mod remote;
mod scope;
mod trust;
