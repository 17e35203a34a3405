//! Read, Edit and Write of small and large files, in a warm runtime.

use std::time::{Duration, Instant};

use haft::{Runtime, json};

use super::measure::{Row, median};
use super::{Bench, Stage};
use crate::Done;

pub(crate) fn run(bench: &mut Bench) -> Done {
    let runtime = tokio::runtime::Runtime::new().map_err(|error| error.to_string())?;
    runtime.block_on(measure(bench))
}

async fn measure(bench: &mut Bench) -> Done {
    let stage = Stage::new(bench)?;
    let haft = stage.runtime(|builder| builder.dialect(haft::claude()))?;
    for (name, size, rounds) in [("1 KiB", 1 << 10, 101), ("1 MiB", 1 << 20, 31), ("100 MiB", 100 << 20, 3)] {
        let path = haft.workspace().join("file.txt");
        let line = "the quick brown fox jumps over the lazy dog, again and again\n";
        let content = line.repeat(size / line.len());
        let (mut write, mut edit, mut read, mut plain) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for round in 0..rounds {
            let text = format!("round {round}\n{content}");
            let start = Instant::now();
            std::fs::write(stage.folder.path().join("plain.txt"), &text)
                .map_err(|error| error.to_string())?;
            plain.push(start.elapsed());
            write.push(timed(&haft, "Write", json!({"file_path": path, "content": text})).await?);
            let arguments = json!({"file_path": path, "old_string": format!("round {round}\n"), "new_string": "edited\n"});
            edit.push(timed(&haft, "Edit", arguments).await?);
            read.push(timed(&haft, "Read", json!({"file_path": path})).await?);
        }
        for (tool, mut times) in [("Read", read), ("Edit", edit), ("Write", write)] {
            let peer_ms = (tool == "Write").then(|| median(&mut plain));
            let haft_ms = median(&mut times);
            bench.table.add(Row {
                part: "files",
                case: format!("{tool} {name}, warm, durable"),
                haft_ms,
                peer: if peer_ms.is_some() { "plain write".to_owned() } else { String::new() },
                peer_ms,
                ratio: peer_ms.map(|peer| haft_ms / peer),
                haft_peak_kib: None,
                peer_peak_kib: None,
            });
        }
    }
    haft.shutdown().await;
    Ok(())
}

async fn timed(haft: &Runtime, tool: &str, arguments: haft::Value) -> Result<Duration, String> {
    let start = Instant::now();
    let result = haft.call(tool, arguments).await;
    if result.output.is_error() { Err(result.output.as_text()) } else { Ok(start.elapsed()) }
}
