//! What tools need from the host: answers of the user, agents, servers, channels, and notes of a session.

mod program;

use std::sync::{Arc, Mutex};

use haft::{
    AgentReport, AgentRequest, Call, CallOptions, CallResult, Cancel, ErrorKind, Execution, Host, Output,
    PlanReady, Progress, Resource, Runtime, ToolError, UserQuestion, Value, json,
};
use tempfile::TempDir;

/// A host that answers, and remembers what it was asked.
#[derive(Default)]
struct RecordingHost {
    asked: Mutex<Vec<UserQuestion>>,
    ordered: Mutex<Vec<AgentRequest>>,
    plans: Mutex<Vec<PlanReady>>,
    told: Mutex<Vec<(String, Value)>>,
}

impl Host for RecordingHost {
    fn ask(&self, questions: &[UserQuestion], _: &Cancel) -> Result<Vec<Vec<String>>, ToolError> {
        self.asked.lock().unwrap().extend_from_slice(questions);
        let answer = |question: &UserQuestion| {
            let labels = question.choices.iter().map(|choice| choice.label.clone());
            labels.take(if question.several { 2 } else { 1 }).collect()
        };
        Ok(questions.iter().map(answer).collect())
    }

    fn agent(
        &self,
        order: &AgentRequest,
        _: &dyn Fn(Progress),
        _: &Cancel,
    ) -> Result<AgentReport, ToolError> {
        self.ordered.lock().unwrap().push(order.clone());
        let said = (!order.background).then(|| format!("did {}", order.prompt));
        Ok(AgentReport { id: "agent_7".into(), said, turns: 3, tokens: 99 })
    }

    fn plan_ready(&self, plan: &PlanReady, _: &Cancel) -> Result<String, ToolError> {
        self.plans.lock().unwrap().push(plan.clone());
        let good = plan.plan.as_deref() != Some("bad");
        if good { Ok("go".to_owned()) } else { Err(ToolError::denied("not so")) }
    }

    fn resources(&self, server: Option<&str>) -> Result<Vec<Resource>, ToolError> {
        let server = server.unwrap_or("notes").to_owned();
        let (uri, name) = ("note://1".to_owned(), "One".to_owned());
        let media_type = Some("text/plain".to_owned());
        Ok(vec![Resource { server, uri, name, description: None, media_type }])
    }

    fn resource(&self, server: &str, uri: &str) -> Result<Output, ToolError> {
        Ok(Output::text(format!("{server} {uri}")))
    }

    fn notify(&self, topic: &str, facts: &Value) {
        self.told.lock().unwrap().push((topic.to_owned(), facts.clone()));
    }
}

struct Stage {
    host: Arc<RecordingHost>,
    runtime: Runtime,
    _held: (TempDir, TempDir),
}

impl Stage {
    fn new() -> Self {
        let held = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let host = Arc::new(RecordingHost::default());
        let builder = Runtime::builder().workspace(held.0.path()).home(held.1.path()).dialect(haft::claude());
        let runtime = builder.host(Arc::clone(&host) as _).build().unwrap();
        Self { host, runtime, _held: held }
    }

    async fn call(&self, tool: &str, arguments: Value) -> CallResult {
        self.runtime.call(tool, arguments).await
    }
}

fn question(text: &str, several: bool) -> Value {
    let option = |label: &str| json!({"label": label, "description": format!("it is {label}")});
    json!({"question": text, "header": "Colour", "options": [option("Red"), option("Blue")], "multiSelect": several})
}

#[tokio::test]
async fn questions_reach_the_host_and_answers_come_back_by_question() {
    let fixture = Stage::new();
    let arguments = json!({"questions": [question("Which?", false), question("Which ones?", true)]});
    let result = fixture.call("AskUserQuestion", arguments).await;
    let structured = result.output.structured.clone().unwrap();
    assert_eq!(structured["answers"], json!({"Which?": "Red", "Which ones?": "Red, Blue"}));
    assert_eq!(result.output.as_text(), "Which?\n  Red\nWhich ones?\n  Red, Blue\n");
    let asked = fixture.host.asked.lock().unwrap();
    assert_eq!(
        (asked[0].header.as_str(), asked[0].choices[1].description.as_str()),
        ("Colour", "it is Blue")
    );
    assert_eq!((asked[0].several, asked[1].several), (false, true));
}

#[tokio::test]
async fn answers_that_are_known_already_are_not_asked_again() {
    let fixture = Stage::new();
    let known = json!({"Which?": "Green"});
    let arguments = json!({
        "questions": [question("Which?", false), question("And?", false)], "answers": known, "metadata": {"source": "x"},
    });
    let result = fixture.call("AskUserQuestion", arguments).await;
    assert_eq!(result.output.structured.unwrap()["answers"], json!({"Which?": "Green", "And?": "Red"}));
    assert_eq!(fixture.host.asked.lock().unwrap().len(), 1);
    let arguments = json!({"questions": [question("Which?", false)], "answers": known});
    assert!(!fixture.call("AskUserQuestion", arguments).await.output.is_error());
    assert_eq!(fixture.host.asked.lock().unwrap().len(), 1);
    let arguments = json!({"questions": [question("Which?", false)], "answers": {"Witch?": "x"}});
    let text = fixture.call("AskUserQuestion", arguments).await.output.as_text();
    assert!(text.contains("none of the questions; did you mean \"Which?\"?"), "{text}");
}

#[tokio::test]
async fn questions_are_held_to_their_limits() {
    let fixture = Stage::new();
    let with = |change: fn(&mut Value)| {
        let mut one = question("Which?", false);
        change(&mut one);
        json!({"questions": [one]})
    };
    let five: Vec<_> = (0..5).map(|n| question(&format!("{n}?"), false)).collect();
    let cases = [
        (json!({"questions": five}), "questions"),
        (json!({"questions": []}), "questions"),
        (json!({"questions": [question("a", false), question("a", false)]}), "asked twice"),
        (with(|one| one["header"] = json!("thirteen long")), "header"),
        (with(|one| one["options"] = json!([{"label": "a", "description": ""}])), "options"),
        (with(|one| one["options"] = json!(vec![json!({"label": "a", "description": ""}); 5])), "options"),
        (with(|one| one["options"] = json!(vec![json!({"label": "a", "description": ""}); 2])), "same label"),
        (with(|one| drop(one.as_object_mut().unwrap().shift_remove("multiSelect"))), "multiSelect"),
    ];
    for (arguments, words) in cases {
        let output = fixture.call("AskUserQuestion", arguments.clone()).await.output;
        assert_eq!(output.error_kind, Some(ErrorKind::InvalidArguments), "{arguments}");
        assert!(output.as_text().contains(words), "{words}: {}", output.as_text());
    }
    assert!(fixture.host.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn an_agent_gets_its_whole_order_and_its_report_comes_back() {
    let fixture = Stage::new();
    let arguments = json!({
        "description": "count", "prompt": "count files", "subagent_type": "Explore", "model": "haiku", "resume": "a1",
        "run_in_background": false, "max_turns": 5, "name": "n", "team_name": "t", "mode": "acceptEdits",
    });
    // `Task` is its older name.
    let result = fixture.call("Task", arguments).await;
    assert_eq!(result.output.as_text(), "did count files\n\nagentId: agent_7");
    let structured = result.output.structured.unwrap();
    assert_eq!((&structured["status"], &structured["agentId"]), (&json!("completed"), &json!("agent_7")));
    let some = |text: &str| Some(text.to_owned());
    let expected = AgentRequest {
        description: "count".into(),
        prompt: "count files".into(),
        kind: "Explore".into(),
        model: some("haiku"),
        resume: some("a1"),
        background: false,
        max_turns: Some(5),
        name: some("n"),
        team: some("t"),
        mode: some("acceptEdits"),
        trace: None,
    };
    let ordered = fixture.host.ordered.lock().unwrap()[0].clone();
    assert_eq!(AgentRequest { trace: None, ..ordered }, expected);
    let arguments =
        json!({"description": "d", "prompt": "p", "subagent_type": "s", "run_in_background": true});
    let result = fixture.call("Agent", arguments).await;
    assert_eq!(result.output.structured.as_ref().unwrap()["status"], "async_launched");
    assert!(result.output.as_text().ends_with("agent_7"));
    for (field, value) in
        [("model", json!("gpt")), ("mode", json!("wild")), ("max_turns", json!(0)), ("prompt", json!(" "))]
    {
        let mut arguments = json!({"description": "d", "prompt": "p", "subagent_type": "s"});
        arguments[field] = value;
        let output = fixture.call("Agent", arguments).await.output;
        assert_eq!(output.error_kind, Some(ErrorKind::InvalidArguments), "{field}");
    }
}

#[tokio::test]
async fn a_plan_is_approved_or_not_by_the_host() {
    let fixture = Stage::new();
    let arguments = json!({
        "plan": "good", "allowedPrompts": [{"tool": "Bash", "prompt": "run tests"}], "remoteSessionId": "x", "extra": 1,
    });
    assert_eq!(fixture.call("ExitPlanMode", arguments).await.output.as_text(), "go");
    let plan = PlanReady { plan: Some("good".into()), allow: vec![("Bash".into(), "run tests".into())] };
    assert_eq!(fixture.host.plans.lock().unwrap()[0], plan);
    let output = fixture.call("ExitPlanMode", json!({"plan": "bad"})).await.output;
    assert_eq!((output.error_kind, output.as_text().as_str()), (Some(ErrorKind::PermissionDenied), "not so"));
    let output = fixture
        .call("ExitPlanMode", json!({"allowedPrompts": [{"tool": "Read", "prompt": "x"}]}))
        .await
        .output;
    assert_eq!(output.error_kind, Some(ErrorKind::InvalidArguments));
}

#[tokio::test]
async fn an_approved_plan_ends_plan_mode_for_the_rest_of_the_session() {
    let held = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let builder = || {
        let builder = Runtime::builder().workspace(held.0.path()).home(held.1.path()).dialect(haft::claude());
        builder.permission_mode(haft::Mode::Plan).host(Arc::new(RecordingHost::default()))
    };
    let runtime = builder().build().unwrap();
    let write = || json!({"file_path": held.0.path().join("a.txt"), "content": "x"});
    let denied = Some(ErrorKind::PermissionDenied);
    assert_eq!(runtime.call("Write", write()).await.output.error_kind, denied);
    assert_eq!(runtime.call("ExitPlanMode", json!({"plan": "bad"})).await.output.error_kind, denied);
    assert_eq!(runtime.call("Write", write()).await.output.error_kind, denied, "it was not approved");
    let plan = json!({"plan": "good", "allowedPrompts": [{"tool": "Bash", "prompt": "run tests"}]});
    assert_eq!(runtime.call("ExitPlanMode", plan).await.output.error_kind, None);
    assert_eq!(runtime.call("Write", write()).await.output.error_kind, None);
    let ran = runtime.call("Bash", json!({"command": "true"})).await;
    assert_eq!(ran.receipt.decision.unwrap().rule.as_deref(), Some("Bash (the approved plan)"));
    // The same session in another process.
    let session = runtime.session().unwrap();
    let continued = builder().session(session).build().unwrap();
    assert_eq!(continued.call("Write", write()).await.output.error_kind, None);
    let other = builder().build().unwrap();
    assert_eq!(other.call("Write", write()).await.output.error_kind, denied);
}

#[tokio::test]
async fn resources_of_servers_are_listed_and_read() {
    let fixture = Stage::new();
    let result = fixture.call("ListMcpResources", json!({"server": "docs"})).await;
    assert_eq!(result.output.as_text(), "docs  note://1  One (text/plain)\n");
    let one = json!({"server": "docs", "uri": "note://1", "name": "One", "mimeType": "text/plain"});
    assert_eq!(result.output.structured.unwrap()["resources"], json!([one]));
    let read = fixture.call("ReadMcpResource", json!({"server": "docs", "uri": "note://1"})).await;
    assert_eq!(read.output.as_text(), "docs note://1");
}

#[tokio::test]
async fn without_a_host_each_tool_says_so() {
    let held = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let builder = Runtime::builder().workspace(held.0.path()).home(held.1.path());
    let runtime = builder.dialect(haft::claude()).build().unwrap();
    let agent = json!({"description": "d", "prompt": "p", "subagent_type": "s"});
    for (tool, arguments, words) in [
        ("AskUserQuestion", json!({"questions": [question("a", false)]}), "No one can answer"),
        ("Agent", agent, "Agents cannot be started here"),
        ("ExitPlanMode", json!({}), "no plan mode"),
        ("ListMcpResources", json!({}), "No MCP servers"),
        ("ReadMcpResource", json!({"server": "s", "uri": "u"}), "No MCP servers"),
        ("Config", json!({"setting": "dialect"}), "no settings here"),
    ] {
        let output = runtime.call(tool, arguments).await.output;
        assert_eq!(output.error_kind, Some(ErrorKind::ExecutionFailed), "{tool}");
        assert!(output.as_text().contains(words), "{tool}: {}", output.as_text());
    }
}

fn todo(content: &str, status: &str) -> Value {
    json!({"content": content, "status": status, "activeForm": format!("{content}ing")})
}

#[tokio::test]
async fn todos_are_kept_in_the_session_and_told_to_the_host() {
    let fixture = Stage::new();
    let (first, second) =
        (json!([todo("look", "in_progress")]), json!([todo("look", "completed"), todo("go", "pending")]));
    let one = fixture.call("TodoWrite", json!({"todos": first})).await;
    assert_eq!(one.output.structured.unwrap(), json!({"oldTodos": [], "newTodos": first}));
    let two = fixture.call("TodoWrite", json!({"todos": second})).await;
    let facts = json!({"oldTodos": first, "newTodos": second});
    assert_eq!(two.output.structured.as_ref().unwrap(), &facts);
    assert_eq!(two.output.as_text(), "The list has 1 pending, 0 in progress, 1 completed");
    assert_eq!(fixture.host.told.lock().unwrap()[1], ("todos".to_owned(), facts));
    let bad = fixture.call("TodoWrite", json!({"todos": [todo("x", "done")]})).await;
    assert_eq!(bad.output.error_kind, Some(ErrorKind::InvalidArguments));
    let three = fixture.call("TodoWrite", json!({"todos": []})).await;
    assert_eq!(three.output.structured.unwrap()["oldTodos"], second, "a call that failed left no note");
}

#[tokio::test]
async fn what_a_command_writes_reaches_its_watcher_while_it_runs() {
    let fixture = Stage::new();
    let heard = Arc::new(Mutex::new(String::new()));
    let keep = Arc::clone(&heard);
    let go = fixture.runtime.workspace().join("go");
    let open = go.clone();
    // The command ends only after its first words were heard.
    let watch = move |execution: &Execution| {
        if let Execution::Running { progress: Some(progress), .. } = execution {
            keep.lock().unwrap().push_str(progress.output.as_deref().unwrap_or_default());
            std::fs::write(&open, "").unwrap();
        }
    };
    let command = "echo first; until [ -e go ]; do :; done; printf last";
    let call = Call::new("c", "Bash", json!({"command": command}));
    let options = CallOptions { watch: Some(Arc::new(watch)), ..CallOptions::default() };
    let result = fixture.runtime.run(call, options).await;
    assert_eq!(result.output.as_text(), "first\nlast");
    assert_eq!(*heard.lock().unwrap(), "first\nlast");
}
