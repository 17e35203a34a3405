//! HTTP through the proxy.

use std::io::{BufRead as _, BufReader};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use super::*;
use haft_tool::net::Peer;

/// A server that gives each request head to a channel, answers and hangs up.
fn recording_server() -> (u16, mpsc::Receiver<String>) {
    let (sender, requests) = mpsc::channel();
    let port = server(move |stream| {
        let mut reader = BufReader::new(&stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).unwrap() > 0 {}
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
        let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
        reader.read_exact(&mut body).unwrap();
        head.push_str(std::str::from_utf8(&body).unwrap());
        (&stream).write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        reader.read_to_string(&mut head).unwrap();
        sender.send(head).unwrap();
    });
    (port, requests)
}

#[test]
fn connect_tunnels_both_directions() {
    let port = echo_at_eof();
    let run = proxy_for_example(port);
    let client = run.client();
    // The first bytes of the tunnel come in one piece with the head.
    (&client).write_all(format!("CONNECT example.test:{port} HTTP/1.1\r\n\r\nearly ").as_bytes()).unwrap();
    expect_bytes(&client, b"HTTP/1.1 200 Connection established\r\n\r\n");
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|at| at.to_le_bytes()[at as usize % 3]).collect();
    assert!(exchange(&client, &bytes) == [b"early ", &bytes[..]].concat());
    assert_eq!(*run.refused.lock().unwrap(), []);
}

#[test]
fn plain_request_is_forwarded_with_the_checked_host() {
    let (port, requests) = recording_server();
    let run = proxy_for_example(port);
    let answer = run.ask_text(format!(
        "POST http://EXAMPLE.test:{port}/a?b=c HTTP/1.1\r\nHost: evil.test\r\nhost: other.test\r\nAccept: */*\r\n\
         Proxy-Connection: keep-alive\r\nPROXY-Authorization: Basic secret\r\nConnection: keep-alive, X-Drop,content-length\r\n\
         X-Drop: 1\r\nTE: trailers\r\nUpgrade: h2c\r\nKeep-Alive: 5\r\nContent-Length: 4\r\n\r\nbodyGET / HTTP/1.1\r\nHost: b\r\n\r\n"
    ));
    assert!(answer.ends_with("\r\n\r\nhello"), "{answer}");
    assert_eq!(
        requests.recv().unwrap(),
        format!(
            "POST /a?b=c HTTP/1.1\r\nHost: example.test:{port}\r\nConnection: close\r\nAccept: */*\r\n\
             Content-Length: 4\r\n\r\nbody"
        )
    );
}

#[test]
fn missing_path_and_chunked_body_are_forwarded() {
    let (port, requests) = recording_server();
    let run = proxy_for_example(port);
    run.ask(format!("GET http://127.1:{port}?q HTTP/1.0\r\n\r\n"));
    assert!(requests.recv().unwrap().starts_with(&format!("GET /?q HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\n")));
    run.ask(format!(
        "PUT http://example.test:{port} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"
    ));
    assert!(requests.recv().unwrap().ends_with("Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"));
}

#[test]
fn refusal_says_how_to_allow_it() {
    for (request, host, port, allow) in [
        ("CONNECT other.test:443 HTTP/1.1", "other.test", 443, Some("other.test")),
        ("CONNECT other.test:22 HTTP/1.1", "other.test", 22, Some("other.test:22")),
        ("GET http://other.test/ HTTP/1.1", "other.test", 80, Some("other.test")),
        ("GET http://example.test:81/ HTTP/1.1", "example.test", 81, Some("example.test:81")),
        ("CONNECT 0x7f.1:443 HTTP/1.1", "127.0.0.1", 443, Some("127.0.0.1")),
        ("CONNECT [::ffff:7f00:1]:443 HTTP/1.1", "127.0.0.1", 443, Some("127.0.0.1")),
        ("CONNECT LocalHost:8080 HTTP/1.1", "localhost", 8080, Some("127.0.0.1:8080")),
        ("GET http://example.test@other.test/ HTTP/1.1", "example.test@other.test", 80, None),
        ("GET http://other.test\\@example.test/ HTTP/1.1", "other.test\\\\@example.test", 80, None),
        ("CONNECT other.test%00.example.test:443 HTTP/1.1", "other.test%00.example.test", 443, None),
    ] {
        let run = run(&["example.test"], |_| Ok(vec![LOCALHOST]));
        let answer = run.ask_text(format!("{request}\r\n\r\n"));
        let refused = run.only_refused();
        assert_eq!((refused.host.as_str(), refused.port, refused.allow.as_deref()), (host, port, allow));
        assert!(answer.starts_with(&format!("HTTP/1.1 403 {refused}\r\n")), "{answer}");
        assert!(answer.ends_with(&format!("\r\n\r\n{refused}\n")), "{answer}");
        assert!(allow.is_none_or(|allow| answer.ends_with(&format!("--network {allow}\n"))), "{answer}");
    }
}

#[test]
fn name_with_a_private_address_is_refused() {
    for inner in
        ["127.0.0.1", "10.1.2.3", "169.254.169.254", "::1", "fd00::1", "::ffff:192.168.0.1", "2002:a00:1::"]
    {
        let run = run(&["example.test"], move |_| Ok(vec![inner.parse().unwrap()]));
        let answer = run.ask_text("CONNECT example.test:443 HTTP/1.1\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
        let refused = run.only_refused();
        assert!(refused.why.starts_with("its name resolves to "), "{refused}");
        let address = Peer::from(inner.parse::<IpAddr>().unwrap()).to_string();
        assert_eq!(refused.allow, Some(format!("example.test,{address}")), "both are needed");
    }
}

#[test]
fn each_connection_resolves_and_checks_once() {
    let port = echo_at_eof();
    let lookups = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&lookups);
    let run = run(&[&format!("example.test:{port}"), &format!("127.0.0.1:{port}")], move |_| {
        // The second answer is the rebound one.
        Ok(vec![IpAddr::from([127, 0, 0, if count.fetch_add(1, Ordering::SeqCst) == 0 { 1 } else { 2 }])])
    });
    let request = format!("CONNECT example.test:{port} HTTP/1.1\r\n\r\n");
    let client = run.client();
    (&client).write_all(request.as_bytes()).unwrap();
    expect_bytes(&client, b"HTTP/1.1 200 Connection established\r\n\r\n");
    assert_eq!(exchange(&client, b"hello"), b"hello");
    assert_eq!(lookups.load(Ordering::SeqCst), 1);
    assert!(run.ask_text(&request).starts_with("HTTP/1.1 403 "));
    assert_eq!(run.only_refused().why, "its name resolves to 127.0.0.2, a loopback address");
    assert_eq!(lookups.load(Ordering::SeqCst), 2);
}

#[test]
fn only_allowed_addresses_of_a_name_are_used() {
    let (port, requests) = recording_server();
    // Not every system has this address; where it exists, nothing may connect.
    let other = TcpListener::bind((Ipv4Addr::new(127, 0, 0, 2), port));
    let run = run(&[&format!("example.test:{port}"), &format!("127.0.0.1:{port}")], |_| {
        Ok(vec!["10.0.0.1".parse().unwrap(), "127.0.0.2".parse().unwrap(), LOCALHOST, "::1".parse().unwrap()])
    });
    assert!(run.ask_text(format!("GET http://example.test:{port}/ HTTP/1.1\r\n\r\n")).ends_with("hello"));
    requests.recv().unwrap();
    if let Ok(other) = other {
        other.set_nonblocking(true).unwrap();
        assert_eq!(other.accept().unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }
    assert_eq!(*run.refused.lock().unwrap(), []);
}

#[test]
fn ambiguous_requests_are_refused() {
    let run = run(&["example.test"], |_| Ok(vec![LOCALHOST]));
    for request in [
        "GET / HTTP/1.1\r\nHost: example.test\r\n\r\n",
        "GET http://example.test/ HTTP/1.1\n\n",
        "GET http://example.test/ HTTP/2.0\r\n\r\n",
        "GET  http://example.test/ HTTP/1.1\r\n\r\n",
        "GET http://example.test/a b HTTP/1.1\r\n\r\n",
        "GET https://example.test/ HTTP/1.1\r\n\r\n",
        "GET ftp://example.test/ HTTP/1.1\r\n\r\n",
        "GET http:/example.test/ HTTP/1.1\r\n\r\n",
        "GET http://example.test:80:80/ HTTP/1.1\r\n\r\n",
        "GET http://example.test:/ HTTP/1.1\r\n\r\n",
        "CONNECT example.test HTTP/1.1\r\n\r\n",
        "CONNECT example.test:0 HTTP/1.1\r\n\r\n",
        "CONNECT example.test:+80 HTTP/1.1\r\n\r\n",
        "CONNECT ::1:80 HTTP/1.1\r\n\r\n",
        "GET http://example.test/ HTTP/1.1\r\nA : b\r\n\r\n",
        "GET http://example.test/ HTTP/1.1\r\nA: b\r\n c\r\n\r\n",
        "GET http://example.test/ HTTP/1.1\r\nA: b\nHost: c\r\n\r\n",
        "GET http://example.test/ HTTP/1.1\r\nA: b\rHost: c\r\n\r\n",
        "GET http://example.test/ HTTP/1.1\r\nA: \0\r\n\r\n",
        "GET http://example.test/ HTTP/1.1\r\nA\r\n\r\n",
        "GET http://example.test/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "GET http://example.test/ HTTP/1.1\r\nContent-Length: +1\r\n\r\n",
        "GET http://example.test/ HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "GET http://example.test/ HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        "\r\n\r\n",
        "\x16\x03\x01 hello\r\n\r\n",
    ] {
        let answer = run.ask_text(request);
        assert!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{request:?}: {answer}");
    }
    assert_eq!(*run.refused.lock().unwrap(), []);
}

#[test]
fn unreachable_server_is_a_bad_gateway() {
    let (port, _held) = closed_port();
    let unreachable = proxy_for_example(port);
    let answer = unreachable.ask_text(format!("CONNECT example.test:{port} HTTP/1.1\r\n\r\n"));
    assert!(answer.starts_with("HTTP/1.1 502 Bad Gateway\r\n"), "{answer}");
    assert!(
        answer.ends_with(&format!("example.test:{port} cannot be reached: connection refused\n")),
        "{answer}"
    );
    for answers in [|| Ok(Vec::new()), || Err(io::Error::other("no such name"))] {
        let unknown = run(&["example.test"], move |_| answers());
        let answer = unknown.ask_text("GET http://example.test/ HTTP/1.1\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 502 Bad Gateway\r\n"), "{answer}");
        assert!(answer.contains("the name example.test was not found: "), "{answer}");
        assert_eq!(*unknown.refused.lock().unwrap(), []);
    }
}

#[test]
fn early_response_is_delivered() {
    let port = server(|mut stream| {
        stream.write_all(b"HTTP/1.1 413 Content Too Large\r\nConnection: close\r\n\r\nenough").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let run = proxy_for_example(port);
    let body = "x".repeat(200_000);
    let answer = run.ask_text(format!(
        "POST http://example.test:{port}/ HTTP/1.1\r\nContent-Length: 200000\r\n\r\n{body}"
    ));
    assert!(answer.ends_with("\r\n\r\nenough"), "{answer}");
}
