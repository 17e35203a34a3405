//! `haft -p` against other agents on a model on this machine: start, one turn with a trivial shell call, memory, first request.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use serde_json::{Value, json};

use super::measure::{Row, median, once};
use super::{Bench, Place};
use crate::Done;
use crate::peers;

/// How often each agent runs.
const ROUNDS: usize = 9;

/// What the model saw of one run.
#[derive(Debug, Default)]
struct Seen {
    /// When requests with tools arrived.
    arrived: Vec<Instant>,
    /// When the answers had been sent.
    answered: Vec<Instant>,
    /// The size of the first request.
    first_bytes: usize,
}

/// What one agent takes.
struct AgentFigures {
    first_request_ms: f64,
    turn_ms: f64,
    peak_kib: i64,
    request_bytes: usize,
}

pub(super) fn run(bench: &mut Bench) -> Done {
    let (claude, codex) = (peers::claude()?, peers::codex()?);
    let (seen, url) = serve()?;
    let place = bench.place()?;
    let haft_program = bench.haft.clone();
    let mut all =
        [(Vec::new(), Vec::new(), 0, 0), (Vec::new(), Vec::new(), 0, 0), (Vec::new(), Vec::new(), 0, 0)];
    for round in 0..=ROUNDS {
        let commands = [
            haft(&haft_program, &place, &url),
            claude_code(&claude, &place, &url),
            codex_cli(&codex, &place, &url)?,
        ];
        for (mut command, figures) in commands.into_iter().zip(&mut all) {
            *lock(&seen)? = Seen::default();
            let start = Instant::now();
            let (_, peak) = once(&mut command)?;
            let seen = lock(&seen)?;
            let ([first, second, ..], [answered, ..]) = (seen.arrived.as_slice(), seen.answered.as_slice())
            else {
                return Err(format!("{command:?} asked the model {} times", seen.arrived.len()));
            };
            // The first one fills the caches.
            if round > 0 {
                figures.0.push(*first - start);
                figures.1.push(second.saturating_duration_since(*answered));
                figures.2 = peak.max(figures.2);
                figures.3 = seen.first_bytes;
            }
        }
    }
    let [ours, claude, codex] = all.map(|(mut first, mut turn, peak_kib, request_bytes)| AgentFigures {
        first_request_ms: median(&mut first),
        turn_ms: median(&mut turn),
        peak_kib,
        request_bytes,
    });
    for (name, peer) in [("claude", claude), ("codex", codex)] {
        let row =
            Row::new("agent", "start to first request", ours.first_request_ms, name, peer.first_request_ms);
        bench.table.add(row.with_peaks(Some(ours.peak_kib), Some(peer.peak_kib)));
        bench.table.add(Row::new("agent", "turn with a shell call", ours.turn_ms, name, peer.turn_ms));
        println!("first request: haft {} bytes, {name} {} bytes", ours.request_bytes, peer.request_bytes);
    }
    Ok(())
}

fn lock(seen: &Mutex<Seen>) -> Result<std::sync::MutexGuard<'_, Seen>, String> {
    seen.lock().map_err(|error| error.to_string())
}

/// A command in the workspace, with nothing of this machine's user.
fn clean(program: &Path, place: &Place) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("HOME", place.home.path()).env("PATH", "/usr/local/bin:/usr/bin:/bin");
    command.current_dir(place.workspace.path());
    command
}

fn haft(program: &Path, place: &Place, url: &str) -> Command {
    let mut haft = clean(program, place);
    haft.args(["-p", "go", "--provider", "anthropic", "--model", "m", "--base-url", url]);
    haft.env("ANTHROPIC_API_KEY", "x").env("HAFT_HOME", place.home.path().join("haft"));
    haft
}

fn claude_code(program: &Path, place: &Place, url: &str) -> Command {
    let mut claude = clean(program, place);
    claude.args(["-p", "go", "--output-format", "json", "--allowedTools", "Bash"]);
    claude.env("ANTHROPIC_BASE_URL", url).env("ANTHROPIC_API_KEY", "x").env("DISABLE_AUTOUPDATER", "1");
    claude.env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
    claude
}

fn codex_cli(program: &Path, place: &Place, url: &str) -> Result<Command, String> {
    let home = place.home.path().join(".codex");
    let settings = format!(
        "model = \"m\"\nmodel_provider = \"local\"\n[model_providers.local]\nname = \"local\"\nbase_url = \"{url}/v1\"\n\
         wire_api = \"responses\"\nenv_key = \"LOCAL_KEY\"\n"
    );
    std::fs::create_dir_all(&home).map_err(|error| error.to_string())?;
    std::fs::write(home.join("config.toml"), settings).map_err(|error| error.to_string())?;
    let mut codex = clean(program, place);
    codex.args(["exec", "--skip-git-repo-check", "--sandbox", "danger-full-access", "--json", "go"]);
    codex.env("LOCAL_KEY", "x");
    Ok(codex)
}

/// Starts the model; it serves until this process ends.
fn serve() -> Result<(Arc<Mutex<Seen>>, String), String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    let url = format!("http://{}", listener.local_addr().map_err(|error| error.to_string())?);
    let seen = Arc::<Mutex<Seen>>::default();
    let shared = Arc::clone(&seen);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let seen = Arc::clone(&shared);
            std::thread::spawn(move || drop(answer_all(&stream, &seen)));
        }
    });
    Ok((seen, url))
}

/// Answers the requests of one connection.
fn answer_all(stream: &TcpStream, seen: &Mutex<Seen>) -> Result<(), String> {
    let failed = |error: std::io::Error| error.to_string();
    stream.set_nodelay(true).map_err(failed)?;
    let (mut reader, mut writer) = (BufReader::new(stream), stream);
    loop {
        let (mut path, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).map_err(failed)? == 0 {
                return Ok(());
            }
            if let Some(given) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = given.trim().parse().unwrap_or(0);
            }
            if path.is_empty() {
                line.split_whitespace().nth(1).unwrap_or_default().clone_into(&mut path);
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).map_err(failed)?;
        let arrived = Instant::now();
        let request: Value = serde_json::from_slice(&body).unwrap_or_default();
        let is_turn = request["tools"].as_array().is_some_and(|tools| !tools.is_empty());
        let answer = if path.contains("/responses") { responses(&request) } else { messages(&request) };
        if is_turn {
            let mut seen = lock(seen)?;
            seen.arrived.push(arrived);
            if seen.first_bytes == 0 {
                seen.first_bytes = body.len();
            }
        }
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n",
            answer.len()
        );
        writer.write_all(format!("{head}{answer}").as_bytes()).map_err(failed)?;
        if is_turn {
            lock(seen)?.answered.push(Instant::now());
        }
    }
}

fn events(all: &[Value]) -> String {
    let name = |event: &Value| event["type"].as_str().unwrap_or_default().to_owned();
    all.iter().map(|event| format!("event: {}\ndata: {event}\n\n", name(event))).collect()
}

/// Anthropic's format: one call of `Bash`, then the end.
fn messages(request: &Value) -> String {
    let calls = !request["messages"].to_string().contains("\"tool_result\"") && !request["tools"].is_null();
    let (block, delta, reason) = if calls {
        (
            json!({"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {}}),
            json!({"type": "input_json_delta", "partial_json": "{\"command\": \"true\"}"}),
            "tool_use",
        )
    } else {
        (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": "Done."}), "end_turn")
    };
    events(&[
        json!({"type": "message_start", "message": {
            "id": "msg_1", "type": "message", "role": "assistant", "model": request["model"], "content": [],
            "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 1, "output_tokens": 1},
        }}),
        json!({"type": "content_block_start", "index": 0, "content_block": block}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null}, "usage": {"output_tokens": 1}}),
        json!({"type": "message_stop"}),
    ])
}

/// The format of Responses: one call of the shell that is offered, then the end.
fn responses(request: &Value) -> String {
    let has = |name: &str| {
        request["tools"].as_array().is_some_and(|tools| tools.iter().any(|tool| tool["name"] == name))
    };
    let call = |name: &str, arguments: Value| {
        json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": name,
               "arguments": arguments.to_string(), "status": "completed"})
    };
    let item = if request["input"].to_string().contains("_call_output\"") {
        json!({"type": "message", "id": "m", "role": "assistant", "status": "completed",
               "content": [{"type": "output_text", "text": "Done.", "annotations": []}]})
    } else if has("exec_command") {
        call("exec_command", json!({"cmd": "true"}))
    } else {
        call("shell", json!({"command": ["true"]}))
    };
    let usage = json!({
        "input_tokens": 1, "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 1, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 2,
    });
    events(&[
        json!({"type": "response.created", "response": {"id": "r", "status": "in_progress", "output": []}}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": item}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed",
               "response": {"id": "r", "status": "completed", "output": [item], "usage": usage}}),
    ])
}
