//! Results, timeouts and errors of calls.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use haft_mcp::client::{ClientLimits, McpError, ToolCallOptions};
use haft_tool::Cancel;
use serde_json::json;

use super::{BOTH, LEGACY, TEST_TIMEOUT, call, client, echo, generous, short_calls, text_of};

#[test]
fn unanswered_call_times_out_and_the_connection_lives() {
    for family in [BOTH, LEGACY] {
        let (client, _server) = client("silent-call", family, short_calls());
        let error = echo(&client, "hi").unwrap_err();
        assert_eq!(error.kind, McpError::TimedOut);
        assert!(error.message.contains("`tools/call` was not answered within 0.7 s"), "{error}");
        assert!(client.list_tools().unwrap().items.len() > 5);
    }
}

#[test]
fn late_response_is_not_delivered_to_a_later_call() {
    for family in [BOTH, LEGACY] {
        let (client, _server) = client("reply-late", family, short_calls());
        // The server answers the first call when it receives the cancellation.
        assert_eq!(echo(&client, "first").unwrap_err().kind, McpError::TimedOut);
        for again in ["second", "third"] {
            let cancel = Cancel::new();
            let patient = ToolCallOptions {
                timeout: Some(TEST_TIMEOUT),
                max_time: Some(TEST_TIMEOUT),
                ..ToolCallOptions::new(&cancel)
            };
            let result = client.call_tool("echo", &json!({"text": again}), &patient).unwrap();
            assert_eq!(text_of(&result), again);
        }
    }
}

#[test]
fn call_can_be_cancelled() {
    let (client, _server) = client("silent-call", BOTH, generous());
    let cancel = Cancel::new();
    let other = cancel.clone();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let error = client.call_tool("echo", &json!({}), &ToolCallOptions::new(&cancel)).unwrap_err();
            assert_eq!(error.kind, McpError::Cancelled);
        });
        other.cancel();
    });
}

#[test]
fn close_fails_waiting_calls() {
    let (client, server) = client("silent-call", BOTH, generous());
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| echo(&client, "hi").unwrap_err());
        client.close();
        client.close();
        assert_eq!(waiting.join().unwrap().kind, McpError::Closed);
    });
    assert_eq!(echo(&client, "after").unwrap_err().kind, McpError::Closed);
    server.assert_no_processes_left();
}

#[test]
fn server_that_does_not_read_does_not_block_callers() {
    let (client, _server) = client("deaf", BOTH, short_calls());
    client.list_tools().unwrap();
    let long = "x".repeat(4 << 20);
    for _ in 0..2 {
        assert_eq!(echo(&client, &long).unwrap_err().kind, McpError::TimedOut);
    }
}

#[test]
fn concurrent_callers_get_their_own_results() {
    for mode in ["good", "reply-out-of-order"] {
        let (client, _server) = client(mode, BOTH, generous());
        std::thread::scope(|scope| {
            for caller in 0..6 {
                let client = &client;
                scope.spawn(move || {
                    for turn in 0..3 {
                        let text = format!("{caller}-{turn}");
                        assert_eq!(echo(client, &text).unwrap(), text);
                    }
                });
            }
        });
    }
}

#[test]
fn progress_is_reported_and_extends_the_timeout() {
    for family in [BOTH, LEGACY] {
        let (client, _server) = client("good", family, generous());
        let (cancel, reported) = (Cancel::new(), RefCell::new(Vec::new()));
        let progress =
            |progress: &haft_mcp::client::ProgressUpdate| reported.borrow_mut().push(progress.progress);
        let timeout = Some(Duration::from_secs(2));
        let options =
            ToolCallOptions { timeout, max_time: None, cancel: &cancel, progress: &progress, trace: None };
        let result = client.call_tool("slow", &json!({"seconds": 3}), &options).unwrap();
        assert_eq!(text_of(&result), "slept for 3 s");
        let reported = reported.into_inner();
        assert!(reported.len() > 5 && reported.is_sorted(), "{reported:?}");
    }
}

#[test]
fn endless_progress_does_not_extend_the_total_timeout() {
    let (client, _server) = client("progress-for-ever", BOTH, short_calls());
    let error = echo(&client, "hi").unwrap_err();
    assert_eq!(error.kind, McpError::TimedOut);
    assert!(error.message.contains("the limit for calls that report progress"), "{error}");
}

#[test]
fn overlong_line_fails_only_the_call() {
    for mode in ["long-line-20m", "long-line-200m"] {
        let (client, _server) = client(mode, BOTH, generous());
        let error = echo(&client, "hi").unwrap_err();
        assert_eq!(error.kind, McpError::TooLarge);
        assert!(error.message.contains("4194304 bytes"), "{error}");
        assert!(client.list_tools().unwrap().items.len() > 5);
    }
    assert!(peak_memory() < 200, "{} MiB at peak", peak_memory());
}

#[test]
fn endless_line_closes_the_connection() {
    let limits = ClientLimits { call_timeout: TEST_TIMEOUT, ..generous() };
    let (client, server) = client("endless-line", BOTH, limits);
    assert_eq!(echo(&client, "hi").unwrap_err().kind, McpError::TooLarge);
    client.close();
    server.assert_no_processes_left();
    assert!(peak_memory() < 200, "{} MiB at peak", peak_memory());
}

/// The peak memory of this process, in MiB.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

#[test]
fn server_errors_keep_code_message_and_data() {
    let (client, _server) = client("reply-error", BOTH, generous());
    let McpError::Rpc(error) = echo(&client, "hi").unwrap_err().kind else { panic!("not an RPC error") };
    assert_eq!((error.code, error.message.as_str()), (-32603, "the disk is full"));
    assert_eq!(error.data, Some(json!({"free": 0})));
}

#[test]
fn invalid_tool_result_is_an_error() {
    for mode in [
        "reply-text",
        "reply-null",
        "reply-list",
        "reply-content-object",
        "reply-neither",
        "result-type-unknown",
    ] {
        let (client, _server) = client(mode, BOTH, generous());
        assert_eq!(echo(&client, "hi").unwrap_err().kind, McpError::InvalidMessage, "{mode}");
        assert_eq!(text_of(&call(&client, "add", &json!({"a": 1, "b": 2})).unwrap()), "3", "{mode}");
    }
}

#[test]
fn flood_of_changes_is_merged() {
    for family in [BOTH, LEGACY] {
        let (client, _server) = client("list-changed-storm", family, generous());
        let client = Arc::new(client);
        let (sender, receiver) = std::sync::mpsc::channel();
        let own = Arc::downgrade(&client);
        client.on_change(move |_| {
            let listed = own.upgrade().map(|client| client.list_tools().is_ok());
            let _ = sender.send(listed);
        });
        assert!(echo(&client, "hi").unwrap().starts_with("hi"));
        assert_eq!(receiver.recv_timeout(TEST_TIMEOUT).unwrap(), Some(true));
        let text = echo(&client, "hi").unwrap();
        let listed: usize = text.split(' ').nth(1).unwrap().parse().unwrap();
        assert!(listed < 100, "{text}");
        client.close();
    }
}
