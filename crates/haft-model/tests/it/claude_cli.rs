//! The `claude` program as a model.

use std::sync::Mutex;

use haft_model::{
    ClaudeCliModel, ClaudeCliResult, ClaudeCliSettings, ClaudeProgram, Conversation, Model, ModelErrorKind,
    ModelEvent, TurnOptions, TurnRequest,
};
use haft_tool::{Cancel, ErrorKind, ToolError, Value, json};

use crate::fixture::{answered, asked, tool};

type Runs = Mutex<Vec<(Vec<String>, String)>>;

struct Program<'a> {
    outputs: Mutex<Vec<Result<String, ToolError>>>,
    runs: &'a Runs,
}

impl ClaudeProgram for Program<'_> {
    fn run(&self, arguments: &[String], input: &str, _: &Cancel) -> Result<String, ToolError> {
        self.runs.lock().unwrap().push((arguments.to_vec(), input.to_owned()));
        self.outputs.lock().unwrap().remove(0)
    }
}

fn printed(subtype: &str, text: &str) -> String {
    json!({"type": "result", "subtype": subtype, "is_error": false, "result": text, "session_id": "s1",
        "total_cost_usd": 0.5, "usage": {"input_tokens": 2, "output_tokens": 3}})
    .to_string()
}

fn ask(
    outputs: Vec<Result<String, ToolError>>,
    conversation: &Conversation,
    runs: &Runs,
) -> (Result<haft_model::ModelResponse, haft_model::ModelError>, Vec<ModelEvent>) {
    let settings = ClaudeCliSettings {
        max_turns: Some(7),
        mcp_config: Some(json!({"mcpServers": {}})),
        ..ClaudeCliSettings::default()
    };
    let model = ClaudeCliModel::new(Program { outputs: Mutex::new(outputs), runs }, settings);
    let options = TurnOptions { model: Some("sonnet".to_owned()), ..TurnOptions::default() };
    let (tools, mut events) = ([tool("Read")], Vec::new());
    let request = TurnRequest { conversation, tools: &tools, options: &options };
    (model.respond(&request, &mut |event| events.push(event), &Cancel::new()), events)
}

#[test]
fn run_that_reached_its_limit_is_resumed() {
    let runs = Runs::default();
    let (result, events) = ask(
        vec![Ok(printed("error_max_turns", "")), Ok(printed("success", "Done."))],
        &asked("hello"),
        &runs,
    );
    let response = result.unwrap();
    assert_eq!((response.message.text().as_str(), response.usage.output), ("Done.", 6));
    assert!(events.iter().any(|event| matches!(event, ModelEvent::Notice { .. })));
    let made = runs.lock().unwrap().clone();
    let flag = |run: usize, name: &str| {
        let arguments = &made[run].0;
        arguments.iter().position(|argument| argument == name).map(|at| arguments[at + 1].clone())
    };
    assert_eq!(made[0].1, "hello");
    assert_eq!(
        (flag(0, "--max-turns").as_deref(), flag(0, "--model").as_deref()),
        (Some("7"), Some("sonnet"))
    );
    assert_eq!((flag(0, "--tools").as_deref(), flag(0, "--resume")), (Some(""), None));
    assert_eq!(flag(0, "--mcp-config").as_deref(), Some(r#"{"mcpServers":{}}"#));
    assert_eq!(flag(1, "--resume").as_deref(), Some("s1"));
}

#[test]
fn resuming_is_bounded() {
    let runs = Runs::default();
    let outputs = (0..9).map(|_| Ok(printed("error_max_turns", "so far"))).collect();
    let (result, _) = ask(outputs, &asked("hello"), &runs);
    assert_eq!((result.unwrap().message.text().as_str(), runs.lock().unwrap().len()), ("so far", 6));
}

#[test]
fn next_prompt_goes_to_the_same_session() {
    let runs = Runs::default();
    let (result, _) = ask(vec![Ok(printed("success", "Hi."))], &asked("hello"), &runs);
    let mut conversation = answered(asked("hello"), result.unwrap().message);
    conversation.say("more");
    ask(vec![Ok(printed("success", "Yes."))], &conversation, &runs).0.unwrap();
    let made = runs.lock().unwrap().clone();
    assert_eq!(made[1].1, "more");
    assert!(made[1].0.windows(2).any(|pair| pair == ["--resume", "s1"]));
}

#[test]
fn without_tools_the_program_has_none() {
    let arguments = ClaudeCliSettings { own_tools: true, ..ClaudeCliSettings::default() }
        .arguments(None, "", None, false);
    assert!(arguments.windows(2).any(|pair| pair == ["--allowedTools", ""]));
}

#[test]
fn output_is_read_in_both_forms_and_failures_are_told() {
    let list = json!([{"type": "system"}, {"type": "result", "subtype": "success", "result": "x"}]);
    assert_eq!(ClaudeCliResult::parse(&list.to_string()).unwrap().text, "x");
    assert_eq!(ClaudeCliResult::parse("not json"), None);
    let runs = Runs::default();
    let missing = Err(ToolError::new(ErrorKind::FileNotFound, "claude"));
    let failed: Value =
        json!({"type": "result", "subtype": "success", "is_error": true, "result": "Invalid key"});
    for (output, kind, words) in [
        (missing, ModelErrorKind::Settings, "Install Claude Code"),
        (Ok("oops".to_owned()), ModelErrorKind::Protocol, "claude -p hello"),
        (Ok(failed.to_string()), ModelErrorKind::BadRequest, "Invalid key"),
    ] {
        let error = ask(vec![output], &asked("hello"), &runs).0.unwrap_err();
        assert_eq!(error.kind, kind);
        assert!(error.to_string().contains(words), "{error}");
    }
}
