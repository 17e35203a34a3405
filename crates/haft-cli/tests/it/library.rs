//! The library: one result and one receipt for every call, whatever happens to it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use haft::{
    AnyTool, Asker, Call, CallOptions, Cancel, Definition, Effect, EffectKind, ErrorKind, Execution,
    JsonSchema, Mode, Output, Perform, PermissionAnswer, Planned, Planning, Progress, Question, ReceiptState,
    Tool, ToolError, UndoTarget, Value, World, json,
};
use serde::Deserialize;

use crate::fixture::runtime::Directories;

type Act = dyn Fn(&dyn World) -> Result<Output, ToolError> + Send + Sync;

/// Does what the test says.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoInput {}

struct TestTool {
    name: &'static str,
    declares: Vec<EffectKind>,
    effects: Vec<Effect>,
    act: Box<Act>,
}

impl TestTool {
    fn new(
        name: &'static str,
        effects: Vec<Effect>,
        act: impl Fn(&dyn World) -> Result<Output, ToolError> + Send + Sync + 'static,
    ) -> Arc<Self> {
        let declares = effects.iter().map(Effect::kind).collect();
        Arc::new(Self { name, declares, effects, act: Box::new(act) })
    }
}

impl AnyTool for TestTool {
    fn name(&self) -> &str {
        self.name
    }
    fn effects(&self) -> &[EffectKind] {
        &self.declares
    }
    fn definition(&self) -> Definition {
        Definition::of::<NoInput>(self.name, &self.declares)
    }
    fn plan(self: Arc<Self>, _: Value, _: &Planning) -> Result<Planned<Perform>, ToolError> {
        Ok(Planned::new(self.effects.clone(), Box::new(move |world| (self.act)(world))))
    }
}

fn read(path: &str) -> Effect {
    Effect::Read { path: path.into() }
}

#[tokio::test]
async fn a_tool_that_breaks_down_gives_an_error_and_a_receipt() {
    let fixture = Directories::new();
    let haft = fixture
        .builder()
        .any_tool(TestTool::new("Broken", vec![], |_| panic!("on purpose")))
        .build()
        .unwrap();
    let result = haft.call("Broken", json!({})).await;
    assert_eq!(result.output.error_kind, Some(ErrorKind::Internal));
    assert_eq!(result.output.as_text(), "The tool panicked: on purpose");
    assert_eq!(haft.ledger().unwrap().receipt(result.receipt.id).unwrap().state, ReceiptState::Failed);
}

#[tokio::test]
async fn a_tool_that_breaks_down_while_planning_gives_an_error_and_a_receipt() {
    struct Hasty;
    impl Tool for Hasty {
        const NAME: &'static str = "Hasty";
        const EFFECTS: &'static [EffectKind] = &[];
        type Input = NoInput;
        type Plan = ();
        fn plan(&self, _: NoInput, _: &Planning) -> Result<Planned<()>, ToolError> {
            panic!("too early")
        }
        fn perform(&self, (): (), _: &dyn World) -> Result<Output, ToolError> {
            Ok(Output::text("never"))
        }
    }
    let fixture = Directories::new();
    let haft = fixture.builder().tool(Hasty).build().unwrap();
    let result = haft.call("Hasty", json!({})).await;
    assert_eq!(result.output.as_text(), "The tool panicked: too early");
    assert_eq!(result.receipt.id, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_run_together_and_writes_of_one_path_in_order() {
    let fixture = Directories::new();
    let meet = Arc::new(std::sync::Barrier::new(2));
    let order = Arc::new(Mutex::new(Vec::new()));
    let together = |name, meet: &Arc<std::sync::Barrier>| {
        let meet = Arc::clone(meet);
        // Each waits for the other: if they did not run together, neither would end.
        TestTool::new(name, vec![read("/w")], move |_| {
            meet.wait();
            Ok(Output::text("met"))
        })
    };
    let ordered = |name: &'static str| {
        let order = Arc::clone(&order);
        let path = fixture.folder.path().join("x");
        TestTool::new(name, vec![Effect::Write { path }], move |_| {
            order.lock().unwrap().push(name);
            Ok(Output::text(""))
        })
    };
    let haft = fixture
        .builder()
        .permission_mode(Mode::BypassPermissions)
        .any_tool(together("A", &meet))
        .any_tool(together("B", &meet))
        .any_tool(ordered("First"))
        .any_tool(ordered("Second"))
        .build()
        .unwrap();
    let (a, b) = tokio::join!(haft.call("A", json!({})), haft.call("B", json!({})));
    assert!(!a.output.is_error() && !b.output.is_error());
    for _ in 0..50 {
        let first = haft.call("First", json!({}));
        let second = haft.call("Second", json!({}));
        tokio::join!(biased(first), biased(second));
    }
    let order = order.lock().unwrap();
    assert_eq!(order.len(), 100);
    assert!(order.chunks(2).all(|pair| pair == ["First", "Second"]), "{order:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn read_does_not_wait_for_running_command() {
    let fixture = Directories::new();
    let haft = fixture.builder().allow("Bash", "test").build().unwrap();
    let (started, go) = (haft.workspace().join("started"), haft.workspace().join("go"));
    let command = "touch started; until [ -e go ]; do :; done; cat go";
    let running = tokio::spawn({
        let haft = haft.clone();
        async move { haft.call("Bash", json!({"command": command})).await }
    });
    while !started.exists() {
        tokio::task::yield_now().await;
    }
    let read = haft.call("Read", json!({"file_path": started})).await;
    assert!(!read.output.is_error(), "{}", read.output.as_text());
    let wrote = haft.call("Write", json!({"file_path": go, "content": "on"})).await;
    assert!(!wrote.output.is_error(), "{}", wrote.output.as_text());
    assert_eq!(running.await.unwrap().output.as_text(), "on");
}

async fn biased<T>(work: impl Future<Output = T>) -> T {
    work.await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_call_gives_a_result_and_a_receipt_at_any_moment() {
    let fixture = Directories::new();
    let haft = fixture.builder().allow("Bash", "test").build().unwrap();
    for moment in 0..20 {
        let cancel = Cancel::new();
        let options = CallOptions { cancel: cancel.clone(), ..CallOptions::default() };
        let call = Call::new("c", "Bash", json!({"command": "sleep 600"}));
        let stop = async {
            for _ in 0..moment * moment {
                tokio::task::yield_now().await;
            }
            cancel.cancel();
        };
        let (result, ()) = tokio::join!(haft.run(call, options), stop);
        assert_eq!(result.output.error_kind, Some(ErrorKind::Interrupted), "{}", result.output.as_text());
        assert_eq!(
            haft.ledger().unwrap().receipt(result.receipt.id).unwrap().state,
            ReceiptState::Interrupted
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_whose_caller_goes_away_is_stopped_and_recorded() {
    let fixture = Directories::new();
    let started = fixture.folder.path().join("started");
    let haft = fixture.builder().allow("Bash", "test").build().unwrap();
    let command = format!("touch {}; sleep 600", started.display());
    let task = tokio::spawn({
        let haft = haft.clone();
        async move { haft.call("Bash", json!({"command": command})).await }
    });
    while !started.exists() {
        tokio::task::yield_now().await;
    }
    task.abort();
    let ledger = haft.ledger().unwrap();
    haft.shutdown().await;
    while ledger.receipt(1).unwrap().state == ReceiptState::Running {
        tokio::task::yield_now().await;
    }
    assert_eq!(ledger.receipt(1).unwrap().state, ReceiptState::Interrupted);
}

#[tokio::test]
async fn a_tool_of_the_same_name_replaces_the_earlier_one_and_says_so() {
    let fixture = Directories::new();
    let mine = TestTool::new("Read", vec![], |_| Ok(Output::text("mine")));
    let mut registry = haft::Registry::of(&haft::claude());
    assert_eq!(registry.register(mine).unwrap().name(), "Read");
    assert_eq!(registry.definitions().len(), 18, "it keeps its place");
    let haft = fixture
        .builder()
        .any_tool(TestTool::new("Read", vec![], |_| Ok(Output::text("mine"))))
        .build()
        .unwrap();
    assert_eq!(haft.call("Read", json!({})).await.output.as_text(), "mine");
}

#[tokio::test]
async fn disabled_tools_are_neither_offered_nor_run() {
    let fixture = Directories::new();
    let haft =
        fixture.builder().rule(haft::Behavior::Deny, "Bash", "test").only(["Read".into(), "Bash".into()]);
    assert!(haft.build().is_err(), "a tool that is denied cannot be asked for");
    let haft = fixture.builder().only(["Read".into()]).build().unwrap();
    assert_eq!(haft.definitions().iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["Read"]);
    let result = haft.call("Bash", json!({"command": "true"})).await;
    assert_eq!(result.output.as_text(), "The tool Bash is disabled here");
    let unknown = haft.call("read_file", json!({})).await;
    assert_eq!(unknown.output.error_kind, Some(ErrorKind::NotFound));
    assert_eq!(
        haft.call("Raed", json!({})).await.output.as_text(),
        "Unknown tool \"Raed\". Did you mean Read?"
    );
}

#[tokio::test]
async fn user_is_asked_once_about_what_policy_leaves_open() {
    struct Says(bool, AtomicUsize);
    impl Asker for Says {
        fn ask(&self, question: &Question, _: &Cancel) -> PermissionAnswer {
            self.1.fetch_add(1, Ordering::SeqCst);
            assert!(question.reason.contains("is outside the workspace"), "{}", question.reason);
            if self.0 {
                PermissionAnswer::Allow { by: "the test".into() }
            } else {
                PermissionAnswer::Deny { why: "no".into() }
            }
        }
    }
    let outside = tempfile::tempdir().unwrap();
    let path = outside.path().join("a.txt");
    for yes in [true, false] {
        let fixture = Directories::new();
        let asker = Arc::new(Says(yes, AtomicUsize::new(0)));
        let haft = fixture.builder().asker(Arc::<Says>::clone(&asker)).build().unwrap();
        let result = haft.call("Write", json!({"file_path": path, "content": "x"})).await;
        assert_eq!((result.output.is_error(), path.exists()), (!yes, yes));
        assert_eq!(result.receipt.state, if yes { ReceiptState::Completed } else { ReceiptState::Denied });
        assert_eq!(asker.1.load(Ordering::SeqCst), 1);
        if yes {
            let preview = haft.undo_preview(&UndoTarget::Last).unwrap();
            haft.undo(&preview, false, CallOptions::default()).await.unwrap();
        }
    }
}

#[tokio::test]
async fn arguments_of_an_answer_are_checked_and_decided_again() {
    struct Replaces(Value, AtomicUsize);
    impl Asker for Replaces {
        fn ask(&self, _: &Question, _: &Cancel) -> PermissionAnswer {
            self.1.fetch_add(1, Ordering::SeqCst);
            PermissionAnswer::AllowInput { by: "the test".into(), input: self.0.clone() }
        }
    }
    let outside = tempfile::tempdir().unwrap();
    let path = |name: &str| outside.path().join(name);
    let asked = json!({"file_path": path("asked"), "content": "x"});
    let fixture = Directories::new();
    let inside = fixture.path("a.txt");
    for (input, written) in [
        (json!({"file_path": inside, "content": "y"}), Some(&inside)),
        (json!({"file_path": path("other"), "content": "y"}), Some(&path("other"))),
        (json!({"file_path": path("denied"), "content": "y"}), None),
        (json!({"file_path": inside}), None),
        (json!("rubbish"), None),
    ] {
        let asker = Arc::new(Replaces(input.clone(), AtomicUsize::new(0)));
        let builder = fixture.builder().asker(Arc::<Replaces>::clone(&asker));
        let haft = builder.rule(haft::Behavior::Deny, "Edit(denied)", "test").build().unwrap();
        let result = haft.call("Write", asked.clone()).await;
        assert_eq!(asker.1.load(Ordering::SeqCst), 1);
        assert!(!path("asked").exists() && !path("denied").exists());
        assert_eq!(result.output.is_error(), written.is_none(), "{input}: {}", result.output.as_text());
        if let Some(written) = written {
            assert_eq!(std::fs::read_to_string(written).unwrap(), "y");
            assert_eq!(result.receipt.input, input, "what ran is on the receipt");
        }
    }
}

#[tokio::test]
async fn mode_is_changed_for_later_calls() {
    let fixture = Directories::new();
    let haft = fixture.builder().build().unwrap();
    let write = |name: &str| haft.call("Write", json!({"file_path": fixture.path(name), "content": "x"}));
    assert!(!write("a").await.output.is_error());
    haft.set_mode(Mode::Plan).unwrap();
    assert!(write("b").await.output.as_text().contains("plan mode"));
    haft.set_mode(Mode::AcceptEdits).unwrap();
    assert!(!write("b").await.output.is_error());
}

#[tokio::test]
async fn a_watcher_hears_pending_running_with_progress_and_completed() {
    let fixture = Directories::new();
    let tool = TestTool::new("Slow", vec![], |world| {
        world.progress(Progress {
            fraction: Some(0.5),
            message: Some("half".into()),
            units_processed: Some(7),
            output: None,
        });
        Ok(Output::text("done"))
    });
    let haft = fixture.builder().any_tool(tool).build().unwrap();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let watch = {
        let heard = Arc::clone(&heard);
        Arc::new(move |execution: &Execution| {
            heard.lock().unwrap().push(serde_json::to_value(execution).unwrap());
        })
    };
    haft.run(
        Call::new("id-1", "Slow", json!({})),
        CallOptions { watch: Some(watch), ..CallOptions::default() },
    )
    .await;
    let heard = heard.lock().unwrap();
    let states: Vec<&str> = heard.iter().map(|state| state["status"].as_str().unwrap()).collect();
    assert_eq!(states, ["pending", "running", "running", "completed"]);
    assert_eq!(heard[2]["progress"], json!({"fraction": 0.5, "message": "half", "units_processed": 7}));
    assert_eq!(heard[3]["outcome"]["outcome"], "success");
    assert!(heard.iter().all(|state| state["call_id"] == "id-1" && state["tool_name"] == "Slow"));
}

#[tokio::test]
async fn a_tool_can_touch_only_what_it_declared() {
    let fixture = Directories::new();
    let target = fixture.folder.path().join("x");
    let writes = TestTool::new("Liar", vec![], move |world| {
        world.files().update(&target, &mut |_| Ok(b"sneaky".to_vec()))?;
        Ok(Output::text("wrote"))
    });
    let haft = fixture.builder().any_tool(writes).build().unwrap();
    let result = haft.call("Liar", json!({})).await;
    assert_eq!(result.output.error_kind, Some(ErrorKind::PermissionDenied));
    assert!(!fixture.folder.path().join("x").exists());
}

#[tokio::test]
async fn undeclared_effect_is_an_internal_error() {
    let fixture = Directories::new();
    let mut tool =
        Arc::into_inner(TestTool::new("Liar", vec![read("/w")], |_| Ok(Output::text("done")))).unwrap();
    tool.effects.push(Effect::Run { command: "true".into() });
    let haft = fixture.builder().any_tool(Arc::new(tool)).build().unwrap();
    let result = haft.call("Liar", json!({})).await;
    assert_eq!(result.output.error_kind, Some(ErrorKind::Internal));
    let text = result.output.as_text();
    assert_eq!(text, "The tool Liar planned an effect that it does not declare: Run");
    assert_eq!(haft.ledger().unwrap().receipt(result.receipt.id).unwrap().state, ReceiptState::Failed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_does_not_stop_is_given_up_and_can_change_nothing_more() {
    let fixture = Directories::new();
    let target = fixture.folder.path().join("late");
    let (begin, begun) = std::sync::mpsc::channel();
    let (go_on, wait) = std::sync::mpsc::channel::<()>();
    let (send_late, late) = std::sync::mpsc::channel();
    let wait = Mutex::new(wait);
    let stuck = TestTool::new("Stuck", vec![Effect::Write { path: target.clone() }], {
        let target = target.clone();
        move |world| {
            begin.send(()).unwrap();
            wait.lock().unwrap().recv().unwrap();
            let late = world.files().update(&target, &mut |_| Ok(b"too late".to_vec()));
            send_late.send(late.map_err(|error| error.kind).err()).unwrap();
            Ok(Output::text("never seen"))
        }
    });
    let haft = fixture.builder().any_tool(stuck).build().unwrap();
    let cancel = Cancel::new();
    let options = CallOptions { cancel: cancel.clone(), ..CallOptions::default() };
    let (result, ()) = tokio::join!(haft.run(Call::new("c", "Stuck", json!({})), options), async {
        begun.recv().unwrap();
        cancel.cancel();
    });
    assert_eq!(result.receipt.state, ReceiptState::Interrupted);
    go_on.send(()).unwrap();
    assert_eq!(late.recv().unwrap(), Some(ErrorKind::Interrupted));
    assert!(!target.exists());
    let receipt = haft.ledger().unwrap().receipt(result.receipt.id).unwrap();
    assert_eq!(receipt.state, ReceiptState::Interrupted);
    let next = haft.call("Write", json!({"file_path": target, "content": "next"})).await;
    assert!(!next.output.is_error(), "a call that was given up blocks no other");
}

#[tokio::test]
async fn cancelled_call_is_not_performed() {
    let fixture = Directories::new();
    let tool = TestTool::new("Never", vec![], |_| panic!("performed"));
    let haft = fixture.builder().any_tool(tool).build().unwrap();
    let cancel = Cancel::new();
    cancel.cancel();
    let options = CallOptions { cancel, ..CallOptions::default() };
    let result = haft.run(Call::new("c", "Never", json!({})), options).await;
    assert_eq!(result.output.error_kind, Some(ErrorKind::Interrupted));
    assert_eq!(haft.ledger().unwrap().receipt(result.receipt.id).unwrap().state, ReceiptState::Interrupted);
}
