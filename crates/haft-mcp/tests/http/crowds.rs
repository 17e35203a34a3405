//! Many at once, and some of them slow on purpose.

use std::time::Duration;

use serde_json::json;

use crate::client::{ClientRequest, House, Line, TOKEN, house, house_within};
use crate::support::{call, modern, request};

fn list(house: &House) -> ClientRequest {
    house.post_modern(&request(1, "tools/list", modern(json!({}))))
}

#[test]
fn whoever_is_slow_to_say_what_they_want_is_hung_up_on() {
    let house = house_within(|limits| limits.header_timeout = Duration::from_millis(200));
    let mut silent = house.connect();
    let mut slow = house.connect();
    slow.send(b"POST /mcp HTTP/1.1\r\nHost: loc");
    let mut served = house.connect();
    served.send(&list(&house).bytes());
    assert_eq!(served.reply().status, 200);
    assert!(silent.is_closed());
    assert!(slow.is_closed());
    assert!(served.is_closed(), "and so is one who has nothing more to say");
    assert_eq!(house.ask(&list(&house)).status, 200);
}

#[test]
fn two_hundred_connections_that_say_nothing_keep_nobody_out() {
    let house = house();
    let crowd: Vec<Line> = (0..200)
        .map(|number| {
            let mut line = house.connect();
            if number % 2 == 0 {
                line.send(b"POST /mcp HTTP/1.1\r\nHost: ");
            }
            line
        })
        .collect();
    for _ in 0..10 {
        assert_eq!(house.ask(&list(&house)).status, 200);
    }
    drop(crowd);
}

#[test]
fn when_all_seats_are_taken_whoever_says_nothing_makes_room() {
    let house = house_within(|limits| limits.max_connections = 8);
    let mut crowd: Vec<Line> = (0..8).map(|_| house.connect()).collect();
    let mut slow_body = house.connect();
    slow_body.send(format!("{}Content-Length: 1000\r\n\r\n{{", list(&house).head()).as_bytes());
    let mut served: Vec<Line> = (0..20)
        .map(|_| {
            let mut line = house.connect();
            line.send(&list(&house).bytes());
            assert_eq!(line.reply().status, 200, "there is always room for who asks");
            line
        })
        .collect();
    let mut last = served.pop().unwrap();
    last.send(&list(&house).bytes());
    assert_eq!(last.reply().status, 200, "whoever was served last is still there");
    assert!(crowd.iter_mut().all(Line::is_closed));
    assert!(slow_body.is_closed());
}

#[test]
fn when_everybody_is_busy_nobody_else_comes_in_until_somebody_is_done() {
    let house = house_within(|limits| limits.max_connections = 2);
    let hold = house.post_modern(&request(1, "tools/call", modern(call("hold", json!({})))));
    let mut busy: Vec<Line> = (0..2)
        .map(|_| {
            let mut line = house.connect();
            line.send(&hold.bytes());
            line
        })
        .collect();
    house.toys.until(|seen| seen.begun == 2);
    assert!(house.connect().is_closed());
    house.toys.release();
    for line in &mut busy {
        assert_eq!(line.reply().status, 200);
    }
    assert_eq!(house.ask(&list(&house)).status, 200);
}

#[test]
fn two_hundred_clients_are_served_at_once() {
    let house = house();
    let hold = house.post_modern(&request(1, "tools/call", modern(call("hold", json!({})))));
    let mut crowd: Vec<Line> = (0..200)
        .map(|_| {
            let mut line = house.connect();
            line.send(&hold.bytes());
            line
        })
        .collect();
    house.toys.until(|seen| seen.begun == 200);
    assert_eq!(house.ask(&list(&house)).status, 200, "one more is served meanwhile");
    house.toys.release();
    for line in &mut crowd {
        assert!(line.answer()["result"]["content"][0]["text"] == "held");
    }
}

#[test]
fn too_many_requests_at_once_are_refused_and_an_answer_to_a_question_is_not() {
    let house = house_within(|limits| limits.max_requests = 2);
    let session = house.session("2025-11-25", TOKEN);
    let mut asking = house.connect();
    asking.send(&house.post_in(&session, &request(1, "tools/call", call("ask", json!({})))).bytes());
    asking.head();
    let asked = std::iter::from_fn(|| asking.event()).find(|(_, message)| !message.is_null()).unwrap().1;
    let mut holding = house.connect();
    holding.send(&house.post_in(&session, &request(2, "tools/call", call("hold", json!({})))).bytes());
    house.toys.until(|seen| seen.begun == 2);
    let reply = house.ask(&list(&house));
    assert_eq!((reply.status, reply.header("retry-after")), (503, Some("1")));
    assert_eq!(reply.json()["id"], 1);
    let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "decline"}});
    assert_eq!(house.ask(&house.post_in(&session, &answer)).status, 202);
    assert_eq!(asking.event().unwrap().1["id"], 1);
    house.toys.release();
    assert_eq!(holding.answer()["id"], 2);
}

#[test]
fn a_client_that_reads_nothing_holds_up_nobody_and_gets_its_answer() {
    let house = house();
    let talk = house.post_modern(&request(1, "tools/call", modern(call("talk", json!({"times": 200_000})))));
    let mut deaf = house.connect();
    deaf.send(&talk.bytes());
    house.toys.until(|seen| seen.talked == 1);
    assert_eq!(house.ask(&list(&house)).status, 200);
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
