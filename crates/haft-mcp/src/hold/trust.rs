//! What the user has said yes to: servers that came with a project, and what each server's tools looked like then.
//!
//! One file for each server in Haft's own state directory, so that a start reads only what it needs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use haft_tool::{ToolError, now_ms};
use haft_world::{Vault, hash};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::entry::{Entry, Grants, Way};

/// The most bytes of one server's file.
const MOST_BYTES: u64 = 32 << 20;

/// Where the user's consents are kept.
#[derive(Debug, Clone)]
pub struct Trust {
    directory: PathBuf,
}

/// What is known of one server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Known {
    /// What it was called.
    pub name: String,
    /// When the user said yes, in milliseconds since 1970.
    pub consent: Option<u64>,
    /// What the user granted it.
    pub grants: Grants,
    /// Its tools as the user has seen them, by their own names.
    pub tools: BTreeMap<String, Value>,
    /// Whether its tools have been seen at all.
    pub seen: bool,
}

impl Trust {
    /// Consents that are kept below `home`.
    pub fn new(home: &Path) -> Self {
        Self { directory: home.join("servers") }
    }

    /// What is known of a server; nothing if it is new, or is no longer what it was.
    pub fn known(&self, entry: &Entry) -> Result<Known, ToolError> {
        match self.file(entry).read()? {
            // What cannot be read any more has to be asked again.
            Some(bytes) => Ok(serde_json::from_slice(&bytes).unwrap_or_default()),
            None => Ok(Known::default()),
        }
    }

    /// Writes down what is known of a server.
    pub fn keep(&self, entry: &Entry, known: &Known) -> Result<(), ToolError> {
        let bytes = serde_json::to_vec(known)?;
        self.file(entry).update(|_| Ok(((), Some(bytes))))
    }

    /// Forgets a server; whether there was anything to forget.
    pub fn forget(&self, entry: &Entry) -> Result<bool, ToolError> {
        let nothing = serde_json::to_vec(&Known::default())?;
        self.file(entry).update(|old| Ok((old.is_some(), old.map(|_| nothing))))
    }

    /// The user has said yes to this server, with these grants. Its tools will be looked at anew.
    pub fn consent(&self, entry: &Entry, grants: Grants) -> Result<(), ToolError> {
        let known = Known { name: entry.name.clone(), consent: Some(now_ms()), grants, ..Known::default() };
        self.keep(entry, &known)
    }

    fn file(&self, entry: &Entry) -> Vault {
        Vault::new(&self.directory, format!("{}.json", identity(entry)), MOST_BYTES)
    }
}

/// What makes a server the same one: who configured it, its name, and everything that says what it is. Another command,
/// argument, variable or address is another server.
pub fn identity(entry: &Entry) -> String {
    let what = match &entry.way {
        Way::Process { .. } => json!(["process", &entry.written]),
        Way::Http { .. } => json!(["http", &entry.written]),
    };
    let whole = json!([entry.origin.to_string(), entry.name, what]);
    hash(whole.to_string().as_bytes())
}

/// The tools that are not as the user has seen them: new, changed.
pub fn changed<'a>(known: &Known, now: &'a BTreeMap<String, Value>) -> Vec<&'a str> {
    now.iter()
        .filter(|(name, tool)| known.tools.get(*name) != Some(tool))
        .map(|(name, _)| name.as_str())
        .collect()
}
