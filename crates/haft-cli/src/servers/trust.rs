//! What the user has said yes to: servers that came with a project, and what each server's tools looked like then.
//!
//! One file for each server in Haft's own state directory, so that a start reads only what it needs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use haft_files::{PrivateFile, hash};
use haft_tool::{ToolError, now_ms};
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
    /// Its tools as they were last, where they are not as the user has seen them.
    pub pending: Option<BTreeMap<String, Value>>,
}

impl Known {
    /// What the server may do: what the user granted it, or what its entry says where that is the user's own.
    pub fn grants<'a>(&'a self, entry: &'a Entry) -> &'a Grants {
        if entry.needs_consent() { &self.grants } else { &entry.grants }
    }

    /// Whether the server may be used.
    pub fn is_trusted(&self, entry: &Entry) -> bool {
        self.consent.is_some() || !entry.needs_consent()
    }
}

impl Trust {
    /// Consents that are kept below `home`.
    pub fn new(home: &Path) -> Self {
        Self { directory: home.join("servers") }
    }

    /// What is known of a server; nothing if it is new, or is no longer what it was.
    pub fn known(&self, entry: &Entry) -> Result<Known, ToolError> {
        Ok(self.file(entry).read()?.map(|bytes| read(&bytes)).unwrap_or_default())
    }

    /// Forgets a server; whether there was anything to forget.
    pub fn forget(&self, entry: &Entry) -> Result<bool, ToolError> {
        let nothing = Known::default();
        self.file(entry).update(|old| match old.map(|bytes| read(&bytes)) {
            Some(known) if known != nothing => Ok((true, Some(serde_json::to_vec(&nothing)?))),
            _ => Ok((false, None)),
        })
    }

    /// The user has said yes to this server, with these grants. What its tools looked like stays as the user has seen it.
    pub fn consent(&self, entry: &Entry, grants: Grants) -> Result<(), ToolError> {
        self.change(entry, |known| {
            known.consent = Some(now_ms());
            known.grants = grants;
        })
    }

    /// The user has seen these tools of the server, and said yes to them.
    pub fn accept(&self, entry: &Entry, tools: BTreeMap<String, Value>) -> Result<(), ToolError> {
        self.change(entry, |known| {
            known.seen = true;
            known.pending = known.pending.take().filter(|pending| *pending != tools);
            known.tools = tools;
        })
    }

    /// What the server shows now. The first time it is taken as it is; later, what is not as the user has seen it waits for
    /// their yes. Gives the names of the tools that wait.
    pub fn saw(&self, entry: &Entry, now: &BTreeMap<String, Value>) -> Result<Vec<String>, ToolError> {
        let known = self.known(entry)?;
        if !known.seen {
            self.accept(entry, now.clone())?;
            return Ok(Vec::new());
        }
        let waiting: Vec<String> = changed(&known, now).into_iter().map(str::to_owned).collect();
        let pending = (!waiting.is_empty()).then(|| now.clone());
        if known.pending != pending {
            self.change(entry, |known| known.pending = pending)?;
        }
        Ok(waiting)
    }

    fn change(&self, entry: &Entry, change: impl FnOnce(&mut Known)) -> Result<(), ToolError> {
        self.file(entry).update(|old| {
            let mut known = old.map(|bytes| read(&bytes)).unwrap_or_default();
            known.name.clone_from(&entry.name);
            change(&mut known);
            Ok(((), Some(serde_json::to_vec(&known)?)))
        })
    }

    fn file(&self, entry: &Entry) -> PrivateFile {
        PrivateFile::new(&self.directory, format!("{}.json", identity(entry)), MOST_BYTES)
    }
}

/// What cannot be read any more has to be asked again.
fn read(bytes: &[u8]) -> Known {
    serde_json::from_slice(bytes).unwrap_or_default()
}

/// What an entry may say without saying what the server is: how it is used, and what its user grants it.
const HOW: [&str; 8] = ["disabled", "enabled", "network", "offers", "sandbox", "timeout", "tools", "writes"];

/// What makes a server the same one: who configured it, its name, and everything that says what it is. Another command,
/// argument, variable or address is another server; another order of the same words is not.
pub fn identity(entry: &Entry) -> String {
    let kind = match &entry.way {
        Way::Process { .. } => "process",
        Way::Http { .. } => "http",
    };
    let mut what = sorted(&entry.written);
    if let Value::Object(what) = &mut what {
        what.retain(|name, _| !HOW.contains(&name.as_str()));
    }
    let whole = json!([entry.origin.to_string(), entry.name, [kind, what]]);
    hash(whole.to_string().as_bytes())
}

/// The value with all names in one order.
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

/// The tools that are not as the user has seen them: new, changed.
pub fn changed<'a>(known: &Known, now: &'a BTreeMap<String, Value>) -> Vec<&'a str> {
    now.iter()
        .filter(|(name, tool)| known.tools.get(*name) != Some(tool))
        .map(|(name, _)| name.as_str())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::Origin;

    fn entry(command: &str) -> Entry {
        let origin = Origin::Project("/w/.mcp.json".into());
        Entry::read("x", &json!({"command": command}), origin, &|_| None).unwrap().unwrap()
    }

    fn tools(words: &[(&str, &str)]) -> BTreeMap<String, Value> {
        words.iter().map(|(name, words)| ((*name).to_owned(), json!({"description": words}))).collect()
    }

    #[test]
    fn consent_is_to_one_command_and_is_forgotten_whole() {
        let home = tempfile::tempdir().unwrap();
        let trust = Trust::new(home.path());
        let (one, other) = (entry("one"), entry("other"));
        assert!(!trust.known(&one).unwrap().is_trusted(&one));
        assert!(!trust.forget(&one).unwrap());
        trust.consent(&one, Grants { writes: true, ..Grants::default() }).unwrap();
        let known = trust.known(&one).unwrap();
        assert!(known.is_trusted(&one) && known.grants(&one).writes);
        assert!(!trust.known(&other).unwrap().is_trusted(&other), "another command is another server");
        assert!(trust.forget(&one).unwrap() && !trust.forget(&one).unwrap());
        assert_eq!(trust.known(&one).unwrap(), Known::default());
    }

    #[test]
    fn all_that_says_what_a_server_is_makes_it_another_one() {
        let of = |written: Value| {
            let entry = Entry::read("x", &written, Origin::Project("/w/.mcp.json".into()), &|_| None);
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
    fn tools_are_taken_as_they_are_first_and_wait_when_they_change() {
        let home = tempfile::tempdir().unwrap();
        let trust = Trust::new(home.path());
        let entry = entry("one");
        let first = tools(&[("a", "adds"), ("b", "subtracts")]);
        assert!(trust.saw(&entry, &first).unwrap().is_empty());
        assert!(trust.saw(&entry, &first).unwrap().is_empty());
        let later = tools(&[("a", "adds, and sends your keys"), ("b", "subtracts"), ("c", "new")]);
        assert_eq!(trust.saw(&entry, &later).unwrap(), ["a", "c"]);
        trust.consent(&entry, Grants::default()).unwrap();
        assert_eq!(
            trust.saw(&entry, &later).unwrap(),
            ["a", "c"],
            "a yes to the server is none to its new tools"
        );
        assert_eq!(trust.known(&entry).unwrap().pending.as_ref(), Some(&later));
        assert!(trust.saw(&entry, &first).unwrap().is_empty());
        assert_eq!(trust.known(&entry).unwrap().pending, None, "it went back");
        trust.saw(&entry, &later).unwrap();
        trust.accept(&entry, later.clone()).unwrap();
        assert!(trust.saw(&entry, &later).unwrap().is_empty());
        let fewer = tools(&[("b", "subtracts")]);
        assert!(trust.saw(&entry, &fewer).unwrap().is_empty(), "a tool that is gone harms nobody");
    }

    #[test]
    fn a_file_that_cannot_be_read_trusts_nobody() {
        let home = tempfile::tempdir().unwrap();
        let trust = Trust::new(home.path());
        let entry = entry("one");
        trust.consent(&entry, Grants::default()).unwrap();
        trust.file(&entry).update(|_| Ok(((), Some(b"{\"consent\": \"yes\"".to_vec())))).unwrap();
        assert!(!trust.known(&entry).unwrap().is_trusted(&entry));
    }
}
