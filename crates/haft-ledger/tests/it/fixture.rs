//! A ledger in a directory of its own, and calls to record in it.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_ledger::{CallRecord, Ledger, LedgerHandle, NewSession, SessionChoice, WorkspaceView};
use haft_tool::{
    CallEnd, Change, FileContent, FileId, FileNode, Intent, Node, OpenContent, Receipt, ReceiptState, Record,
    StagedStep, ToolError, json, now_ms,
};
use tempfile::TempDir;

/// A ledger that is removed after the test.
pub(crate) struct Fixture {
    dir: TempDir,
    handle: Arc<LedgerHandle>,
    pub(crate) ledger: Ledger,
    pub(crate) session: String,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let handle = handle(&dir.path().join("home"));
        let (ledger, session) = (handle.ledger().unwrap().clone(), handle.session().unwrap().to_owned());
        Self { dir, handle, ledger, session }
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.home().join("ledger.db")
    }

    /// Changes the database behind the ledger's back.
    pub(crate) fn tamper(&self, sql: &str) {
        rusqlite::Connection::open(self.database()).unwrap().execute_batch(sql).unwrap();
    }

    /// Makes all running calls look like those of a process that is gone.
    pub(crate) fn kill_running(&self) {
        self.tamper("UPDATE running SET process = '1 1 another-boot -'");
    }

    /// Another session in the same ledger.
    pub(crate) fn other_session(&self) -> Arc<LedgerHandle> {
        handle(&self.home())
    }

    /// The record of a call that has not been written yet.
    pub(crate) fn record(&self) -> CallRecord {
        self.record_of(blank_receipt())
    }

    pub(crate) fn record_of(&self, receipt: Receipt) -> CallRecord {
        CallRecord::new(Arc::clone(&self.handle), receipt)
    }

    /// The record of a running call.
    pub(crate) fn running(&self) -> (CallRecord, i64) {
        let record = self.record();
        let id = record.begin().unwrap();
        (record, id)
    }

    /// A call that only reads.
    pub(crate) fn read(&self) -> Receipt {
        finish(&self.record())
    }

    /// A call that replaces the content of `/w/<name>`.
    pub(crate) fn write(&self, name: &str, before: &[u8], after: &[u8]) -> Receipt {
        let record = self.record();
        let change = Change::new(format!("/w/{name}"), file(before), file(after));
        record.intend(&mut [intent(&change, before)]).unwrap();
        record.changed(change);
        finish(&record)
    }

    /// A call that undoes others.
    pub(crate) fn undo(&self, targets: &[&Receipt]) -> Receipt {
        let undoes = targets.iter().map(|target| target.id).collect();
        let mut receipt = blank_receipt();
        receipt.undoes = undoes;
        finish(&self.record_of(receipt))
    }

    /// The number of files in the spool.
    pub(crate) fn spool_files(&self) -> usize {
        std::fs::read_dir(self.home().join("spool")).map_or(0, Iterator::count)
    }
}

pub(crate) fn handle(home: &Path) -> Arc<LedgerHandle> {
    let new = NewSession { workspace: "/w".into(), dialect: "claude".into(), entry_point: "cli".into() };
    Arc::new(LedgerHandle::new(home.to_owned(), new, SessionChoice::New))
}

pub(crate) fn ended(state: ReceiptState) -> CallEnd {
    CallEnd { state, ..CallEnd::default() }
}

pub(crate) fn finish(record: &CallRecord) -> Receipt {
    record.finish(&ended(ReceiptState::Completed)).unwrap()
}

pub(crate) fn intent<'a>(change: &Change, previous: &'a [u8]) -> Intent<'a> {
    Intent { change: change.clone(), previous: FileContent::Bytes(previous), temp: None }
}

pub(crate) fn blank_receipt() -> Receipt {
    let mut receipt = Receipt::new("call-1", "Read", "/w", now_ms());
    receipt.input = json!({ "file_path": "/w/a.txt" });
    receipt.state = ReceiptState::Completed;
    receipt
}

pub(crate) fn file(bytes: &[u8]) -> Node {
    Node::File(FileNode {
        hash: blake3::hash(bytes).to_hex().to_string(),
        size: bytes.len() as u64,
        mode: 0o644,
        owner: None,
        xattrs: Vec::new(),
        linked: None,
        modified: None,
    })
}

pub(crate) fn hash_of(node: &Node) -> &str {
    &node.as_file().unwrap().hash
}

/// A content that is stored as a file.
pub(crate) fn large(byte: u8) -> Vec<u8> {
    vec![byte; 50_000]
}

/// A file system with nothing in it.
pub(crate) struct EmptyView;

impl WorkspaceView for EmptyView {
    fn observe(&mut self, _path: &Path) -> Result<Node, ToolError> {
        Ok(Node::Absent)
    }

    fn file_id(&mut self, _path: &Path) -> Option<FileId> {
        None
    }

    fn entry_names(&mut self, _path: &Path) -> Result<Vec<OsString>, ToolError> {
        Ok(Vec::new())
    }

    fn undo_restore(
        &mut self,
        _steps: &[StagedStep],
        _made: Option<usize>,
        _content: &OpenContent<'_>,
    ) -> Result<(), ToolError> {
        Ok(())
    }

    fn find_links(&mut self, _files: HashSet<FileId>, _except: &HashSet<&Path>) -> HashMap<FileId, PathBuf> {
        HashMap::new()
    }
}
