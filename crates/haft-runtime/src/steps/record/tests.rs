//! What a page keeps of a witnessed command, taken back for real.
#![allow(clippy::disallowed_methods, reason = "the tests play the command that the journal is told of")]

use std::fs;

use std::path::{Path, PathBuf};

use haft_ledger::CallRecord;
use haft_tool::{
    CallEnd, Change, ErrorKind, FileContent, FileNode, Node, Receipt, Record, Reversible, State, now_ms,
};

use super::*;
use crate::{Runtime, Target};

/// A workspace with a ledger, and a page of a command that runs.
struct Stage {
    _held: tempfile::TempDir,
    root: PathBuf,
    runtime: Runtime,
    record: CallRecord,
}

fn stage() -> Stage {
    let held = tempfile::tempdir().unwrap();
    let base = held.path().canonicalize().unwrap();
    let root = base.join("ws");
    fs::create_dir(&root).unwrap();
    let runtime = Runtime::builder().workspace(&root).home(base.join("home")).build().unwrap();
    let receipt = Receipt {
        id: 0,
        session: String::new(),
        call_id: "c".into(),
        tool: "Bash".into(),
        workspace: root.clone(),
        input: Value::Null,
        effects: Vec::new(),
        decision: None,
        state: State::Running,
        error_kind: None,
        error: None,
        started_at: now_ms(),
        duration_us: 0,
        changes: Vec::new(),
        reversible: Reversible::No { why: "not watched".into() },
        undoes: Vec::new(),
        full_output: None,
        enforcement: None,
        denials: Vec::new(),
        notes: serde_json::Map::default(),
    };
    let record = CallRecord::new(runtime.inner.ledger(), receipt);
    Stage { _held: held, root, runtime, record }
}

impl Stage {
    fn file(bytes: &[u8]) -> Node {
        Node::File(FileNode {
            hash: hash(bytes),
            size: bytes.len() as u64,
            mode: 0o644,
            owner: None,
            xattrs: Vec::new(),
            linked: None,
        })
    }

    fn put(&self, name: &str, bytes: &[u8]) {
        use std::os::unix::fs::PermissionsExt;
        let path = self.root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
    }

    /// Tells the page what stands at a path, as the witness would.
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

    async fn take_back(&self, target: &Target) {
        let preview = self.runtime.undo_preview(target).unwrap();
        assert_eq!((preview.conflicts.len(), preview.blocked.len()), (0, 0), "{preview:?}");
        let done = self.runtime.undo(&preview, false, crate::CallOptions::default()).await.unwrap();
        assert!(!done.output.is_error(), "{}", done.output.as_text());
    }
}

fn ended(state: State) -> CallEnd {
    CallEnd { state, ..CallEnd::default() }
}

/// A command that changes a file, moves its directory, changes it again and makes something new.
fn work(stage: &Stage, changes: &mut Vec<Change>) {
    let at = |name: &str| stage.root.join(name);
    stage.witness("a/f", Some(b"old"));
    stage.put("a/f", b"between");
    changes.push(Change::new(at("a/f"), Stage::file(b"old"), Stage::file(b"between")));
    stage.record.witness_move(&at("a"), &at("b")).unwrap();
    fs::rename(at("a"), at("b")).unwrap();
    let dir = Node::Dir { mode: 0o755 };
    let moved = Change::new(at("a"), dir.clone(), Node::Absent);
    changes.push(Change { moved_to: Some(at("b")), ..moved });
    stage.witness("b/f", Some(b"between"));
    stage.put("b/f", b"new");
    changes.push(Change::new(at("b/f"), Stage::file(b"between"), Stage::file(b"new")));
    stage.witness("made", None);
    stage.put("made/deep/g", b"g");
    let mode = |name: &str| {
        use std::os::unix::fs::PermissionsExt;
        Node::Dir { mode: fs::metadata(at(name)).unwrap().permissions().mode() & 0o7777 }
    };
    changes.push(Change::new(at("made"), Node::Absent, mode("made")));
    changes.push(Change::new(at("made/deep"), Node::Absent, mode("made/deep")));
    changes.push(Change::new(at("made/deep/g"), Node::Absent, Stage::file(b"g")));
}

#[tokio::test]
async fn a_witnessed_command_is_taken_back_and_done_again_with_its_moves() {
    let stage = stage();
    stage.put("a/f", b"old");
    stage.put("a/sub/other", b"other");
    let before = stage.tree();
    let mut changes = Vec::new();
    work(&stage, &mut changes);
    let after = stage.tree();
    stage.record.witnessed(changes);
    stage.record.enforced("landlock, seccomp".into());
    let receipt = stage.record.finish(ended(State::Completed)).unwrap();
    assert_eq!((&receipt.reversible, stage.spooled()), (&Reversible::Yes, 0));
    assert_eq!(receipt.enforcement.as_deref(), Some("landlock, seccomp"));
    stage.take_back(&Target::Last).await;
    assert_eq!(stage.tree(), before);
    stage.take_back(&Target::LastUndo).await;
    assert_eq!(stage.tree(), after);
    stage.take_back(&Target::Last).await;
    assert_eq!(stage.tree(), before);
}

#[tokio::test]
async fn a_command_that_was_given_up_is_found_out_and_taken_back() {
    let stage = stage();
    stage.put("a/f", b"old");
    let before = stage.tree();
    work(&stage, &mut Vec::new());
    let given_up = stage.record.abandon(ended(State::Interrupted)).unwrap();
    assert_eq!(given_up.state, State::Interrupted);
    let late = stage.record.witness_move(Path::new("/x"), Path::new("/y"));
    assert_eq!(late.unwrap_err().kind, ErrorKind::Interrupted, "and touches nothing more");
    let recovered = stage.runtime.recover().unwrap();
    assert_eq!((recovered.len(), recovered[0].id, stage.spooled()), (1, given_up.id, 0));
    assert_eq!(recovered[0].reversible, Reversible::Yes);
    stage.take_back(&Target::Call(given_up.id)).await;
    assert_eq!(stage.tree(), before);
}

#[tokio::test]
async fn what_was_not_kept_is_told_and_the_rest_comes_back() {
    let stage = stage();
    stage.put("small", b"old");
    stage.put("huge", b"changed");
    stage.witness("small", Some(b"old"));
    stage.put("small", b"new");
    let huge = stage.root.join("huge");
    let node = Stage::file(b"too large to keep");
    stage.record.witness(&huge, &node, FileContent::None).unwrap();
    let small = Change::new(stage.root.join("small"), Stage::file(b"old"), Stage::file(b"new"));
    stage.record.witnessed(vec![small, Change::new(&huge, node, Stage::file(b"changed"))]);
    let receipt = stage.record.finish(ended(State::Completed)).unwrap();
    assert_eq!(receipt.reversible.word(), "partly");
    let preview = stage.runtime.undo_preview(&Target::Last).unwrap();
    assert_eq!((preview.steps.len(), preview.blocked.len()), (1, 1));
    stage.runtime.undo(&preview, false, crate::CallOptions::default()).await.unwrap();
    assert_eq!(fs::read(stage.root.join("small")).unwrap(), b"old");
    assert_eq!(fs::read(huge).unwrap(), b"changed");
}
