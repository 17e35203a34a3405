//! Final answers that must fit a schema.

use haft_agent::{AgentRun, AnswerSchema, RunSettings, RunStop};
use haft_model::ScriptModel;
use haft_tool::{Value, json};

use crate::fixture::*;

fn schema() -> AnswerSchema {
    let number = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    AnswerSchema::new(number).unwrap()
}

/// A run whose final answer must have a number.
fn run_with_schema(bench: &Workbench, script: &[Value]) -> AgentRun {
    let lines: String = script.iter().map(|line| format!("{line}\n")).collect();
    let settings = RunSettings { output_schema: Some(schema()), ..RunSettings::default() };
    bench.run_with(ScriptModel::parse(&lines).unwrap(), settings)
}

#[test]
fn a_final_answer_that_must_fit_a_schema_is_read_and_asked_for_once_more() {
    let bench = Workbench::new();
    let calls: Value = serde_json::from_str(&bench.calls(&[("Bash", json!({"command": "true"}))])).unwrap();
    let mut run =
        run_with_schema(&bench, &[calls, json!({"text": "It is 7."}), json!({"text": "{\"n\": 7}"})]);
    let report = say(&mut run, "How many?");
    assert_eq!((report.stop, report.rounds), (RunStop::Done, 3));
    assert_eq!((report.structured, report.text.as_str()), (Some(json!({"n": 7})), "{\"n\": 7}"));
    let conversation = &run.state().conversation;
    assert_valid(conversation);
    // The model knows the schema from the beginning, because this provider does not, and what was wrong with its answer.
    let said = serde_json::to_string(&conversation.messages[0]).unwrap();
    assert!(said.contains("How many?") && said.contains("JSON Schema"), "{said}");
    let told = serde_json::to_string(&conversation.messages[4]).unwrap();
    assert!(told.contains("does not fit the schema"), "{told}");
}

#[test]
fn a_final_answer_that_never_fits_its_schema_ends_the_turn_as_such() {
    let bench = Workbench::new();
    let mut run = run_with_schema(
        &bench,
        &[json!({"text": "7"}), json!({"text": "8"}), json!({"text": "{\"n\": \"7\"}"})],
    );
    let report = say(&mut run, "How many?");
    let RunStop::SchemaMismatch { explanation } = report.stop else { panic!("{:?}", report.stop) };
    assert!(explanation.contains("/n"), "{explanation}");
    assert_eq!((report.structured, report.text.as_str()), (None, "{\"n\": \"7\"}"));
}
