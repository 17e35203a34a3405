//! Who shows the user where to say yes.

use haft_tool::ToolError;
use url::Url;

/// Brings the user's browser to an authorization server.
pub trait BrowserOpener: Send + Sync {
    /// Shows `url` to the user, or opens it once the user agrees; returns without waiting for what the user does there.
    ///
    /// The address is one with `https`, or with `http` on this machine. It was named by a stranger all the same: show its
    /// host, and hand it to a browser as one argument, never to a shell. An error ends the attempt; its words should say
    /// what the user can do instead.
    fn open(&self, url: &Url) -> Result<(), ToolError>;
}
