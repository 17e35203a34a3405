//! Calls: who gets which answer, who waits for how long, and what is said when none comes.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use haft_mcp::client::{ClientLimits, McpError, ToolCallOptions};
use haft_tool::Cancel;
use serde_json::json;

use super::{BOTH, LEGACY, LONG, call, client, echo, generous, short_calls, text_of};

#[test]
fn a_call_without_an_answer_ends_at_its_limit_and_the_connection_goes_on() {
    for era in [BOTH, LEGACY] {
        let (client, _run) = client("silent-call", era, short_calls());
        let error = echo(&client, "hi").unwrap_err();
        assert_eq!(error.kind, McpError::TimedOut);
        assert!(error.message.contains("`tools/call` was not answered within 0.7 s"), "{error}");
        assert!(client.list_tools().unwrap().items.len() > 5);
    }
}

#[test]
fn a_late_answer_is_never_given_to_a_later_call() {
    for era in [BOTH, LEGACY] {
        let (client, _run) = client("reply-late", era, short_calls());
        // The server answers the first call when it hears that nobody waits for it any more.
        assert_eq!(echo(&client, "first").unwrap_err().kind, McpError::TimedOut);
        for again in ["second", "third"] {
            let cancel = Cancel::new();
            let patient = ToolCallOptions {
                timeout: Some(LONG),
                max_time: Some(LONG),
                ..ToolCallOptions::new(&cancel)
            };
            let result = client.call_tool("echo", &json!({"text": again}), &patient).unwrap();
            assert_eq!(text_of(&result), again);
        }
    }
}

#[test]
fn a_call_can_be_taken_back() {
    let (client, _run) = client("silent-call", BOTH, generous());
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
fn closing_ends_whatever_waits() {
    let (client, run) = client("silent-call", BOTH, generous());
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| echo(&client, "hi").unwrap_err());
        client.close();
        client.close();
        assert_eq!(waiting.join().unwrap().kind, McpError::Closed);
    });
    assert_eq!(echo(&client, "after").unwrap_err().kind, McpError::Closed);
    run.nothing_is_left();
}

#[test]
fn a_server_that_reads_nothing_blocks_nobody() {
    let (client, _run) = client("deaf", BOTH, short_calls());
    client.list_tools().unwrap();
    let long = "x".repeat(4 << 20);
    for _ in 0..2 {
        assert_eq!(echo(&client, &long).unwrap_err().kind, McpError::TimedOut);
    }
}

#[test]
fn several_callers_each_get_their_own_answer() {
    for mode in ["good", "reply-out-of-order"] {
        let (client, _run) = client(mode, BOTH, generous());
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
fn progress_is_heard_and_gives_a_call_more_time() {
    for era in [BOTH, LEGACY] {
        let (client, _run) = client("good", era, generous());
        let (cancel, heard) = (Cancel::new(), RefCell::new(Vec::new()));
        let progress =
            |progress: &haft_mcp::client::ProgressUpdate| heard.borrow_mut().push(progress.progress);
        let timeout = Some(Duration::from_secs(2));
        let options = ToolCallOptions { timeout, max_time: None, cancel: &cancel, progress: &progress };
        let result = client.call_tool("slow", &json!({"seconds": 3}), &options).unwrap();
        assert_eq!(text_of(&result), "slept for 3 s");
        let heard = heard.into_inner();
        assert!(heard.len() > 5 && heard.is_sorted(), "{heard:?}");
    }
}

#[test]
fn progress_for_ever_is_not_believed_for_ever() {
    let (client, _run) = client("progress-for-ever", BOTH, short_calls());
    let error = echo(&client, "hi").unwrap_err();
    assert_eq!(error.kind, McpError::TimedOut);
    assert!(error.message.contains("the limit for calls that report progress"), "{error}");
}

#[test]
fn a_line_that_is_too_long_costs_the_call_and_neither_the_connection_nor_memory() {
    for mode in ["long-line-20m", "long-line-200m"] {
        let (client, _run) = client(mode, BOTH, generous());
        let error = echo(&client, "hi").unwrap_err();
        assert_eq!(error.kind, McpError::TooLarge);
        assert!(error.message.contains("4194304 bytes"), "{error}");
        assert!(client.list_tools().unwrap().items.len() > 5);
    }
    assert!(peak() < 200, "{} MiB at the most", peak());
}

#[test]
fn a_line_without_end_ends_the_connection_in_bounded_memory() {
    let limits = ClientLimits { call_timeout: LONG, ..generous() };
    let (client, run) = client("endless-line", BOTH, limits);
    assert_eq!(echo(&client, "hi").unwrap_err().kind, McpError::TooLarge);
    client.close();
    run.nothing_is_left();
    assert!(peak() < 200, "{} MiB at the most", peak());
}

/// How much memory this process has had at the most, in MiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

#[test]
fn errors_of_the_server_keep_their_code_and_words() {
    let (client, _run) = client("reply-error", BOTH, generous());
    let McpError::Rpc(error) = echo(&client, "hi").unwrap_err().kind else { panic!("another kind") };
    assert_eq!((error.code, error.message.as_str()), (-32603, "the disk is full"));
    assert_eq!(error.data, Some(json!({"free": 0})));
}

#[test]
fn what_is_no_result_of_a_tool_is_said_to_be_none() {
    for mode in [
        "reply-text",
        "reply-null",
        "reply-list",
        "reply-content-object",
        "reply-neither",
        "result-type-unknown",
    ] {
        let (client, _run) = client(mode, BOTH, generous());
        assert_eq!(echo(&client, "hi").unwrap_err().kind, McpError::InvalidMessage, "{mode}");
        assert_eq!(text_of(&call(&client, "add", &json!({"a": 1, "b": 2})).unwrap()), "3", "{mode}");
    }
}

#[test]
fn a_storm_of_news_is_heard_a_few_times() {
    for era in [BOTH, LEGACY] {
        let (client, _run) = client("list-changed-storm", era, generous());
        let client = Arc::new(client);
        let (tell, told) = std::sync::mpsc::channel();
        let own = Arc::downgrade(&client);
        client.on_change(move |_| {
            let listed = own.upgrade().map(|client| client.list_tools().is_ok());
            let _ = tell.send(listed);
        });
        assert!(echo(&client, "hi").unwrap().starts_with("hi"));
        assert_eq!(told.recv_timeout(LONG).unwrap(), Some(true));
        let text = echo(&client, "hi").unwrap();
        let listed: usize = text.split(' ').nth(1).unwrap().parse().unwrap();
        assert!(listed < 100, "{text}");
        client.close();
    }
}
