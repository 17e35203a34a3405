//! A call tells what it writes while it runs; taken back by its client, it ends with every process that it has started.

use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::json;

use crate::every_client;
use crate::house::is_running;
use crate::stage::{Stage, until};
use crate::visitor::{Visitor, text};

every_client!(stops);

/// Numbers that no other process sleeps for.
fn nobody_elses() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("9{:07}{:02}", std::process::id() % 10_000_000, COUNT.fetch_add(1, Ordering::Relaxed))
}

fn stops(visitor: Visitor, over: Over) {
    let stage = Stage::new();
    let long = nobody_elses();
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
    let served = (over == Over::Http).then(|| stage.serve(&[]));
    let mut command = match &served {
        Some(served) => visitor.at(&stage, served, None, &steps),
        None => visitor.over_stdio(&stage, &[], None, &steps),
    };
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("the whole tree runs", || is_running(&marks[0]) && is_running(&marks[1]));
    stage.house.write("stop", "");
    until("the next call runs", || stage.has("after"));
    until("the tree has ended", || !marks.iter().any(|mark| is_running(mark)));
    stage.house.write("go", "");
    let visit = visitor.read(&child.wait_with_output().unwrap());
    if let Some(served) = served {
        served.ends();
    }

    let [stopped, after] = [&visit.steps[0], &visit.steps[1]];
    assert_eq!(stopped["cancelled"], true, "{stopped}");
    let told: Vec<&str> =
        stopped["told"].as_array().unwrap().iter().filter_map(|word| word.as_str()).collect();
    assert!(told[0].contains("under way") && told.concat().contains("enough"), "{told:?}");
    assert_eq!(text(after), "gone on\n", "{after}");
    let receipts = stage.receipts();
    assert_eq!(receipts[0]["state"], "interrupted", "{}", receipts[0]);
    assert_eq!(receipts[1]["state"], "completed", "{}", receipts[1]);
}
