//! `bash`.

use haft::{ErrorKind, json};

use crate::fixture::runtime::fields;
use crate::loom::loom;

#[tokio::test]
async fn bash_gives_both_streams_apart_and_the_exit_code() {
    let loom = loom();
    let done = loom.value("bash", json!({"command": "echo out; echo err >&2; exit 3"})).await;
    let expected =
        json!({"exit_code": 3, "stdout": "out\n", "stderr": "err\n", "timed_out": false, "truncated": false});
    assert_eq!(done, expected, "a command that fails is a result, not an error");
    assert_eq!(fields(&done), ["exit_code", "stdout", "stderr", "timed_out", "truncated"]);
    let shell = loom.value("bash", json!({"command": "echo $0; kill -9 $$"})).await;
    assert_eq!((&shell["stdout"], &shell["exit_code"]), (&json!("sh\n"), &json!(null)));
}

#[tokio::test]
async fn bash_runs_where_cwd_says_inside_the_workspace() {
    let loom = loom();
    loom.file("sub/file", "");
    let place = loom.haft.workspace().display().to_string();
    assert_eq!(loom.value("bash", json!({"command": "pwd"})).await["stdout"], format!("{place}\n"));
    let done = loom.value("bash", json!({"command": "pwd", "cwd": "sub"})).await;
    assert_eq!(done["stdout"], format!("{place}/sub\n"));
    for (cwd, kind) in [
        ("..", ErrorKind::InvalidPath),
        ("/etc", ErrorKind::InvalidPath),
        ("none", ErrorKind::InvalidArguments),
        ("sub/file", ErrorKind::InvalidArguments),
    ] {
        assert_eq!(loom.fails("bash", json!({"command": "touch ran", "cwd": cwd})).await.0, kind, "{cwd}");
    }
    assert!(!loom.root().join("ran").exists());
    assert_eq!(loom.fails("bash", json!({"command": " "})).await.0, ErrorKind::InvalidArguments);
}

#[tokio::test]
async fn a_timeout_is_a_value_that_keeps_what_was_written() {
    let loom = loom();
    let command = "echo kept; (sleep 600; touch late) & sleep 600";
    // The shortest time that the schema shows; less is taken as that.
    for seconds in [5, 0] {
        let done = loom.value("bash", json!({"command": command, "timeout_secs": seconds})).await;
        assert_eq!((&done["timed_out"], &done["exit_code"]), (&json!(true), &json!(null)));
        if seconds == 5 {
            assert_eq!(done["stdout"], "kept\n");
        }
    }
}

#[tokio::test]
async fn each_stream_shows_256_kib_and_the_ledger_keeps_the_rest() {
    let loom = loom();
    let command = "yes 0123456 | head -c 262144; yes 0123456 | head -c 262145 >&2";
    let result = loom.call("bash", json!({"command": command})).await;
    let done = result.output.structured.unwrap();
    assert_eq!(done["truncated"], true);
    for stream in ["stdout", "stderr"] {
        assert_eq!(done[stream].as_str().unwrap().len(), 262_144, "{stream}");
    }
    assert!(result.receipt.full_output.is_some());
    let exact = loom.value("bash", json!({"command": "yes 0123456 | head -c 262144"})).await;
    assert_eq!(exact["truncated"], false);
}

#[tokio::test]
async fn what_the_scope_refused_is_told_with_the_errors() {
    let loom = loom();
    let done = loom.value("bash", json!({"command": "echo x > /etc/haft-test"})).await;
    assert!(done["stderr"].as_str().unwrap().contains("haft: Refused: write /etc/haft-test"), "{done}");
}
