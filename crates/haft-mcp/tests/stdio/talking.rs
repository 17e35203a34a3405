//! Many requests at once, requests that are taken back, questions, and news.

use haft_mcp::serve::ServerChange;
use haft_mcp::wire::{INVALID_PARAMS, INVALID_REQUEST};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use serde_json::{Value, json};

use crate::client::{client, client_over, introduced};
use crate::support::{call, modern, request};

#[test]
fn a_request_that_is_taken_back_ends_and_has_no_answer() {
    let mut client = introduced("2025-11-25");
    for (before, id) in [json!(7), json!("seven")].into_iter().enumerate() {
        client.send(&request(id.clone(), "tools/call", call("hold", json!({}))));
        client.toys.until(|seen| seen.begun == before + 1);
        let cancel = |id: &Value| json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
        client.send(&cancel(&json!("another")));
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled"}));
        client.send(&cancel(&json!({})));
        client.send(&cancel(&id));
        client.toys.until(|seen| seen.cancelled == before + 1);
        client.send(&cancel(&id));
        client.send(&request("after", "ping", json!({})));
        assert_eq!(client.next()["id"], "after");
    }
    assert_eq!(client.leave(), Vec::<Value>::new());
}

#[test]
fn a_number_that_is_in_use_cannot_be_used_again_meanwhile() {
    let mut client = introduced("2025-11-25");
    client.send(&request(1, "tools/call", call("hold", json!({}))));
    client.toys.until(|seen| seen.begun == 1);
    client.send(&request(1, "ping", json!({})));
    assert_eq!(client.next()["error"]["code"], INVALID_REQUEST);
    client.send(&request("1", "ping", json!({})));
    assert_eq!(client.next()["result"], json!({}), "a word is no number");
    client.toys.release();
    assert_eq!(client.next()["result"]["content"][0]["text"], "held");
    client.send(&request(1, "ping", json!({})));
    assert_eq!(client.next()["result"], json!({}));
}

#[test]
fn long_requests_keep_nobody_waiting_and_too_many_are_refused() {
    let mut client = client();
    for id in 0..256 {
        client.send(&request(id, "tools/call", modern(call("hold", json!({})))));
    }
    client.toys.until(|seen| seen.begun == 256);
    client.send(&request("one more", "tools/list", modern(json!({}))));
    let refused = client.next();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!("one more"), &json!(INVALID_REQUEST)));
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 17}}));
    client.toys.until(|seen| seen.cancelled == 1);
    client.toys.release();
    for id in (0..256).filter(|id| *id != 17) {
        assert_eq!(client.answer(id)["result"]["content"][0]["text"], "held");
    }
    client.send(&request("again", "tools/list", modern(json!({}))));
    assert_eq!(client.answer("again")["result"]["resultType"], "complete");
}

#[test]
fn answers_of_any_size_come_whole_and_on_one_line_each() {
    let mut client = client();
    for (id, bytes) in [0, 1, 65_536, 3 << 20].into_iter().enumerate() {
        client.send(&request(id, "tools/call", modern(call("large", json!({"bytes": bytes})))));
    }
    for (id, bytes) in [0, 1, 65_536, 3 << 20].into_iter().enumerate() {
        assert_eq!(client.answer(id)["result"]["content"][0]["text"].as_str().unwrap().len(), bytes);
    }
}

#[test]
fn descriptors_that_do_not_wait_by_themselves_are_waited_for() {
    let mut client = client_over(|input, output| {
        for descriptor in [input, output] {
            let flags = fcntl_getfl(descriptor).unwrap();
            fcntl_setfl(descriptor, flags | OFlags::NONBLOCK).unwrap();
        }
    });
    client.send(&request(1, "tools/call", modern(call("large", json!({"bytes": 5 << 20})))));
    assert_eq!(client.answer(1)["result"]["content"][0]["text"].as_str().unwrap().len(), 5 << 20);
    client.send(&request(2, "tools/list", modern(json!({}))));
    assert_eq!(client.answer(2)["result"]["resultType"], "complete");
}

#[test]
fn a_question_is_a_request_in_the_old_era_and_a_result_in_the_new_one() {
    let mut client = introduced("2025-11-25");
    client.send(&request(1, "tools/call", call("ask", json!({}))));
    let asked = client.next();
    assert_eq!(asked["method"], "elicitation/create");
    let result = json!({"action": "accept", "content": {"name": "Alice"}});
    client.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}));
    client.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "decline"}}));
    assert!(client.answer(1)["result"].to_string().contains("Alice"));

    client.send(&request(2, "tools/call", modern(call("ask", json!({})))));
    let asked = client.answer(2)["result"].clone();
    assert_eq!(asked["resultType"], "input_required");
    let mut again = modern(call("ask", json!({})));
    again["inputResponses"] = json!({"who": result, "another": 7});
    again["requestState"] = json!("guessed");
    client.send(&request(3, "tools/call", again.clone()));
    assert_eq!(client.answer(3)["error"]["code"], INVALID_PARAMS);
    again["requestState"] = asked["requestState"].clone();
    client.send(&request(3, "tools/call", again.clone()));
    assert!(client.answer(3)["result"].to_string().contains("Alice"));
    client.send(&request(3, "tools/call", again));
    assert_eq!(client.answer(3)["error"]["code"], INVALID_PARAMS, "a state is good once");
}

#[test]
fn whoever_cannot_be_asked_is_not() {
    let mut client = client();
    let nothing = crate::support::modern_with(call("ask", json!({})), json!({}));
    client.send(&request(1, "tools/call", nothing));
    assert!(client.answer(1)["result"].to_string().contains("nobody answered"));
    client.toys.until(|seen| seen.unanswered.len() == 1);
}

#[test]
fn who_listens_hears_an_acknowledgement_first_then_news_and_nothing_after_taking_it_back() {
    let mut client = client();
    let wanted = modern(json!({"notifications": {"toolsListChanged": true, "promptsListChanged": false}}));
    client.send(&request("ears", "subscriptions/listen", wanted.clone()));
    let first = client.next();
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(first["params"]["notifications"], json!({"toolsListChanged": true}));
    client.toys.tell(&ServerChange::Prompts);
    client.toys.tell(&ServerChange::Tools);
    let told = client.next();
    assert_eq!(told["method"], "notifications/tools/list_changed");
    assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "ears");
    client.send(&request("ears", "subscriptions/listen", wanted.clone()));
    assert_eq!(client.next()["error"]["code"], INVALID_REQUEST, "one pair of ears is one");
    client.send(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "ears"}}),
    );
    client.send(&request(1, "tools/list", modern(json!({}))));
    assert_eq!(client.next()["id"], 1);
    client.toys.tell(&ServerChange::Tools);
    client.send(&request("ears", "subscriptions/listen", wanted));
    assert_eq!(client.next()["method"], "notifications/subscriptions/acknowledged");
    client.send(&request(2, "subscriptions/listen", modern(json!({"notifications": []}))));
    assert_eq!(client.next()["error"]["code"], INVALID_PARAMS);
    let last = client.leave();
    assert_eq!(last.len(), 1, "{last:?}");
    assert_eq!((&last[0]["id"], &last[0]["result"]["resultType"]), (&json!("ears"), &json!("complete")));
}

#[test]
fn a_cancellation_right_behind_its_request_is_not_lost() {
    let mut client = introduced("2025-11-25");
    for id in 0..50 {
        let cancel =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
        let request = request(id, "tools/call", call("hold", json!({})));
        client.raw(format!("{request}\n{cancel}\n").as_bytes());
    }
    client.toys.until(|seen| seen.cancelled == 50);
    assert_eq!(client.leave(), Vec::<Value>::new());
}

#[test]
fn questions_are_answered_while_all_workers_wait_for_answers() {
    let mut client = introduced("2025-11-25");
    for id in 0..256 {
        client.send(&request(id, "tools/call", modern(call("ask", json!({})))));
    }
    let states: Vec<Value> = (0..256).map(|id| client.answer(id)["result"]["requestState"].clone()).collect();
    client.send(&request("refused", "tools/list", json!({})));
    assert_eq!(client.answer("refused")["error"]["code"], INVALID_REQUEST);
    for (id, state) in states.into_iter().enumerate() {
        let mut again = modern(call("ask", json!({})));
        again["inputResponses"] = json!({"who": {"action": "decline"}});
        again["requestState"] = state;
        client.send(&request(format!("again {id}"), "tools/call", again));
    }
    for id in 0..256 {
        assert!(client.answer(format!("again {id}"))["result"].to_string().contains("decline"));
    }
}
