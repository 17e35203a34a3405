//! Bodies of every kind: compressed, endless, slow, broken off, unwanted.

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
fn every_compression_is_undone() {
    let text = "grüße, ".repeat(1_000);
    for coding in ["gzip", "deflate", "br", "zstd"] {
        let body = coded(coding, &compressed(coding, text.as_bytes()));
        let server = Server::saying(move |_| body.clone());
        let answer = get(&door(&here(), &[&server.entry()]), &server.url("/")).unwrap();
        assert_eq!(super::text(&answer), text, "{coding}");
        let asked = server.asked.recv().unwrap().to_lowercase();
        assert!(asked.contains("accept-encoding:") && asked.contains(coding), "{asked}");
    }
}

#[test]
fn a_bomb_is_not_unpacked_to_its_end() {
    let zeros = vec![0; 200 << 20];
    for coding in ["gzip", "br", "zstd"] {
        let body = coded(coding, &compressed(coding, &zeros));
        assert!(body.len() < 1 << 20, "{coding} makes a bomb of it");
        let server = Server::saying(move |_| body.clone());
        let request = HttpRequest {
            keep_bytes: 1_000,
            timeout: Duration::from_mins(2),
            ..HttpRequest::get(server.url("/"))
        };
        let answer = door(&here(), &[&server.entry()]).fetch(&request).unwrap();
        assert_eq!((answer.body.len(), answer.more), (1_000, true), "{coding}");
        assert!((64 << 20..70 << 20).contains(&answer.total_bytes), "{coding}: {}", answer.total_bytes);
    }
}

#[test]
fn what_is_not_kept_is_counted() {
    let server = Server::saying(|_| page(&"x".repeat(5_000_000)));
    let request = HttpRequest { keep_bytes: 10, ..HttpRequest::get(server.url("/")) };
    let answer = door(&here(), &[&server.entry()]).fetch(&request).unwrap();
    assert_eq!((answer.body.len(), answer.total_bytes, answer.more), (10, 5_000_000, false));
}

#[test]
fn a_body_without_end_is_given_up() {
    let server = Server::talking(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        while stream.write_all(&[b'x'; 8 * 1024]).is_ok() {}
    });
    let answer = get(&door(&here(), &[&server.entry()]), &server.url("/")).unwrap();
    assert!(answer.more && answer.body.len() == 5 << 20, "{} of {}", answer.body.len(), answer.total_bytes);
}

/// A server that says a little and then waits until its client is gone.
fn stalls(said: &'static str) -> (Server, Receiver<()>) {
    let (tell, gone) = channel();
    let server = Server::talking(move |_, stream| {
        stream.write_all(said.as_bytes()).unwrap();
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        let _ = tell.send(());
    });
    (server, gone)
}

#[test]
fn a_server_that_takes_its_time_runs_out_of_it() {
    for said in ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nslow"] {
        let (server, gone) = stalls(said);
        let request =
            HttpRequest { timeout: Duration::from_millis(200), ..HttpRequest::get(server.url("/")) };
        let error = door(&here(), &[&server.entry()]).fetch(&request).unwrap_err();
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
fn a_server_that_drips_for_ever_runs_out_of_time_too() {
    let server = Server::talking(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n");
        let (_open, never) = channel::<()>();
        while stream.write_all(b".").is_ok() {
            let _ = never.recv_timeout(Duration::from_millis(20));
        }
    });
    let request = HttpRequest { timeout: Duration::from_millis(300), ..HttpRequest::get(server.url("/")) };
    assert_eq!(door(&here(), &[&server.entry()]).fetch(&request).unwrap_err().kind, ErrorKind::Timeout);
}

#[test]
fn a_cancelled_call_hangs_up_at_once() {
    let (server, gone) = stalls("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nslow");
    let cancel = Cancel::new();
    let reach = Reach { hosts: vec![server.entry()], ..Reach::default() };
    let door = Door::new(here(), reach, cancel.clone());
    let url = server.url("/");
    let error = thread::scope(|scope| {
        let fetching = scope
            .spawn(|| door.fetch(&HttpRequest { timeout: Duration::from_hours(1), ..HttpRequest::get(url) }));
        server.asked.recv().unwrap();
        cancel.cancel();
        fetching.join().unwrap().unwrap_err()
    });
    assert_eq!(error.kind, ErrorKind::Interrupted);
    gone.recv().unwrap();
}

#[test]
fn a_lookup_that_hangs_holds_nobody_up() {
    let (hold, held) = channel::<()>();
    let held = Mutex::new(held);
    let web = web(move |_| {
        let _ = held.lock().unwrap().recv();
        vec![HERE]
    });
    let request =
        HttpRequest { timeout: Duration::from_millis(100), ..HttpRequest::get("http://stuck.test/") };
    assert_eq!(reaching(&web, public()).fetch(&request).unwrap_err().kind, ErrorKind::Timeout);
    drop(hold);
}

#[test]
fn each_failure_says_what_it_is_and_where() {
    let web = web(|name| if name == "known.test" { vec![HERE] } else { Vec::new() });
    let error = get(&reaching(&web, public()), "http://unknown.test/").unwrap_err();
    assert!(error.message.contains("the name unknown.test was not found"), "{}", error.message);

    let closed = TcpListener::bind((HERE, 0)).unwrap();
    let client = TcpStream::connect(closed.local_addr().unwrap()).unwrap();
    let entry = client.local_addr().unwrap().to_string();
    let error = get(&door(&web, &[&entry]), &format!("http://{entry}/")).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Io);
    assert!(
        error.message.contains(&entry) && error.message.contains("nothing listens there"),
        "{}",
        error.message
    );

    let plain = Server::saying(|_| page("not TLS"));
    let error = get(&door(&web, &[&plain.entry()]), &plain.url("/").replace("http:", "https:")).unwrap_err();
    assert!(error.message.contains("it does not speak TLS there"), "{}", error.message);

    for said in ["HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", ""] {
        let server = Server::saying(move |_| said.as_bytes().to_vec());
        let error = get(&door(&web, &[&server.entry()]), &server.url("/")).unwrap_err();
        assert!(error.kind == ErrorKind::Io && error.message.contains(&server.entry()), "{}", error.message);
    }
    let garbage = Server::saying(|_| b"SSH-2.0-OpenSSH\r\n".to_vec());
    let error = get(&door(&web, &[&garbage.entry()]), &garbage.url("/")).unwrap_err();
    assert!(error.message.contains("no answer that HTTP knows"), "{}", error.message);
    let broken = Server::saying(|_| coded("gzip", b"this is not gzip"));
    let error = get(&door(&web, &[&broken.entry()]), &broken.url("/")).unwrap_err();
    assert!(error.message.contains("decompressed") || error.message.contains("gzip"), "{}", error.message);
}
