//! Concurrency, cancellation, questions and subscriptions.

use haft_mcp::serve::ServerChange;
use haft_mcp::wire::{INVALID_PARAMS, INVALID_REQUEST};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use serde_json::{Value, json};

use super::client::{connect, connect_over, initialized};
use crate::fixture::{call, request, stateless};

#[test]
fn cancelled_request_ends_without_a_response() {
    let mut client = initialized("2025-11-25");
    for (before, id) in [json!(7), json!("seven")].into_iter().enumerate() {
        client.send(&request(id.clone(), "tools/call", call("hold", json!({}))));
        client.service.wait_until(|state| state.started == before + 1);
        let cancel = |id: &Value| json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
        client.send(&cancel(&json!("another")));
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled"}));
        client.send(&cancel(&json!({})));
        client.send(&cancel(&id));
        client.service.wait_until(|state| state.cancelled == before + 1);
        client.send(&cancel(&id));
        client.send(&request("after", "ping", json!({})));
        assert_eq!(client.next()["id"], "after");
    }
    assert_eq!(client.close(), Vec::<Value>::new());
}

#[test]
fn id_in_use_is_refused() {
    let mut client = initialized("2025-11-25");
    client.send(&request(1, "tools/call", call("hold", json!({}))));
    client.service.wait_until(|state| state.started == 1);
    client.send(&request(1, "ping", json!({})));
    assert_eq!(client.next()["error"]["code"], INVALID_REQUEST);
    client.send(&request("1", "ping", json!({})));
    assert_eq!(client.next()["result"], json!({}), "a string id differs from a number");
    client.service.release();
    assert_eq!(client.next()["result"]["content"][0]["text"], "held");
    client.send(&request(1, "ping", json!({})));
    assert_eq!(client.next()["result"], json!({}));
}

#[test]
fn slow_requests_do_not_block_others_and_are_limited() {
    let mut client = connect();
    for id in 0..256 {
        client.send(&request(id, "tools/call", stateless(call("hold", json!({})))));
    }
    client.service.wait_until(|state| state.started == 256);
    client.send(&request("one more", "tools/list", stateless(json!({}))));
    let refused = client.next();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!("one more"), &json!(INVALID_REQUEST)));
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 17}}));
    client.service.wait_until(|state| state.cancelled == 1);
    client.service.release();
    for id in (0..256).filter(|id| *id != 17) {
        assert_eq!(client.response(id)["result"]["content"][0]["text"], "held");
    }
    client.send(&request("again", "tools/list", stateless(json!({}))));
    assert_eq!(client.response("again")["result"]["resultType"], "complete");
}

#[test]
fn large_responses_are_complete_lines() {
    let mut client = connect();
    for (id, bytes) in [0, 1, 65_536, 3 << 20].into_iter().enumerate() {
        client.send(&request(id, "tools/call", stateless(call("large", json!({"bytes": bytes})))));
    }
    for (id, bytes) in [0, 1, 65_536, 3 << 20].into_iter().enumerate() {
        assert_eq!(client.response(id)["result"]["content"][0]["text"].as_str().unwrap().len(), bytes);
    }
}

#[test]
fn non_blocking_descriptors_work() {
    let mut client = connect_over(|input, output| {
        for descriptor in [input, output] {
            let flags = fcntl_getfl(descriptor).unwrap();
            fcntl_setfl(descriptor, flags | OFlags::NONBLOCK).unwrap();
        }
    });
    client.send(&request(1, "tools/call", stateless(call("large", json!({"bytes": 5 << 20})))));
    assert_eq!(client.response(1)["result"]["content"][0]["text"].as_str().unwrap().len(), 5 << 20);
    client.send(&request(2, "tools/list", stateless(json!({}))));
    assert_eq!(client.response(2)["result"]["resultType"], "complete");
}

#[test]
fn questions_work_in_both_families() {
    let mut client = initialized("2025-11-25");
    client.send(&request(1, "tools/call", call("ask", json!({}))));
    let asked = client.next();
    assert_eq!(asked["method"], "elicitation/create");
    let result = json!({"action": "accept", "content": {"name": "Alice"}});
    client.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}));
    client.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "decline"}}));
    assert!(client.response(1)["result"].to_string().contains("Alice"));

    client.send(&request(2, "tools/call", stateless(call("ask", json!({})))));
    let asked = client.response(2)["result"].clone();
    assert_eq!(asked["resultType"], "input_required");
    let mut again = stateless(call("ask", json!({})));
    again["inputResponses"] = json!({"who": result, "another": 7});
    again["requestState"] = json!("guessed");
    client.send(&request(3, "tools/call", again.clone()));
    assert_eq!(client.response(3)["error"]["code"], INVALID_PARAMS);
    again["requestState"] = asked["requestState"].clone();
    client.send(&request(3, "tools/call", again.clone()));
    assert!(client.response(3)["result"].to_string().contains("Alice"));
    client.send(&request(3, "tools/call", again));
    assert_eq!(client.response(3)["error"]["code"], INVALID_PARAMS, "a state can be used once");
}

#[test]
fn missing_client_capability_is_an_error() {
    let mut client = connect();
    let params = crate::fixture::stateless_with(call("ask", json!({})), json!({}));
    client.send(&request(1, "tools/call", params));
    assert!(client.response(1)["result"].to_string().contains("no answer"));
    client.service.wait_until(|state| state.client_errors.len() == 1);
}

#[test]
fn subscription_is_acknowledged_and_can_be_cancelled() {
    let mut client = connect();
    let wanted = stateless(json!({"notifications": {"toolsListChanged": true, "promptsListChanged": false}}));
    client.send(&request("listen", "subscriptions/listen", wanted.clone()));
    let first = client.next();
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(first["params"]["notifications"], json!({"toolsListChanged": true}));
    client.service.notify(&ServerChange::Prompts);
    client.service.notify(&ServerChange::Tools);
    let change = client.next();
    assert_eq!(change["method"], "notifications/tools/list_changed");
    assert_eq!(change["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "listen");
    client.send(&request("listen", "subscriptions/listen", wanted.clone()));
    assert_eq!(client.next()["error"]["code"], INVALID_REQUEST, "the id is in use");
    client.send(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "listen"}}),
    );
    client.send(&request(1, "tools/list", stateless(json!({}))));
    assert_eq!(client.next()["id"], 1);
    client.service.notify(&ServerChange::Tools);
    client.send(&request("listen", "subscriptions/listen", wanted));
    assert_eq!(client.next()["method"], "notifications/subscriptions/acknowledged");
    client.send(&request(2, "subscriptions/listen", stateless(json!({"notifications": []}))));
    assert_eq!(client.next()["error"]["code"], INVALID_PARAMS);
    let last = client.close();
    assert_eq!(last.len(), 1, "{last:?}");
    assert_eq!((&last[0]["id"], &last[0]["result"]["resultType"]), (&json!("listen"), &json!("complete")));
}

#[test]
fn cancellation_right_after_its_request_is_not_lost() {
    let mut client = initialized("2025-11-25");
    for id in 0..50 {
        let cancel =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
        let request = request(id, "tools/call", call("hold", json!({})));
        client.raw(format!("{request}\n{cancel}\n").as_bytes());
    }
    client.service.wait_until(|state| state.cancelled == 50);
    assert_eq!(client.close(), Vec::<Value>::new());
}

#[test]
fn questions_are_answered_while_all_workers_wait_for_answers() {
    let mut client = initialized("2025-11-25");
    for id in 0..256 {
        client.send(&request(id, "tools/call", stateless(call("ask", json!({})))));
    }
    let states: Vec<Value> =
        (0..256).map(|id| client.response(id)["result"]["requestState"].clone()).collect();
    client.send(&request("refused", "tools/list", json!({})));
    assert_eq!(client.response("refused")["error"]["code"], INVALID_REQUEST);
    for (id, state) in states.into_iter().enumerate() {
        let mut again = stateless(call("ask", json!({})));
        again["inputResponses"] = json!({"who": {"action": "decline"}});
        again["requestState"] = state;
        client.send(&request(format!("again {id}"), "tools/call", again));
    }
    for id in 0..256 {
        assert!(client.response(format!("again {id}"))["result"].to_string().contains("decline"));
    }
}
