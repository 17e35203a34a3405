//! The stream by which programs drive an agent.

use haft_compat::stream::{ControlRequest, HostLine, MAX_LINE_BYTES, fit_line};
use serde_json::{Value, json};

fn request(line: &Value) -> Result<Option<ControlRequest>, String> {
    match HostLine::read(line.to_string().as_bytes()) {
        Ok(HostLine::Request { request, .. }) => ControlRequest::read(&request),
        other => Err(format!("{other:?}")),
    }
}

fn control(request: &Value) -> Value {
    json!({"type": "control_request", "request_id": "r", "request": request})
}

#[test]
fn initialize_of_both_sdks_is_read() {
    for (members, prompt) in [
        (json!({"hooks": null}), None),
        (json!({"systemPrompt": "one"}), Some(vec!["one".to_owned()])),
        (json!({"systemPrompt": [""], "sdkMcpServers": ["calc"]}), Some(vec![String::new()])),
        (json!({"systemPrompt": {"type": "preset"}, "agents": null, "sdkMcpServers": null}), None),
    ] {
        let mut asked = json!({"subtype": "initialize"});
        asked.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        let Ok(Some(ControlRequest::Initialize(read))) = request(&control(&asked)) else {
            panic!("{asked}");
        };
        assert_eq!(read.system_prompt, prompt, "{asked}");
    }
}

#[test]
fn unknown_request_is_told_from_an_invalid_one() {
    assert_eq!(request(&control(&json!({"subtype": "of_a_later_version", "x": 1}))), Ok(None));
    assert!(request(&control(&json!({"subtype": "set_permission_mode"}))).is_err());
    let interrupt = request(&control(&json!({"subtype": "interrupt", "later": true})));
    assert_eq!(interrupt, Ok(Some(ControlRequest::Interrupt { cancel_queued: false })));
}

#[test]
fn line_that_is_too_long_loses_the_structured_result_first_then_the_longest_texts() {
    let short = json!({"type": "user", "text": "short"});
    assert_eq!(fit_line(&short), format!("{short}\n"));
    let result = json!({"type": "user", "text": "kept", "tool_use_result": {"text": "x".repeat(2 << 20)}});
    let read: Value = serde_json::from_str(&fit_line(&result)).unwrap();
    assert_eq!((&read["text"], &read["tool_use_result"]["truncated"]), (&json!("kept"), &json!(true)));
    let texts = json!({"type": "user", "long": "é".repeat(2 << 20), "short": "kept"});
    let line = fit_line(&texts);
    let read: Value = serde_json::from_str(&line).unwrap();
    assert!(line.len() <= MAX_LINE_BYTES && read["long"].as_str().unwrap().len() > 100_000);
    assert_eq!(read["short"], "kept");
    let many = json!({"type": "user", "uuid": "u", "all": vec!["word"; 1 << 20]});
    let line = fit_line(&many);
    assert!(line.len() <= MAX_LINE_BYTES, "{}", line.len());
    assert_eq!(serde_json::from_str::<Value>(&line).unwrap()["uuid"], "u");
}
