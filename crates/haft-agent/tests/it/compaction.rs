//! A context that fills: old results are elided, then old messages are summarised; the run goes on.

use std::sync::{Arc, Mutex};

use haft_agent::{LoopEvent, NoObserver, RunSettings, RunStop, read_run};
use haft_model::{ChatMessage, ContentPart, ModelError, ModelErrorKind, ToolResult};
use haft_tool::{Cancel, json};

use crate::fixture::*;

/// A model that reads a long file until it has done so nine times, and summarises when it is asked without tools.
fn reader(bench: &Workbench, requests: &Arc<Mutex<Vec<usize>>>) -> impl haft_model::Model + 'static {
    bench.write("long.txt", &"0123456789 a long line\n".repeat(100));
    let (path, requests) = (bench.path("long.txt"), Arc::clone(requests));
    let count = Mutex::new(0);
    FnModel::new(move |_, request, _| {
        if request.tools.is_empty() {
            return Ok(response("The file was read several times.", &[]));
        }
        let bytes = serde_json::to_string(&request.conversation.messages).unwrap().len();
        requests.lock().unwrap().push(bytes);
        assert_valid_so_far(&request.conversation.messages);
        let mut count = count.lock().unwrap();
        *count += 1;
        if *count > 9 {
            return Ok(response("Read.", &[]));
        }
        Ok(response("", &[tool_call(&format!("c{count}"), "Read", json!({"file_path": path}))]))
    })
}

fn assert_valid_so_far(messages: &[ChatMessage]) {
    assert_valid(&haft_model::Conversation { system: Vec::new(), messages: messages.to_vec() });
}

#[test]
fn old_results_are_elided_before_anything_is_summarised() {
    let bench = Workbench::new();
    let requests = Arc::default();
    let model = reader(&bench, &requests);
    let settings = RunSettings { context_window: Some(8_000), ..RunSettings::default() };
    let mut run = bench.run_with(model, settings);
    let (report, events) = say_and_watch(&mut run, "Read it nine times.");
    assert_eq!(report.stop, RunStop::Done);
    let elided = events.iter().filter(|event| matches!(event, LoopEvent::Elided { .. })).count();
    let compacted = events.iter().filter(|event| matches!(event, LoopEvent::Compacted { .. })).count();
    assert!(elided > 0 && compacted == 0, "{elided} {compacted}");
    let results = results(&run.state().conversation);
    let receipt = run.state().receipts["c1"];
    assert_eq!(results[0].text(), format!("[elided; haft show {receipt}]"));
    assert!(results.last().is_some_and(|last| last.text().contains("a long line")));
    assert_valid(&run.state().conversation);
    // The same is read from the log.
    let ledger = bench.runtime(None).ledger().unwrap();
    let stored = read_run(&ledger, run.session()).unwrap().unwrap();
    assert_eq!(stored.conversation, run.state().conversation);
}

#[test]
fn the_oldest_messages_become_a_summary_with_the_users_request() {
    let bench = Workbench::new();
    let requests = Arc::default();
    let model = reader(&bench, &requests);
    let settings = RunSettings { context_window: Some(6_000), ..RunSettings::default() };
    let mut run = bench.run_with(model, settings);
    let (report, events) = say_and_watch(&mut run, "Read it nine times.");
    assert_eq!(report.stop, RunStop::Done);
    assert!(events.iter().any(|event| matches!(event, LoopEvent::Compacted { .. })));
    let ChatMessage::User { content } = &run.state().conversation.messages[0] else { panic!() };
    let ContentPart::Text { text } = &content[0] else { panic!() };
    assert!(text.contains("The file was read several times."), "{text}");
    assert!(text.contains("Read it nine times."), "{text}");
    assert_valid(&run.state().conversation);
    let longest = requests.lock().unwrap().iter().copied().max().unwrap();
    assert!(longest < 24_000, "{longest}");
    let ledger = bench.runtime(None).ledger().unwrap();
    let stored = read_run(&ledger, run.session()).unwrap().unwrap();
    assert_eq!(stored.conversation, run.state().conversation);
}

#[test]
fn a_provider_that_says_the_context_is_full_gets_a_shorter_conversation_or_the_turn_fails() {
    let bench = Workbench::new();
    let full = || ModelError::new(ModelErrorKind::ContextTooLong, "script", "The prompt is too long");
    let model = FnModel::new(move |_, request, _| {
        let messages = &request.conversation.messages;
        if request.tools.is_empty() {
            return Ok(response("Much was said.", &[]));
        }
        let is_long = messages.iter().any(|message| {
            matches!(message, ChatMessage::ToolResults { results, .. } if results.iter().any(is_long))
        });
        let has_results = messages.iter().any(|message| matches!(message, ChatMessage::ToolResults { .. }));
        match () {
            () if is_long => Err(full()),
            () if has_results || messages.len() == 1 && format!("{messages:?}").contains("Much was said") => {
                Ok(response("Short again.", &[]))
            }
            () => Ok(response("", &[tool_call("1", "Bash", json!({"command": "seq 1 2000"}))])),
        }
    });
    let mut run = bench.run_with(model, RunSettings::default());
    let report = say(&mut run, "Count.");
    assert_eq!((report.stop, report.text.as_str()), (RunStop::Done, "Short again."));
    assert_valid(&run.state().conversation);

    let model = FnModel::new(move |_, _, _| Err(full()));
    let mut run = bench.run_with(model, RunSettings::default());
    let RunStop::Failed { kind, message } = say(&mut run, "Hello?").stop else { panic!() };
    assert_eq!(kind, ModelErrorKind::ContextTooLong);
    assert!(message.contains("too long") && message.contains("could not be summarised"), "{message}");
}

fn is_long(result: &ToolResult) -> bool {
    result.text().len() > 2_000
}

#[test]
fn a_user_compacts_the_conversation_at_any_time() {
    let bench = Workbench::new();
    let requests = Arc::default();
    let model = reader(&bench, &requests);
    let mut run = bench.run_with(model, RunSettings::default());
    let cancel = Cancel::new();
    assert!(!run.compact(&mut NoObserver, &cancel).unwrap(), "there is nothing to summarise");
    let (report, _) = say_and_watch(&mut run, "Read it nine times.");
    assert_eq!(report.stop, RunStop::Done);
    let (before, window) = run.context_use();
    assert!(before < window, "{before} of {window}");
    assert!(run.compact(&mut NoObserver, &cancel).unwrap());
    assert!(run.context_use().0 < before / 2, "{} after {before}", run.context_use().0);
    assert_valid(&run.state().conversation);
    let (report, _) = say_and_watch(&mut run, "Go on.");
    assert_eq!(report.stop, RunStop::Done);
}
