//! `haft gateway`: messages over HTTP start and continue runs, replies go out by the channels.

mod delivery;
mod requests;
mod services;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use serde_json::{Value, json};

use crate::fixture::cli::CliFixture;
use crate::fixture::{TIMEOUT, wait_until};

const SECRET: &str = "a secret of the tests";

/// A service that takes the replies.
struct Replies {
    port: u16,
    bodies: Receiver<(String, Value)>,
    /// Whether requests are answered.
    is_open: Arc<(Mutex<bool>, Condvar)>,
}

impl Replies {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (tell, bodies) = channel();
        let is_open = Arc::new((Mutex::new(true), Condvar::new()));
        let gate = Arc::clone(&is_open);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (tell, gate) = (tell.clone(), Arc::clone(&gate));
                std::thread::spawn(move || {
                    let mut reader = BufReader::new(stream.try_clone().unwrap());
                    while let Some((head, body)) = read_message(&mut reader) {
                        let _ = tell.send((head, serde_json::from_slice(&body).unwrap_or_default()));
                        let (open, changed) = &*gate;
                        drop(changed.wait_while(open.lock().unwrap(), |open| !*open).unwrap());
                        let answer = "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{\"ok\":true}";
                        if (&stream).write_all(answer.as_bytes()).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        Self { port, bodies, is_open }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Holds or releases the answers.
    fn open(&self, open: bool) {
        *self.is_open.0.lock().unwrap() = open;
        self.is_open.1.notify_all();
    }

    /// The next reply.
    fn next(&self) -> Value {
        self.bodies.recv_timeout(TIMEOUT).unwrap().1
    }

    /// The chat and the text of the next reply of a webhook.
    fn next_text(&self) -> (String, String) {
        let body = self.next();
        let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
        (text("chat_id"), text("content"))
    }
}

/// Reads the head and the body of an HTTP message; `None` at its end.
fn read_message(reader: &mut BufReader<TcpStream>) -> Option<(String, Vec<u8>)> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    Some((head, body))
}

/// The answer to a request.
struct Answer {
    status: u16,
    head: String,
    body: Value,
}

/// A running gateway; it is killed at the end.
struct Gateway {
    child: Child,
    address: String,
    stderr: Arc<Mutex<String>>,
}

impl Gateway {
    /// Starts it with a script of the model's answers.
    fn start(cli: &CliFixture, script: &[Value], args: &[&str]) -> Self {
        let lines: String = script.iter().map(|line| format!("{line}\n")).collect();
        let path = cli.config().with_file_name("script.jsonl");
        std::fs::write(&path, lines).unwrap();
        let flags =
            ["gateway", "--http", "127.0.0.1:0", "--provider", "script", "--script", path.to_str().unwrap()];
        let mut command = cli.command(&[&flags, args].concat());
        let mut child = command.env("HOOK_SECRET", SECRET).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let stderr: Arc<Mutex<String>> = Arc::default();
        let mut address = None;
        while address.is_none() {
            let mut line = String::new();
            assert_ne!(lines.read_line(&mut line).unwrap(), 0, "{}", stderr.lock().unwrap());
            let rest = line.strip_prefix("listening on http://");
            address = rest.and_then(|rest| rest.split('/').next()).map(str::to_owned);
            stderr.lock().unwrap().push_str(&line);
        }
        let all = Arc::clone(&stderr);
        std::thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                let mut all = all.lock().unwrap();
                all.push_str(&line);
                all.push('\n');
            }
        });
        Self { child, address: address.unwrap(), stderr }
    }

    fn send(&self, request: &[u8]) -> Answer {
        let stream = TcpStream::connect(&self.address).unwrap();
        // The server may refuse a body before its end.
        let _ = (&stream).write_all(request);
        let (head, body) = read_message(&mut BufReader::new(stream)).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer {
            status,
            head: head.to_ascii_lowercase(),
            body: serde_json::from_slice(&body).unwrap_or_default(),
        }
    }

    fn post(&self, channel: &str, headers: &[(&str, String)], body: &[u8]) -> Answer {
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let head = format!(
            "POST /channels/{channel} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n{headers}Content-Length: {}\r\n\r\n",
            self.address,
            body.len()
        );
        self.send(&[head.as_bytes(), body].concat())
    }

    /// Sends a signed message to the channel `hook`.
    fn say(&self, chat: &str, id: &str, text: &str) -> Answer {
        let body = json!({"message_id": id, "chat_id": chat, "text": text}).to_string();
        self.post("hook", &signed(SECRET.as_bytes(), id, now(), &body), body.as_bytes())
    }

    fn wait_for(&self, text: &str) {
        wait_until(|| self.stderr.lock().unwrap().contains(text));
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends SIGTERM and returns the exit code.
    fn terminate(&mut self) -> Option<i32> {
        let id = self.child.id().to_string();
        assert!(std::process::Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

fn hmac_sha256(secret: &[u8], text: &str) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), text.as_bytes()).as_ref().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The headers of Standard Webhooks.
fn signed(secret: &[u8], id: &str, time: u64, body: &str) -> Vec<(&'static str, String)> {
    let signature = STANDARD.encode(hmac_sha256(secret, &format!("{id}.{time}.{body}")));
    vec![
        ("webhook-id", id.to_owned()),
        ("webhook-timestamp", time.to_string()),
        ("webhook-signature", format!("v1,{signature}")),
    ]
}

/// A workspace with the channel `hook`, whose replies go to the service.
fn fixture(replies: &Replies) -> CliFixture {
    let cli = CliFixture::new();
    let url = replies.url();
    let settings = format!(
        "[channels.hook]\nkind = \"webhook\"\nurl = \"{url}/hook\"\nsigning_secret = \"${{HOOK_SECRET}}\"\n"
    );
    std::fs::write(cli.config(), settings).unwrap();
    cli
}

fn says(text: &str) -> Value {
    json!({ "text": text })
}
