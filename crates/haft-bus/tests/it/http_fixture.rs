//! An HTTP server with prepared responses that records requests, and a minimal HTTP client.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use haft_tool::{ErrorKind, Http, HttpRequest, HttpResponse, ToolError, Value};

/// A request that the server received.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// Method and target, for example `POST /x?y=1`.
    pub(crate) line: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// A response that the server sends.
#[derive(Clone)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
}

pub(crate) fn response(status: u16, body: impl Into<Vec<u8>>) -> Response {
    Response { status, headers: vec![("Content-Type", "application/json".to_owned())], body: body.into() }
}

impl Response {
    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// A server on the loopback interface that sends the responses in order, one per request, and then stops listening.
pub(crate) struct Server {
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<Request>>>,
    worker: Option<JoinHandle<()>>,
}

impl Server {
    pub(crate) fn new(responses: Vec<Response>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let recorded = Arc::clone(&requests);
        let worker = std::thread::spawn(move || {
            for response in responses {
                let (stream, _) = listener.accept().unwrap();
                // `drop` connects without a request.
                let Some(request) = read(&stream) else { return };
                recorded.lock().unwrap().push(request);
                write(&stream, &response);
            }
        });
        Self { url, requests, worker: Some(worker) }
    }

    /// The requests so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = TcpStream::connect(self.url.trim_start_matches("http://"));
        let _ = self.worker.take().map(JoinHandle::join);
    }
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line.trim_end().is_empty() {
            break;
        }
        lines.push(line.trim_end().to_owned());
    }
    let headers: Vec<(String, String)> = lines[1..]
        .iter()
        .filter_map(|line| line.split_once(": ").map(|(name, value)| (name.to_owned(), value.to_owned())))
        .collect();
    let length = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let mut body = vec![0; length.map_or(0, |(_, value)| value.parse().unwrap())];
    reader.read_exact(&mut body).ok()?;
    let line = lines[0].trim_end_matches(" HTTP/1.1").to_owned();
    Some(Request { line, headers, body: String::from_utf8(body).unwrap() })
}

fn write(mut stream: &TcpStream, response: &Response) {
    let mut head = format!(
        "HTTP/1.1 {} Status\r\nContent-Length: {}\r\nConnection: close\r\n",
        response.status,
        response.body.len()
    );
    for (name, value) in &response.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    // The client may close the connection early.
    let _ = stream.write_all(format!("{head}\r\n").as_bytes());
    let _ = stream.write_all(&response.body);
}

/// A client without TLS, redirects and chunked bodies.
pub(crate) struct PlainHttp;

impl Http for PlainHttp {
    fn fetch(&self, request: &HttpRequest) -> Result<HttpResponse, ToolError> {
        let io_error =
            |error: std::io::Error| ToolError::new(ErrorKind::Io, format!("{}: {error}", request.url));
        let rest = request.url.strip_prefix("http://").unwrap();
        let (host, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
        let mut stream = TcpStream::connect(host).map_err(io_error)?;
        let body = request.body.clone().unwrap_or_default();
        let mut head = format!(
            "{} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {}\r\n",
            request.method,
            body.len()
        );
        for (name, value) in &request.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        stream.write_all(format!("{head}\r\n").as_bytes()).map_err(io_error)?;
        stream.write_all(&body).map_err(io_error)?;
        let mut all = Vec::new();
        stream.read_to_end(&mut all).map_err(io_error)?;
        let end = all.windows(4).position(|four| four == b"\r\n\r\n");
        let end =
            end.ok_or_else(|| ToolError::new(ErrorKind::Io, format!("{}: no response", request.url)))?;
        let head = String::from_utf8(all[..end].to_vec()).unwrap();
        let mut lines = head.lines();
        let mut status = lines.next().unwrap().splitn(3, ' ').skip(1);
        let mut body = all[end + 4..].to_vec();
        let total_bytes = body.len() as u64;
        body.truncate(request.keep_bytes);
        Ok(HttpResponse {
            status: status.next().unwrap().parse().unwrap(),
            status_text: status.next().unwrap_or_default().to_owned(),
            url: request.url.clone(),
            headers: lines
                .filter_map(|line| line.split_once(": "))
                .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
                .collect(),
            body,
            total_bytes,
            more: false,
            redirect: None,
        })
    }
}
