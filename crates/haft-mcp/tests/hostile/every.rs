//! Every mode that the hostile server has, in both eras.

use std::process::Command;
use std::sync::mpsc::channel;
use std::time::Duration;

use haft_mcp::client::{ClientError, ClientLimits};
use serde_json::json;

use super::{BOTH, LEGACY, Run, call, client, connect, echo, generous, short_calls, text_of};

/// How many tests share the modes.
const SHARDS: usize = 8;
/// A mode that takes longer hangs.
const HANGS: Duration = Duration::from_mins(3);

/// What comes of connecting and calling `echo`.
#[derive(Debug, PartialEq, Eq)]
enum Came {
    Works,
    Refused,
    Fails,
}

/// The modes of one shard, and what is to come of each.
fn modes(shard: usize) -> Vec<(String, String)> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/hostile/server.py");
    let listed = Command::new("python3").args([script, "--list"]).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let all: Vec<_> = listed.lines().map(|line| line.split('\t').collect::<Vec<_>>()).collect();
    assert!(all.len() >= 140, "there are only {} modes", all.len());
    let own = all.iter().enumerate().filter(|(at, _)| at % SHARDS == shard);
    own.map(|(_, words)| (words[0].to_owned(), words[1].to_owned())).collect()
}

fn limits(expected: &str) -> ClientLimits {
    let short = Duration::from_secs(2);
    match expected {
        "works" => generous(),
        "refused" => ClientLimits { connect_timeout: short, list_timeout: short, ..short_calls() },
        _ => short_calls(),
    }
}

fn drive(run: &Run, expected: &str) -> (Came, Option<ClientError>) {
    let client = match connect(run, limits(expected)) {
        Ok(client) => client,
        Err(error) => return (Came::Refused, Some(error)),
    };
    match client.list_tools() {
        Err(error) => return (Came::Refused, Some(error)),
        Ok(tools) if tools.items.iter().all(|tool| tool.name != "echo") => return (Came::Refused, None),
        Ok(_) => {}
    }
    match call(&client, "echo", &json!({"text": "hi"})) {
        Ok(result) if result["isError"] == true => (Came::Fails, None),
        Ok(result) => {
            assert!(text_of(&result).contains("hi") || expected == "either", "{result}");
            (Came::Works, None)
        }
        Err(error) => (Came::Fails, Some(error)),
    }
}

fn drive_all(shard: usize) {
    let (good, good_run) = client("good", BOTH, generous());
    for (mode, expected) in modes(shard) {
        for era in [BOTH, LEGACY] {
            let (tell, told) = channel();
            let (name, wanted) = (mode.clone(), expected.clone());
            std::thread::spawn(move || {
                let run = Run::new(&name, era);
                let came = drive(&run, &wanted);
                run.nothing_is_left();
                tell.send(came)
            });
            let came = told.recv_timeout(HANGS);
            let (came, error) = came.unwrap_or_else(|_| panic!("{mode} ({era}) hangs or broke down"));
            let right = match expected.as_str() {
                "works" => came == Came::Works,
                "refused" => came == Came::Refused,
                "fails" => came == Came::Fails,
                _ => true,
            };
            assert!(right, "{mode} ({era}) should be {expected}, and came to {came:?}: {error:?}");
            if let Some(error) = error {
                assert!(error.message.len() > 10, "{mode}: {error:?}");
                assert!(!error.message.chars().any(|c| c.is_control() && c != '\n'), "{mode}: {error:?}");
            }
            assert_eq!(echo(&good, "still here").unwrap(), "still here", "beside {mode} ({era})");
        }
    }
    good.close();
    good_run.nothing_is_left();
}

macro_rules! shards {
    ($($name:ident: $shard:literal),*) => {
        $( #[test] fn $name() { drive_all($shard); } )*
    };
}

shards! {
    every_mode_ends_as_it_should_1: 0, every_mode_ends_as_it_should_2: 1, every_mode_ends_as_it_should_3: 2,
    every_mode_ends_as_it_should_4: 3, every_mode_ends_as_it_should_5: 4, every_mode_ends_as_it_should_6: 5,
    every_mode_ends_as_it_should_7: 6, every_mode_ends_as_it_should_8: 7
}
