//! How a connection ends.

use haft_mcp::serve::ClientRequestError;
use serde_json::{Value, json};

use crate::client::{client, introduced};
use crate::support::{call, modern, request};

#[test]
fn a_client_that_has_said_its_last_gets_its_answers_first() {
    let mut client = client();
    for id in 0..20 {
        client.send(&request(id, "tools/call", modern(call("hold", json!({})))));
    }
    client.toys.until(|seen| seen.begun == 20);
    client.hang_up();
    client.toys.release();
    assert_eq!(client.leave().len(), 20);
}

#[test]
fn answers_that_waited_for_one_another_are_sent_before_the_end() {
    for _ in 0..20 {
        let mut client = introduced("2025-11-25");
        let all: String = (0..200).map(|id| format!("{}\n", request(id, "ping", Value::Null))).collect();
        client.raw(all.as_bytes());
        assert_eq!(client.leave().len(), 200);
    }
}

#[test]
fn what_does_not_come_to_an_end_is_ended() {
    let mut client = client();
    client.send(&request(1, "tools/call", modern(call("hold", json!({})))));
    client.toys.until(|seen| seen.begun == 1);
    let toys = client.toys.clone();
    assert_eq!(client.leave(), Vec::<Value>::new());
    toys.until(|seen| seen.cancelled == 1);
}

#[test]
fn a_question_to_a_client_that_has_left_is_not_waited_for() {
    let mut client = introduced("2025-11-25");
    client.send(&request(1, "tools/call", call("ask", json!({}))));
    assert_eq!(client.next()["method"], "elicitation/create");
    client.send(&request(2, "tools/call", modern(call("ask", json!({})))));
    assert_eq!(client.answer(2)["result"]["resultType"], "input_required");
    let toys = client.toys.clone();
    let last = client.leave();
    toys.until(|seen| seen.unanswered == [ClientRequestError::Cancelled, ClientRequestError::Cancelled]);
    let answered: Vec<&Value> = last.iter().map(|message| &message["id"]).collect();
    assert_eq!(answered, [1], "the one that has its answer, a question, gets no second one");
}

#[test]
fn a_client_that_hangs_up_before_saying_anything_is_no_matter() {
    assert_eq!(client().leave(), Vec::<Value>::new());
    let mut half = client();
    half.raw(b"{\"jsonrpc\":\"2.0\",\"id\":1,");
    let last = half.leave();
    assert_eq!(last.len(), 1);
    assert_eq!(last[0]["error"]["code"], -32700);
}
