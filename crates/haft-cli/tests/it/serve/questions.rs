//! Questions of other processes, answered by the API.

use std::io::BufRead as _;

use haft_ledger::Ledger;
use serde_json::{Value, json};

use crate::fixture::cli::CliFixture;
use crate::fixture::http_client::EventStream;
use crate::fixture::serve::{ACT, APPROVE, ReservedPort, ServeFixture, ServeProcess, VIEW};
use crate::fixture::stdio_client::ServedClient;
use crate::fixture::wait_until;

/// A client that cannot ask its user.
fn client(cli: &CliFixture) -> ServedClient {
    let mut client = ServedClient::start(cli.command(&["mcp", "--permission-mode", "default"]));
    client.initialize(&json!({}));
    client
}

fn begin(client: &mut ServedClient, command: &str) -> u64 {
    client.request("tools/call", &json!({"name": "Bash", "arguments": {"command": command}}))
}

/// Whether a call failed, and what it said.
fn end(client: &mut ServedClient, id: u64) -> (bool, String) {
    let response = client.response(id);
    let result = &response["result"];
    (result["isError"] == true, result["content"][0]["text"].as_str().unwrap_or_default().to_owned())
}

/// A page that can answer; the calls of other processes wait for it.
fn page(fixture: &ServeFixture, server: &ServeProcess, token: &str) -> EventStream {
    let stream = server.events_as(token, None);
    let ledger = Ledger::open(fixture.cli.home()).unwrap();
    wait_until(|| ledger.is_anyone_answering().unwrap());
    stream
}

/// The next question that is open.
fn asked(stream: &mut EventStream) -> Value {
    stream.next_of("question", |question| question["is_open"] == true).data
}

fn answer(server: &ServeProcess, question: &Value, given: &Value) -> Value {
    server.post(&format!("/questions/{}/answer", question["id"]), given)
}

#[test]
fn a_call_waits_for_a_page_that_can_answer_and_is_released_by_it() {
    let fixture = ServeFixture::new();
    let server = fixture.serve();
    let mut client = client(&fixture.cli);
    // Without a page, or with one that only looks, no one can be asked.
    let _looking = server.events_as(VIEW, None);
    let denied = client.call("Bash", &json!({"command": "echo x > a"}));
    assert!(denied.0 && denied.1.contains("No one can be asked here"), "{denied:?}");
    let mut stream = page(&fixture, &server, APPROVE);
    let call = begin(&mut client, "echo x > a");
    let question = asked(&mut stream);
    assert_eq!(
        (&question["body"]["kind"], &question["body"]["tool"]),
        (&json!("permission"), &json!("Bash"))
    );
    assert_eq!(question["body"]["input"]["command"], "echo x > a");
    assert_eq!(question["workspace"], fixture.workspace());
    assert!(question["body"]["effects"][0].as_str().unwrap().contains("echo x > a"), "{question}");
    assert!(question["body"]["reason"].as_str().is_some_and(|reason| !reason.is_empty()));
    assert_eq!(server.get("/questions")["questions"], json!([question]));
    let now = server.get("/now");
    assert_eq!((&now["questions"], &now["sessions"][0]["id"]), (&json!([question]), &question["session"]));
    assert!(!fixture.cli.path("a").exists());
    let path = format!("/questions/{}/answer", question["id"]);
    let allow = json!({"answer": "allow"});
    assert_eq!(server.api(APPROVE, "POST", &path, Some(&allow)).status, 200);
    assert!(!end(&mut client, call).0);
    assert_eq!(fixture.cli.read("a"), "x\n");
    let closed = stream.next_of("question", |question| question["is_open"] == false).data;
    assert_eq!((&closed["id"], &closed["answered_by"]), (&question["id"], &json!("a person on Haft's page")));
    let id = server.get("/calls")["calls"][0]["id"].clone();
    let decision = server.get(&format!("/calls/{id}"))["decision"].clone();
    assert!(decision["reason"].as_str().unwrap().contains("a person on Haft's page"), "{decision}");
    // A later answer is told who was first.
    let second = server.refused(409, &path, &json!({"answer": "deny", "reason": "no"}));
    assert!(second.message().contains("a person on Haft's page"), "{}", second.text());
    assert_eq!(second.json()["error"]["details"]["answered_by"], "a person on Haft's page");
}

#[test]
fn answers_hold_for_a_call_a_session_or_for_good() {
    let fixture = ServeFixture::new();
    let server = fixture.serve();
    let mut stream = page(&fixture, &server, ACT);
    let mut first = client(&fixture.cli);
    let hold = |hold: &str| json!({"answer": "allow", "hold": hold});
    for answered in ["once", "once", "session"] {
        let call = begin(&mut first, "touch a");
        answer(&server, &asked(&mut stream), &hold(answered));
        assert!(!end(&mut first, call).0);
    }
    // From now on the session's own rule allows it, but only in this session.
    let call = begin(&mut first, "touch a");
    assert!(!end(&mut first, call).0);
    let mut second = client(&fixture.cli);
    let call = begin(&mut second, "touch a");
    let question = asked(&mut stream);
    assert_ne!(question["session"], Value::Null);
    // Changing settings needs the role Act.
    let path = format!("/questions/{}/answer", question["id"]);
    assert_eq!(server.api(APPROVE, "POST", &path, Some(&hold("always"))).status, 403);
    let done = answer(&server, &question, &hold("always"));
    assert!(!end(&mut second, call).0);
    let rule = question["body"]["rule"].as_str().unwrap();
    assert!(done["rule_added"].as_str().unwrap().contains(rule), "{done}");
    let settings = std::fs::read_to_string(fixture.cli.config()).unwrap();
    assert!(settings.contains(rule), "{settings}");
    let mut third = client(&fixture.cli);
    let call = begin(&mut third, "touch a");
    assert!(!end(&mut third, call).0);
}

#[test]
fn a_denial_tells_the_agent_why_and_wrong_answers_change_nothing() {
    let fixture = ServeFixture::new();
    let server = fixture.serve();
    let mut stream = page(&fixture, &server, ACT);
    let mut client = client(&fixture.cli);
    let call = begin(&mut client, "echo x > a");
    let question = asked(&mut stream);
    let path = format!("/questions/{}/answer", question["id"]);
    for wrong in [
        json!({}),
        json!({"answer": "maybe"}),
        json!({"answer": "allow", "hold": "forever"}),
        json!({"answer": "choices", "choices": [["Red"]]}),
        json!({"answer": "allow", "input": {"command": "rm -rf /"}}),
    ] {
        server.refused(400, &path, &wrong);
    }
    server.refused(404, "/questions/999/answer", &json!({"answer": "allow"}));
    assert_eq!(server.get("/questions")["questions"][0]["is_open"], true);
    answer(&server, &question, &json!({"answer": "deny", "reason": "use <b>tea</b>, not coffee"}));
    let (failed, said) = end(&mut client, call);
    assert!(failed && said.contains("use <b>tea</b>, not coffee"), "{said}");
    assert!(!fixture.cli.path("a").exists());
    assert_eq!(server.get("/questions")["questions"], json!([]));
}

#[test]
fn of_many_answers_at_once_one_counts() {
    let fixture = ServeFixture::new();
    let server = fixture.serve();
    let mut stream = page(&fixture, &server, ACT);
    let mut client = client(&fixture.cli);
    let call = begin(&mut client, "echo x > a");
    let path = format!("/questions/{}/answer", asked(&mut stream)["id"]);
    let given = [json!({"answer": "allow"}), json!({"answer": "deny"})];
    let statuses: Vec<(bool, u16)> = std::thread::scope(|scope| {
        let ask =
            |at: usize| (at.is_multiple_of(2), server.api(ACT, "POST", &path, Some(&given[at % 2])).status);
        let asked: Vec<_> = (0..8).map(|at| scope.spawn(move || ask(at))).collect();
        asked.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let won: Vec<bool> =
        statuses.iter().filter(|(_, status)| *status == 200).map(|(allowed, _)| *allowed).collect();
    assert_eq!(won.len(), 1, "{statuses:?}");
    assert!(statuses.iter().all(|(_, status)| matches!(status, 200 | 409)), "{statuses:?}");
    assert_eq!(end(&mut client, call).0, !won[0]);
    assert_eq!(fixture.cli.path("a").exists(), won[0]);
}

/// A process that asks whether it may run a command.
#[cfg(target_os = "linux")]
fn asking_process(cli: &CliFixture) -> std::process::Child {
    use std::io::Write as _;
    let mut command = cli.command(&["mcp", "--permission-mode", "default"]);
    let mut child =
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
    let send = |message: Value| writeln!(child.stdin.as_ref().unwrap(), "{message}").unwrap();
    let client = json!({"name": "test", "version": "1"});
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    send(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}));
    lines.next().unwrap().unwrap();
    let call = json!({"name": "Bash", "arguments": {"command": "echo x > a"}});
    send(json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}));
    child
}

#[test]
#[cfg(target_os = "linux")]
fn a_question_ends_with_the_process_that_asked() {
    let fixture = ServeFixture::new();
    let server = fixture.serve();
    let mut stream = page(&fixture, &server, ACT);
    let mut child = asking_process(&fixture.cli);
    let question = asked(&mut stream);
    child.kill().unwrap();
    child.wait().unwrap();
    let closed = stream.next_of("question", |question| question["is_open"] == false).data;
    assert_eq!((&closed["id"], &closed["answered_by"]), (&question["id"], &Value::Null));
    let late =
        server.refused(409, &format!("/questions/{}/answer", question["id"]), &json!({"answer": "allow"}));
    assert!(late.message().contains("withdrawn"), "{}", late.text());
    assert!(!fixture.cli.path("a").exists());
}

#[test]
#[cfg(target_os = "linux")]
fn a_question_of_a_dead_process_cannot_be_answered_without_a_page() {
    let fixture = ServeFixture::new();
    let server = fixture.serve();
    let mut stream = page(&fixture, &server, ACT);
    let mut child = asking_process(&fixture.cli);
    let question = asked(&mut stream);
    // A server without a page does not look for processes that have died.
    server.ends();
    child.kill().unwrap();
    child.wait().unwrap();
    let server = fixture.serve();
    let given = json!({"answer": "allow", "hold": "always"});
    let late = server.refused(409, &format!("/questions/{}/answer", question["id"]), &given);
    assert!(late.message().contains("withdrawn"), "{}", late.text());
    assert!(!fixture.cli.config().exists(), "a rule was added");
}

#[test]
fn a_call_that_waits_survives_the_death_of_the_server() {
    let fixture = ServeFixture::new();
    let port = ReservedPort::new();
    let server = fixture.serve_at(port.number);
    let mut stream = page(&fixture, &server, ACT);
    let mut client = client(&fixture.cli);
    let call = begin(&mut client, "echo x > a");
    let question = asked(&mut stream);
    let last = server.get("/meta")["position"].as_u64().unwrap();
    server.kill();
    let server = fixture.serve_at(port.number);
    let mut stream = server.events(Some(last));
    assert_eq!(server.get("/questions")["questions"], json!([question]));
    answer(&server, &question, &json!({"answer": "allow"}));
    assert!(!end(&mut client, call).0);
    assert_eq!(fixture.cli.read("a"), "x\n");
    stream.next_of("question", |event| event["id"] == question["id"] && event["is_open"] == false);
}

#[test]
fn choices_are_answered_with_labels_or_own_words() {
    let fixture = ServeFixture::new();
    let server = fixture.serve();
    let mut stream = page(&fixture, &server, APPROVE);
    let mut client = ServedClient::start(fixture.cli.command(&["mcp", "--tools", "AskUserQuestion"]));
    client.initialize(&json!({}));
    let choice = |label: &str| json!({"label": label, "description": label});
    let arguments = json!({"questions": [{"question": "Which colour?", "header": "Colour", "multiSelect": false,
        "options": [choice("Red"), choice("Blue")]}]});
    let call = client.request("tools/call", &json!({"name": "AskUserQuestion", "arguments": arguments}));
    let question = asked(&mut stream);
    assert_eq!(question["body"]["kind"], "choices");
    assert_eq!(question["body"]["questions"][0]["question"], "Which colour?");
    let path = format!("/questions/{}/answer", question["id"]);
    server.refused(400, &path, &json!({"answer": "allow"}));
    server.refused(400, &path, &json!({"answer": "choices", "choices": []}));
    answer(&server, &question, &json!({"answer": "choices", "choices": [["Green, please"]]}));
    let (failed, said) = end(&mut client, call);
    assert!(!failed && said.contains("Green, please"), "{said}");
}
