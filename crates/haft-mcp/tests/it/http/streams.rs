//! Streams: what comes over them, who hangs up, and who comes back.

use std::time::Duration;

use haft_mcp::serve::{ClientRequestError, ServerChange};
use haft_mcp::wire::INVALID_PARAMS;
use serde_json::{Value, json};

use crate::fixture::{call, request, stateless};
use crate::http::client::{HttpFixture, OTHER_TOKEN, RawConnection, TOKEN, server, server_with_limits};

/// Sends a stateless request and keeps the connection.
fn begin(server: &HttpFixture, message: &Value) -> RawConnection {
    let mut connection = server.connect();
    connection.send(&server.post_stateless(message).bytes());
    connection
}

/// Sends a request within a session and keeps the connection.
fn begin_in(server: &HttpFixture, session: &str, message: &Value) -> RawConnection {
    let mut connection = server.connect();
    connection.send(&server.post_in(session, message).bytes());
    connection
}

fn listen(server: &HttpFixture, session: &str, after: Option<&str>) -> RawConnection {
    let mut connection = server.connect();
    let mut post = server.bare("GET", session);
    if let Some(after) = after {
        post.set("Last-Event-ID", after);
    }
    connection.send(&post.bytes());
    connection
}

#[test]
fn notifications_come_as_events_before_the_response() {
    let server = server();
    let mut connection =
        begin(&server, &request(1, "tools/call", stateless(call("talk", json!({"times": 3})))));
    let head = connection.head();
    assert_eq!(head.header("content-type"), Some("text/event-stream"));
    assert_eq!(head.header("x-accel-buffering"), Some("no"));
    for step in 0..3 {
        let (id, told) = connection.event().unwrap();
        assert_eq!(
            (id, &told["params"]["data"]),
            (None, &json!(step)),
            "the new era has nothing to come back to"
        );
    }
    assert_eq!(connection.event().unwrap().1["id"], 1);
    assert_eq!(connection.event(), None);
}

#[test]
fn disconnect_cancels_a_stateless_request() {
    let server = server_with_limits(|limits| limits.stream_after = Duration::from_millis(10));
    let message = request(1, "tools/call", stateless(call("hold", json!({}))));
    let waiting = begin(&server, &message);
    server.service.wait_until(|state| state.started == 1);
    drop(waiting);
    server.service.wait_until(|state| state.cancelled == 1);
    let mut streaming = begin(&server, &message);
    assert_eq!(
        streaming.head().header("content-type"),
        Some("text/event-stream"),
        "it took too long for anything else"
    );
    drop(streaming);
    server.service.wait_until(|state| state.cancelled == 2);
    let half = begin(&server, &message);
    server.service.wait_until(|state| state.started == 3);
    half.half_close();
    server.service.wait_until(|state| state.cancelled == 3);
}

#[test]
fn disconnect_before_the_first_event_cancels() {
    let server = server();
    let session = server.session("2025-11-25", TOKEN);
    let connection = begin_in(&server, &session, &request(1, "tools/call", call("hold", json!({}))));
    server.service.wait_until(|state| state.started == 1);
    drop(connection);
    server.service.wait_until(|state| state.cancelled == 1);
}

#[test]
fn cancelled_legacy_request_has_no_response() {
    let server = server();
    let session = server.session("2025-11-25", TOKEN);
    let mut connection = begin_in(&server, &session, &request(1, "tools/call", call("hold", json!({}))));
    server.service.wait_until(|state| state.started == 1);
    let elsewhere = server.session("2025-11-25", TOKEN);
    let told = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    assert_eq!(server.send(&server.post_in(&elsewhere, &told)).status, 202, "this means another request");
    assert_eq!(server.send(&server.post_in(&session, &told)).status, 202);
    server.service.wait_until(|state| state.cancelled == 1);
    connection.head();
    let events: Vec<_> =
        std::iter::from_fn(|| connection.event()).filter(|(_, message)| !message.is_null()).collect();
    assert_eq!(events, []);
}

#[test]
fn interrupted_stream_is_resumed() {
    let server = server_with_limits(|limits| limits.stream_after = Duration::from_millis(10));
    let session = server.session("2025-11-25", TOKEN);
    let mut connection = begin_in(&server, &session, &request(1, "tools/call", call("hold", json!({}))));
    connection.head();
    let (first, message) = connection.event().unwrap();
    assert_eq!(message, Value::Null, "the first event says only where to come back to");
    drop(connection);
    let mut back = listen(&server, &session, first.as_deref());
    assert_eq!(back.head().status, 200);
    server.service.release();
    let answer = std::iter::from_fn(|| back.event()).find(|(_, message)| !message.is_null()).unwrap();
    assert_eq!(answer.1["result"]["content"][0]["text"], "held");
    assert_eq!(back.event(), None);
    let mut once_more = listen(&server, &session, first.as_deref());
    once_more.head();
    let again = std::iter::from_fn(|| once_more.event()).find(|(_, message)| !message.is_null()).unwrap();
    assert_eq!(again, answer, "it may not have arrived");
    let mut at_the_end = listen(&server, &session, answer.0.as_deref());
    at_the_end.head();
    assert_eq!(at_the_end.event(), None);
}

#[test]
fn only_known_events_of_the_session_can_be_resumed() {
    let server = server_with_limits(|limits| limits.stream_after = Duration::from_millis(10));
    let session = server.session("2025-11-25", TOKEN);
    let mut connection = begin_in(&server, &session, &request(1, "tools/call", call("hold", json!({}))));
    connection.head();
    let first = connection.event().unwrap().0.unwrap();
    for wrong in
        ["", "x", "1", "1-", "-1", "1-2", "99-0", "1-18446744073709551615", "18446744073709551616-0", "1--1"]
    {
        assert_eq!(listen(&server, &session, Some(wrong)).response().status, 400, "{wrong:?}");
    }
    let other = server.session("2025-11-25", TOKEN);
    assert_eq!(listen(&server, &other, Some(&first)).response().status, 400);
    server.service.release();
    assert_eq!(connection.event().unwrap().1["id"], 1, "the first connection is still open");
}

#[test]
fn new_reader_replaces_the_old_one() {
    let server = server_with_limits(|limits| limits.stream_after = Duration::from_millis(10));
    let session = server.session("2025-11-25", TOKEN);
    let mut before = begin_in(&server, &session, &request(1, "tools/call", call("hold", json!({}))));
    before.head();
    let first = before.event().unwrap().0.unwrap();
    let mut after = listen(&server, &session, Some(&first));
    after.head();
    assert_eq!(before.event(), None);
    server.service.release();
    assert!(std::iter::from_fn(|| after.event()).any(|(_, message)| message["id"] == 1));
}

#[test]
fn server_can_disconnect_a_client_that_can_resume() {
    let server = server();
    let later = request(1, "tools/call", call("disconnect", json!({})));
    let session = server.session("2025-11-25", TOKEN);
    let mut connection = begin_in(&server, &session, &later);
    connection.head();
    let (first, message) = connection.event().unwrap();
    assert_eq!(message, Value::Null);
    assert_eq!(connection.event(), None, "the server closes the connection");
    let mut back = listen(&server, &session, first.as_deref());
    back.head();
    server.service.release();
    assert!(std::iter::from_fn(|| back.event()).any(|(_, message)| message["id"] == 1));

    let old = server.session("2025-06-18", TOKEN);
    assert_eq!(begin_in(&server, &old, &later).response().json()["id"], 1);
    let new = request(1, "tools/call", stateless(call("disconnect", json!({}))));
    assert_eq!(begin(&server, &new).response().json()["id"], 1);
}

#[test]
fn stream_without_a_reader_expires() {
    let server = server_with_limits(|limits| {
        limits.stream_after = Duration::from_millis(10);
        limits.reconnect_timeout = Duration::from_millis(10);
    });
    let session = server.session("2025-11-25", TOKEN);
    let mut connection = begin_in(&server, &session, &request(1, "tools/call", call("hold", json!({}))));
    connection.head();
    let first = connection.event().unwrap().0.unwrap();
    drop(connection);
    server.service.wait_until(|state| state.cancelled == 1);
    assert_eq!(listen(&server, &session, Some(&first)).response().status, 400);
}

#[test]
fn legacy_question_is_answered_only_in_its_session() {
    let server = server();
    let session = server.session("2025-11-25", TOKEN);
    let mut connection = begin_in(&server, &session, &request(1, "tools/call", call("ask", json!({}))));
    connection.head();
    let asked = std::iter::from_fn(|| connection.event()).find(|(_, message)| !message.is_null()).unwrap().1;
    assert_eq!(asked["method"], "elicitation/create");
    let answer = |name: &str| {
        let result = json!({"action": "accept", "content": {"name": name}});
        json!({"jsonrpc": "2.0", "id": asked["id"], "result": result})
    };
    let stranger = server.session("2025-11-25", TOKEN);
    assert_eq!(server.send(&server.post_in(&stranger, &answer("Mallory"))).status, 202);
    assert_eq!(server.send(&server.post(&answer("Mallory"))).status, 400);
    assert_eq!(server.send(&server.post_in(&session, &answer("Alice"))).status, 202);
    let result = connection.event().unwrap().1;
    let text = result["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("Alice") && !text.contains("Mallory"), "{text}");
}

#[test]
fn stateless_input_is_bound_to_request_and_principal() {
    let server = server();
    let ask = |params: Value| server.post_stateless(&request(1, "tools/call", stateless(params)));
    let first = server.send(&ask(call("ask", json!({}))));
    assert_eq!(first.status, 200);
    let result = first.json()["result"].clone();
    assert_eq!(result["resultType"], "input_required");
    assert_eq!(result["inputRequests"]["who"]["method"], "elicitation/create");
    let mut again = call("ask", json!({}));
    again["requestState"] = result["requestState"].clone();
    again["inputResponses"] = json!({"who": {"action": "accept", "content": {"name": "Alice"}}});
    let stolen = server.send(&ask(again.clone()).with("Authorization", &format!("Bearer {OTHER_TOKEN}")));
    assert_eq!(stolen.code(), INVALID_PARAMS);
    let mut other = again.clone();
    other["arguments"] = json!({"x": 1});
    assert_eq!(
        server.send(&ask(other)).code(),
        INVALID_PARAMS,
        "another call than the one that was asked about"
    );
    let mut missing = again.clone();
    missing["inputResponses"] = json!({});
    let asked_again = server.send(&ask(missing)).json()["result"].clone();
    assert_eq!(asked_again["resultType"], "input_required");
    assert_eq!(server.send(&ask(again.clone())).code(), INVALID_PARAMS, "the first state is used up");
    again["requestState"] = asked_again["requestState"].clone();
    let done = server.send(&ask(again.clone())).json();
    assert!(done["result"]["content"][0]["text"].as_str().unwrap().contains("Alice"), "{done}");
    assert_eq!(server.send(&ask(again)).code(), INVALID_PARAMS, "and so is the second");
}

#[test]
fn changes_are_sent_to_listeners_in_both_families() {
    let server = server();
    let wanted = json!({"notifications": {"toolsListChanged": true, "resourceSubscriptions": ["test://one", "test://two"]}});
    let mut new = begin(&server, &request(5, "subscriptions/listen", stateless(wanted)));
    new.head();
    let first = new.event().unwrap().1;
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(
        first["params"]["notifications"],
        json!({"toolsListChanged": true, "resourceSubscriptions": ["test://one"]})
    );
    let session = server.session("2025-11-25", TOKEN);
    let mut old = listen(&server, &session, None);
    assert_eq!(old.head().status, 200);
    assert_eq!(old.event().unwrap().1, Value::Null);
    server.service.notify(&ServerChange::Prompts);
    server.service.notify(&ServerChange::Resource("test://two".to_owned()));
    server.service.notify(&ServerChange::Tools);
    let told = new.event().unwrap().1;
    assert_eq!(told["method"], "notifications/tools/list_changed");
    assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 5);
    assert_eq!(old.event().unwrap().1["method"], "notifications/prompts/list_changed");
    assert_eq!(old.event().unwrap().1["method"], "notifications/tools/list_changed");
    server.handle.stop();
    let last = new.event().unwrap().1;
    assert_eq!((last["id"].as_i64(), last["result"]["resultType"].as_str()), (Some(5), Some("complete")));
    assert_eq!(new.event(), None);
    assert_eq!(old.event(), None);
}

#[test]
fn stop_cancels_running_and_suspended_requests() {
    let server = server();
    let holding = begin(&server, &request(1, "tools/call", stateless(call("hold", json!({})))));
    let asking =
        server.send(&server.post_stateless(&request(2, "tools/call", stateless(call("ask", json!({}))))));
    assert_eq!(asking.json()["result"]["resultType"], "input_required");
    server.service.wait_until(|state| state.started == 2);
    let service = server.service.clone();
    server.handle.stop();
    service
        .wait_until(|state| state.cancelled == 1 && state.client_errors == [ClientRequestError::Cancelled]);
    drop(holding);
}

#[test]
fn idle_stream_sends_heartbeats() {
    let server = server_with_limits(|limits| {
        limits.stream_after = Duration::from_millis(1);
        limits.heartbeat_interval = Duration::from_millis(1);
    });
    let mut connection = begin(&server, &request(1, "tools/call", stateless(call("hold", json!({})))));
    connection.head();
    assert_eq!(connection.comment(), ":\n\n");
    server.service.release();
    assert_eq!(connection.event().unwrap().1["id"], 1);
}
