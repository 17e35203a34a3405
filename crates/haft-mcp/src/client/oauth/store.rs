//! Tokens on disk: one file per user, one entry per server, each bound to who gave it out.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use haft_files::{FileLockGuard, PrivateFile};
use haft_tool::{Cancel, Secret, ToolError, Value};
use serde::{Deserialize, Serialize, Serializer};

use super::grant::Tokens;
use super::registration::OAuthClient;
use super::words::passed_on;
use crate::client::ClientError;

const NAME: &str = "oauth.json";
const MOST_BYTES: u64 = 4 << 20;
const VERSION: u64 = 1;
const DOING: &str = "tokens";

/// What is kept for one server. Another issuer's entry is no entry: nothing of it is ever shown to this one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// Who gives out the tokens.
    pub(super) issuer: String,
    /// What the tokens are for.
    pub(super) resource: String,
    /// Where the tokens are renewed.
    pub(super) token_endpoint: String,
    /// As whom.
    pub(super) client: OAuthClient,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tokens: Option<Tokens>,
}

/// The file, and the server whose entry is meant.
#[derive(Debug)]
pub(super) struct Store {
    file: PrivateFile,
    server: String,
}

#[derive(Default, Serialize, Deserialize)]
struct Contents {
    version: u64,
    /// As they stand, so that what another Haft wrote is not lost on the way.
    #[serde(default)]
    servers: BTreeMap<String, Value>,
}

impl Store {
    pub(super) fn new(folder: &Path, server: String) -> Self {
        Self { file: PrivateFile::new(folder, NAME, MOST_BYTES), server }
    }

    /// Waits until nobody else is getting tokens for this server.
    pub(super) fn turn(&self, limit: Duration, cancel: &Cancel) -> Result<FileLockGuard, ClientError> {
        self.file.lock(&self.server, limit, cancel).map_err(|error| passed_on(DOING, &error))
    }

    /// The server's entry; one that cannot be read is none.
    pub(super) fn entry(&self) -> Result<Option<Entry>, ClientError> {
        let contents = self.file.read().and_then(|bytes| self.contents(bytes));
        let mut contents = contents.map_err(|error| passed_on(DOING, &error))?;
        Ok(contents.servers.remove(&self.server).and_then(|entry| serde_json::from_value(entry).ok()))
    }

    /// Keeps `entry`, or forgets what was kept.
    pub(super) fn put(&self, entry: Option<&Entry>) -> Result<(), ClientError> {
        let done = self.file.update(|bytes| {
            let mut contents = self.contents(bytes)?;
            match entry {
                Some(entry) => {
                    let mut entry = entry.clone();
                    if entry.client.by_hand {
                        entry.client.secret = None;
                    }
                    let value = serde_json::to_value(&entry)
                        .map_err(|error| ToolError::internal(error.to_string()))?;
                    contents.servers.insert(self.server.clone(), value);
                }
                None => _ = contents.servers.remove(&self.server),
            }
            contents.version = VERSION;
            let bytes = serde_json::to_vec_pretty(&contents)
                .map_err(|error| ToolError::internal(error.to_string()))?;
            Ok(((), Some(bytes)))
        });
        done.map_err(|error| passed_on("the tokens could not be kept", &error))
    }

    /// What the file says. Tokens can be had again, so a broken file is an empty one; a newer Haft's is left alone.
    fn contents(&self, bytes: Option<Vec<u8>>) -> Result<Contents, ToolError> {
        let contents: Contents =
            bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        if contents.version > VERSION {
            let path = self.file.path();
            return Err(ToolError::failed(format!(
                "{} was written by a newer Haft; use that one, or move the file away",
                path.display()
            )));
        }
        Ok(contents)
    }
}

/// The one place where secrets are written out: the file that only their user may read.
pub(super) fn shown<S: Serializer>(secret: &Secret, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(secret.expose())
}

/// The same for one that may be missing.
#[expect(clippy::ref_option, reason = "serde calls it so")]
pub(super) fn exposed<S: Serializer>(secret: &Option<Secret>, serializer: S) -> Result<S::Ok, S::Error> {
    secret.as_ref().map(Secret::expose).serialize(serializer)
}
