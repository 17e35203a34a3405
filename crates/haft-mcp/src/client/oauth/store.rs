//! Tokens on disk: one private file per user, with one entry per server.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use haft_files::{FileLockGuard, PrivateFile};
use haft_tool::{Cancel, Secret, ToolError, Value};
use serde::{Deserialize, Serialize, Serializer};

use super::errors::convert;
use super::grant::Tokens;
use super::registration::OAuthClient;
use crate::client::ClientError;

const FILE_NAME: &str = "oauth.json";
const MAX_FILE_BYTES: u64 = 4 << 20;
const FORMAT_VERSION: u64 = 1;

/// What is stored for one server. It is bound to its issuer: nothing of it is sent to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TokenEntry {
    /// The authorization server.
    pub(super) issuer: String,
    /// The resource that the tokens are for.
    pub(super) resource: String,
    pub(super) token_endpoint: String,
    pub(super) client: OAuthClient,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tokens: Option<Tokens>,
}

/// The entry of one server in the file.
#[derive(Debug)]
pub(super) struct TokenStore {
    file: PrivateFile,
    server: String,
}

#[derive(Default, Serialize, Deserialize)]
struct TokenFile {
    version: u64,
    /// Kept as JSON, so that entries of other Haft versions are not lost.
    #[serde(default)]
    servers: BTreeMap<String, Value>,
}

impl TokenStore {
    pub(super) fn new(folder: &Path, server: String) -> Self {
        Self { file: PrivateFile::new(folder, FILE_NAME, MAX_FILE_BYTES), server }
    }

    /// Waits until no other thread or process gets tokens for this server.
    pub(super) fn lock(&self, timeout: Duration, cancel: &Cancel) -> Result<FileLockGuard, ClientError> {
        self.file
            .lock(&self.server, timeout, cancel)
            .map_err(|error| convert("cannot lock the tokens", &error))
    }

    /// The server's entry; `None` if there is none or it is invalid.
    pub(super) fn entry(&self) -> Result<Option<TokenEntry>, ClientError> {
        let content = self.file.read().and_then(|bytes| self.parse(bytes));
        let mut content = content.map_err(|error| convert("cannot read the tokens", &error))?;
        Ok(content.servers.remove(&self.server).and_then(|entry| serde_json::from_value(entry).ok()))
    }

    /// Stores `entry`, or removes the stored one.
    pub(super) fn put(&self, entry: Option<&TokenEntry>) -> Result<(), ClientError> {
        let updated = self.file.update(|bytes| {
            let mut content = self.parse(bytes)?;
            match entry {
                Some(entry) => {
                    let mut entry = entry.clone();
                    if entry.client.is_users {
                        entry.client.secret = None;
                    }
                    let value = serde_json::to_value(&entry)?;
                    content.servers.insert(self.server.clone(), value);
                }
                None => _ = content.servers.remove(&self.server),
            }
            content.version = FORMAT_VERSION;
            Ok(((), Some(serde_json::to_vec_pretty(&content)?)))
        });
        updated.map_err(|error| convert("cannot store the tokens", &error))
    }

    /// Parses the file. An invalid file counts as empty, because tokens can be requested again.
    fn parse(&self, bytes: Option<Vec<u8>>) -> Result<TokenFile, ToolError> {
        let content: TokenFile =
            bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        if content.version > FORMAT_VERSION {
            return Err(ToolError::failed(format!(
                "{} was written by a newer version of Haft. Use that version, or move the file away.",
                self.file.path().display()
            )));
        }
        Ok(content)
    }
}

/// Writes a secret; only for the private file.
pub(super) fn write_secret<S: Serializer>(secret: &Secret, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(secret.expose())
}

/// Writes an optional secret; only for the private file.
#[expect(clippy::ref_option, reason = "the signature that serde requires")]
pub(super) fn write_optional_secret<S: Serializer>(
    secret: &Option<Secret>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    secret.as_ref().map(Secret::expose).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use haft_tool::json;

    use super::*;

    #[test]
    fn debug_output_of_an_entry_shows_no_secret() {
        let entry: TokenEntry = serde_json::from_value(json!({
            "issuer": "https://auth.example.org",
            "resource": "https://mcp.example.com/mcp",
            "token_endpoint": "https://auth.example.org/token",
            "client": {"id": "haft", "secret": "client-secret", "method": "none"},
            "tokens": {"access": "access-secret", "refresh": "refresh-secret"},
        }))
        .unwrap();
        let printed = format!("{entry:?}");
        assert!(printed.contains("haft") && !printed.contains("-secret"), "{printed}");
    }
}
