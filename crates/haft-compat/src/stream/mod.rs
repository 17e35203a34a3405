//! Claude Code's stream of JSON lines, by which a program drives an agent: what the program sends ([`HostLine`],
//! [`ControlRequest`]), how it answers a question about a call ([`PermissionReply`]), and how long a line may be ([`fit_line`]).

mod control_request;
mod fit;
mod host_line;
mod initialize;
mod permission_reply;

pub use control_request::ControlRequest;
pub use fit::{MAX_LINE_BYTES, fit_line};
pub use host_line::{HostLine, HostReply, UserLine};
pub use initialize::{HostAgent, HostHookMatcher, InitializeRequest};
pub use permission_reply::PermissionReply;
