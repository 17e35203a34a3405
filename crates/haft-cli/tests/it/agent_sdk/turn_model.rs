//! A model on this machine that answers with given blocks, in Anthropic's format.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

/// A model whose answers are lists of blocks, one after the other; the last one is repeated.
pub(super) struct TurnModel {
    port: u16,
    requests: Arc<Mutex<Vec<Value>>>,
}

/// A block of text.
pub(super) fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// A call.
pub(super) fn call(id: &str, tool: &str, input: &Value) -> Value {
    json!({"type": "tool_use", "id": id, "name": tool, "input": input})
}

/// The answer stays incomplete here until the connection is closed.
pub(super) fn hangs() -> Value {
    json!({"type": "hangs"})
}

impl TurnModel {
    pub(super) fn start(turns: Vec<Vec<Value>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests: Arc<Mutex<Vec<Value>>> = Arc::default();
        let (turns, seen) = (Arc::new(turns), Arc::clone(&requests));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (turns, seen) = (Arc::clone(&turns), Arc::clone(&seen));
                thread::spawn(move || serve(stream, &turns, &seen));
            }
        });
        Self { port, requests }
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The bodies of all requests.
    pub(super) fn requests(&self) -> Vec<Value> {
        self.requests.lock().unwrap().clone()
    }
}

fn serve(mut stream: TcpStream, turns: &[Vec<Value>], seen: &Mutex<Vec<Value>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        if let Some(given) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = given.trim().parse().unwrap_or(0);
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    if reader.read_exact(&mut body).is_err() {
        return;
    }
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let model = request["model"].clone();
    let number = {
        let mut seen = seen.lock().unwrap();
        seen.push(request);
        seen.len()
    };
    let Some(blocks) = turns.get(number - 1).or_else(|| turns.last()) else { return };
    let (events, is_whole) = events(blocks, &model, number);
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    if stream.write_all(format!("{head}{events}").as_bytes()).is_ok() && !is_whole {
        // Until the other side gives up.
        let _ = reader.read(&mut [0]);
    }
}

/// The answer, and whether it is complete.
fn events(blocks: &[Value], model: &Value, number: usize) -> (String, bool) {
    let mut all = vec![json!({"type": "message_start", "message": {
        "id": format!("msg_{number}"), "type": "message", "role": "assistant", "model": model, "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 10, "output_tokens": 1},
    }})];
    let mut reason = "end_turn";
    for (index, block) in blocks.iter().enumerate() {
        let (start, delta) = match block["type"].as_str() {
            Some("text") => {
                (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": block["text"]}))
            }
            Some("tool_use") => {
                reason = "tool_use";
                let mut start = block.clone();
                start["input"] = json!({});
                let input = block["input"].to_string();
                (start, json!({"type": "input_json_delta", "partial_json": input}))
            }
            _ => return (text_of(&all), false),
        };
        all.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
        all.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        all.push(json!({"type": "content_block_stop", "index": index}));
    }
    let delta = json!({"stop_reason": reason, "stop_sequence": null});
    all.push(json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 5}}));
    all.push(json!({"type": "message_stop"}));
    (text_of(&all), true)
}

fn text_of(events: &[Value]) -> String {
    let line =
        |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default());
    events.iter().map(line).collect()
}
