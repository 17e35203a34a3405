//! What the ledger costs, with an empty history and with a long one.
//!
//! `cargo run --release -p haft-ledger --example cost [RECEIPTS]`
#![expect(clippy::print_stdout, reason = "a measurement that people read")]

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Instant;

use haft_ledger::{Ledger, Look, NewSession, Query};
use haft_tool::{
    Change, Effect, FileContent, FileId, FileNode, Intent, Node, Receipt, Reversible, State, ToolError, json,
    now_ms,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let history: u32 = std::env::args().nth(1).map_or(Ok(100_000), |count| count.parse())?;
    let dir = tempfile::tempdir()?;
    let home = dir.path().join("home");
    let ledger = Ledger::open(&home)?;
    let session = ledger.start_session(&NewSession {
        workspace: "/home/somebody/project".into(),
        dialect: "claude".into(),
        door: "cli".into(),
    })?;
    measure("history: none", &ledger, &session)?;
    let fill = Instant::now();
    for n in 0..history {
        let mut receipt = reading(&session);
        receipt.workspace = format!("/home/somebody/project-{}", n % 7).into();
        ledger.finish(&mut receipt)?;
    }
    println!(
        "\n{history} receipts written: {:.1} µs each, checkpoints included",
        micros(fill) / f64::from(history)
    );
    measure(&format!("history: {history} receipts"), &ledger, &session)?;
    println!("\nwitnessed commands");
    witnessed(&ledger, &session)?;
    drop(ledger);
    println!();
    row("open, first read, close", 100, || {
        let ledger = Ledger::open(&home)?;
        ledger.recover(&mut Blind).map(drop)
    })?;
    row("open, finish, close", 100, || Ledger::open(&home)?.finish(&mut reading(&session)))?;
    let stats = Ledger::open(&home)?.stats()?;
    println!("\n{} receipts take {} bytes", stats.receipts, stats.bytes);
    Ok(())
}

fn measure(title: &str, ledger: &Ledger, session: &str) -> Result<(), ToolError> {
    println!("\n{title}");
    row("finish (reads only)", 5_000, || ledger.finish(&mut reading(session)))?;
    row("begin + finish", 2_000, || {
        let mut receipt = reading(session);
        ledger.begin(&mut receipt)?;
        receipt.state = State::Completed;
        ledger.finish(&mut receipt)
    })?;
    for size in [1_000, 100_000] {
        let mut turn = 0_u64;
        row(&format!("before_change + finish, {size} bytes"), 100, || {
            turn += 1;
            let mut bytes = vec![b'x'; size];
            bytes[..8].copy_from_slice(&(turn * 1_000_000 + now_ms()).to_le_bytes());
            let mut receipt = reading(session);
            let file = FileNode {
                hash: blake3::hash(&bytes).to_hex().to_string(),
                size: bytes.len() as u64,
                mode: 0o644,
                owner: None,
                xattrs: Vec::new(),
                linked: None,
            };
            let change = Change::new("/home/somebody/project/a", Node::File(file), Node::Absent);
            ledger.before_changes(
                &mut receipt,
                &mut [Intent { change: change.clone(), previous: FileContent::Bytes(&bytes), temp: None }],
            )?;
            receipt.state = State::Completed;
            ledger.finish(&mut receipt)
        })?;
    }
    let workspace = PathBuf::from("/home/somebody/project");
    row("next_to_undo", 1_000, || ledger.next_to_undo(&workspace).map(drop))?;
    let query = Query { workspace: Some(workspace.clone()), limit: 20, ..Query::default() };
    row("receipts, newest 20", 500, || ledger.receipts(&query).map(drop))?;
    row("recover, nothing running", 1_000, || ledger.recover(&mut Blind).map(drop))
}

/// What a command costs that touches many files under the witness.
fn witnessed(ledger: &Ledger, session: &str) -> Result<(), ToolError> {
    let path = |n: u32| format!("/home/somebody/project/node_modules/package-{}/file-{n}.js", n % 100);
    let node = |bytes: &[u8]| {
        Node::File(FileNode {
            hash: blake3::hash(bytes).to_hex().to_string(),
            size: bytes.len() as u64,
            mode: 0o644,
            owner: None,
            xattrs: Vec::new(),
            linked: None,
        })
    };
    for (case, size) in [("created", None), ("modified, 1 KiB", Some(1_024))] {
        for files in [3_000_u32, 20_000, 100_000] {
            let mut receipt = reading(session);
            ledger.begin(&mut receipt)?;
            let old: Vec<(Node, Vec<u8>)> = (0..files)
                .map(|n| match size {
                    None => (Node::Absent, Vec::new()),
                    Some(size) => {
                        let bytes = format!("{}-{n} ", receipt.id).repeat(size).into_bytes()[..size].to_vec();
                        (node(&bytes), bytes)
                    }
                })
                .collect();
            let mut spool = ledger.spool(receipt.id)?;
            let start = Instant::now();
            for (n, (node, bytes)) in (0..).zip(&old) {
                let bytes = if size.is_some() { FileContent::Bytes(bytes) } else { FileContent::None };
                spool.keep(path(n).as_ref(), node, bytes)?;
            }
            let keep = micros(start) / f64::from(files);
            receipt.changes = (0..)
                .zip(old)
                .map(|(n, (before, _))| Change::new(path(n), before, node(&n.to_le_bytes())))
                .collect();
            receipt.state = State::Completed;
            let start = Instant::now();
            ledger.finish_witnessed(&mut receipt, &spool)?;
            let finish = micros(start) / 1_000.0;
            let start = Instant::now();
            ledger.entries(&Query::default())?;
            println!(
                "  {files:6} {case:16} keep {keep:5.2} µs each   finish {finish:7.1} ms   log {:6.2} ms",
                micros(start) / 1_000.0
            );
        }
    }
    Ok(())
}

fn row(name: &str, rounds: u32, mut work: impl FnMut() -> Result<(), ToolError>) -> Result<(), ToolError> {
    let mut times = Vec::new();
    for _ in 0..rounds {
        let start = Instant::now();
        work()?;
        times.push(micros(start));
    }
    times.sort_by(f64::total_cmp);
    let mean = times.iter().sum::<f64>() / f64::from(rounds);
    println!(
        "  {name:40} median {:8.1} µs   mean {mean:8.1}   99% {:8.1}",
        times[times.len() / 2],
        times[times.len() * 99 / 100]
    );
    Ok(())
}

fn micros(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e6
}

fn reading(session: &str) -> Receipt {
    Receipt {
        id: 0,
        session: session.to_owned(),
        call_id: "toolu_01A09q90qw90lq917835lq9".into(),
        tool: "Read".into(),
        workspace: "/home/somebody/project".into(),
        input: json!({ "file_path": "/home/somebody/project/src/main.rs", "limit": 2000 }),
        effects: vec![Effect::Read { path: "/home/somebody/project/src/main.rs".into() }],
        decision: None,
        state: State::Completed,
        error_kind: None,
        error: None,
        started_at: now_ms(),
        duration_us: 120,
        changes: Vec::new(),
        reversible: Reversible::Yes,
        undoes: Vec::new(),
        full_output: None,
        enforcement: None,
        denials: Vec::new(),
        notes: serde_json::Map::default(),
    }
}

/// A look at a world with nothing in it.
struct Blind;

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
