//! Sessions of clients that begin with a handshake.

use std::collections::HashSet;

use serde_json::json;

use crate::client::{OTHER, TOKEN, house, house_within};
use crate::support::{call, initialize, request};

fn ping() -> serde_json::Value {
    request(2, "ping", json!({}))
}

#[test]
fn a_session_can_be_neither_guessed_nor_taken_from_somebody_else() {
    let house = house();
    let all: HashSet<String> = (0..50).map(|_| house.session("2025-11-25", TOKEN)).collect();
    assert_eq!(all.len(), 50);
    assert!(all.iter().all(|id| id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_graphic())));
    let mine = all.iter().next().unwrap();
    assert_eq!(house.ask(&house.post_in(mine, &ping())).status, 200);
    let theirs = format!("Bearer {OTHER}");
    for method in ["GET", "DELETE"] {
        assert_eq!(
            house.ask(&house.bare(method, mine).with("Authorization", &theirs)).status,
            404,
            "{method}"
        );
    }
    assert_eq!(house.ask(&house.post_in(mine, &ping()).with("Authorization", &theirs)).status, 404);
    assert_eq!(house.ask(&house.post_in(mine, &ping())).status, 200, "nobody could end it");
    for guess in
        [&mine[..63], &mine.to_uppercase().replace(char::is_numeric, "0"), "1", "../../etc/passwd", " "]
    {
        assert!(house.ask(&house.post_in(guess, &ping())).status >= 400, "{guess:?}");
        assert!(house.ask(&house.bare("DELETE", guess)).status >= 400, "{guess:?}");
    }
    let mut both = house.post_in(mine, &ping());
    both.add("Mcp-Session-Id", mine);
    assert_eq!(house.ask(&both).status, 400, "one of two might be somebody else's");
}

#[test]
fn without_a_session_there_is_400_and_with_one_that_is_over_404() {
    let house = house();
    let session = house.session("2025-11-25", TOKEN);
    let told = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(house.ask(&house.post_in(&session, &told)).status, 202);
    assert_eq!(house.ask(&house.post(&ping())).status, 400);
    assert_eq!(house.ask(&house.post(&told)).status, 400);
    assert_eq!(house.ask(&house.bare("GET", &session).without("Mcp-Session-Id")).status, 400);
    assert_eq!(house.ask(&house.bare("DELETE", &session).without("Mcp-Session-Id")).status, 400);
    assert_eq!(house.ask(&house.bare("DELETE", &session)).status, 204);
    for reply in [
        house.ask(&house.post_in(&session, &ping())),
        house.ask(&house.post_in(&session, &told)),
        house.ask(&house.bare("GET", &session)),
        house.ask(&house.bare("DELETE", &session)),
    ] {
        assert_eq!(reply.status, 404);
    }
    let again = house.session("2025-11-25", TOKEN);
    assert_eq!(house.ask(&house.post_in(&again, &ping())).status, 200);
}

#[test]
fn deleting_a_session_ends_what_runs_in_it() {
    let house = house();
    let session = house.session("2025-11-25", TOKEN);
    let mut calling = house.connect();
    calling.send(&house.post_in(&session, &request(3, "tools/call", call("hold", json!({})))).bytes());
    let mut listening = house.connect();
    listening.send(&house.bare("GET", &session).bytes());
    assert_eq!(listening.head().status, 200);
    house.toys.until(|seen| seen.begun == 1);
    assert_eq!(house.ask(&house.bare("DELETE", &session)).status, 204);
    house.toys.until(|seen| seen.cancelled == 1);
    assert_eq!(listening.event().unwrap().1, json!(null));
    assert_eq!(listening.event(), None, "the stream ends");
    let reply = calling.reply();
    assert_eq!(reply.header("content-type"), Some("text/event-stream"));
}

#[test]
fn when_there_are_too_many_the_one_unused_for_the_longest_makes_room() {
    let house = house_within(|limits| limits.max_sessions = 2);
    let first = house.session("2025-11-25", TOKEN);
    let mut listening = house.connect();
    listening.send(&house.bare("GET", &first).bytes());
    assert_eq!(listening.head().status, 200);
    let second = house.session("2025-11-25", TOKEN);
    let third = house.session("2025-11-25", TOKEN);
    assert_eq!(house.ask(&house.post_in(&first, &ping())).status, 200, "somebody listens there");
    assert_eq!(house.ask(&house.post_in(&second, &ping())).status, 404);
    assert_eq!(house.ask(&house.post_in(&third, &ping())).status, 200);
    let mut also = house.connect();
    also.send(&house.bare("GET", &third).bytes());
    assert_eq!(also.head().status, 200);
    let reply = house.ask(&house.post(&initialize(1, "2025-11-25")));
    assert_eq!((reply.status, reply.header("retry-after")), (503, Some("1")));
}

#[test]
fn every_revision_is_agreed_on_and_an_unknown_one_gets_the_newest_with_a_handshake() {
    let house = house();
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let reply = house.ask(&house.post(&initialize(1, version)));
        assert_eq!(reply.json()["result"]["protocolVersion"], version);
        let session = reply.header("mcp-session-id").unwrap();
        let ask = house.post_in(session, &ping()).with("MCP-Protocol-Version", version);
        assert_eq!(house.ask(&ask).status, 200);
        assert_eq!(house.ask(&ask.with("MCP-Protocol-Version", "2025-13-13")).status, 400);
    }
    for version in ["1999-01-01", "2026-07-28"] {
        let reply = house.ask(&house.post(&initialize(1, version)));
        assert_eq!(reply.json()["result"]["protocolVersion"], "2025-11-25");
    }
}

#[test]
fn a_number_that_is_in_use_cannot_be_used_again_meanwhile() {
    let house = house();
    let session = house.session("2025-11-25", TOKEN);
    let mut calling = house.connect();
    calling.send(&house.post_in(&session, &request(3, "tools/call", call("hold", json!({})))).bytes());
    house.toys.until(|seen| seen.begun == 1);
    let reply = house.ask(&house.post_in(&session, &request(3, "ping", json!({}))));
    assert!(reply.json()["error"]["message"].as_str().unwrap().contains("in progress"));
    let other = house.session("2025-11-25", TOKEN);
    assert_eq!(house.ask(&house.post_in(&other, &request(3, "ping", json!({})))).json()["result"], json!({}));
    house.toys.release();
    assert_eq!(calling.reply().status, 200);
    assert_eq!(
        house.ask(&house.post_in(&session, &request(3, "ping", json!({})))).json()["result"],
        json!({})
    );
}
