//! A small HTTP server on this machine.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

pub(crate) struct Server {
    pub(crate) port: u16,
    pub(crate) asked: Receiver<String>,
}

impl Server {
    /// `answer` says what to send for a request's head.
    pub(crate) fn start(answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let answer = Arc::new(answer);
        let (tell, asked) = channel();
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let (answer, tell) = (Arc::clone(&answer), tell.clone());
                thread::spawn(move || {
                    let head = head(&stream);
                    let _ = tell.send(head.clone());
                    let _ = stream.write_all(&answer(&head));
                });
            }
        });
        Self { port, asked }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub(crate) fn entry(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}

fn head(stream: &TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while reader.read_line(&mut head).is_ok_and(|count| count > 2) {}
    head
}

pub(crate) fn page(kind: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    answer("200 OK", &format!("Content-Type: {kind}\r\n"), body)
}

pub(crate) fn answer(status: &str, headers: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let head = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}
