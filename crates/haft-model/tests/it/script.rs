//! The scripted model, and the choice between two models.

use std::sync::Arc;

use haft_model::{
    CallArguments, Conversation, Model, ModelErrorKind, ModelEvent, ModelSet, ScriptModel, TokenUsage,
    TurnOptions, TurnRequest,
};
use haft_tool::Cancel;

use crate::fixture::{answered, asked, completed, texts};

const SCRIPT: &str = r#"
// Reads a file and says what is in it.
{"reasoning": "Look first.", "text": "I look.", "calls": [{"name": "Read", "arguments": {"path": "a"}}]}
{"error": {"kind": "overloaded", "status": 529, "message": "busy"}}
{"expect": {"contains": "done", "regex": "^d.*e$", "is_error": false, "tool": "Read"}, "text": "It is done.", "usage": {"input": 5, "output": 2}}
"#;

fn ask(
    model: &ScriptModel,
    conversation: &Conversation,
) -> (Result<haft_model::ModelResponse, haft_model::ModelError>, Vec<ModelEvent>) {
    let (options, mut events) = (TurnOptions::default(), Vec::new());
    let request = TurnRequest { conversation, tools: &[], options: &options };
    let result = model.respond(&request, &mut |event| events.push(event), &Cancel::new());
    (result, events)
}

#[test]
fn script_is_played_turn_by_turn() {
    let model = ScriptModel::parse(SCRIPT).unwrap();
    let (first, events) = ask(&model, &asked("hello"));
    let first = first.unwrap().message;
    assert_eq!((texts(&events).as_str(), completed(&events)), ("I look.", vec!["Read"]));
    let conversation = answered(asked("hello"), first);
    let error = ask(&model, &conversation).0.unwrap_err();
    assert_eq!((error.kind, error.status), (ModelErrorKind::Overloaded, Some(529)));
    let last = ask(&model, &conversation).0.unwrap();
    assert_eq!(last.message.text(), "It is done.");
    assert_eq!(last.usage, TokenUsage { input: 5, output: 2, ..TokenUsage::default() });
    let conversation = answered(conversation, last.message);
    let error = ask(&model, &conversation).0.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Script);
    assert!(error.to_string().contains("3 turns"), "{error}");
}

#[test]
fn conversation_that_was_interrupted_goes_on_where_it_was() {
    let first = ask(&ScriptModel::parse(SCRIPT).unwrap(), &asked("hello")).0.unwrap().message;
    let conversation = answered(asked("hello"), first);
    let again = ScriptModel::parse(SCRIPT).unwrap();
    assert_eq!(ask(&again, &conversation).0.unwrap_err().kind, ModelErrorKind::Overloaded);
}

#[test]
fn failed_expectation_names_its_line() {
    for (expect, words) in [
        (r#"{"contains": "other"}"#, "to contain \"other\""),
        (r#"{"regex": "^x"}"#, "to match"),
        (r#"{"is_error": true}"#, "to be an error"),
        (r#"{"tool": "Write"}"#, "to be of Write"),
        (r#"[{"contains": "done"}, {}]"#, "expects result 2, and there are 1"),
    ] {
        let script = format!("{}\n{{\"expect\": {expect}}}\n", r#"{"calls": [{"name": "Read"}]}"#);
        let model = ScriptModel::parse(&script).unwrap();
        let first = ask(&model, &asked("hello")).0.unwrap().message;
        let error = ask(&model, &answered(asked("hello"), first)).0.unwrap_err();
        let message = error.to_string();
        assert!(message.contains("Line 2 of the script") && message.contains(words), "{message}");
    }
}

#[test]
fn script_with_a_mistake_is_refused_with_its_line() {
    for bad in [r#"{"txet": "x"}"#, "not json", r#"{"expect": {"regex": "("}}"#] {
        let Err(error) = ScriptModel::parse(&format!("\n{bad}\n")) else { panic!("{bad}") };
        assert!(error.to_string().contains("Line 2"), "{error}");
    }
}

#[test]
fn malformed_arguments_can_be_played() {
    let script = r#"{"calls": [{"name": "Read", "arguments": "{\"path\":"}]}"#;
    let response = ask(&ScriptModel::parse(script).unwrap(), &asked("hello")).0.unwrap();
    let call = response.message.calls().next().unwrap();
    assert_eq!(call.arguments, CallArguments::Invalid("{\"path\":".to_owned()));
    assert!(matches!(call.to_call().arguments, haft_tool::Arguments::Raw(_)));
}

#[test]
fn simple_prompt_goes_to_the_fast_model_without_tools() {
    let script = "{\"text\": \"SIMPLE\"}\n{\"text\": \"complex\"}\n{\"error\": {\"kind\": \"auth\"}}\n";
    let model = Arc::new(ScriptModel::parse(script).unwrap());
    let set = ModelSet { model, fast: "small".to_owned(), complex: "big".to_owned() };
    let mut events = Vec::new();
    let mut route = || set.route("hello", &mut |event| events.push(event), &Cancel::new()).unwrap();
    assert_eq!([route(), route(), route()], ["small", "big", "big"]);
    assert_eq!(texts(&events), "", "the judgement is not part of the answer");
    let claude = ModelSet::claude_cli(Arc::new(ScriptModel::parse("").unwrap()));
    assert_eq!((claude.fast.as_str(), claude.complex.as_str()), ("sonnet", "opus"));
}
