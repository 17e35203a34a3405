//! Runs that the API starts, in their own processes and with a model on this machine.

use std::io::Write as _;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use haft_ledger::{EventLog as _, Expected, Ledger, NewSession};
use serde_json::{Value, json};

use super::content::all;
use crate::fixture::http_client::EventStream;
use crate::fixture::http_server::{Server, answer};
use crate::fixture::scripted_model::ScriptedModel;
use crate::fixture::serve::{ACT, ReservedPort, ServeFixture, ServeProcess};
use crate::fixture::wait_until;

/// Settings for a model at this address.
fn settings(url: &str) -> String {
    format!(
        "[model]\nprovider = \"compatible\"\nname = \"tiny\"\nwire = \"openai-chat\"\nbase_url = \"{url}\"\n"
    )
}

fn with_model(url: &str) -> ServeFixture {
    let fixture = ServeFixture::new();
    std::fs::write(fixture.cli.config(), settings(url)).unwrap();
    fixture
}

fn start(server: &ServeProcess, prompt: &str) -> String {
    server.post("/runs", &json!({ "prompt": prompt }))["session"].as_str().unwrap().to_owned()
}

/// Waits until no process drives the run.
fn ended(stream: &mut EventStream, session: &str) {
    stream.next_of("driver", |driver| driver["session"] == session && driver["is_driven"] == false);
}

fn roles(server: &ServeProcess, session: &str) -> Vec<String> {
    let messages = server.get(&format!("/sessions/{session}/messages"));
    assert_eq!(messages["more"], false);
    all(&messages["messages"], "role").iter().map(|role| role.as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_run_starts_and_goes_on_in_processes_of_its_own() {
    let model = ScriptedModel::for_haft(vec![("Bash", json!({"command": "echo tea > a.txt"}))]);
    let fixture = with_model(&model.url());
    let server = fixture.serve();
    let provider = server.get("/meta")["providers"].as_array().unwrap().clone();
    let ours = provider.iter().find(|provider| provider["is_default"] == true).unwrap();
    assert_eq!(
        (&ours["name"], &ours["model"], &ours["is_ready"]),
        (&json!("compatible"), &json!("tiny"), &json!(true))
    );
    let mut stream = server.events(None);
    let session = start(&server, "Make tea.");
    let first = stream.next_of("message", |message| message["session"] == session.as_str()).data;
    assert_eq!((&first["message"]["role"], &first["message"]["text"]), (&json!("user"), &json!("Make tea.")));
    stream.next_of("call", |call| call["session"] == session.as_str() && call["state"] == "completed");
    let last = stream.next_of("message", |message| message["message"]["role"] == "end").data;
    assert_eq!(last["session"], session.as_str());
    ended(&mut stream, &session);
    assert_eq!(fixture.cli.read("a.txt"), "tea\n");
    assert_eq!(roles(&server, &session), ["user", "assistant", "assistant", "end"]);
    let detail = server.get(&format!("/sessions/{session}"));
    assert_eq!(detail["session"]["title"], "Make tea.");
    assert_eq!(
        (&detail["run"]["turns"], &detail["run"]["in_turn"], &detail["run"]["stopped"]),
        (&json!(1), &json!(false), &Value::Null)
    );
    assert_eq!((&detail["run"]["provider"], &detail["run"]["model"]), (&json!("compatible"), &json!("tiny")));
    let messages = server.get(&format!("/sessions/{session}/messages"));
    let call = &messages["messages"][1]["calls"][0];
    assert_eq!((&call["tool"], &call["about"]), (&json!("Bash"), &json!("echo tea > a.txt")));
    assert_eq!(server.get(&format!("/sessions/{session}/calls"))["calls"][0]["call_id"], call["call_id"]);

    let path = format!("/sessions/{session}/prompt");
    assert_eq!(server.post(&path, &json!({"prompt": "And now?"}))["session"], session.as_str());
    ended(&mut stream, &session);
    assert_eq!(
        roles(&server, &session),
        ["user", "assistant", "assistant", "end", "user", "assistant", "end"]
    );
    let rest = server.get(&format!("/sessions/{session}/messages?limit=2&after={}", messages["next"]));
    assert_eq!(
        (all(&rest["messages"], "role"), &rest["more"]),
        (vec![&json!("user"), &json!("assistant")], &json!(true))
    );
    let nothing = server.refused(409, &format!("/sessions/{session}/interrupt"), &json!({}));
    assert!(nothing.message().contains("nothing to interrupt"), "{}", nothing.text());
    for (path, body) in
        [("/runs", json!({"prompt": " "})), (path.as_str(), json!({"prompt": ""})), ("/runs", json!({}))]
    {
        server.refused(400, path, &body);
    }
    server.refused(404, "/sessions/nowhere/prompt", &json!({"prompt": "x"}));
}

#[test]
#[cfg(target_os = "linux")]
fn a_turn_is_interrupted_and_goes_on_with_the_next_message() {
    let model = ScriptedModel::for_haft(vec![("Bash", json!({"command": "echo begun > begun; sleep 1000"}))]);
    let fixture = with_model(&model.url());
    let server = fixture.serve();
    let mut stream = server.events(None);
    let session = start(&server, "Sleep.");
    wait_until(|| fixture.cli.path("begun").exists());
    let detail = server.get(&format!("/sessions/{session}"));
    assert_eq!((&detail["session"]["is_driven"], &detail["run"]["in_turn"]), (&json!(true), &json!(true)));
    assert_eq!(detail["run"]["can_interrupt"], true);
    let path = format!("/sessions/{session}/prompt");
    let busy = server.refused(409, &path, &json!({"prompt": "Quick."}));
    assert!(busy.message().contains("busy"), "{}", busy.text());
    // It takes no body, and therefore no content type.
    let interrupt = || {
        let token = format!("Authorization: Bearer {ACT}");
        server.raw("POST", &format!("/api/v1/sessions/{session}/interrupt"), &[&token], b"").status
    };
    // A second signal would end the process before it has recorded the end of the turn.
    assert_eq!((interrupt(), interrupt()), (200, 409));
    ended(&mut stream, &session);
    let run = server.get(&format!("/sessions/{session}"))["run"].clone();
    assert_eq!((&run["in_turn"], &run["can_interrupt"]), (&json!(false), &json!(false)));
    assert!(run["stopped"].as_str().is_some_and(|why| !why.is_empty()), "{run}");
    server.post(&path, &json!({"prompt": "Go on."}));
    ended(&mut stream, &session);
    assert_eq!(server.get(&format!("/sessions/{session}"))["run"]["stopped"], Value::Null);
}

#[test]
#[cfg(target_os = "linux")]
fn a_subagent_is_interrupted_with_the_session_that_started_it() {
    // A subagent has no tool Agent, so its second call is the one that takes long.
    let agent = json!({"description": "sleep", "prompt": "Sleep.", "subagent_type": "general-purpose"});
    let sleep = json!({"command": "echo begun > begun; sleep 1000"});
    let model = ScriptedModel::for_haft(vec![("Agent", agent), ("Bash", sleep)]);
    let fixture = with_model(&model.url());
    let server = fixture.serve();
    let mut stream = server.events(None);
    let session = start(&server, "Have someone sleep.");
    wait_until(|| fixture.cli.path("begun").exists());
    let subagent = server.get(&format!("/sessions/{session}"))["agents"][0]["session"].clone();
    assert_eq!(subagent["is_driven"], true, "{subagent}");
    let path = format!("/sessions/{}/interrupt", subagent["id"].as_str().unwrap());
    let refused = server.refused(409, &path, &json!({}));
    assert!(refused.message().contains(&session), "{}", refused.text());
    let can_interrupt = |id: &str| server.get(&format!("/sessions/{id}"))["run"]["can_interrupt"] == true;
    assert_eq!([can_interrupt(&session), can_interrupt(subagent["id"].as_str().unwrap())], [true, false]);
    server.post(&format!("/sessions/{session}/interrupt"), &json!({}));
    ended(&mut stream, &session);
}

#[test]
#[cfg(target_os = "linux")]
fn a_conversation_of_a_channel_is_interrupted_unless_the_gateway_drives_it() {
    let call = |file: &str| ("Bash", json!({"command": format!("echo begun > {file}; sleep 1000")}));
    let model = ScriptedModel::for_haft(vec![call("first"), call("second")]);
    let fixture = with_model(&model.url());
    let server = fixture.serve();
    let mut stream = server.events(None);
    let session = start(&server, "Sleep.");
    wait_until(|| fixture.cli.path("first").exists());
    server.post(&format!("/sessions/{session}/interrupt"), &json!({}));
    ended(&mut stream, &session);
    // A conversation that had the same turn.
    let ledger = Ledger::open(fixture.cli.home()).unwrap();
    let workspace = fixture.cli.root().canonicalize().unwrap();
    let new = NewSession {
        workspace: workspace.clone(),
        dialect: "claude".to_owned(),
        entry_point: "gateway".to_owned(),
    };
    let conversation = ledger.conversation("hook:c", &new).unwrap();
    for event in ledger.read(&session, 1, 1_000).unwrap() {
        ledger.append(&conversation, Expected::Any, &event.body).unwrap();
    }
    server.post(&format!("/sessions/{conversation}/prompt"), &json!({"prompt": "Sleep."}));
    wait_until(|| fixture.cli.path("second").exists());
    let inbox = ledger.inbox(&workspace).unwrap();
    let message = inbox.accept("hook", "c", "1", None, "Sleep.").unwrap().unwrap();
    inbox.begin(message, 1).unwrap();
    let interrupt = format!("/sessions/{conversation}/interrupt");
    let refused = server.refused(409, &interrupt, &json!({}));
    assert!(refused.message().contains("haft gateway"), "{}", refused.text());
    let run = server.get(&format!("/sessions/{conversation}"))["run"].clone();
    assert_eq!((&run["in_turn"], &run["can_interrupt"]), (&json!(true), &json!(false)));
    // Without such a message, the run is driven by the process that the page started.
    inbox.finish(message).unwrap();
    server.post(&interrupt, &json!({}));
    ended(&mut stream, &conversation);
}

#[test]
fn models_are_shown_attached_pictures_and_texts() {
    let model = ScriptedModel::for_haft(Vec::new());
    let fixture = with_model(&model.url());
    let server = fixture.serve();
    let base64 = |bytes: &[u8]| base64::engine::general_purpose::STANDARD.encode(bytes);
    let png = base64(b"\x89PNG\r\n\x1a\n0123456789");
    let attachments = json!([
        {"name": "notes.txt", "data": base64("<the & notes>".as_bytes())},
        {"name": "pixel.png", "data": png},
    ]);
    let mut stream = server.events(None);
    let run = server.post("/runs", &json!({"prompt": "Look.", "attachments": attachments}));
    let session = run["session"].as_str().unwrap();
    ended(&mut stream, session);
    let asked = model.requests().iter().map(Value::to_string).collect::<String>();
    for part in ["Look.", "<the & notes>", "notes.txt", png.as_str(), "image/png"] {
        assert!(asked.contains(part), "{part}: {asked}");
    }
    assert_eq!(server.get(&format!("/sessions/{session}/messages"))["messages"][0]["images"], 1);
    let one = json!({"name": "x", "data": base64(b"text")});
    for (attachments, said) in [
        (json!([{"name": "a.zip", "data": base64(b"PK\x03\x04\0\0")}]), "only text and images"),
        (json!([{"name": "a", "data": "not base64!"}]), "not Base64"),
        (json!(vec![one; 21]), "at most 20"),
    ] {
        let refused = server.refused(400, "/runs", &json!({"prompt": "x", "attachments": attachments}));
        assert!(refused.message().contains(said), "{}", refused.text());
    }
    assert_eq!(server.get("/sessions")["sessions"].as_array().unwrap().len(), 1);
}

#[test]
fn what_a_provider_says_when_it_fails_is_said() {
    let body = json!({"error": {"message": "The model `tiny` does not exist here.", "type": "invalid_request_error"}});
    let failing = Server::start(move |_| {
        answer("400 Bad Request", "Content-Type: application/json\r\n", body.to_string())
    });
    let fixture = with_model(&failing.url(""));
    let server = fixture.serve();
    let mut stream = server.events(None);
    let session = start(&server, "Hello?");
    ended(&mut stream, &session);
    let run = server.get(&format!("/sessions/{session}"))["run"].clone();
    assert!(run["stopped"].as_str().unwrap().contains("does not exist here"), "{run}");
    // What fails before the run begins is reported in the answer.
    for (wrong, status, said) in [
        (json!({"prompt": "x", "provider": "gemini", "model": "m"}), 400, "GEMINI_API_KEY"),
        (json!({"prompt": "x", "provider": "nowhere"}), 400, "nowhere"),
        (json!({"prompt": "x", "permission_mode": "whatever"}), 400, "whatever"),
        (json!({"prompt": "x", "workspace": "/nonexistent/folder"}), 422, "/nonexistent/folder"),
    ] {
        let refused = server.refused(status, "/runs", &wrong);
        assert!(refused.message().contains(said), "{}", refused.text());
    }
}

#[test]
fn a_run_that_cannot_be_read_is_the_fault_of_the_server() {
    let fixture = ServeFixture::new();
    let ledger = Ledger::open(fixture.cli.home()).unwrap();
    let new = NewSession {
        workspace: fixture.cli.root().to_owned(),
        dialect: "claude".to_owned(),
        entry_point: "test".to_owned(),
    };
    let session = ledger.start_session(&new).unwrap();
    ledger.append(&session, Expected::Any, &json!({"type": "of a later version"})).unwrap();
    let server = fixture.serve();
    let failed = server.api(ACT, "GET", &format!("/sessions/{session}"), None);
    assert_eq!(failed.status, 500, "{}", failed.text());
}

#[test]
#[cfg(target_os = "linux")]
fn a_run_outlives_the_server_that_started_it() {
    let command = "echo begun > begun; until [ -e go-on ]; do sleep 0.02; done; echo tea > a.txt";
    let model = ScriptedModel::for_haft(vec![("Bash", json!({ "command": command }))]);
    let fixture = with_model(&model.url());
    let port = ReservedPort::new();
    let server = fixture.serve_at(port.number);
    let session = start(&server, "Make tea.");
    wait_until(|| fixture.cli.path("begun").exists());
    let position = server.get("/meta")["position"].as_u64();
    server.kill();
    fixture.cli.write("go-on", "");
    wait_until(|| fixture.cli.path("a.txt").exists());
    let server = fixture.serve_at(port.number);
    ended(&mut server.events(position), &session);
    assert_eq!(roles(&server, &session), ["user", "assistant", "assistant", "end"]);
    assert_eq!(server.get(&format!("/sessions/{session}"))["run"]["stopped"], Value::Null);
}

/// A model whose answer comes in parts, each when the test says so.
struct PartwiseModel {
    server: Server,
    go_on: Sender<()>,
}

impl PartwiseModel {
    fn start(parts: &'static [&'static str]) -> Self {
        let (go_on, gate) = channel();
        let gate: Arc<Mutex<Receiver<()>>> = Arc::new(Mutex::new(gate));
        let server = Server::stream(move |_, stream| {
            let _ = stream.write_all(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n",
            );
            for part in parts {
                let choice = json!({"index": 0, "delta": {"content": part}, "finish_reason": null});
                let chunk = json!({"id": "c", "object": "chat.completion.chunk", "model": "tiny", "choices": [choice]});
                let _ = write!(stream, "data: {chunk}\n\n").and_then(|()| stream.flush());
                let _ = gate.lock().unwrap().recv();
            }
            let choice = json!({"index": 0, "delta": {}, "finish_reason": "stop"});
            let end = json!({"id": "c", "object": "chat.completion.chunk", "model": "tiny", "choices": [choice],
                             "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}});
            let _ = write!(stream, "data: {end}\n\ndata: [DONE]\n\n");
        });
        Self { server, go_on }
    }
}

#[test]
fn an_answer_is_seen_while_it_is_written() {
    let model = PartwiseModel::start(&["Hello", ", €uro", "."]);
    let fixture = with_model(&model.server.url(""));
    let server = fixture.serve();
    let mut stream = server.events(None);
    let session = start(&server, "Hello?");
    let mut text = String::new();
    for expected in ["Hello", "Hello, €uro", "Hello, €uro."] {
        while text != expected {
            let part = stream.next_of("answer", |part| part["session"] == session.as_str()).data;
            assert_eq!(part["from"].as_u64(), Some(text.len() as u64), "{part}");
            text += part["text"].as_str().unwrap();
        }
        let so_far = json!({"from": 0, "next": text.len(), "text": text});
        assert_eq!(server.get(&format!("/sessions/{session}"))["answer"], so_far);
        model.go_on.send(()).unwrap();
    }
    let whole = stream.next_of("message", |message| message["message"]["role"] == "assistant").data;
    assert_eq!(whole["message"]["text"], "Hello, €uro.");
    ended(&mut stream, &session);
    assert_eq!(server.get(&format!("/sessions/{session}"))["answer"], Value::Null);
}
