//! The types around the tools: definitions, registry, states, and a tool of one's own.

use std::sync::{Arc, Mutex};

use haft::{
    Call, CallOptions, EffectKind, ErrorKind, Execution, JsonSchema, Outcome, Output, Planned, Planning,
    Progress, Registry, Settings, Tool, ToolError, World, dialects, json,
};
use serde::Deserialize;

use crate::fixture::runtime::{RuntimeFixture, fields};

#[test]
fn a_definition_serializes_with_name_description_and_input_schema() {
    for tool in RuntimeFixture::of(haft::loom()).haft.definitions() {
        let written = json!(tool);
        assert_eq!(written["name"], tool.name.as_str());
        assert!(written["description"].as_str().is_some_and(|words| !words.is_empty()));
        assert_eq!(written["input_schema"]["type"], "object");
    }
}

#[test]
fn a_registry_starts_empty_registers_finds_and_defines() {
    let mut registry = Registry::default();
    assert!(registry.definitions().is_empty() && registry.get("bash").is_none());
    let tools = dialects::by_name("loom", &Settings::default()).unwrap().tools;
    let bash = tools.into_iter().find(|tool| tool.name() == "bash").unwrap();
    assert!(registry.register(bash).is_none());
    assert_eq!(registry.get("bash").unwrap().name(), "bash");
    assert!(registry.get("sh").is_none());
    assert_eq!(registry.definitions().len(), 1);
    assert_eq!(registry.definitions()[0].name, "bash");
}

#[test]
fn states_have_the_documented_fields() {
    let (call_id, tool_name) = ("c1".to_owned(), "bash".to_owned());
    let pending =
        json!(Execution::Pending { call_id: call_id.clone(), tool_name: tool_name.clone(), requested_at: 1 });
    assert_eq!(fields(&pending), ["status", "call_id", "tool_name", "requested_at"]);
    let progress = Progress {
        fraction: Some(0.5),
        message: Some("half".into()),
        units_processed: Some(7),
        ..Progress::default()
    };
    assert_eq!(json!(progress), json!({"fraction": 0.5, "message": "half", "units_processed": 7}));
    assert_eq!(json!(Progress::default()), json!({}), "each is optional");
    let running = json!(Execution::Running {
        call_id: call_id.clone(),
        tool_name: tool_name.clone(),
        started_at: 1,
        last_update_at: 2,
        progress: Some(progress),
    });
    assert_eq!(
        fields(&running),
        ["status", "call_id", "tool_name", "started_at", "last_update_at", "progress"]
    );
    let completed = |outcome| {
        json!(Execution::Completed {
            call_id: call_id.clone(),
            tool_name: tool_name.clone(),
            started_at: 1,
            completed_at: 3,
            outcome,
        })
    };
    let success = completed(Outcome::Success { output: Output::text("x") });
    assert_eq!(fields(&success), ["status", "call_id", "tool_name", "started_at", "completed_at", "outcome"]);
    assert_eq!(
        (&success["outcome"]["outcome"], success["outcome"]["output"].is_object()),
        (&json!("success"), true)
    );
    let error = completed(Outcome::Error { error: ToolError::failed("x") });
    assert_eq!(
        (&error["outcome"]["outcome"], error["outcome"]["error"].is_object()),
        (&json!("error"), true)
    );
}

#[tokio::test]
async fn a_failed_call_is_completed_too() {
    let loom = RuntimeFixture::of(haft::loom());
    let recorded = Arc::new(Mutex::new(Vec::new()));
    let recorder = Arc::clone(&recorded);
    let options = CallOptions {
        watch: Some(Arc::new(move |state: &Execution| recorder.lock().unwrap().push(json!(state)))),
        ..CallOptions::default()
    };
    let call = Call::new("c1", "read_file", json!({"path": "none"}));
    loom.haft.run(call, options).await;
    let recorded = recorded.lock().unwrap();
    let last = recorded.last().unwrap();
    assert_eq!((&last["status"], &last["call_id"]), (&json!("completed"), &json!("c1")));
    assert_eq!(last["outcome"]["error"]["kind"], "file_not_found");
    assert_eq!(recorded[0]["status"], "pending");
}

/// Says what it was given.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Mine {
    /// Needed.
    required_param: String,
    /// Not needed.
    optional_param: Option<i32>,
}

struct MyTool;

impl Tool for MyTool {
    const NAME: &'static str = "my_tool";
    const EFFECTS: &'static [EffectKind] = &[];
    type Input = Mine;
    type Plan = Mine;

    fn plan(&self, input: Mine, _: &Planning) -> Result<Planned<Mine>, ToolError> {
        Ok(Planned::new([], input))
    }

    fn perform(&self, input: Mine, _: &dyn World) -> Result<Output, ToolError> {
        Ok(Output::json(json!({"status": input.required_param, "more": input.optional_param})))
    }
}

#[tokio::test]
async fn a_tool_of_ones_own_needs_only_its_shape() {
    let loom = RuntimeFixture::with(|builder| builder.dialect(haft::loom()).tool(MyTool));
    let last = loom.haft.definitions().pop().unwrap();
    assert_eq!((last.name.as_str(), &last.input_schema["required"]), ("my_tool", &json!(["required_param"])));
    let given = loom.value("my_tool", json!({"required_param": "success"})).await;
    assert_eq!(given, json!({"status": "success", "more": null}));
    for bad in
        [json!({}), json!({"required_param": 1.5}), json!({"required_param": "x", "optional_param": "many"})]
    {
        assert_eq!(loom.fails("my_tool", bad).await.0, ErrorKind::InvalidArguments);
    }
}
