//! Streams: what comes over them, who hangs up, and who comes back.

use std::time::Duration;

use haft_mcp::serve::{ClientRequestError, ServerChange};
use haft_mcp::wire::INVALID_PARAMS;
use serde_json::{Value, json};

use crate::client::{House, Line, OTHER, TOKEN, house, house_within};
use crate::support::{call, modern, request};

/// Sends a request of the new era and keeps the line.
fn begin(house: &House, message: &Value) -> Line {
    let mut line = house.connect();
    line.send(&house.post_modern(message).bytes());
    line
}

/// Sends a request within a session and keeps the line.
fn begin_in(house: &House, session: &str, message: &Value) -> Line {
    let mut line = house.connect();
    line.send(&house.post_in(session, message).bytes());
    line
}

fn listen(house: &House, session: &str, after: Option<&str>) -> Line {
    let mut line = house.connect();
    let mut ask = house.bare("GET", session);
    if let Some(after) = after {
        ask.set("Last-Event-ID", after);
    }
    line.send(&ask.bytes());
    line
}

#[test]
fn what_precedes_an_answer_comes_as_events_and_the_answer_last() {
    let house = house();
    let mut line = begin(&house, &request(1, "tools/call", modern(call("talk", json!({"times": 3})))));
    let head = line.head();
    assert_eq!(head.header("content-type"), Some("text/event-stream"));
    assert_eq!(head.header("x-accel-buffering"), Some("no"));
    for step in 0..3 {
        let (id, told) = line.event().unwrap();
        assert_eq!(
            (id, &told["params"]["data"]),
            (None, &json!(step)),
            "the new era has nothing to come back to"
        );
    }
    assert_eq!(line.event().unwrap().1["id"], 1);
    assert_eq!(line.event(), None);
}

#[test]
fn whoever_hangs_up_in_the_new_era_takes_the_request_back() {
    let house = house_within(|limits| limits.stream_after = Duration::from_millis(10));
    let message = request(1, "tools/call", modern(call("hold", json!({}))));
    let waiting = begin(&house, &message);
    house.toys.until(|seen| seen.begun == 1);
    drop(waiting);
    house.toys.until(|seen| seen.cancelled == 1);
    let mut streaming = begin(&house, &message);
    assert_eq!(
        streaming.head().header("content-type"),
        Some("text/event-stream"),
        "it took too long for anything else"
    );
    drop(streaming);
    house.toys.until(|seen| seen.cancelled == 2);
    let half = begin(&house, &message);
    house.toys.until(|seen| seen.begun == 3);
    half.half_close();
    house.toys.until(|seen| seen.cancelled == 3);
}

#[test]
fn before_there_is_anything_to_come_back_to_hanging_up_takes_an_old_request_back_too() {
    let house = house();
    let session = house.session("2025-11-25", TOKEN);
    let line = begin_in(&house, &session, &request(1, "tools/call", call("hold", json!({}))));
    house.toys.until(|seen| seen.begun == 1);
    drop(line);
    house.toys.until(|seen| seen.cancelled == 1);
}

#[test]
fn an_old_request_is_taken_back_by_saying_so_and_gets_no_answer() {
    let house = house();
    let session = house.session("2025-11-25", TOKEN);
    let mut line = begin_in(&house, &session, &request(1, "tools/call", call("hold", json!({}))));
    house.toys.until(|seen| seen.begun == 1);
    let elsewhere = house.session("2025-11-25", TOKEN);
    let told = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    assert_eq!(house.ask(&house.post_in(&elsewhere, &told)).status, 202, "this means another request");
    assert_eq!(house.ask(&house.post_in(&session, &told)).status, 202);
    house.toys.until(|seen| seen.cancelled == 1);
    line.head();
    let events: Vec<_> =
        std::iter::from_fn(|| line.event()).filter(|(_, message)| !message.is_null()).collect();
    assert_eq!(events, []);
}

#[test]
fn a_client_that_lost_its_connection_comes_back_for_the_rest() {
    let house = house_within(|limits| limits.stream_after = Duration::from_millis(10));
    let session = house.session("2025-11-25", TOKEN);
    let mut line = begin_in(&house, &session, &request(1, "tools/call", call("hold", json!({}))));
    line.head();
    let (first, message) = line.event().unwrap();
    assert_eq!(message, Value::Null, "the first event says only where to come back to");
    drop(line);
    let mut back = listen(&house, &session, first.as_deref());
    assert_eq!(back.head().status, 200);
    house.toys.release();
    let answer = std::iter::from_fn(|| back.event()).find(|(_, message)| !message.is_null()).unwrap();
    assert_eq!(answer.1["result"]["content"][0]["text"], "held");
    assert_eq!(back.event(), None);
    let mut once_more = listen(&house, &session, first.as_deref());
    once_more.head();
    let again = std::iter::from_fn(|| once_more.event()).find(|(_, message)| !message.is_null()).unwrap();
    assert_eq!(again, answer, "nobody knows whether it had arrived");
    let mut at_the_end = listen(&house, &session, answer.0.as_deref());
    at_the_end.head();
    assert_eq!(at_the_end.event(), None);
}

#[test]
fn a_stream_belongs_to_its_session_and_only_events_that_were_can_be_come_back_to() {
    let house = house_within(|limits| limits.stream_after = Duration::from_millis(10));
    let session = house.session("2025-11-25", TOKEN);
    let mut line = begin_in(&house, &session, &request(1, "tools/call", call("hold", json!({}))));
    line.head();
    let first = line.event().unwrap().0.unwrap();
    for wrong in
        ["", "x", "1", "1-", "-1", "1-2", "99-0", "1-18446744073709551615", "18446744073709551616-0", "1--1"]
    {
        assert_eq!(listen(&house, &session, Some(wrong)).reply().status, 400, "{wrong:?}");
    }
    let other = house.session("2025-11-25", TOKEN);
    assert_eq!(listen(&house, &other, Some(&first)).reply().status, 400);
    house.toys.release();
    assert_eq!(line.event().unwrap().1["id"], 1, "whoever was there first still is");
}

#[test]
fn who_comes_back_replaces_whoever_was_there() {
    let house = house_within(|limits| limits.stream_after = Duration::from_millis(10));
    let session = house.session("2025-11-25", TOKEN);
    let mut before = begin_in(&house, &session, &request(1, "tools/call", call("hold", json!({}))));
    before.head();
    let first = before.event().unwrap().0.unwrap();
    let mut after = listen(&house, &session, Some(&first));
    after.head();
    assert_eq!(before.event(), None);
    house.toys.release();
    assert!(std::iter::from_fn(|| after.event()).any(|(_, message)| message["id"] == 1));
}

#[test]
fn a_client_is_asked_to_come_back_later_if_it_knows_how() {
    let house = house();
    let later = request(1, "tools/call", call("later", json!({})));
    let session = house.session("2025-11-25", TOKEN);
    let mut line = begin_in(&house, &session, &later);
    line.head();
    let (first, message) = line.event().unwrap();
    assert_eq!(message, Value::Null);
    assert_eq!(line.event(), None, "the server hangs up and not the client");
    let mut back = listen(&house, &session, first.as_deref());
    back.head();
    house.toys.release();
    assert!(std::iter::from_fn(|| back.event()).any(|(_, message)| message["id"] == 1));

    let old = house.session("2025-06-18", TOKEN);
    assert_eq!(begin_in(&house, &old, &later).reply().json()["id"], 1);
    let new = request(1, "tools/call", modern(call("later", json!({}))));
    assert_eq!(begin(&house, &new).reply().json()["id"], 1);
}

#[test]
fn who_does_not_come_back_has_taken_the_request_back() {
    let house = house_within(|limits| {
        limits.stream_after = Duration::from_millis(10);
        limits.reconnect_timeout = Duration::from_millis(10);
    });
    let session = house.session("2025-11-25", TOKEN);
    let mut line = begin_in(&house, &session, &request(1, "tools/call", call("hold", json!({}))));
    line.head();
    let first = line.event().unwrap().0.unwrap();
    drop(line);
    house.toys.until(|seen| seen.cancelled == 1);
    assert_eq!(listen(&house, &session, Some(&first)).reply().status, 400);
}

#[test]
fn a_question_within_a_session_is_answered_by_a_message_of_its_own_and_by_nobody_else() {
    let house = house();
    let session = house.session("2025-11-25", TOKEN);
    let mut line = begin_in(&house, &session, &request(1, "tools/call", call("ask", json!({}))));
    line.head();
    let asked = std::iter::from_fn(|| line.event()).find(|(_, message)| !message.is_null()).unwrap().1;
    assert_eq!(asked["method"], "elicitation/create");
    let answer = |name: &str| {
        let result = json!({"action": "accept", "content": {"name": name}});
        json!({"jsonrpc": "2.0", "id": asked["id"], "result": result})
    };
    let stranger = house.session("2025-11-25", TOKEN);
    assert_eq!(house.ask(&house.post_in(&stranger, &answer("Mallory"))).status, 202);
    assert_eq!(house.ask(&house.post(&answer("Mallory"))).status, 400);
    assert_eq!(house.ask(&house.post_in(&session, &answer("Alice"))).status, 202);
    let result = line.event().unwrap().1;
    let text = result["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("Alice") && !text.contains("Mallory"), "{text}");
}

#[test]
fn a_question_of_the_new_era_is_answered_by_asking_again_once_and_only_by_the_same_client() {
    let house = house();
    let ask = |params: Value| house.post_modern(&request(1, "tools/call", modern(params)));
    let first = house.ask(&ask(call("ask", json!({}))));
    assert_eq!(first.status, 200);
    let result = first.json()["result"].clone();
    assert_eq!(result["resultType"], "input_required");
    assert_eq!(result["inputRequests"]["who"]["method"], "elicitation/create");
    let mut again = call("ask", json!({}));
    again["requestState"] = result["requestState"].clone();
    again["inputResponses"] = json!({"who": {"action": "accept", "content": {"name": "Alice"}}});
    let stolen = house.ask(&ask(again.clone()).with("Authorization", &format!("Bearer {OTHER}")));
    assert_eq!(stolen.code(), INVALID_PARAMS);
    let mut other = again.clone();
    other["arguments"] = json!({"x": 1});
    assert_eq!(
        house.ask(&ask(other)).code(),
        INVALID_PARAMS,
        "another call than the one that was asked about"
    );
    let mut missing = again.clone();
    missing["inputResponses"] = json!({});
    let asked_again = house.ask(&ask(missing)).json()["result"].clone();
    assert_eq!(asked_again["resultType"], "input_required");
    assert_eq!(house.ask(&ask(again.clone())).code(), INVALID_PARAMS, "the first state is used up");
    again["requestState"] = asked_again["requestState"].clone();
    let done = house.ask(&ask(again.clone())).json();
    assert!(done["result"]["content"][0]["text"].as_str().unwrap().contains("Alice"), "{done}");
    assert_eq!(house.ask(&ask(again)).code(), INVALID_PARAMS, "and so is the second");
}

#[test]
fn news_goes_to_whoever_listens_for_it_in_either_era() {
    let house = house();
    let wanted = json!({"notifications": {"toolsListChanged": true, "resourceSubscriptions": ["toys://one", "toys://two"]}});
    let mut new = begin(&house, &request(5, "subscriptions/listen", modern(wanted)));
    new.head();
    let first = new.event().unwrap().1;
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(
        first["params"]["notifications"],
        json!({"toolsListChanged": true, "resourceSubscriptions": ["toys://one"]})
    );
    let session = house.session("2025-11-25", TOKEN);
    let mut old = listen(&house, &session, None);
    assert_eq!(old.head().status, 200);
    assert_eq!(old.event().unwrap().1, Value::Null);
    house.toys.tell(&ServerChange::Prompts);
    house.toys.tell(&ServerChange::Resource("toys://two".to_owned()));
    house.toys.tell(&ServerChange::Tools);
    let told = new.event().unwrap().1;
    assert_eq!(told["method"], "notifications/tools/list_changed");
    assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 5);
    assert_eq!(old.event().unwrap().1["method"], "notifications/prompts/list_changed");
    assert_eq!(old.event().unwrap().1["method"], "notifications/tools/list_changed");
    house.running.stop();
    let last = new.event().unwrap().1;
    assert_eq!((last["id"].as_i64(), last["result"]["resultType"].as_str()), (Some(5), Some("complete")));
    assert_eq!(new.event(), None);
    assert_eq!(old.event(), None);
}

#[test]
fn stopping_ends_what_is_under_way_and_what_waits_for_answers() {
    let house = house();
    let holding = begin(&house, &request(1, "tools/call", modern(call("hold", json!({})))));
    let asking = house.ask(&house.post_modern(&request(2, "tools/call", modern(call("ask", json!({}))))));
    assert_eq!(asking.json()["result"]["resultType"], "input_required");
    house.toys.until(|seen| seen.begun == 2);
    let toys = house.toys.clone();
    house.running.stop();
    toys.until(|seen| seen.cancelled == 1 && seen.unanswered == [ClientRequestError::Cancelled]);
    drop(holding);
}

#[test]
fn a_silent_stream_shows_that_it_is_alive() {
    let house = house_within(|limits| {
        limits.stream_after = Duration::from_millis(1);
        limits.heartbeat_interval = Duration::from_millis(1);
    });
    let mut line = begin(&house, &request(1, "tools/call", modern(call("hold", json!({})))));
    line.head();
    assert_eq!(line.comment(), ":\n\n");
    house.toys.release();
    assert_eq!(line.event().unwrap().1["id"], 1);
}
