//! The proxies of the user's environment.

use super::*;

/// A proxy that reads a head, reports it and answers.
fn parent(answer: &'static str) -> (u16, std::sync::mpsc::Receiver<String>) {
    let (send, heads) = std::sync::mpsc::channel();
    let port = server(move |mut stream| {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        send.send(String::from_utf8(head).unwrap()).unwrap();
        stream.write_all(answer.as_bytes()).unwrap();
    });
    (port, heads)
}

fn run_behind(port: u16, exceptions: &'static str) -> RunningProxy {
    let parents = ParentProxies::from_variables(&move |name| match name {
        "http_proxy" | "https_proxy" => Some(format!("http://me:p%40ss@127.0.0.1:{port}")),
        "no_proxy" => Some(exceptions.to_owned()),
        _ => None,
    });
    // Names are not resolved here: the user's proxy does that.
    run_settings(&["allowed.test", "direct.test"], &[], None, parents, |name| {
        Err(io::Error::other(format!("{name} was looked up")))
    })
}

const CREDENTIALS: &str = "Proxy-Authorization: Basic bWU6cEBzcw==\r\n";

#[test]
fn tunnels_go_through_the_users_proxy() {
    let (port, heads) = parent("HTTP/1.1 200 OK\r\n\r\nhello");
    let proxy = run_behind(port, "");
    let answer = proxy.ask_text("CONNECT allowed.test:443 HTTP/1.1\r\n\r\n");
    assert_eq!(answer, "HTTP/1.1 200 Connection established\r\n\r\nhello");
    let head = heads.recv().unwrap();
    assert!(
        head.starts_with("CONNECT allowed.test:443 HTTP/1.1\r\n") && head.contains(CREDENTIALS),
        "{head}"
    );
}

#[test]
fn plain_requests_name_the_whole_url() {
    let (port, heads) = parent("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let proxy = run_behind(port, "");
    let answer = proxy.ask_text("GET http://allowed.test/a?b HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(answer.ends_with("ok"), "{answer}");
    let head = heads.recv().unwrap();
    assert!(
        head.starts_with("GET http://allowed.test/a?b HTTP/1.1\r\n") && head.contains(CREDENTIALS),
        "{head}"
    );
}

#[test]
fn refusals_and_errors_of_the_users_proxy_are_told_apart() {
    let (port, heads) = parent("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n");
    let proxy = run_behind(port, "x.test, .direct.test");
    let answer = proxy.ask_text("CONNECT other.test:443 HTTP/1.1\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    assert!(heads.try_recv().is_err(), "an unlisted host reached the user's proxy");
    let answer = proxy.ask_text("CONNECT allowed.test:443 HTTP/1.1\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 502 ") && answer.contains("your proxy answered"), "{answer}");
    let answer = proxy.ask_text("CONNECT direct.test:443 HTTP/1.1\r\n\r\n");
    assert!(answer.contains("direct.test was looked up"), "{answer}");
}
