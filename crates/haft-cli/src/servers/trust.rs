//! The user's consent to servers that came with a project, and the tools of each server as the user accepted them.
//!
//! One file per server in Haft's state directory, so that a start reads only what it needs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use haft_files::{PrivateFile, hash};
use haft_tool::{ToolError, now_ms};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::entry::{ServerEntry, ServerGrants, ServerLocation};

/// The largest size of one server's file.
const MAX_RECORD_BYTES: u64 = 32 << 20;

/// The store of the user's consents.
#[derive(Debug, Clone)]
pub struct TrustStore {
    directory: PathBuf,
}

/// The stored state of one server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct KnownServer {
    /// Its name when it was stored.
    pub name: String,
    /// When the user consented, in milliseconds since 1970.
    pub consent: Option<u64>,
    /// What the user allowed it to do.
    pub grants: ServerGrants,
    /// Its accepted tools by name.
    pub tools: BTreeMap<String, Value>,
    /// Whether its tools were ever listed.
    pub seen: bool,
    /// Its tools as last listed, if they differ from the accepted ones.
    pub pending: Option<BTreeMap<String, Value>>,
}

impl KnownServer {
    /// What the server may do: the user's grant, or the entry's own if the user wrote it.
    pub fn grants<'a>(&'a self, entry: &'a ServerEntry) -> &'a ServerGrants {
        if entry.needs_consent() { &self.grants } else { &entry.grants }
    }

    /// Whether the server may be used.
    pub fn is_trusted(&self, entry: &ServerEntry) -> bool {
        self.consent.is_some() || !entry.needs_consent()
    }
}

impl TrustStore {
    /// The store below `home`.
    pub fn new(home: &Path) -> Self {
        Self { directory: home.join("servers") }
    }

    /// The stored state of a server; empty if it is new or its entry has changed.
    pub fn known(&self, entry: &ServerEntry) -> Result<KnownServer, ToolError> {
        if entry.location == ServerLocation::Host {
            return Ok(KnownServer::default());
        }
        Ok(self.file(entry).read()?.map(|bytes| read(&bytes)).unwrap_or_default())
    }

    /// Deletes the stored state of a server; returns whether there was any.
    pub fn forget(&self, entry: &ServerEntry) -> Result<bool, ToolError> {
        let nothing = KnownServer::default();
        self.file(entry).update(|old| match old.map(|bytes| read(&bytes)) {
            Some(known) if known != nothing => Ok((true, Some(serde_json::to_vec(&nothing)?))),
            _ => Ok((false, None)),
        })
    }

    /// Stores the user's consent to the server with these grants. Accepted tools stay as they are.
    pub fn consent(&self, entry: &ServerEntry, grants: ServerGrants) -> Result<(), ToolError> {
        self.change(entry, |known| {
            known.consent = Some(now_ms());
            known.grants = grants;
        })
    }

    /// Stores these tools as accepted by the user.
    pub fn accept_tools(&self, entry: &ServerEntry, tools: BTreeMap<String, Value>) -> Result<(), ToolError> {
        self.change(entry, |known| {
            known.seen = true;
            known.pending = known.pending.take().filter(|pending| *pending != tools);
            known.tools = tools;
        })
    }

    /// Compares the listed tools with the accepted ones. The first list is accepted; later differences wait for consent.
    /// Returns the names of the waiting tools.
    pub fn record_tools(
        &self,
        entry: &ServerEntry,
        now: &BTreeMap<String, Value>,
    ) -> Result<Vec<String>, ToolError> {
        // The program that drives Haft says each time what its tools are.
        if entry.location == ServerLocation::Host {
            return Ok(Vec::new());
        }
        let known = self.known(entry)?;
        if !known.seen {
            self.accept_tools(entry, now.clone())?;
            return Ok(Vec::new());
        }
        let waiting: Vec<String> = changed_tools(&known, now).into_iter().map(str::to_owned).collect();
        let pending = (!waiting.is_empty()).then(|| now.clone());
        if known.pending != pending {
            self.change(entry, |known| known.pending = pending)?;
        }
        Ok(waiting)
    }

    fn change(&self, entry: &ServerEntry, change: impl FnOnce(&mut KnownServer)) -> Result<(), ToolError> {
        self.file(entry).update(|old| {
            let mut known = old.map(|bytes| read(&bytes)).unwrap_or_default();
            known.name.clone_from(&entry.name);
            change(&mut known);
            Ok(((), Some(serde_json::to_vec(&known)?)))
        })
    }

    fn file(&self, entry: &ServerEntry) -> PrivateFile {
        PrivateFile::new(&self.directory, format!("{}.json", identity(entry)), MAX_RECORD_BYTES)
    }
}

/// Parses the file; an unreadable one counts as no consent.
fn read(bytes: &[u8]) -> KnownServer {
    serde_json::from_slice(bytes).unwrap_or_default()
}

/// The keys of an entry that do not identify the server.
const USAGE_KEYS: [&str; 8] =
    ["disabled", "enabled", "network", "offers", "sandbox", "timeout", "tools", "writes"];

/// The identity of a server: its origin, its name and every key that determines what runs. Another command, argument,
/// variable or URL is another server; the order of keys does not matter.
pub fn identity(entry: &ServerEntry) -> String {
    let kind = match &entry.location {
        ServerLocation::Process { .. } => "process",
        ServerLocation::Http { .. } => "http",
        ServerLocation::Host => "sdk",
    };
    let mut what = sorted(&entry.written);
    if let Value::Object(what) = &mut what {
        what.retain(|name, _| !USAGE_KEYS.contains(&name.as_str()));
    }
    let whole = json!([entry.origin.to_string(), entry.name, [kind, what]]);
    hash(whole.to_string().as_bytes())
}

/// The value with sorted keys.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let members: BTreeMap<&String, Value> =
                members.iter().map(|(name, value)| (name, sorted(value))).collect();
            json!(members)
        }
        Value::Array(values) => values.iter().map(sorted).collect(),
        value => value.clone(),
    }
}

/// The names of tools that are new or differ from the accepted ones.
pub fn changed_tools<'a>(known: &KnownServer, now: &'a BTreeMap<String, Value>) -> Vec<&'a str> {
    now.iter()
        .filter(|(name, tool)| known.tools.get(*name) != Some(tool))
        .map(|(name, _)| name.as_str())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::ServerOrigin;

    fn entry(command: &str) -> ServerEntry {
        let origin = ServerOrigin::Project("/w/.mcp.json".into());
        ServerEntry::read("x", &json!({"command": command}), origin, &|_| None).unwrap().unwrap()
    }

    fn tools(words: &[(&str, &str)]) -> BTreeMap<String, Value> {
        words.iter().map(|(name, words)| ((*name).to_owned(), json!({"description": words}))).collect()
    }

    #[test]
    fn consent_covers_one_command_and_can_be_deleted() {
        let home = tempfile::tempdir().unwrap();
        let trust = TrustStore::new(home.path());
        let (one, other) = (entry("one"), entry("other"));
        assert!(!trust.known(&one).unwrap().is_trusted(&one));
        assert!(!trust.forget(&one).unwrap());
        trust.consent(&one, ServerGrants { writes: true, ..ServerGrants::default() }).unwrap();
        let known = trust.known(&one).unwrap();
        assert!(known.is_trusted(&one) && known.grants(&one).writes);
        assert!(!trust.known(&other).unwrap().is_trusted(&other), "another command is another server");
        assert!(trust.forget(&one).unwrap() && !trust.forget(&one).unwrap());
        assert_eq!(trust.known(&one).unwrap(), KnownServer::default());
    }

    #[test]
    fn every_identifying_key_changes_the_identity() {
        let of = |written: Value| {
            let entry =
                ServerEntry::read("x", &written, ServerOrigin::Project("/w/.mcp.json".into()), &|_| None);
            identity(&entry.unwrap().unwrap())
        };
        let first = of(json!({"command": "c", "args": ["a", "b"], "env": {"A": "1", "B": "2"}}));
        let same = json!({"timeout": 5, "env": {"B": "2", "A": "1"}, "tools": ["t"], "args": ["a", "b"], "command": "c"});
        assert_eq!(first, of(same));
        for other in [
            json!({"command": "d", "args": ["a", "b"], "env": {"A": "1", "B": "2"}}),
            json!({"command": "c", "args": ["b", "a"], "env": {"A": "1", "B": "2"}}),
            json!({"command": "c", "args": ["a", "b"], "env": {"A": "1", "B": "3"}}),
            json!({"command": "c", "args": ["a", "b"], "env": {"A": "1", "B": "2"}, "cwd": "/x"}),
            json!({"command": "c", "args": ["a", "b"], "env": {"A": "1", "B": "2"}, "anything": "else"}),
        ] {
            assert_ne!(first, of(other.clone()), "{other}");
        }
    }

    #[test]
    fn first_tools_are_accepted_and_changed_ones_wait() {
        let home = tempfile::tempdir().unwrap();
        let trust = TrustStore::new(home.path());
        let entry = entry("one");
        let first = tools(&[("a", "adds"), ("b", "subtracts")]);
        assert!(trust.record_tools(&entry, &first).unwrap().is_empty());
        assert!(trust.record_tools(&entry, &first).unwrap().is_empty());
        let later = tools(&[("a", "adds, and sends your keys"), ("b", "subtracts"), ("c", "new")]);
        assert_eq!(trust.record_tools(&entry, &later).unwrap(), ["a", "c"]);
        trust.consent(&entry, ServerGrants::default()).unwrap();
        assert_eq!(
            trust.record_tools(&entry, &later).unwrap(),
            ["a", "c"],
            "consent to the server does not cover its new tools"
        );
        assert_eq!(trust.known(&entry).unwrap().pending.as_ref(), Some(&later));
        assert!(trust.record_tools(&entry, &first).unwrap().is_empty());
        assert_eq!(trust.known(&entry).unwrap().pending, None, "the tools changed back");
        trust.record_tools(&entry, &later).unwrap();
        trust.accept_tools(&entry, later.clone()).unwrap();
        assert!(trust.record_tools(&entry, &later).unwrap().is_empty());
        let fewer = tools(&[("b", "subtracts")]);
        assert!(trust.record_tools(&entry, &fewer).unwrap().is_empty(), "a removed tool needs no consent");
    }

    #[test]
    fn unreadable_file_counts_as_no_consent() {
        let home = tempfile::tempdir().unwrap();
        let trust = TrustStore::new(home.path());
        let entry = entry("one");
        trust.consent(&entry, ServerGrants::default()).unwrap();
        trust.file(&entry).update(|_| Ok(((), Some(b"{\"consent\": \"yes\"".to_vec())))).unwrap();
        assert!(!trust.known(&entry).unwrap().is_trusted(&entry));
    }
}
