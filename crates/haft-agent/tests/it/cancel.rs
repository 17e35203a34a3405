//! A turn that the user stops: the history stays valid, and the run can go on.

use std::sync::Arc;

use haft_agent::{LoopEvent, RunSettings, RunStop};
use haft_model::{ChatMessage, ModelError, ModelErrorKind, ModelEvent};
use haft_tool::{Cancel, json};

use crate::fixture::*;

#[test]
fn text_that_had_arrived_is_kept_and_calls_that_were_not_made_are_reported() {
    let bench = Workbench::new();
    let cancel = Cancel::new();
    let stop = cancel.clone();
    let model = FnModel::new(move |asked, _, (on_event, _)| {
        if asked > 0 {
            return Ok(response("Going on.", &[]));
        }
        let call = tool_call("1", "Bash", json!({"command": "touch made.txt"}));
        on_event(ModelEvent::Text { delta: "I will".to_owned() });
        on_event(ModelEvent::CallComplete(call.clone()));
        stop.cancel();
        let mut error = ModelError::new(ModelErrorKind::Cancelled, "script", "The request was cancelled");
        error.partial = Some(Box::new(response("I will", &[call])));
        Err(error)
    });
    let mut run = bench.run_with(model, RunSettings::default());
    let report = run.say(text("Go."), &mut haft_agent::NoObserver, &cancel).unwrap();
    assert_eq!((report.stop, report.text.as_str()), (RunStop::Interrupted, "I will"));
    assert!(!bench.path("made.txt").exists());
    assert_valid(&run.state().conversation);
    let result = results(&run.state().conversation).remove(0);
    assert!(result.is_error && result.text().starts_with("interrupted"), "{}", result.text());
    // What the user says next comes with the results.
    assert_eq!(say(&mut run, "Go on.").stop, RunStop::Done);
    assert_valid(&run.state().conversation);
}

#[test]
fn running_calls_are_cancelled_and_waiting_ones_are_not_made() {
    let bench = Workbench::new();
    let script = [
        bench.calls(&[
            ("Bash", json!({"command": "touch begun.txt; sleep 1000"})),
            ("Bash", json!({"command": "touch second.txt"})),
        ]),
        json!({"text": "Fine."}).to_string(),
    ];
    let mut run = bench.run(&script.join("\n"));
    let (cancel, stop) = (Cancel::new(), Cancel::new());
    let begun = Arc::new(bench.path("begun.txt"));
    let mut observer = |event: &LoopEvent| {
        if matches!(event, LoopEvent::CallStarted(_)) {
            let (cancel, begun) = (cancel.clone(), Arc::clone(&begun));
            std::thread::spawn(move || {
                while !begun.exists() {
                    std::thread::yield_now();
                }
                cancel.cancel();
            });
        }
    };
    let report = run.say(text("Go."), &mut observer, &cancel).unwrap();
    assert_eq!(report.stop, RunStop::Interrupted);
    assert!(!bench.path("second.txt").exists());
    let texts: Vec<_> = results(&run.state().conversation).iter().map(|result| result.is_error).collect();
    assert_eq!(texts, [true, true]);
    assert_valid(&run.state().conversation);
    assert_eq!(run.say(text("Go on."), &mut haft_agent::NoObserver, &stop).unwrap().stop, RunStop::Done);
}

#[test]
fn an_answer_of_which_nothing_arrived_leaves_nothing() {
    let bench = Workbench::new();
    let model = FnModel::new(|asked, _, _| {
        if asked > 0 {
            return Ok(response("Here.", &[]));
        }
        Err(ModelError::new(ModelErrorKind::Cancelled, "script", "The request was cancelled"))
    });
    let mut run = bench.run_with(model, RunSettings::default());
    assert_eq!(say(&mut run, "One.").stop, RunStop::Interrupted);
    assert_eq!(say(&mut run, "Two.").stop, RunStop::Done);
    let messages = &run.state().conversation.messages;
    assert!(matches!(&messages[0], ChatMessage::User { content } if content.len() == 2));
    assert_valid(&run.state().conversation);
}
