//! Opens the user's browser.

use haft_tool::ToolError;
use url::Url;

/// Opens a URL in the user's browser.
pub trait BrowserOpener: Send + Sync {
    /// Shows `url` to the user or opens it; returns without waiting for the user.
    ///
    /// The URL is `https`, or `http` on this machine, but a server chose it: show its host, and pass it to the browser as
    /// one argument, never through a shell. An error ends the attempt; its message should say what the user can do.
    fn open(&self, url: &Url) -> Result<(), ToolError>;
}
