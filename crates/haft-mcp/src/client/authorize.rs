//! Who may ask a server that does not answer everybody.

use haft_tool::Cancel;

use super::ClientError;

/// Gets the tokens for one server.
pub trait TokenProvider: Send + Sync {
    /// The token at hand, if there is one. Nobody is asked; at most one that ends soon is renewed first.
    fn token(&self) -> Option<String>;

    /// The server turned down a request that was sent with the token `used`, with `status` and these `WWW-Authenticate`
    /// headers: another token, which may take a person's answer to get.
    fn challenged(
        &self,
        used: Option<&str>,
        status: u16,
        challenges: &[String],
        cancel: &Cancel,
    ) -> Result<String, ClientError>;
}
