//! Rounds of a turn: calls, their order, their results, and what the model is told.

use std::sync::mpsc;
use std::sync::{Arc, Mutex};

use haft_agent::{AllowedTools, LoopEvent, RunSettings, RunStop};
use haft_model::{ChatMessage, ModelEvent, ScriptModel};
use haft_tool::json;

use crate::fixture::*;

#[test]
fn a_run_searches_edits_and_tests_until_the_model_is_done() {
    let bench = Workbench::new();
    bench.write("a.txt", "tea\n");
    let script = [
        bench.calls(&[("Read", json!({"file_path": "@/a.txt"}))]),
        bench
            .calls(&[("Edit", json!({"file_path": "@/a.txt", "old_string": "tea", "new_string": "coffee"}))]),
        bench.calls(&[("Bash", json!({"command": "cat a.txt"}))]),
        json!({"expect": {"contains": "coffee"}, "text": "It is coffee now."}).to_string(),
    ];
    let mut run = bench.run(&script.join("\n"));
    let (report, events) = say_and_watch(&mut run, "Make it coffee.");
    assert_eq!((report.stop, report.text.as_str(), report.rounds), (RunStop::Done, "It is coffee now.", 4));
    assert_eq!(bench.read("a.txt"), "coffee\n");
    assert_valid(&run.state().conversation);
    let edit = events.iter().find_map(|event| match event {
        LoopEvent::CallFinished { result, receipt, changes, .. } if result.name == "Edit" => {
            Some((*receipt, *changes))
        }
        _ => None,
    });
    let (receipt, changes) = edit.unwrap();
    assert_eq!(changes, 1);
    assert!(run.state().turns[0].receipts.contains(&receipt.unwrap()));
}

#[test]
fn results_come_in_the_order_of_the_calls_and_calls_that_may_meet_run_in_it() {
    let bench = Workbench::new();
    bench.write("a.txt", "0");
    let append = |text: &str| ("Bash", json!({"command": format!("printf {text} >> a.txt; cat a.txt")}));
    let script = [
        bench.calls(&[append("1"), ("Read", json!({"file_path": "@/a.txt"})), append("2"), append("3")]),
        json!({"text": "Done."}).to_string(),
    ];
    let mut run = bench.run(&script.join("\n"));
    say(&mut run, "Count.");
    let results = results(&run.state().conversation);
    let texts: Vec<String> = results.iter().map(haft_model::ToolResult::text).collect();
    assert_eq!(texts[0].trim(), "01");
    assert!(texts[1].contains("01") && !texts[1].contains("012"), "{}", texts[1]);
    assert_eq!((texts[2].trim(), texts[3].trim()), ("012", "0123"));
}

#[test]
fn calls_that_cannot_meet_run_together() {
    // Each of two calls waits for the other: in the model's order, the first would never end.
    let bench = Workbench::new();
    let model = FnModel::new(|asked, _, _| {
        let spawn = |id: &str| tool_call(id, "Meet", json!({}));
        Ok(if asked == 0 { response("", &[spawn("a"), spawn("b")]) } else { response("Done.", &[]) })
    });
    let barrier = Arc::new(std::sync::Barrier::new(2));
    let home = tempfile::tempdir().unwrap();
    let runtime = haft_runtime::Runtime::builder()
        .workspace(bench.root())
        .home(home.path())
        .tool(Meet { barrier })
        .build()
        .unwrap();
    let parts = haft_agent::RunParts::new(runtime, Arc::new(model)).unwrap();
    let mut run = haft_agent::AgentRun::start(parts, RunSettings::default(), Vec::new()).unwrap();
    assert_eq!(say(&mut run, "Meet.").stop, RunStop::Done);
    assert_eq!(results(&run.state().conversation).len(), 2);
}

struct Meet {
    barrier: Arc<std::sync::Barrier>,
}

#[derive(serde::Deserialize, haft_tool::JsonSchema)]
#[schemars(crate = "schemars")]
struct MeetInput {}

impl haft_tool::Tool for Meet {
    const NAME: &'static str = "Meet";
    const EFFECTS: &'static [haft_tool::EffectKind] = &[];
    type Input = MeetInput;
    type Plan = ();

    fn plan(
        &self,
        _: MeetInput,
        _: &haft_tool::Planning,
    ) -> Result<haft_tool::Planned<()>, haft_tool::ToolError> {
        Ok(haft_tool::Planned::new([], ()))
    }

    fn perform(&self, (): (), _: &dyn haft_tool::World) -> Result<haft_tool::Output, haft_tool::ToolError> {
        self.barrier.wait();
        Ok(haft_tool::Output::text("met"))
    }
}

#[test]
fn a_call_that_only_reads_runs_while_the_model_still_answers() {
    let bench = Workbench::new();
    bench.write("a.txt", "tea\n");
    let path = bench.path("a.txt");
    let (finished, wait_for_call) = mpsc::channel();
    let wait_for_call = Mutex::new(wait_for_call);
    let model = FnModel::new(move |asked, _, (on_event, _)| {
        if asked > 0 {
            return Ok(response("Done.", &[]));
        }
        let read = tool_call("r", "Read", json!({"file_path": path}));
        let write = tool_call("w", "Bash", json!({"command": "echo coffee > a.txt"}));
        let late = tool_call("l", "Read", json!({"file_path": path}));
        on_event(ModelEvent::CallComplete(read.clone()));
        // The answer does not go on before the call has been started.
        wait_for_call.lock().unwrap().recv().unwrap();
        on_event(ModelEvent::CallComplete(write.clone()));
        on_event(ModelEvent::CallComplete(late.clone()));
        Ok(response("", &[read, write, late]))
    });
    let mut run = bench.run_with(model, RunSettings::default());
    let mut order = Vec::new();
    let mut observer = |event: &LoopEvent| match event {
        LoopEvent::CallStarted(call) => {
            order.push(format!("start {}", call.id));
            let _ = finished.send(());
        }
        LoopEvent::Answered { .. } => order.push("answered".to_owned()),
        _ => {}
    };
    run.say(text("Go."), &mut observer, &haft_tool::Cancel::new()).unwrap();
    assert_eq!(order, ["start r", "answered", "start w", "start l", "answered"]);
    let texts: Vec<String> =
        results(&run.state().conversation).iter().map(haft_model::ToolResult::text).collect();
    assert!(texts[0].contains("tea") && texts[2].contains("coffee"), "{texts:?}");
}

#[test]
fn an_early_call_that_is_not_part_of_the_answer_does_not_count() {
    let bench = Workbench::new();
    bench.write("a.txt", "tea\n");
    let path = bench.path("a.txt");
    let model = FnModel::new(move |asked, _, (on_event, _)| {
        let read = |id: &str| tool_call(id, "Read", json!({"file_path": path}));
        if asked > 0 {
            return Ok(response("Done.", &[]));
        }
        on_event(ModelEvent::CallComplete(read("void")));
        on_event(ModelEvent::Restarted);
        on_event(ModelEvent::CallComplete(read("b")));
        on_event(ModelEvent::CallComplete(read("cut")));
        Ok(response("", &[read("b")]))
    });
    let mut run = bench.run_with(model, RunSettings::default());
    let (_, events) = say_and_watch(&mut run, "Go.");
    let dropped: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            LoopEvent::CallDropped { call_id } => Some(call_id.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(dropped, ["void", "cut"]);
    assert_eq!(results(&run.state().conversation).len(), 1);
    assert_valid(&run.state().conversation);
}

#[test]
fn unknown_tools_and_bad_arguments_go_back_with_what_would_be_right() {
    let bench = Workbench::new();
    let script = [
        bench.calls(&[
            ("Raed", json!({})),
            ("xyzzy", json!({})),
            ("Read", json!({"path": "a.txt"})),
            ("Read", json!("{\"file_path\": ")),
        ]),
        json!({"text": "I see."}).to_string(),
    ];
    let mut run = bench.run(&script.join("\n"));
    assert_eq!(say(&mut run, "Go.").stop, RunStop::Done);
    let results = results(&run.state().conversation);
    let texts: Vec<String> = results.iter().map(haft_model::ToolResult::text).collect();
    assert!(results.iter().all(|result| result.is_error), "{texts:?}");
    assert!(texts[0].contains("Did you mean Read?") && texts[0].contains("Grep"), "{}", texts[0]);
    assert!(texts[1].contains("The tools are: Read"), "{}", texts[1]);
    assert!(texts[2].contains("file_path: required but missing"), "{}", texts[2]);
    assert!(texts[3].contains("not JSON"), "{}", texts[3]);
}

#[test]
fn a_call_that_fails_again_and_again_is_pointed_out_to_the_model() {
    let bench = Workbench::new();
    let failing = || bench.calls(&[("Read", json!({"file_path": "@/missing.txt"}))]);
    let other = bench.calls(&[("Bash", json!({"command": "true"}))]);
    let lines = [failing(), failing(), other, failing(), failing(), json!({"text": "No."}).to_string()];
    let mut run = bench.run(&lines.join("\n"));
    say(&mut run, "Read it.");
    let told: Vec<bool> = results(&run.state().conversation)
        .iter()
        .map(|result| result.text().contains("another approach"))
        .collect();
    assert_eq!(told, [false, false, false, true, true]);
}

#[test]
fn allowed_tools_are_all_none_or_those_of_a_list() {
    let offered = |allowed: AllowedTools| {
        let bench = Workbench::new();
        bench.write("a.txt", "tea\n");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (names, path) = (Arc::clone(&seen), bench.path("a.txt"));
        let model = FnModel::new(move |asked, request, _| {
            *names.lock().unwrap() = request.tools.iter().map(|tool| tool.name.clone()).collect();
            let call = tool_call("1", "Read", json!({"file_path": path}));
            Ok(if asked == 0 { response("", &[call]) } else { response("Done.", &[]) })
        });
        let mut run = bench.run_with(model, RunSettings { allowed, ..RunSettings::default() });
        say(&mut run, "Read.");
        let result = results(&run.state().conversation).remove(0);
        let names = seen.lock().unwrap().clone();
        (names, result.is_error, result.text())
    };
    let (names, is_error, _) = offered(AllowedTools::all());
    assert!(names.len() > 5 && !is_error);
    let (names, is_error, text) = offered(AllowedTools::only([]));
    assert!(names.is_empty() && is_error && text.contains("no tools"), "{text}");
    let (names, is_error, text) = offered(AllowedTools::only(["Glob".to_owned()]));
    assert!(names == ["Glob"] && is_error && text.contains("The tools are: Glob."), "{text}");
    assert!(!offered(AllowedTools::only(["Read".to_owned()])).1);
    assert!(!AllowedTools::only([]).tools_enabled() && AllowedTools::all().tools_enabled());
}

#[test]
fn an_answer_that_was_cut_or_could_not_be_read_is_continued_a_few_times() {
    let cut = r#"{"text": "And then", "stop": {"reason": "length"}}"#;
    let unread = r#"{"stop": {"reason": "invalid_call", "explanation": "no closing brace"}}"#;
    let done = r#"{"text": "the end."}"#;
    let mut run = Workbench::new().run(&[cut, unread, cut, done].join("\n"));
    assert_eq!(say(&mut run, "Tell.").stop, RunStop::Done);
    assert_valid(&run.state().conversation);
    let said = serde_json::to_string(&run.state().conversation).unwrap();
    assert!(said.contains("limit of tokens") && said.contains("no closing brace"), "{said}");

    let mut run = Workbench::new().run(&[cut, cut, cut, cut, done].join("\n"));
    assert!(matches!(say(&mut run, "Tell.").stop, RunStop::Unfinished { .. }));
    assert_valid(&run.state().conversation);
}

#[test]
fn a_pause_asks_again_and_a_refusal_ends_the_turn() {
    let lines = [
        r#"{"text": "Searching", "stop": {"reason": "paused"}}"#,
        r#"{"text": "Found it."}"#,
        r#"{"text": "I", "stop": {"reason": "refused", "explanation": "policy"}}"#,
        r#"{"text": "Sure."}"#,
    ];
    let mut run = Workbench::new().run(&lines.join("\n"));
    let report = say(&mut run, "Search.");
    assert_eq!((report.stop, report.text.as_str(), report.rounds), (RunStop::Done, "Found it.", 2));
    let refused = RunStop::Refused { explanation: "policy".to_owned() };
    assert_eq!(say(&mut run, "Something bad.").stop, refused);
    assert!(matches!(run.state().conversation.messages.last(), Some(ChatMessage::User { .. })));
    assert_eq!(say(&mut run, "Something good.").stop, RunStop::Done);
}

#[test]
fn another_model_answers_when_the_provider_stays_overloaded() {
    let lines = [r#"{"error": {"kind": "overloaded"}}"#, r#"{"text": "Here."}"#];
    let settings = RunSettings { fallback_model: Some("small".to_owned()), ..RunSettings::default() };
    let bench = Workbench::new();
    let mut run = bench.run_with(ScriptModel::parse(&lines.join("\n")).unwrap(), settings);
    let (report, events) = say_and_watch(&mut run, "Hello?");
    assert_eq!((report.stop, report.model.as_str()), (RunStop::Done, "small"));
    assert!(events.iter().any(|event| matches!(event, LoopEvent::Notice { text } if text.contains("small"))));

    let mut run = bench.run(&lines.join("\n"));
    assert!(matches!(say(&mut run, "Hello?").stop, RunStop::Failed { .. }));
    // The next turn goes on from there.
    assert_eq!(say(&mut run, "Again?").stop, RunStop::Done);
    assert_valid(&run.state().conversation);
}

#[test]
fn ids_that_a_provider_repeats_become_unique() {
    let bench = Workbench::new();
    let model = FnModel::new(|asked, _, _| {
        let call = |text: &str| tool_call("same", "Bash", json!({"command": format!("echo {text}")}));
        Ok(match asked {
            0 => response("", &[call("one"), call("two")]),
            1 => response("", &[call("three")]),
            _ => response("Done.", &[]),
        })
    });
    let mut run = bench.run_with(model, RunSettings::default());
    say(&mut run, "Go.");
    assert_valid(&run.state().conversation);
    let results = results(&run.state().conversation);
    let texts: Vec<String> = results.iter().map(|result| result.text().trim().to_owned()).collect();
    assert_eq!(texts, ["one", "two", "three"]);
    assert_eq!(run.state().receipts.len(), 3);
}
