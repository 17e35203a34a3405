//! A program that drives Haft by JSON lines, as the SDKs do, and the order of what it reads.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use super::turn_model::{TurnModel, call, text};
use crate::fixture::cli::CliFixture;

/// The variable by which the SDKs ask for the state of the session.
const READS_STATE: &str = "CLAUDE_CODE_SDK_READS_SESSION_STATE";

/// Haft, driven over its standard input and output.
pub(super) struct StreamHost {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    /// What the program is asked when the test does not look: each request with this subtype gets this answer.
    answers: Vec<(&'static str, Value)>,
    last_id: u32,
}

/// The program with the flags that the SDKs give, in an environment with this model.
pub(super) fn command(cli: &CliFixture, model: &TurnModel, flags: &[&str]) -> Command {
    let base = ["--output-format", "stream-json", "--verbose", "--input-format", "stream-json"];
    let mut command = cli.command(&[&base[..], flags].concat());
    command.env("ANTHROPIC_BASE_URL", model.url()).env("ANTHROPIC_API_KEY", "test");
    command.env_remove(READS_STATE).env_remove("CLAUDE_CODE_ENTRYPOINT").stderr(Stdio::piped());
    command
}

impl StreamHost {
    pub(super) fn start(cli: &CliFixture, model: &TurnModel, flags: &[&str]) -> Self {
        Self::spawn(command(cli, model, flags))
    }

    pub(super) fn reading_state(cli: &CliFixture, model: &TurnModel, flags: &[&str]) -> Self {
        let mut command = command(cli, model, flags);
        command.env(READS_STATE, "1");
        Self::spawn(command)
    }

    pub(super) fn spawn(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, input, output, answers: Vec::new(), last_id: 0 }
    }

    /// From now on requests with this subtype get this answer.
    pub(super) fn answer_all(&mut self, subtype: &'static str, answer: Value) {
        self.answers.push((subtype, answer));
    }

    pub(super) fn send_line(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(format!("{line}\n").as_bytes()).and_then(|()| input.flush()).unwrap();
    }

    pub(super) fn send(&mut self, message: &Value) {
        self.send_line(&message.to_string());
    }

    pub(super) fn say(&mut self, words: &str) {
        self.send(&json!({"type": "user", "message": {"role": "user", "content": words}}));
    }

    pub(super) fn say_as(&mut self, uuid: &str, words: &str) {
        let message = json!({"role": "user", "content": words});
        self.send(&json!({"type": "user", "uuid": uuid, "message": message}));
    }

    /// Sends a request; returns its id.
    pub(super) fn request(&mut self, request: &Value) -> String {
        self.last_id += 1;
        let id = format!("test-{}", self.last_id);
        self.send(&json!({"type": "control_request", "request_id": id, "request": request}));
        id
    }

    pub(super) fn reply(&mut self, id: &str, answer: &Value) {
        let response = json!({"subtype": "success", "request_id": id, "response": answer});
        self.send(&json!({"type": "control_response", "response": response}));
    }

    /// The next message; `None` when the stream has ended.
    pub(super) fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        if self.output.read_line(&mut line).unwrap() == 0 {
            return None;
        }
        assert!(line.len() < 1 << 20, "a line of {} bytes", line.len());
        Some(serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}")))
    }

    /// The messages up to the one that `is_it`, which is the last one. Requests are answered as `answer_all` says.
    #[track_caller]
    pub(super) fn until(&mut self, is_it: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut seen = Vec::new();
        loop {
            let Some(message) = self.next() else { panic!("the stream has ended after {seen:#?}") };
            let is_last = is_it(&message);
            if message["type"] == "control_request" && !is_last {
                let subtype = message["request"]["subtype"].as_str().unwrap_or_default();
                let answer = self.answers.iter().find(|(of, _)| *of == subtype);
                if let Some((_, answer)) = answer {
                    let (id, answer) = (message["request_id"].as_str().unwrap().to_owned(), answer.clone());
                    self.reply(&id, &answer);
                }
            }
            seen.push(message);
            if is_last {
                return seen;
            }
        }
    }

    #[track_caller]
    pub(super) fn until_result(&mut self) -> Vec<Value> {
        self.until(|message| message["type"] == "result")
    }

    /// Sends a request and returns the answer to it: `response`, or the whole error.
    #[track_caller]
    pub(super) fn ask(&mut self, request: &Value) -> Value {
        let id = self.request(request);
        let is_it = |message: &Value| {
            message["type"] == "control_response" && message["response"]["request_id"] == id.as_str()
        };
        let last = self.until(is_it).pop().unwrap();
        match last["response"]["subtype"].as_str() {
            Some("success") => last["response"]["response"].clone(),
            _ => last["response"].clone(),
        }
    }

    #[track_caller]
    pub(super) fn initialize(&mut self, members: &Value) -> Value {
        let mut request = json!({"subtype": "initialize"});
        request.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        self.ask(&request)
    }

    /// The next question about a call: its id and what it says.
    #[track_caller]
    pub(super) fn question(&mut self, subtype: &str) -> (String, Value) {
        let last = self.until(|message| message["request"]["subtype"] == subtype).pop().unwrap();
        (last["request_id"].as_str().unwrap().to_owned(), last["request"].clone())
    }

    /// Sends nothing more.
    pub(super) fn close(&mut self) {
        self.input = None;
    }

    /// The program is gone without a word; waits for the end of Haft.
    pub(super) fn vanish(self) {
        let Self { mut child, input, output, .. } = self;
        drop((input, output));
        child.wait().unwrap();
    }

    /// Ends Haft with a signal while both streams are open and nothing is read; waits for the end.
    pub(super) fn terminate_unread(mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let _streams = (self.input.take(), self.output);
        self.child.wait().unwrap();
    }

    /// Sends nothing more and waits for the end: the remaining messages, the exit code, what was said on standard error.
    pub(super) fn end(mut self) -> (Vec<Value>, Option<i32>, String) {
        self.close();
        let mut rest = Vec::new();
        while let Some(message) = self.next() {
            rest.push(message);
        }
        let mut errors = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            std::io::Read::read_to_string(&mut stderr, &mut errors).unwrap();
        }
        (rest, self.child.wait().unwrap().code(), errors)
    }
}

/// The messages in short: their types, with subtypes and states.
pub(super) fn order(messages: &[Value]) -> Vec<String> {
    let word = |value: &Value| value.as_str().map(|word| format!("/{word}")).unwrap_or_default();
    let name = |message: &Value| {
        let subtype = match message["type"].as_str() {
            Some("control_request") => word(&message["request"]["subtype"]),
            Some("system") => word(&message["subtype"]) + &word(&message["state"]),
            _ => String::new(),
        };
        format!("{}{subtype}", message["type"].as_str().unwrap_or_default())
    };
    messages.iter().map(name).collect()
}

#[test]
fn messages_of_a_turn_with_a_question_come_in_claudes_order() {
    let cli = CliFixture::new();
    let bash = call("t1", "Bash", &json!({"command": "echo hello > made.txt"}));
    let model = TurnModel::start(vec![vec![text("Now."), bash], vec![text("Done.")]]);
    let mut host = StreamHost::reading_state(&cli, &model, &["--permission-prompt-tool", "stdio"]);
    host.answer_all("can_use_tool", json!({"behavior": "allow"}));
    host.answer_all("hook_callback", json!({}));
    let hooks = json!({"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["h0"]}]});
    host.initialize(&json!({ "hooks": hooks }));
    host.say("Go");
    let seen = host.until(|message| message["state"] == "idle");
    let expected = [
        "system/session_state_changed/running",
        "system/init",
        "assistant",
        "assistant",
        "system/session_state_changed/requires_action",
        "control_request/hook_callback",
        "system/session_state_changed/running",
        "system/session_state_changed/requires_action",
        "control_request/can_use_tool",
        "system/session_state_changed/running",
        "user",
        "assistant",
        "result",
        "system/session_state_changed/idle",
    ];
    assert_eq!(order(&seen), expected, "{seen:#?}");
    let question = &seen[8]["request"];
    assert_eq!(
        (&question["tool_name"], &question["tool_use_id"], &question["input"]["command"]),
        (&json!("Bash"), &json!("t1"), &json!("echo hello > made.txt"))
    );
    assert_eq!(seen[10]["tool_result_meta"][0]["permission_decision"]["source"], "user_temporary");
    assert_eq!(seen[10]["tool_use_result"]["stdout"], seen[10]["message"]["content"][0]["content"]);
    assert_eq!(seen[12]["usage"]["input_tokens"], 20);
    assert_eq!(cli.read("made.txt"), "hello\n");
    let (rest, code, errors) = host.end();
    assert_eq!((rest, code), (vec![], Some(0)), "{errors}");
}

#[test]
fn one_shot_stream_and_array_hold_the_same_messages_and_json_only_the_result() {
    let cli = CliFixture::new();
    let run = |flags: &[&str]| {
        let model = TurnModel::start(vec![vec![text("Yes.")]]);
        let mut command = cli.command(&[&["-p", "Hello"], flags].concat());
        command.env("ANTHROPIC_BASE_URL", model.url()).env("ANTHROPIC_API_KEY", "test");
        let output = command.output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    let lines = run(&["--output-format", "stream-json", "--verbose"]);
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(order(&lines), ["system/init", "assistant", "result"]);
    let array: Value = serde_json::from_str(&run(&["--output-format", "json", "--verbose"])).unwrap();
    assert_eq!(order(array.as_array().unwrap()), ["system/init", "assistant", "result"]);
    let result: Value = serde_json::from_str(&run(&["--output-format", "json"])).unwrap();
    assert_eq!(
        (&result["type"], &result["subtype"], &result["result"], &result["is_error"]),
        (&json!("result"), &json!("success"), &json!("Yes."), &json!(false))
    );
}

#[test]
fn partial_messages_are_the_events_of_the_answer() {
    let cli = CliFixture::new();
    let bash = call("t1", "Bash", &json!({"command": "true"}));
    let model = TurnModel::start(vec![vec![text("Now."), bash], vec![text("Done.")]]);
    let flags = ["--include-partial-messages", "--permission-mode", "bypassPermissions"];
    let mut host = StreamHost::start(&cli, &model, &flags);
    host.say("Go");
    let seen = host.until_result();
    let events: Vec<&str> = seen.iter().filter_map(|message| message["event"]["type"].as_str()).collect();
    let expected = [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ];
    assert_eq!(events, expected);
}

#[test]
fn questions_of_a_tool_are_answered_by_the_program() {
    let cli = CliFixture::new();
    let question = json!({"question": "Tea?", "header": "Tea", "multiSelect": false, "options": [
        {"label": "Yes", "description": "tea"}, {"label": "No", "description": "no tea"},
    ]});
    let asks = call("t1", "AskUserQuestion", &json!({"questions": [question]}));
    let model = TurnModel::start(vec![vec![asks], vec![text("Done.")]]);
    let mut host = StreamHost::start(&cli, &model, &["--permission-prompt-tool", "stdio"]);
    host.say("Go");
    let (id, request) = host.question("can_use_tool");
    assert_eq!((&request["tool_name"], &request["tool_use_id"]), (&json!("AskUserQuestion"), &json!("t1")));
    let mut input = request["input"].clone();
    input["answers"] = json!({"Tea?": "Yes"});
    host.reply(&id, &json!({"behavior": "allow", "updatedInput": input}));
    host.until_result();
    let told = model.requests()[1].to_string();
    assert!(told.contains("Tea?\\\\n  Yes") || told.contains("Tea?\\n  Yes"), "{told}");
}

#[test]
fn tools_that_ask_the_user_are_offered_only_with_a_program_that_answers() {
    let cli = CliFixture::new();
    let model = TurnModel::start(vec![vec![text("Hi.")]]);
    for (flags, is_offered) in [
        (&["--permission-prompt-tool", "stdio"][..], true),
        (&[], false),
        (&["--permission-prompts=none"], false),
    ] {
        let mut host = StreamHost::start(&cli, &model, flags);
        host.say("Go");
        let seen = host.until_result();
        let tools = seen[0]["tools"].as_array().unwrap();
        assert_eq!(tools.contains(&json!("AskUserQuestion")), is_offered, "{flags:?}");
    }
}

#[test]
fn model_chosen_by_the_program_answers_the_next_turn() {
    let cli = CliFixture::new();
    let model = TurnModel::start(vec![vec![text("Hi.")]]);
    let mut host = StreamHost::start(&cli, &model, &["--model", "claude-one"]);
    host.initialize(&json!({}));
    host.say("Go");
    host.until_result();
    assert_eq!(host.ask(&json!({"subtype": "set_model", "model": "claude-two"})), json!({}));
    host.say("Go");
    let seen = host.until_result();
    assert_eq!(seen[0]["model"], "claude-two");
    let asked: Vec<Value> = model.requests().iter().map(|request| request["model"].clone()).collect();
    assert_eq!(asked, ["claude-one", "claude-two"]);
}

#[test]
fn state_of_the_session_can_be_asked_for() {
    let cli = CliFixture::new();
    let model = TurnModel::start(vec![vec![text("Hi.")]]);
    let mut host = StreamHost::start(&cli, &model, &["--disallowedTools", "WebFetch"]);
    host.initialize(&json!({}));
    assert_eq!(host.ask(&json!({"subtype": "mcp_status"})), json!({"mcpServers": []}));
    let rules = host.ask(&json!({"subtype": "list_permission_rules"}));
    assert_eq!(rules["state"]["rules"][0]["rule"], "WebFetch", "{rules}");
    let mode = host.ask(&json!({"subtype": "set_permission_mode", "mode": "plan"}));
    assert_eq!(mode, json!({"mode": "plan"}));
    let status = host.until(|message| message["subtype"] == "status").pop().unwrap();
    assert_eq!(status["permissionMode"], "plan");
    host.say("Go");
    host.until_result();
    assert!(host.ask(&json!({"subtype": "get_session_cost"}))["text"].is_string());
    let usage = host.ask(&json!({"subtype": "get_context_usage"}));
    assert!(usage["totalTokens"].as_u64().unwrap() > 0, "{usage}");
    let stopped = host.ask(&json!({"subtype": "stop_task", "task_id": "none"}));
    assert_eq!(stopped["subtype"], "error", "{stopped}");
}
