//! temp
#![allow(
    clippy::all,
    clippy::pedantic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::unwrap_used
)]
use haft_ledger::{Bytes, Ledger, NewSession};
use haft_runtime::{CallOptions, Runtime, Target};
use haft_tool::*;
use std::time::Instant;
fn main() {
    let base = tempfile::tempdir().unwrap();
    let root = base.path().join("ws");
    std::fs::create_dir(&root).unwrap();
    let root = root.canonicalize().unwrap();
    let home = base.path().join("home");
    let ledger = Ledger::open(&home).unwrap();
    let session = ledger
        .start_session(&NewSession { workspace: root.clone(), dialect: "x".into(), door: "x".into() })
        .unwrap();
    let rt = tokio::runtime::Runtime::new().unwrap();
    let node = |bytes: &[u8]| {
        Node::File(FileNode {
            hash: haft_world::hash(bytes),
            size: bytes.len() as u64,
            mode: 0o644,
            owner: None,
            xattrs: vec![],
            linked: None,
        })
    };
    for (name, files, modified) in
        [("created", 20_000, false), ("modified", 3_000, true), ("modified", 20_000, true)]
    {
        let mut receipt = Receipt {
            id: 0,
            session: session.clone(),
            call_id: "c".into(),
            tool: "Bash".into(),
            workspace: root.clone(),
            input: Value::Null,
            effects: vec![],
            decision: None,
            state: State::Running,
            error_kind: None,
            error: None,
            started_at: now_ms(),
            duration_us: 0,
            changes: vec![],
            reversible: Reversible::Yes,
            undoes: vec![],
            full_output: None,
            enforcement: None,
        };
        ledger.begin(&mut receipt).unwrap();
        let mut spool = ledger.spool(receipt.id).unwrap();
        for d in 0..100 {
            let dir = root.join(format!("{name}{files}/d{d}"));
            std::fs::create_dir_all(&dir).unwrap();
        }
        for n in 0..files {
            let path = root.join(format!("{name}{files}/d{}/f{n}", n % 100));
            let old = format!("old {n} ").repeat(100).into_bytes();
            let new = format!("new {n} ").repeat(100).into_bytes();
            let before = if modified { node(&old) } else { Node::Absent };
            spool.keep(&path, &before, if modified { Bytes::Held(&old) } else { Bytes::None }).unwrap();
            std::fs::write(&path, &new).unwrap();
            receipt.changes.push(Change::new(path, before, node(&new)));
        }
        receipt.state = State::Completed;
        let t = Instant::now();
        ledger.finish_witnessed(&mut receipt, &spool).unwrap();
        let finish = t.elapsed();
        let runtime = Runtime::builder().workspace(&root).home(&home).build().unwrap();
        let t = Instant::now();
        let preview = runtime.undo_preview(&Target::Last).unwrap();
        let plan = t.elapsed();
        assert_eq!(preview.conflicts.len(), 0);
        let t = Instant::now();
        let done = rt.block_on(runtime.undo(&preview, false, CallOptions::default())).unwrap();
        assert!(!done.output.is_error(), "{}", done.output.as_text());
        let undo = t.elapsed();
        let t = Instant::now();
        let redo = runtime.undo_preview(&Target::LastUndo).unwrap();
        rt.block_on(runtime.undo(&redo, false, CallOptions::default())).unwrap();
        println!(
            "{files} {name}: finish {finish:?} plan {plan:?} ({} steps) undo {undo:?} redo in all {:?}",
            preview.steps.len(),
            t.elapsed()
        );
    }
}
