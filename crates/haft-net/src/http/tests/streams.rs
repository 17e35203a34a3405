//! Streamed responses.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use haft_tool::{Cancel, ErrorKind, HttpStream, HttpStreams, Reach, StreamRequest, ToolError};

use super::super::streams::StreamClient;
use super::{LOCALHOST, TestServer, local_service, ok_page, read_request, redirect_to};

const TIMEOUT: Duration = Duration::from_mins(1);

fn streams(server: &TestServer) -> StreamClient {
    StreamClient::new(local_service(), Reach { hosts: vec![server.entry()], ..Reach::default() })
}

fn stream_request(url: &str) -> StreamRequest {
    StreamRequest { method: "GET", url: url.to_owned(), headers: Vec::new(), body: None }
}

fn open(streams: &StreamClient, url: &str) -> Result<HttpStream, ToolError> {
    streams.open(stream_request(url), TIMEOUT, &Cancel::new())
}

fn all(mut stream: HttpStream) -> String {
    let mut all = Vec::new();
    while let Some(chunk) = stream.body.next(TIMEOUT, &Cancel::new()).unwrap() {
        all.extend(chunk);
    }
    String::from_utf8(all).unwrap()
}

const HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

#[test]
fn body_is_read_as_it_arrives() {
    let (proceed, wait) = channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let server = TestServer::handling(move |_, stream| {
        stream.write_all(HEAD).unwrap();
        for word in ["one", "two"] {
            stream.write_all(format!("3\r\n{word}\r\n").as_bytes()).unwrap();
            let _ = wait.lock().unwrap().recv();
        }
        let _ = stream.write_all(b"0\r\n\r\n");
    });
    let streams = streams(&server);
    let mut stream = open(&streams, &server.url("/")).unwrap();
    assert_eq!((stream.status, stream.header("Content-Type")), (200, Some("text/event-stream")));
    for word in ["one", "two"] {
        assert_eq!(stream.body.next(TIMEOUT, &Cancel::new()).unwrap().unwrap(), word.as_bytes());
        proceed.send(()).unwrap();
    }
    assert_eq!(stream.body.next(TIMEOUT, &Cancel::new()).unwrap(), None);
    assert_eq!(stream.body.next(TIMEOUT, &Cancel::new()).unwrap(), None, "EOF is returned again");
}

#[test]
fn connection_is_reused() {
    let listener = TcpListener::bind((LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        for _ in 0..3 {
            read_request(&stream);
            stream.write_all(&ok_page("again")).unwrap();
        }
    });
    let reach = Reach { hosts: vec![format!("127.0.0.1:{port}")], ..Reach::default() };
    let streams = StreamClient::new(local_service(), reach);
    for _ in 0..3 {
        assert_eq!(all(open(&streams, &format!("http://127.0.0.1:{port}/")).unwrap()), "again");
    }
    serving.join().unwrap();
}

#[test]
fn silent_server_times_out_and_can_be_cancelled() {
    let server = TestServer::handling(|_, stream| {
        let _ = stream.read(&mut [0]);
    });
    let streams = streams(&server);
    let late = streams.open(stream_request(&server.url("/")), Duration::from_millis(20), &Cancel::new());
    assert_eq!(late.err().unwrap().kind, ErrorKind::Timeout);
    let cancel = Cancel::new();
    cancel.cancel();
    assert_eq!(
        streams.open(stream_request(&server.url("/")), TIMEOUT, &cancel).err().unwrap().kind,
        ErrorKind::Interrupted
    );
}

#[test]
fn stalled_body_times_out_and_can_be_cancelled() {
    let server = TestServer::handling(|_, stream| {
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
    assert_eq!(stream.body.next(TIMEOUT, &cancel).unwrap_err().kind, ErrorKind::Interrupted);
    canceller.join().unwrap();
}

#[test]
fn dropping_the_stream_closes_the_connection() {
    let (sender, receiver) = channel();
    let server = TestServer::handling(move |_, stream| {
        stream.write_all(HEAD).unwrap();
        let _ = sender.send(stream.read(&mut [0]).unwrap_or(0));
    });
    let streams = streams(&server);
    drop(open(&streams, &server.url("/")).unwrap());
    assert_eq!(receiver.recv_timeout(TIMEOUT), Ok(0), "the server sees EOF");
}

#[test]
fn unread_body_is_not_buffered_without_limit() {
    let (sender, receiver) = channel();
    let server = TestServer::handling(move |_, stream| {
        let _ = stream.set_write_timeout(Some(Duration::from_millis(200)));
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n");
        let mut sent = 0_usize;
        while stream.write_all(&[b'x'; 16384]).is_ok() {
            sent += 16384;
        }
        let _ = sender.send(sent);
    });
    let streams = streams(&server);
    let stream = open(&streams, &server.url("/")).unwrap();
    let sent = receiver.recv_timeout(TIMEOUT).unwrap();
    assert!(sent < 64 << 20, "{sent} bytes were read without a reader");
    drop(stream);
}

#[test]
fn streams_report_redirects_and_check_hosts() {
    let other = TestServer::responding(|_| ok_page("stolen"));
    let target = other.url("/");
    let server = TestServer::responding(move |_| redirect_to(307, &target));
    let streams = streams(&server);
    let stream = open(&streams, &server.url("/")).unwrap();
    assert_eq!((stream.status, stream.header("location")), (307, Some(other.url("/").as_str())));
    assert_eq!(open(&streams, &other.url("/")).err().unwrap().kind, ErrorKind::PermissionDenied);
    assert_eq!(other.request_count(), 0);
}

#[test]
fn dropping_the_client_ends_open_streams() {
    let server = TestServer::handling(|_, stream| {
        stream.write_all(HEAD).unwrap();
        let _ = stream.read(&mut [0]);
    });
    let streams: Arc<dyn HttpStreams> = Arc::new(streams(&server));
    let mut stream = streams.open(stream_request(&server.url("/")), TIMEOUT, &Cancel::new()).unwrap();
    drop(streams);
    assert_eq!(stream.body.next(TIMEOUT, &Cancel::new()).unwrap_err().kind, ErrorKind::Interrupted);
}
