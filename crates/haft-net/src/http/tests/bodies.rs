//! Response bodies: compressed, endless, slow, aborted.

use std::io::Write as _;

use haft_tool::ErrorKind;

use super::*;

fn compressed(coding: &str, plain: &[u8]) -> Vec<u8> {
    match coding {
        "gzip" => {
            let mut coder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
            coder.write_all(plain).unwrap();
            coder.finish().unwrap()
        }
        "deflate" => {
            let mut coder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
            coder.write_all(plain).unwrap();
            coder.finish().unwrap()
        }
        "br" => {
            let mut out = Vec::new();
            brotli::CompressorWriter::new(&mut out, 4096, 9, 22).write_all(plain).unwrap();
            out
        }
        "zstd" => zstd::encode_all(plain, 19).unwrap(),
        _ => plain.to_vec(),
    }
}

fn coded(coding: &str, body: &[u8]) -> Vec<u8> {
    let head =
        format!("HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

#[test]
fn every_content_encoding_is_decoded() {
    let text = "grüße, ".repeat(1_000);
    for coding in ["gzip", "deflate", "br", "zstd"] {
        let body = coded(coding, &compressed(coding, text.as_bytes()));
        let server = TestServer::responding(move |_| body.clone());
        let answer = get(&client_for(&local_service(), &[&server.entry()]), &server.url("/")).unwrap();
        assert_eq!(super::text(&answer), text, "{coding}");
        let request = server.requests.recv().unwrap().to_lowercase();
        assert!(request.contains("accept-encoding:") && request.contains(coding), "{request}");
    }
}

#[test]
fn compression_bomb_is_cut() {
    let zeros = vec![0; 200 << 20];
    for coding in ["gzip", "br", "zstd"] {
        let body = coded(coding, &compressed(coding, &zeros));
        assert!(body.len() < 1 << 20, "{coding} makes a bomb of it");
        let server = TestServer::responding(move |_| body.clone());
        let request = HttpRequest {
            keep_bytes: 1_000,
            timeout: Duration::from_mins(2),
            ..HttpRequest::get(server.url("/"))
        };
        let answer = client_for(&local_service(), &[&server.entry()]).fetch(&request).unwrap();
        assert_eq!((answer.body.len(), answer.more), (1_000, true), "{coding}");
        assert!((64 << 20..70 << 20).contains(&answer.total_bytes), "{coding}: {}", answer.total_bytes);
    }
}

#[test]
fn bytes_beyond_the_limit_are_counted() {
    let server = TestServer::responding(|_| ok_page(&"x".repeat(5_000_000)));
    let request = HttpRequest { keep_bytes: 10, ..HttpRequest::get(server.url("/")) };
    let answer = client_for(&local_service(), &[&server.entry()]).fetch(&request).unwrap();
    assert_eq!((answer.body.len(), answer.total_bytes, answer.more), (10, 5_000_000, false));
}

#[test]
fn endless_body_is_cut() {
    let server = TestServer::handling(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        while stream.write_all(&[b'x'; 8 * 1024]).is_ok() {}
    });
    let answer = get(&client_for(&local_service(), &[&server.entry()]), &server.url("/")).unwrap();
    assert!(answer.more && answer.body.len() == 5 << 20, "{} of {}", answer.body.len(), answer.total_bytes);
}

/// A server that sends a little and then waits until the client closes.
fn stalls(said: &'static str) -> (TestServer, Receiver<()>) {
    let (sender, gone) = channel();
    let server = TestServer::handling(move |_, stream| {
        stream.write_all(said.as_bytes()).unwrap();
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        let _ = sender.send(());
    });
    (server, gone)
}

#[test]
fn stalled_server_times_out() {
    for said in ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nslow"] {
        let (server, gone) = stalls(said);
        let request =
            HttpRequest { timeout: Duration::from_millis(200), ..HttpRequest::get(server.url("/")) };
        let error = client_for(&local_service(), &[&server.entry()]).fetch(&request).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Timeout);
        assert!(
            error.message.contains(&server.entry()) && error.message.contains("0.2 s"),
            "{}",
            error.message
        );
        gone.recv().unwrap();
    }
}

#[test]
fn slow_body_times_out() {
    let server = TestServer::handling(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n");
        let (_open, never) = channel::<()>();
        while stream.write_all(b".").is_ok() {
            let _ = never.recv_timeout(Duration::from_millis(20));
        }
    });
    let request = HttpRequest { timeout: Duration::from_millis(300), ..HttpRequest::get(server.url("/")) };
    assert_eq!(
        client_for(&local_service(), &[&server.entry()]).fetch(&request).unwrap_err().kind,
        ErrorKind::Timeout
    );
}

#[test]
fn cancel_closes_the_connection() {
    let (server, gone) = stalls("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nslow");
    let cancel = Cancel::new();
    let reach = Reach { hosts: vec![server.entry()], ..Reach::default() };
    let client = HttpClient::new(local_service(), reach, cancel.clone());
    let url = server.url("/");
    let error = thread::scope(|scope| {
        let fetching = scope.spawn(|| {
            client.fetch(&HttpRequest { timeout: Duration::from_hours(1), ..HttpRequest::get(url) })
        });
        server.requests.recv().unwrap();
        cancel.cancel();
        fetching.join().unwrap().unwrap_err()
    });
    assert_eq!(error.kind, ErrorKind::Interrupted);
    gone.recv().unwrap();
}

#[test]
fn hanging_lookup_times_out() {
    let (hold, held) = channel::<()>();
    let held = Mutex::new(held);
    let service = service(move |_| {
        let _ = held.lock().unwrap().recv();
        vec![LOCALHOST]
    });
    let request =
        HttpRequest { timeout: Duration::from_millis(100), ..HttpRequest::get("http://stuck.test/") };
    assert_eq!(client_within(&service, public()).fetch(&request).unwrap_err().kind, ErrorKind::Timeout);
    drop(hold);
}

#[test]
fn errors_name_the_host_and_the_cause() {
    let service = service(|name| if name == "known.test" { vec![LOCALHOST] } else { Vec::new() });
    let error = get(&client_within(&service, public()), "http://unknown.test/").unwrap_err();
    assert!(error.message.contains("the name unknown.test was not found"), "{}", error.message);

    let closed = TcpListener::bind((LOCALHOST, 0)).unwrap();
    let client = TcpStream::connect(closed.local_addr().unwrap()).unwrap();
    let entry = client.local_addr().unwrap().to_string();
    let error = get(&client_for(&service, &[&entry]), &format!("http://{entry}/")).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Io);
    assert!(
        error.message.contains(&entry) && error.message.contains("nothing listens there"),
        "{}",
        error.message
    );

    let plain = TestServer::responding(|_| ok_page("not TLS"));
    let error = get(&client_for(&service, &[&plain.entry()]), &plain.url("/").replace("http:", "https:"))
        .unwrap_err();
    assert!(error.message.contains("does not speak TLS there"), "{}", error.message);

    for said in ["HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", ""] {
        let server = TestServer::responding(move |_| said.as_bytes().to_vec());
        let error = get(&client_for(&service, &[&server.entry()]), &server.url("/")).unwrap_err();
        assert!(error.kind == ErrorKind::Io && error.message.contains(&server.entry()), "{}", error.message);
    }
    let garbage = TestServer::responding(|_| b"SSH-2.0-OpenSSH\r\n".to_vec());
    let error = get(&client_for(&service, &[&garbage.entry()]), &garbage.url("/")).unwrap_err();
    assert!(error.message.contains("the response is not valid HTTP"), "{}", error.message);
    let broken = TestServer::responding(|_| coded("gzip", b"this is not gzip"));
    let error = get(&client_for(&service, &[&broken.entry()]), &broken.url("/")).unwrap_err();
    assert!(error.message.contains("decompressed") || error.message.contains("gzip"), "{}", error.message);
}
