//! Many at once, and some of them slow on purpose.

use std::time::Duration;

use serde_json::json;

use crate::fixture::{call, request, stateless};
use crate::http::client::{HttpFixture, RawConnection, RawRequest, TOKEN, server, server_with_limits};

fn list(server: &HttpFixture) -> RawRequest {
    server.post_stateless(&request(1, "tools/list", stateless(json!({}))))
}

#[test]
fn slow_headers_close_the_connection() {
    let server = server_with_limits(|limits| limits.header_timeout = Duration::from_millis(200));
    let mut silent = server.connect();
    let mut slow = server.connect();
    slow.send(b"POST /mcp HTTP/1.1\r\nHost: loc");
    let mut served = server.connect();
    served.send(&list(&server).bytes());
    assert_eq!(served.response().status, 200);
    assert!(silent.is_closed());
    assert!(slow.is_closed());
    assert!(served.is_closed(), "and so is an idle connection");
    assert_eq!(server.send(&list(&server)).status, 200);
}

#[test]
fn two_hundred_idle_connections_do_not_block_others() {
    let server = server();
    let crowd: Vec<RawConnection> = (0..200)
        .map(|number| {
            let mut connection = server.connect();
            if number % 2 == 0 {
                connection.send(b"POST /mcp HTTP/1.1\r\nHost: ");
            }
            connection
        })
        .collect();
    for _ in 0..10 {
        assert_eq!(server.send(&list(&server)).status, 200);
    }
    drop(crowd);
}

#[test]
fn idle_connections_are_evicted_at_the_limit() {
    let server = server_with_limits(|limits| limits.max_connections = 8);
    let mut crowd: Vec<RawConnection> = (0..8).map(|_| server.connect()).collect();
    let mut slow_body = server.connect();
    slow_body.send(format!("{}Content-Length: 1000\r\n\r\n{{", list(&server).head()).as_bytes());
    let mut served: Vec<RawConnection> = (0..20)
        .map(|_| {
            let mut connection = server.connect();
            connection.send(&list(&server).bytes());
            assert_eq!(connection.response().status, 200, "a request is always accepted");
            connection
        })
        .collect();
    let mut last = served.pop().unwrap();
    last.send(&list(&server).bytes());
    assert_eq!(last.response().status, 200, "the last connection is still open");
    assert!(crowd.iter_mut().all(RawConnection::is_closed));
    assert!(slow_body.is_closed());
}

#[test]
fn active_connections_are_not_evicted() {
    let server = server_with_limits(|limits| limits.max_connections = 2);
    let hold = server.post_stateless(&request(1, "tools/call", stateless(call("hold", json!({})))));
    let mut busy: Vec<RawConnection> = (0..2)
        .map(|_| {
            let mut connection = server.connect();
            connection.send(&hold.bytes());
            connection
        })
        .collect();
    server.service.wait_until(|state| state.started == 2);
    assert!(server.connect().is_closed());
    server.service.release();
    for connection in &mut busy {
        assert_eq!(connection.response().status, 200);
    }
    assert_eq!(server.send(&list(&server)).status, 200);
}

#[test]
fn two_hundred_clients_are_served_at_once() {
    let server = server();
    let hold = server.post_stateless(&request(1, "tools/call", stateless(call("hold", json!({})))));
    let mut crowd: Vec<RawConnection> = (0..200)
        .map(|_| {
            let mut connection = server.connect();
            connection.send(&hold.bytes());
            connection
        })
        .collect();
    server.service.wait_until(|state| state.started == 200);
    assert_eq!(server.send(&list(&server)).status, 200, "one more is served meanwhile");
    server.service.release();
    for connection in &mut crowd {
        assert!(connection.response_message()["result"]["content"][0]["text"] == "held");
    }
}

#[test]
fn excess_requests_are_refused_but_responses_are_accepted() {
    let server = server_with_limits(|limits| limits.max_requests = 2);
    let session = server.session("2025-11-25", TOKEN);
    let mut asking = server.connect();
    asking.send(&server.post_in(&session, &request(1, "tools/call", call("ask", json!({})))).bytes());
    asking.head();
    let asked = std::iter::from_fn(|| asking.event()).find(|(_, message)| !message.is_null()).unwrap().1;
    let mut holding = server.connect();
    holding.send(&server.post_in(&session, &request(2, "tools/call", call("hold", json!({})))).bytes());
    server.service.wait_until(|state| state.started == 2);
    let response = server.send(&list(&server));
    assert_eq!((response.status, response.header("retry-after")), (503, Some("1")));
    assert_eq!(response.json()["id"], 1);
    let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "decline"}});
    assert_eq!(server.send(&server.post_in(&session, &answer)).status, 202);
    assert_eq!(asking.event().unwrap().1["id"], 1);
    server.service.release();
    assert_eq!(holding.response_message()["id"], 2);
}

#[test]
fn client_that_does_not_read_gets_its_response_later() {
    let server = server();
    let talk =
        server.post_stateless(&request(1, "tools/call", stateless(call("talk", json!({"times": 200_000})))));
    let mut deaf = server.connect();
    deaf.send(&talk.bytes());
    server.service.wait_until(|state| state.talked == 1);
    assert_eq!(server.send(&list(&server)).status, 200);
    deaf.head();
    let mut told = 0;
    while let Some((_, message)) = deaf.event() {
        if message["id"] == 1 {
            assert_eq!(deaf.event(), None);
            assert!(told < 200_000, "all of it was kept for who does not read it");
            return;
        }
        told += 1;
    }
    assert!(told > 200_000, "the answer is missing");
}
