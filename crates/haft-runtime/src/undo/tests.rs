//! Undo of witnessed commands, from their record.
#![allow(clippy::disallowed_methods, reason = "the tests change files as a command would")]

use std::fs;

use std::path::{Path, PathBuf};

use haft_ledger::CallRecord;
use haft_tool::{
    CallEnd, Change, DirectoryEvent, ErrorKind, FileContent, FileNode, Node, Receipt, ReceiptState, Record,
    Reversible, now_ms,
};

use crate::{CallOptions, Runtime, UndoTarget};

/// A workspace with a ledger, and the record of a running command.
struct Fixture {
    _dir: tempfile::TempDir,
    root: PathBuf,
    runtime: Runtime,
    record: CallRecord,
}

fn fixture() -> Fixture {
    let held = tempfile::tempdir().unwrap();
    let base = held.path().canonicalize().unwrap();
    let root = base.join("ws");
    fs::create_dir(&root).unwrap();
    let runtime = Runtime::builder().workspace(&root).home(base.join("home")).build().unwrap();
    let mut receipt = Receipt::new("c", "Bash", &root, now_ms());
    receipt.reversible = Reversible::No { why: "not recorded".into() };
    let record = CallRecord::new(runtime.inner.ledger(), receipt);
    Fixture { _dir: held, root, runtime, record }
}

impl Fixture {
    fn file(bytes: &[u8]) -> Node {
        Node::File(FileNode {
            hash: haft_files::hash(bytes),
            size: bytes.len() as u64,
            mode: 0o644,
            owner: None,
            xattrs: Vec::new(),
            linked: None,
            modified: None,
        })
    }

    fn put(&self, name: &str, bytes: &[u8]) {
        use std::os::unix::fs::PermissionsExt;
        let path = self.root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
    }

    /// Records the state of a path, as the witness would.
    fn witness(&self, name: &str, bytes: Option<&[u8]>) {
        let node = bytes.map_or(Node::Absent, Self::file);
        let path = self.root.join(name);
        self.record.witness(&path, &node, bytes.into()).unwrap();
    }

    /// Every file with its bytes, every directory without.
    fn tree(&self) -> Vec<(PathBuf, Option<Vec<u8>>)> {
        let (mut found, mut todo) = (Vec::new(), vec![self.root.clone()]);
        while let Some(dir) = todo.pop() {
            for path in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
                found.push((path.clone(), fs::read(&path).ok()));
                todo.extend(path.is_dir().then_some(path));
            }
        }
        found.sort();
        found
    }

    fn spooled(&self) -> usize {
        let spool = self.runtime.ledger().unwrap().home().join("spool");
        fs::read_dir(spool).map_or(0, Iterator::count)
    }

    async fn undo(&self, target: &UndoTarget) {
        let preview = self.runtime.undo_preview(target).unwrap();
        assert_eq!((preview.conflicts.len(), preview.blocked.len()), (0, 0), "{preview:?}");
        let done = self.runtime.undo(&preview, false, CallOptions::default()).await.unwrap();
        assert!(!done.output.is_error(), "{}", done.output.as_text());
    }
}

fn ended(state: ReceiptState) -> CallEnd {
    CallEnd { state, ..CallEnd::default() }
}

/// A command that changes a file, moves its directory, changes it again and makes something new.
fn work(fixture: &Fixture, changes: &mut Vec<Change>) {
    let at = |name: &str| fixture.root.join(name);
    fixture.witness("a/f", Some(b"old"));
    fixture.put("a/f", b"between");
    changes.push(Change::new(at("a/f"), Fixture::file(b"old"), Fixture::file(b"new")));
    let (from, to, node) = (at("a"), at("b"), mode(&at("a")));
    let event = DirectoryEvent::Moved { from: &from, to: &to, node: &node };
    fixture.record.witness_directory(event).unwrap();
    fs::rename(&from, &to).unwrap();
    changes.push(Change { moved_to: Some(to), ..Change::new(from, node, Node::Absent) });
    fixture.put("b/f", b"new");
    fixture.witness("made", None);
    fixture.record.witness_directory(DirectoryEvent::Created(&at("made"))).unwrap();
    fixture.put("made/deep/g", b"g");
    for name in ["made/deep", "made/deep/g"] {
        fixture.record.witness_own(haft_files::birth_id_at(&at(name)).unwrap(), true).unwrap();
    }
    changes.push(Change::new(at("made"), Node::Absent, mode(&at("made"))));
    changes.push(Change::new(at("made/deep"), Node::Absent, mode(&at("made/deep"))));
    changes.push(Change::new(at("made/deep/g"), Node::Absent, Fixture::file(b"g")));
}

fn mode(path: &Path) -> Node {
    use std::os::unix::fs::PermissionsExt;
    Node::directory(fs::metadata(path).unwrap().permissions().mode() & 0o7777)
}

#[tokio::test]
async fn witnessed_command_with_moves_can_be_undone_and_redone() {
    let fixture = fixture();
    fixture.put("a/f", b"old");
    fixture.put("a/sub/other", b"other");
    let before = fixture.tree();
    let mut changes = Vec::new();
    work(&fixture, &mut changes);
    let after = fixture.tree();
    fixture.record.witnessed(changes);
    fixture.record.enforced("landlock, seccomp".into());
    let receipt = fixture.record.finish(&ended(ReceiptState::Completed)).unwrap();
    assert_eq!((&receipt.reversible, fixture.spooled()), (&Reversible::Yes, 0));
    assert_eq!(receipt.enforcement.as_deref(), Some("landlock, seccomp"));
    fixture.undo(&UndoTarget::Last).await;
    assert_eq!(fixture.tree(), before);
    fixture.undo(&UndoTarget::LastUndo).await;
    assert_eq!(fixture.tree(), after);
    fixture.undo(&UndoTarget::Last).await;
    assert_eq!(fixture.tree(), before);
}

#[tokio::test]
async fn abandoned_command_is_recovered_and_can_be_undone() {
    let fixture = fixture();
    fixture.put("a/f", b"old");
    let before = fixture.tree();
    work(&fixture, &mut Vec::new());
    let given_up = fixture.record.abandon(&ended(ReceiptState::Interrupted)).unwrap();
    assert_eq!(given_up.state, ReceiptState::Interrupted);
    let late = fixture.record.witness_directory(DirectoryEvent::Created(Path::new("/x")));
    assert_eq!(late.unwrap_err().kind, ErrorKind::Interrupted, "and touches nothing more");
    let recovered = fixture.runtime.recover().unwrap();
    assert_eq!((recovered.len(), recovered[0].id, fixture.spooled()), (1, given_up.id, 0));
    assert_eq!(recovered[0].reversible, Reversible::Yes);
    fixture.undo(&UndoTarget::Call(given_up.id)).await;
    assert_eq!(fixture.tree(), before);
}

#[tokio::test]
async fn missing_content_is_reported_and_the_rest_is_restored() {
    let fixture = fixture();
    fixture.put("small", b"old");
    fixture.put("huge", b"changed");
    fixture.witness("small", Some(b"old"));
    fixture.put("small", b"new");
    let huge = fixture.root.join("huge");
    let node = Fixture::file(b"too large to keep");
    fixture.record.witness(&huge, &node, FileContent::None).unwrap();
    let small = Change::new(fixture.root.join("small"), Fixture::file(b"old"), Fixture::file(b"new"));
    fixture.record.witnessed(vec![small, Change::new(&huge, node, Fixture::file(b"changed"))]);
    let receipt = fixture.record.finish(&ended(ReceiptState::Completed)).unwrap();
    assert_eq!(receipt.reversible.word(), "partly");
    let preview = fixture.runtime.undo_preview(&UndoTarget::Last).unwrap();
    assert_eq!((preview.restore.steps.len(), preview.blocked.len()), (1, 1));
    fixture.runtime.undo(&preview, false, CallOptions::default()).await.unwrap();
    assert_eq!(fs::read(fixture.root.join("small")).unwrap(), b"old");
    assert_eq!(fs::read(huge).unwrap(), b"changed");
}
