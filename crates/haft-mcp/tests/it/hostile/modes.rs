//! Every mode of the hostile server, in both families of versions.

use std::process::Command;
use std::sync::mpsc::channel;
use std::time::Duration;

use haft_mcp::client::{ClientError, ClientLimits};
use serde_json::json;

use super::{BOTH, HostileServer, LEGACY, call, client, connect, echo, generous, short_calls, text_of};

/// Tests that share the modes.
const SHARDS: usize = 8;
/// A mode that takes longer hangs.
const MODE_TIMEOUT: Duration = Duration::from_mins(3);

/// The outcome of connecting and calling `echo`.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Works,
    Refused,
    Fails,
}

/// The modes of one shard and their expected outcomes.
fn modes(shard: usize) -> Vec<(String, String)> {
    let listed = Command::new("python3").arg(HostileServer::script()).arg("--list").output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let all: Vec<_> = listed.lines().map(|line| line.split('\t').collect::<Vec<_>>()).collect();
    assert!(all.len() >= 140, "there are only {} modes", all.len());
    let shard_modes = all.iter().enumerate().filter(|(at, _)| at % SHARDS == shard);
    shard_modes.map(|(_, fields)| (fields[0].to_owned(), fields[1].to_owned())).collect()
}

fn limits(expected: &str) -> ClientLimits {
    let short = Duration::from_secs(2);
    match expected {
        "works" => generous(),
        "refused" => ClientLimits { connect_timeout: short, list_timeout: short, ..short_calls() },
        _ => short_calls(),
    }
}

fn drive(server: &HostileServer, expected: &str) -> (Outcome, Option<ClientError>) {
    let client = match connect(server, limits(expected)) {
        Ok(client) => client,
        Err(error) => return (Outcome::Refused, Some(error)),
    };
    match client.list_tools() {
        Err(error) => return (Outcome::Refused, Some(error)),
        Ok(tools) if tools.items.iter().all(|tool| tool.name != "echo") => return (Outcome::Refused, None),
        Ok(_) => {}
    }
    match call(&client, "echo", &json!({"text": "hi"})) {
        Ok(result) if result["isError"] == true => (Outcome::Fails, None),
        Ok(result) => {
            assert!(text_of(&result).contains("hi") || expected == "either", "{result}");
            (Outcome::Works, None)
        }
        Err(error) => (Outcome::Fails, Some(error)),
    }
}

fn drive_all(shard: usize) {
    let (good, good_server) = client("good", BOTH, generous());
    for (mode, expected) in modes(shard) {
        for family in [BOTH, LEGACY] {
            let (sender, receiver) = channel();
            let (name, expected_outcome) = (mode.clone(), expected.clone());
            std::thread::spawn(move || {
                let server = HostileServer::new(&name, family);
                let outcome = drive(&server, &expected_outcome);
                server.assert_no_processes_left();
                sender.send(outcome)
            });
            let outcome = receiver.recv_timeout(MODE_TIMEOUT);
            let (outcome, error) = outcome.unwrap_or_else(|_| panic!("{mode} ({family}) hangs or panicked"));
            let is_expected = match expected.as_str() {
                "works" => outcome == Outcome::Works,
                "refused" => outcome == Outcome::Refused,
                "fails" => outcome == Outcome::Fails,
                _ => true,
            };
            assert!(is_expected, "{mode} ({family}) should be {expected}, but is {outcome:?}: {error:?}");
            if let Some(error) = error {
                assert!(error.message.len() > 10, "{mode}: {error:?}");
                assert!(!error.message.chars().any(|c| c.is_control() && c != '\n'), "{mode}: {error:?}");
            }
            assert_eq!(echo(&good, "alive").unwrap(), "alive", "beside {mode} ({family})");
        }
    }
    good.close();
    good_server.assert_no_processes_left();
}

macro_rules! shards {
    ($($name:ident: $shard:literal),*) => {
        $( #[test] fn $name() { drive_all($shard); } )*
    };
}

shards! {
    every_mode_has_its_outcome_1: 0, every_mode_has_its_outcome_2: 1, every_mode_has_its_outcome_3: 2,
    every_mode_has_its_outcome_4: 3, every_mode_has_its_outcome_5: 4, every_mode_has_its_outcome_6: 5,
    every_mode_has_its_outcome_7: 6, every_mode_has_its_outcome_8: 7
}
