//! The user's one-time consent to what a project's settings files allow, run or pass to commands; bound to exactly that.

use std::path::Path;

use haft_files::{PrivateFile, hash};
use haft_tool::{ToolError, now_ms};
use serde::{Deserialize, Serialize};

/// The largest size of one project's file.
const MAX_RECORD_BYTES: u64 = 1 << 20;

/// The stored consent for a project.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct StoredConsent {
    workspace: String,
    /// The hash of what was consented to.
    content: String,
    /// When, in milliseconds since 1970.
    at: u64,
}

/// The consent for one project.
pub(crate) struct ProjectTrust {
    file: PrivateFile,
    workspace: String,
}

impl ProjectTrust {
    /// The consent for `workspace`, in the ledger's directory.
    pub(crate) fn new(home: &Path, workspace: &Path) -> Self {
        let workspace = workspace.display().to_string();
        let name = format!("{}.json", hash(workspace.as_bytes()));
        Self { file: PrivateFile::new(home.join("projects"), name, MAX_RECORD_BYTES), workspace }
    }

    /// Whether the user has consented to exactly this.
    pub(crate) fn covers(&self, content: &[String]) -> Result<bool, ToolError> {
        let stored = self.file.read()?;
        // An unreadable file counts as no consent.
        let stored: StoredConsent =
            stored.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        Ok(content.is_empty() || stored.content == digest(content))
    }

    /// Stores the consent to this.
    pub(crate) fn consent(&self, content: &[String]) -> Result<(), ToolError> {
        self.store(digest(content))
    }

    /// Takes the consent back.
    pub(crate) fn revoke(&self) -> Result<(), ToolError> {
        self.store(String::new())
    }

    fn store(&self, content: String) -> Result<(), ToolError> {
        let stored = StoredConsent { workspace: self.workspace.clone(), content, at: now_ms() };
        let bytes = serde_json::to_vec(&stored)?;
        self.file.update(|_| Ok(((), Some(bytes.clone()))))
    }
}

fn digest(content: &[String]) -> String {
    // As JSON, so that no two lists look the same.
    hash(serde_json::to_vec(content).unwrap_or_default().as_slice())
}
