//! Read, Edit and Write of small and large files in a running server.

use std::time::Instant;

use serde_json::json;

use super::Bench;
use super::measure::{Row, median};
use crate::Done;

const LINE: &str = "the quick brown fox jumps over the lazy dog, again and again\n";

pub(super) fn run(bench: &mut Bench) -> Done {
    let place = bench.place()?;
    let mut server = place.serve(&bench.haft)?;
    let (path, plain_path) =
        (place.workspace.path().join("file.txt"), place.workspace.path().join("plain.txt"));
    for (name, bytes, rounds) in [("1 KiB", 1 << 10, 101), ("1 MiB", 1 << 20, 31), ("16 MiB", 16 << 20, 5)] {
        let content = LINE.repeat(bytes / LINE.len());
        let (mut write, mut edit, mut read, mut plain) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for round in 0..rounds {
            let text = format!("round {round}\n{content}");
            let start = Instant::now();
            std::fs::write(&plain_path, &text).map_err(|error| error.to_string())?;
            plain.push(start.elapsed());
            write.push(server.call("Write", &json!({"file_path": path, "content": text}))?);
            let old = format!("round {round}\n");
            edit.push(
                server
                    .call("Edit", &json!({"file_path": path, "old_string": old, "new_string": "edited\n"}))?,
            );
            read.push(server.call("Read", &json!({"file_path": path, "limit": 2000}))?);
        }
        let plain_ms = median(&mut plain);
        for (tool, mut times) in [("Read", read), ("Edit", edit), ("Write", write)] {
            let case = format!("{tool} {name}, warm, durable");
            bench.table.add(Row::new("files", &case, median(&mut times), "plain write", plain_ms));
        }
    }
    server.end();
    Ok(())
}
