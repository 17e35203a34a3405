//! The listener for browser logins.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use haft_tool::{Cancel, ErrorKind, ToolError};

use super::super::redirect_listener::{RedirectListener, RedirectReply};

const TIMEOUT: Duration = Duration::from_mins(1);

fn send_request(port: u16, request: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn get(port: u16, target: &str) -> String {
    send_request(port, &format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"))
}

fn only_right(query: &str) -> RedirectReply<String> {
    if query.starts_with("right") {
        RedirectReply::Accept(query.to_owned(), "Thank you.".to_owned())
    } else {
        RedirectReply::Reject("Not <you>.".to_owned())
    }
}

/// Waits for the redirect while `visit` sends requests.
fn waiting(visit: impl FnOnce(u16) + Send) -> Result<String, ToolError> {
    let here = RedirectListener::bind(None, "/callback").unwrap();
    let port = here.port();
    thread::scope(|scope| {
        scope.spawn(move || visit(port));
        here.wait(TIMEOUT, &Cancel::new(), &only_right)
    })
}

#[test]
fn only_the_awaited_request_is_accepted() {
    let accepted = waiting(|port| {
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
            let answer = send_request(port, &request);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {answer}");
        }
        let stranger = get(port, "/callback?wrong");
        assert!(stranger.starts_with("HTTP/1.1 400 ") && stranger.contains("Not &lt;you&gt;."), "{stranger}");
        let answer =
            send_request(port, &format!("GET /callback?right=1 HTTP/1.1\r\nHost: LocalHost:{port}\r\n\r\n"));
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("Thank you."), "{answer}");
        assert!(answer.contains("Referrer-Policy: no-referrer\r\nX-Content"), "{answer}");
    });
    assert_eq!(accepted.unwrap(), "right=1");
}

#[test]
fn silent_connections_do_not_block_others() {
    let accepted = waiting(|port| {
        let silent: Vec<_> = (0..8).map(|_| TcpStream::connect(("127.0.0.1", port)).unwrap()).collect();
        assert!(get(port, "/callback?right").starts_with("HTTP/1.1 200 "));
        drop(silent);
    });
    assert_eq!(accepted.unwrap(), "right");
}

#[test]
fn wait_ends_by_timeout_and_cancel() {
    let here = RedirectListener::bind(None, "/callback").unwrap();
    let late = here.wait(Duration::from_millis(1), &Cancel::new(), &only_right).unwrap_err();
    assert_eq!(late.kind, ErrorKind::Timeout);
    let (here, cancel) = (RedirectListener::bind(None, "/callback").unwrap(), Cancel::new());
    let other = cancel.clone();
    let asker = thread::spawn(move || other.cancel());
    assert_eq!(here.wait(TIMEOUT, &cancel, &only_right).unwrap_err().kind, ErrorKind::Interrupted);
    asker.join().unwrap();
}

#[test]
fn used_port_is_an_error() {
    let here = RedirectListener::bind(None, "/callback").unwrap();
    let port = here.port();
    assert!(RedirectListener::bind(Some(port), "/callback").is_err());
    drop(here);
    assert_eq!(RedirectListener::bind(Some(port), "/callback").unwrap().port(), port);
}
