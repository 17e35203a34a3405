//! What most tests begin with: a ledger in a directory of its own, and receipts to put into it.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use haft_ledger::{Ledger, Look, NewSession};
use haft_tool::{
    Change, FileContent, FileId, FileNode, Intent, Node, Receipt, Reversible, State, ToolError, json, now_ms,
};
use tempfile::TempDir;

/// A ledger that is gone after the test.
pub(crate) struct Setting {
    dir: TempDir,
    pub(crate) ledger: Ledger,
    pub(crate) session: String,
}

pub(crate) fn setting() -> Setting {
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(dir.path().join("home")).unwrap();
    let session = ledger.start_session(&new_session("/w")).unwrap();
    Setting { dir, ledger, session }
}

impl Setting {
    pub(crate) fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.home().join("ledger.db")
    }

    /// Does to the database what nobody should.
    pub(crate) fn meddle(&self, sql: &str) {
        rusqlite::Connection::open(self.database()).unwrap().execute_batch(sql).unwrap();
    }

    /// A call that has not been written down yet.
    pub(crate) fn call(&self) -> Receipt {
        call(&self.session)
    }

    /// A finished call that only read.
    pub(crate) fn read(&self) -> Receipt {
        let mut receipt = self.call();
        self.ledger.finish(&mut receipt).unwrap();
        receipt
    }

    /// A finished call that replaced the bytes of `/w/<name>`.
    pub(crate) fn wrote(&self, name: &str, before: &[u8], after: &[u8]) -> Receipt {
        let mut receipt = self.call();
        let change = change(&format!("/w/{name}"), file(before), file(after));
        self.ledger
            .before_changes(
                &mut receipt,
                &mut [Intent { change: change.clone(), previous: FileContent::Bytes(before), temp: None }],
            )
            .unwrap();
        receipt.state = State::Completed;
        self.ledger.finish(&mut receipt).unwrap();
        receipt
    }

    /// A finished call that took `targets` back.
    pub(crate) fn undid(&self, targets: &[&Receipt]) -> Receipt {
        let mut receipt = self.call();
        receipt.tool = "undo".into();
        receipt.undoes = targets.iter().map(|target| target.id).collect();
        self.ledger.finish(&mut receipt).unwrap();
        receipt
    }
}

pub(crate) fn new_session(workspace: impl AsRef<Path>) -> NewSession {
    NewSession { workspace: workspace.as_ref().to_owned(), dialect: "claude".into(), door: "cli".into() }
}

pub(crate) fn call(session: &str) -> Receipt {
    Receipt {
        id: 0,
        session: session.to_owned(),
        call_id: "call-1".into(),
        tool: "Read".into(),
        workspace: "/w".into(),
        input: json!({ "file_path": "/w/a.txt" }),
        effects: Vec::new(),
        decision: None,
        state: State::Completed,
        error_kind: None,
        error: None,
        started_at: now_ms(),
        duration_us: 42,
        changes: Vec::new(),
        reversible: Reversible::Yes,
        undoes: Vec::new(),
        full_output: None,
        enforcement: None,
        denials: Vec::new(),
        notes: serde_json::Map::default(),
    }
}

pub(crate) fn file(bytes: &[u8]) -> Node {
    Node::File(FileNode {
        hash: blake3::hash(bytes).to_hex().to_string(),
        size: bytes.len() as u64,
        mode: 0o644,
        owner: None,
        xattrs: Vec::new(),
        linked: None,
    })
}

pub(crate) fn change(path: &str, before: Node, after: Node) -> Change {
    Change::new(path, before, after)
}

pub(crate) fn hash_of(node: &Node) -> &str {
    &node.as_file().unwrap().hash
}

/// Bytes that are kept as a file of their own.
pub(crate) fn large(byte: u8) -> Vec<u8> {
    vec![byte; 50_000]
}

/// A look at a world with nothing in it.
pub(crate) struct Blind;

impl Look for Blind {
    fn observe(&mut self, _path: &Path) -> Result<Node, ToolError> {
        Ok(Node::Absent)
    }

    fn names(&mut self, _path: &Path) -> Result<Vec<OsString>, ToolError> {
        Ok(Vec::new())
    }

    fn find(&mut self, _files: HashSet<FileId>, _not: &HashSet<&Path>) -> HashMap<FileId, PathBuf> {
        HashMap::new()
    }
}
