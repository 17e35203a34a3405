//! What a call costs with an empty ledger and with 100,000 receipts in it.

use serde_json::json;

use super::Bench;
use super::measure::{Row, median};
use super::session::McpSession;
use crate::Done;

const RECEIPT_COUNT: usize = 100_000;
const READ_COUNT: usize = 2_000;
const WRITE_COUNT: usize = 101;

pub(super) fn run(bench: &mut Bench) -> Done {
    let place = bench.place()?;
    let path = place.workspace.path().join("file.txt");
    let mut server = place.serve(&bench.haft)?;
    let measure = |server: &mut McpSession| -> Result<[f64; 2], String> {
        let mut writes = Vec::new();
        for round in 0..WRITE_COUNT {
            let content = format!("{round}\n").repeat(200);
            writes.push(server.call("Write", &json!({"file_path": path, "content": content}))?);
        }
        Ok([server.median_call("Read", &json!({"file_path": path}), READ_COUNT)?, median(&mut writes)])
    };
    let empty = measure(&mut server)?;
    server.many_at_once("Read", &json!({"file_path": path}), RECEIPT_COUNT)?;
    let full = measure(&mut server)?;
    server.end();
    for (case, empty_ms, full_ms) in [("Read", empty[0], full[0]), ("Write", empty[1], full[1])] {
        let case = format!("{case}, {RECEIPT_COUNT} receipts");
        bench.table.add(Row::new("ledger", &case, full_ms, "empty ledger", empty_ms));
    }
    Ok(())
}
