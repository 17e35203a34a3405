//! Access tokens for servers that require authorization.

use haft_tool::Cancel;

use super::ClientError;

/// Provides the access tokens for one server.
pub trait TokenProvider: Send + Sync {
    /// The current token, if there is one. Does not involve the user; may refresh a token that is about to expire.
    fn token(&self) -> Option<String>;

    /// Gets a new token after the server has rejected a request with `status` and these `WWW-Authenticate` headers.
    /// `used` is the token that was sent. May involve the user.
    fn challenged(
        &self,
        used: Option<&str>,
        status: u16,
        challenges: &[String],
        cancel: &Cancel,
    ) -> Result<String, ClientError>;
}
