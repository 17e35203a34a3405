//! The browser's answer: who is heard, who is refused, and how the wait ends.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use haft_tool::{Cancel, ErrorKind, ToolError};

use super::super::loopback::{Heard, Loopback};

const NET: Duration = Duration::from_mins(1);

fn knock(port: u16, request: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn get(port: u16, target: &str) -> String {
    knock(port, &format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"))
}

fn only_right(query: &str) -> Heard<String> {
    if query.starts_with("right") {
        Heard::Answer(query.to_owned(), "Thank you.".to_owned())
    } else {
        Heard::Stranger("Not <you>.".to_owned())
    }
}

/// Waits while `visit` knocks; gives what was heard.
fn waiting(visit: impl FnOnce(u16) + Send) -> Result<String, ToolError> {
    let here = Loopback::bind(None, "/callback").unwrap();
    let port = here.port();
    thread::scope(|scope| {
        scope.spawn(move || visit(port));
        here.wait(NET, &Cancel::new(), &only_right)
    })
}

#[test]
fn the_first_right_answer_ends_the_wait_and_every_other_visitor_is_refused_before() {
    let heard = waiting(|port| {
        for (request, status) in [
            (format!("GET /callback?right HTTP/1.1\r\nHost: evil.example:{port}\r\n\r\n"), "421"),
            (format!("GET /callback?right HTTP/1.1\r\nHost: 127.0.0.1.evil.example:{port}\r\n\r\n"), "421"),
            ("GET /callback?right HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".to_owned(), "421"),
            ("GET /callback?right HTTP/1.1\r\n\r\n".to_owned(), "421"),
            (
                format!(
                    "GET /callback?right HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nHost: 127.0.0.1:{port}\r\n\r\n"
                ),
                "421",
            ),
            (format!("GET /other?right HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"), "404"),
            (format!("GET /callback/?right HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"), "404"),
            (format!("POST /callback?right HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"), "405"),
            (format!("GET  /callback?right HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"), "400"),
            ("\0\n\n".to_owned(), "400"),
            (format!("GET /callback?{} HTTP/1.1\r\n\r\n", "x".repeat(20_000)), "431"),
        ] {
            let answer = knock(port, &request);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {answer}");
        }
        let stranger = get(port, "/callback?wrong");
        assert!(stranger.starts_with("HTTP/1.1 400 ") && stranger.contains("Not &lt;you&gt;."), "{stranger}");
        let answer =
            knock(port, &format!("GET /callback?right=1 HTTP/1.1\r\nHost: LocalHost:{port}\r\n\r\n"));
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("Thank you."), "{answer}");
        assert!(answer.contains("Referrer-Policy: no-referrer\r\nX-Content"), "{answer}");
    });
    assert_eq!(heard.unwrap(), "right=1");
}

#[test]
fn who_connects_and_says_nothing_holds_nobody_up() {
    let heard = waiting(|port| {
        let silent: Vec<_> = (0..8).map(|_| TcpStream::connect(("127.0.0.1", port)).unwrap()).collect();
        assert!(get(port, "/callback?right").starts_with("HTTP/1.1 200 "));
        drop(silent);
    });
    assert_eq!(heard.unwrap(), "right");
}

#[test]
fn the_wait_ends_with_its_time_and_with_the_cancellation() {
    let here = Loopback::bind(None, "/callback").unwrap();
    let late = here.wait(Duration::from_millis(1), &Cancel::new(), &only_right).unwrap_err();
    assert_eq!(late.kind, ErrorKind::Timeout);
    let (here, cancel) = (Loopback::bind(None, "/callback").unwrap(), Cancel::new());
    let other = cancel.clone();
    let asker = thread::spawn(move || other.cancel());
    assert_eq!(here.wait(NET, &cancel, &only_right).unwrap_err().kind, ErrorKind::Interrupted);
    asker.join().unwrap();
}

#[test]
fn a_port_that_is_taken_is_an_error_and_can_be_had_again_afterwards() {
    let here = Loopback::bind(None, "/callback").unwrap();
    let port = here.port();
    assert!(Loopback::bind(Some(port), "/callback").is_err());
    drop(here);
    assert_eq!(Loopback::bind(Some(port), "/callback").unwrap().port(), port);
}
