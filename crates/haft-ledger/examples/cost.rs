//! Measures the ledger with an empty history and with a long one.
//!
//! `cargo run --release -p haft-ledger --example cost [RECEIPTS]`
#![expect(clippy::print_stdout, reason = "a measurement for people")]

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use haft_ledger::{CallRecord, Ledger, LedgerHandle, NewSession, ReceiptQuery, SessionChoice, WorkspaceView};
use haft_tool::{
    CallEnd, Change, Effect, FileContent, FileId, FileNode, Intent, Node, Receipt, ReceiptState, Record,
    ToolError, json, now_ms,
};

const WORKSPACE: &str = "/home/user/project";
/// The size of a typical result.
const RESULT_BYTES: usize = 2_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let history: u32 = std::env::args().nth(1).map_or(Ok(100_000), |count| count.parse())?;
    let dir = tempfile::tempdir()?;
    let home = dir.path().join("home");
    let handle = handle(&home);
    measure("history: none", &handle)?;
    let fill = Instant::now();
    for n in 0..history {
        let workspace = format!("{WORKSPACE}-{}", n % 7).into();
        let mut receipt = receipt();
        receipt.workspace = workspace;
        CallRecord::new(Arc::clone(&handle), receipt).finish(&end())?;
    }
    println!(
        "\n{history} receipts written: {:.1} µs each, checkpoints included",
        micros(fill) / f64::from(history)
    );
    measure(&format!("history: {history} receipts"), &handle)?;
    println!("\nwitnessed commands");
    witnessed(&handle)?;
    drop(handle);
    println!();
    row("open, recover, close", 100, || Ledger::open(&home)?.recover(&mut EmptyView).map(drop))?;
    row("open, session, finish, close", 100, || read(&self::handle(&home)))?;
    let stats = Ledger::open(&home)?.stats()?;
    println!("\n{} receipts take {} bytes", stats.receipts, stats.bytes);
    Ok(())
}

fn handle(home: &Path) -> Arc<LedgerHandle> {
    let new = NewSession { workspace: WORKSPACE.into(), dialect: "claude".into(), entry_point: "cli".into() };
    Arc::new(LedgerHandle::new(home.to_owned(), new, SessionChoice::New))
}

fn receipt() -> Receipt {
    let path = format!("{WORKSPACE}/src/main.rs");
    let mut receipt = Receipt::new("toolu_01A09q90qw90lq917835lq9", "Read", WORKSPACE, now_ms());
    receipt.input = json!({ "file_path": path, "limit": 2000 });
    receipt.effects = vec![Effect::Read { path: path.into() }];
    receipt
}

fn end() -> CallEnd {
    CallEnd { state: ReceiptState::Completed, result: Some("x".repeat(RESULT_BYTES)), ..CallEnd::default() }
}

fn read(handle: &Arc<LedgerHandle>) -> Result<(), ToolError> {
    CallRecord::new(Arc::clone(handle), receipt()).finish(&end()).map(drop)
}

fn measure(title: &str, handle: &Arc<LedgerHandle>) -> Result<(), ToolError> {
    println!("\n{title}");
    let ledger = handle.ledger()?;
    row("finish (reads only)", 5_000, || read(handle))?;
    row("begin + finish", 2_000, || {
        let record = CallRecord::new(Arc::clone(handle), receipt());
        record.begin()?;
        record.finish(&end()).map(drop)
    })?;
    for size in [1_000, 100_000] {
        let mut round = 0_u64;
        row(&format!("intend + finish, {size} bytes"), 100, || {
            round += 1;
            let mut bytes = vec![b'x'; size];
            bytes[..8].copy_from_slice(&(round * 1_000_000 + now_ms()).to_le_bytes());
            let record = CallRecord::new(Arc::clone(handle), receipt());
            let change = Change::new(format!("{WORKSPACE}/a"), node(&bytes), Node::Absent);
            let previous = FileContent::Bytes(&bytes);
            record.intend(&mut [Intent { change: change.clone(), previous, temp: None }])?;
            record.changed(change);
            record.finish(&end()).map(drop)
        })?;
    }
    let workspace = PathBuf::from(WORKSPACE);
    row("next_to_undo", 1_000, || ledger.next_to_undo(&workspace).map(drop))?;
    let query = ReceiptQuery { workspace: Some(workspace.clone()), limit: 20, ..ReceiptQuery::default() };
    row("receipts, newest 20", 500, || ledger.receipts(&query).map(drop))?;
    row("recover, nothing running", 1_000, || ledger.recover(&mut EmptyView).map(drop))
}

/// Commands that touch many files under the witness.
fn witnessed(handle: &Arc<LedgerHandle>) -> Result<(), ToolError> {
    let path = |n: u32| format!("{WORKSPACE}/node_modules/package-{}/file-{n}.js", n % 100);
    for (case, size) in [("created", None), ("modified, 1 KiB", Some(1_024))] {
        for files in [3_000_u32, 20_000, 100_000] {
            let record = CallRecord::new(Arc::clone(handle), receipt());
            let id = record.begin()?;
            let old: Vec<(Node, Vec<u8>)> = (0..files)
                .map(|n| match size {
                    None => (Node::Absent, Vec::new()),
                    Some(size) => {
                        let bytes = format!("{id}-{n} ").repeat(size).into_bytes()[..size].to_vec();
                        (node(&bytes), bytes)
                    }
                })
                .collect();
            let start = Instant::now();
            for (n, (node, bytes)) in (0..).zip(&old) {
                let content = if size.is_some() { FileContent::Bytes(bytes) } else { FileContent::None };
                record.witness(path(n).as_ref(), node, content)?;
            }
            let witness = micros(start) / f64::from(files);
            let change =
                |(n, (before, _)): (u32, (Node, _))| Change::new(path(n), before, node(&n.to_le_bytes()));
            record.witnessed((0..).zip(old).map(change).collect());
            let start = Instant::now();
            record.finish(&end())?;
            let finish = micros(start) / 1_000.0;
            let start = Instant::now();
            handle.ledger()?.summaries(&ReceiptQuery::default())?;
            println!(
                "  {files:6} {case:16} witness {witness:5.2} µs each   finish {finish:7.1} ms   log {:6.2} ms",
                micros(start) / 1_000.0
            );
        }
    }
    Ok(())
}

fn node(bytes: &[u8]) -> Node {
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

/// A file system with nothing in it.
struct EmptyView;

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
        _steps: &[haft_tool::StagedStep],
        _made: Option<usize>,
        _content: &haft_tool::OpenContent<'_>,
    ) -> Result<(), ToolError> {
        Ok(())
    }

    fn find_links(&mut self, _files: HashSet<FileId>, _except: &HashSet<&Path>) -> HashMap<FileId, PathBuf> {
        HashMap::new()
    }
}
