//! Answers read as they come.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use haft_tool::{Cancel, ErrorKind, HttpStream, HttpStreams, Reach, StreamRequest, ToolError};

use super::super::streams::Streams;
use super::{HERE, Server, here, moved, page, request};

const LONG: Duration = Duration::from_mins(1);

fn streams(server: &Server) -> Streams {
    Streams::new(here(), Reach { hosts: vec![server.entry()], ..Reach::default() })
}

fn asking(url: &str) -> StreamRequest {
    StreamRequest { method: "GET", url: url.to_owned(), headers: Vec::new(), body: None }
}

fn open(streams: &Streams, url: &str) -> Result<HttpStream, ToolError> {
    streams.open(asking(url), LONG, &Cancel::new())
}

fn all(mut stream: HttpStream) -> String {
    let mut all = Vec::new();
    while let Some(chunk) = stream.body.next(LONG, &Cancel::new()).unwrap() {
        all.extend(chunk);
    }
    String::from_utf8(all).unwrap()
}

const HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

#[test]
fn an_answer_can_be_read_while_its_server_still_thinks() {
    let (go_on, gone_on) = channel::<()>();
    let gone_on = std::sync::Mutex::new(gone_on);
    let server = Server::talking(move |_, stream| {
        stream.write_all(HEAD).unwrap();
        for word in ["one", "two"] {
            stream.write_all(format!("3\r\n{word}\r\n").as_bytes()).unwrap();
            let _ = gone_on.lock().unwrap().recv();
        }
        let _ = stream.write_all(b"0\r\n\r\n");
    });
    let streams = streams(&server);
    let mut stream = open(&streams, &server.url("/")).unwrap();
    assert_eq!((stream.status, stream.header("Content-Type")), (200, Some("text/event-stream")));
    for word in ["one", "two"] {
        assert_eq!(stream.body.next(LONG, &Cancel::new()).unwrap().unwrap(), word.as_bytes());
        go_on.send(()).unwrap();
    }
    assert_eq!(stream.body.next(LONG, &Cancel::new()).unwrap(), None);
    assert_eq!(stream.body.next(LONG, &Cancel::new()).unwrap(), None, "an end stays an end");
}

#[test]
fn one_connection_serves_request_after_request() {
    let listener = TcpListener::bind((HERE, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        for _ in 0..3 {
            request(&stream);
            stream.write_all(&page("again")).unwrap();
        }
    });
    let reach = Reach { hosts: vec![format!("127.0.0.1:{port}")], ..Reach::default() };
    let streams = Streams::new(here(), reach);
    for _ in 0..3 {
        assert_eq!(all(open(&streams, &format!("http://127.0.0.1:{port}/")).unwrap()), "again");
    }
    serving.join().unwrap();
}

#[test]
fn a_server_that_says_nothing_is_waited_for_as_long_as_was_said() {
    let server = Server::talking(|_, stream| {
        let _ = stream.read(&mut [0]);
    });
    let streams = streams(&server);
    let late = streams.open(asking(&server.url("/")), Duration::from_millis(20), &Cancel::new());
    assert_eq!(late.err().unwrap().kind, ErrorKind::Timeout);
    let cancel = Cancel::new();
    cancel.cancel();
    assert_eq!(
        streams.open(asking(&server.url("/")), LONG, &cancel).err().unwrap().kind,
        ErrorKind::Interrupted
    );
}

#[test]
fn a_body_that_stops_coming_is_waited_for_as_long_as_was_said_and_not_when_cancelled() {
    let server = Server::talking(|_, stream| {
        stream.write_all(HEAD).unwrap();
        let _ = stream.read(&mut [0]);
    });
    let streams = streams(&server);
    let mut stream = open(&streams, &server.url("/")).unwrap();
    let late = stream.body.next(Duration::from_millis(20), &Cancel::new());
    assert_eq!(late.unwrap_err().kind, ErrorKind::Timeout);
    let cancel = Cancel::new();
    let other = cancel.clone();
    let canceller = thread::spawn(move || other.cancel());
    assert_eq!(stream.body.next(LONG, &cancel).unwrap_err().kind, ErrorKind::Interrupted);
    canceller.join().unwrap();
}

#[test]
fn who_no_longer_listens_hangs_up() {
    let (tell, told) = channel();
    let server = Server::talking(move |_, stream| {
        stream.write_all(HEAD).unwrap();
        let _ = tell.send(stream.read(&mut [0]).unwrap_or(0));
    });
    let streams = streams(&server);
    drop(open(&streams, &server.url("/")).unwrap());
    assert_eq!(told.recv_timeout(LONG), Ok(0), "the server sees the end of the connection");
}

#[test]
fn a_server_that_says_too_much_is_not_read_faster_than_anybody_listens() {
    let (tell, told) = channel();
    let server = Server::talking(move |_, stream| {
        let _ = stream.set_write_timeout(Some(Duration::from_millis(200)));
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n");
        let mut sent = 0_usize;
        while stream.write_all(&[b'x'; 16384]).is_ok() {
            sent += 16384;
        }
        let _ = tell.send(sent);
    });
    let streams = streams(&server);
    let stream = open(&streams, &server.url("/")).unwrap();
    let sent = told.recv_timeout(LONG).unwrap();
    assert!(sent < 64 << 20, "{sent} bytes were taken though nobody wanted them");
    drop(stream);
}

#[test]
fn redirects_are_told_and_other_hosts_not_reached() {
    let other = Server::saying(|_| page("stolen"));
    let target = other.url("/");
    let server = Server::saying(move |_| moved(307, &target));
    let streams = streams(&server);
    let stream = open(&streams, &server.url("/")).unwrap();
    assert_eq!((stream.status, stream.header("location")), (307, Some(other.url("/").as_str())));
    assert_eq!(open(&streams, &other.url("/")).err().unwrap().kind, ErrorKind::PermissionDenied);
    assert_eq!(other.times(), 0);
}

#[test]
fn a_closed_door_ends_what_is_under_way() {
    let server = Server::talking(|_, stream| {
        stream.write_all(HEAD).unwrap();
        let _ = stream.read(&mut [0]);
    });
    let streams: Arc<dyn HttpStreams> = Arc::new(streams(&server));
    let mut stream = streams.open(asking(&server.url("/")), LONG, &Cancel::new()).unwrap();
    drop(streams);
    assert_eq!(stream.body.next(LONG, &Cancel::new()).unwrap_err().kind, ErrorKind::Interrupted);
}
