//! Who may ask a server that does not answer everybody.

use super::ClientError;

/// Gets the tokens for one server.
pub trait Authorize: Send + Sync {
    /// The token at hand, if there is one. Costs nothing and waits for nobody.
    fn token(&self) -> Option<String>;

    /// The server turned a request down with `status` and these `WWW-Authenticate` headers: another token than `used`,
    /// the one that was sent, if there was one. It may take a person's answer to get.
    fn challenged(
        &self,
        used: Option<&str>,
        status: u16,
        challenges: &[String],
    ) -> Result<String, ClientError>;
}
