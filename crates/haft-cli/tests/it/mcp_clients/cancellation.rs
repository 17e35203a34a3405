//! A call reports its output while it runs; cancelled by its client, it ends with every process that it has started.

use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::json;

use crate::fixture::cli::is_running;
use crate::fixture::mcp::McpFixture;
use crate::fixture::peer_client::{PeerClient, text};
use crate::fixture::wait_until;
use crate::mcp_clients::every_client;

every_client!(stops);

/// Numbers that no other process sleeps for.
pub(super) fn unique_mark() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("9{:07}{:02}", std::process::id() % 10_000_000, COUNT.fetch_add(1, Ordering::Relaxed))
}

fn stops(client: PeerClient, transport: Transport) {
    let fixture = McpFixture::new();
    let long = unique_mark();
    let marks = [format!("sleep\0{long}.25"), format!("sleep\0{long}.5"), format!("sleep\0{long}.75")];
    let tree = format!(
        "(setsid sleep {long}.25 &) ; sleep {long}.5 & echo under way; while [ ! -e stop ]; do :; done; echo enough; sleep {long}.75"
    );
    // The first step has ended for the client when the second begins; the second holds the server, so that the tree has not
    // ended because of the server's end.
    let steps = json!([
        {"call": "Bash", "arguments": {"command": tree}, "until": "enough"},
        {"call": "Bash", "arguments": {"command": "touch after; until [ -e go ]; do sleep 0.02; done; echo gone on"}},
    ]);
    let served = (transport == Transport::Http).then(|| fixture.serve(&[]));
    let mut command = match &served {
        Some(served) => client.at(&fixture, served, None, &steps),
        None => client.over_stdio(&fixture, &[], None, &steps),
    };
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until(|| is_running(&marks[0]) && is_running(&marks[1]));
    fixture.cli.write("stop", "");
    wait_until(|| fixture.has("after"));
    wait_until(|| !marks.iter().any(|mark| is_running(mark)));
    fixture.cli.write("go", "");
    let run = client.read(&child.wait_with_output().unwrap());
    if let Some(served) = served {
        served.ends();
    }

    let [stopped, after] = [&run.steps[0], &run.steps[1]];
    assert_eq!(stopped["cancelled"], true, "{stopped}");
    let told: Vec<&str> =
        stopped["told"].as_array().unwrap().iter().filter_map(|word| word.as_str()).collect();
    assert!(told[0].contains("under way") && told.concat().contains("enough"), "{told:?}");
    assert_eq!(text(after), "gone on\n", "{after}");
    let receipts = fixture.receipts();
    assert_eq!(receipts[0]["state"], "interrupted", "{}", receipts[0]);
    assert_eq!(receipts[1]["state"], "completed", "{}", receipts[1]);
}
