//! A collector on this machine.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::fixture::peers::agent;

/// The Python that has OpenTelemetry's messages.
const PYTHON: &str = "HAFT_OTEL_PYTHON";

/// A request that the collector has received.
#[derive(Clone)]
pub(super) struct ReceivedRequest {
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

/// How it treats requests.
#[derive(Clone, Copy)]
pub(super) enum CollectorMode {
    /// Accepts them.
    Accepts,
    /// Answers with this status.
    Answers(u16),
    /// Rejects two items of each.
    RejectsTwo,
    /// Reads them and never answers.
    Hangs,
}

pub(super) struct Collector {
    port: u16,
    received: Arc<Mutex<Vec<ReceivedRequest>>>,
}

impl Collector {
    pub(super) fn start(mode: CollectorMode) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let received = Arc::<Mutex<Vec<ReceivedRequest>>>::default();
        let sink = Arc::clone(&received);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let sink = Arc::clone(&sink);
                thread::spawn(move || serve(&stream, mode, &sink));
            }
        });
        Self { port, received }
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(super) fn received(&self) -> Vec<ReceivedRequest> {
        self.received.lock().unwrap().clone()
    }

    /// Everything that was sent to a path, read by OpenTelemetry's own messages.
    fn read(&self, signal: &str) -> Vec<Value> {
        let to = format!("POST /v1/{signal} ");
        let requests = self.received().into_iter().filter(|request| request.head.starts_with(&to));
        let line = |request: ReceivedRequest| {
            assert!(request.head.contains("content-type: application/x-protobuf\r\n"), "{}", request.head);
            format!("{}\n", json!({"signal": signal, "protobuf": STANDARD.encode(request.body)}))
        };
        let lines: String = requests.map(line).collect();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../haft-telemetry/tests/it/read_otlp.py");
        let mut reader = Command::new(agent(PYTHON));
        let mut reader = reader.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut input = reader.stdin.take().unwrap();
        let writer = thread::spawn(move || input.write_all(lines.as_bytes()).unwrap());
        let output = reader.wait_with_output().unwrap();
        writer.join().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// The spans of all requests.
    pub(super) fn spans(&self) -> Vec<Value> {
        spans_of(&self.read("traces"))
    }

    /// The newest metrics, by their names.
    pub(super) fn metrics(&self) -> Vec<Value> {
        let last = self.read("metrics").pop().unwrap();
        last["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap().clone()
    }

    /// The attributes of the sender.
    pub(super) fn resource(&self) -> Value {
        let first = self.read("traces").remove(0);
        first["resourceSpans"][0]["resource"].clone()
    }
}

/// The spans of requests.
pub(super) fn spans_of(requests: &[Value]) -> Vec<Value> {
    let spans = requests.iter().map(|request| &request["resourceSpans"][0]["scopeSpans"][0]["spans"]);
    spans.flat_map(|spans| spans.as_array().unwrap().clone()).collect()
}

fn serve(stream: &TcpStream, mode: CollectorMode, sink: &Mutex<Vec<ReceivedRequest>>) {
    let mut reader = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while reader.read_line(&mut head).is_ok_and(|count| count > 2) {}
        let length =
            head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
        let Some(length) = length else { return };
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        sink.lock()
            .unwrap()
            .push(ReceivedRequest { head: head.to_lowercase().replacen("post", "POST", 1), body });
        let status = match mode {
            CollectorMode::Accepts | CollectorMode::RejectsTwo => 200,
            CollectorMode::Answers(status) => status,
            CollectorMode::Hangs => {
                // Until the client closes the connection.
                let _ = reader.read_line(&mut head);
                return;
            }
        };
        // The field `partial_success` of a response: how many were rejected, and why.
        let said = match mode {
            CollectorMode::RejectsTwo => "\x0a\x0b\x08\x02\x12\x07too old",
            _ => "",
        };
        let answer = format!("HTTP/1.1 {status} Status\r\nContent-Length: {}\r\n\r\n{said}", said.len());
        if (&*stream).write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}
