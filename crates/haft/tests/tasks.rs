//! Commands that live on after their call: read while they run and after, stopped, bounded, recorded, taken back, and
//! never longer alive than their session.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test that cannot go on has failed")]
#![cfg(target_os = "linux")]

mod house;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use haft::{
    Call, CallOptions, CallResult, Cancel, Effect, ErrorKind, Execution, JsonSchema, Output, Planning,
    Reversible, RunRequest, Runtime, SideEffect, State, Target, TaskClass, TaskState, Tool, ToolError, Value,
    World, json,
};
use house::House;
use serde::Deserialize;

/// Waits inside a command for a file that the test makes.
const WAIT: &str = "wait_for() { until [ -e \"$1\" ]; do sleep 0.01; done; }; ";

struct Stage {
    house: House,
    haft: Runtime,
}

impl Stage {
    fn new() -> Self {
        let house = House::new();
        let haft = builder(house.root(), house.home()).build().unwrap();
        Self { house, haft }
    }

    /// Starts a task and gives its id.
    async fn start(&self, command: &str) -> String {
        id(&self.started(command).await)
    }

    async fn started(&self, command: &str) -> CallResult {
        let command = format!("{WAIT}{command}");
        let result = self.haft.call("Bash", json!({"command": command, "run_in_background": true})).await;
        assert!(!result.output.is_error(), "{}", result.output.as_text());
        result
    }

    /// Looks at a task without waiting for its end.
    async fn look(&self, id: &str) -> Value {
        let result = self.haft.call("TaskOutput", json!({"task_id": id, "block": false})).await;
        result.output.structured.unwrap()
    }

    /// Waits for a task's end.
    async fn end(&self, id: &str) -> CallResult {
        let result = self.haft.call("TaskOutput", json!({"task_id": id, "timeout": 600_000})).await;
        assert_eq!(structured(&result)["retrieval_status"], "success");
        result
    }

    /// Looks until so much has come, and gives what came.
    async fn until(&self, id: &str, bytes: usize) -> String {
        let mut seen = String::new();
        while seen.len() < bytes {
            seen.push_str(self.look(id).await["task"]["output"].as_str().unwrap());
        }
        seen
    }
}

fn builder(workspace: &Path, home: &Path) -> haft::Builder {
    Runtime::builder().workspace(workspace).home(home).dialect(haft::claude())
}

fn structured(result: &CallResult) -> &Value {
    result.output.structured.as_ref().unwrap()
}

fn id(result: &CallResult) -> String {
    structured(result)["backgroundTaskId"].as_str().unwrap().to_owned()
}

/// The processes that work in a folder.
fn processes(folder: &Path) -> Vec<PathBuf> {
    let folder = folder.canonicalize().unwrap();
    let there = |path: &PathBuf| fs::read_link(path.join("cwd")).is_ok_and(|cwd| cwd.starts_with(&folder));
    fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path()).filter(there).collect()
}

/// A tool that does what the test says with the tasks of its World.
struct Made<F>(F);

/// Does what the test says.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

impl<F: Fn(&dyn World) -> Result<Output, ToolError> + Send + Sync + 'static> Tool for Made<F> {
    type Input = Nothing;
    fn name(&self) -> &'static str {
        "Made"
    }
    fn side_effect(&self) -> SideEffect {
        SideEffect::Mutating
    }
    fn plan(&self, _: &Nothing, _: &Planning) -> Result<Vec<Effect>, ToolError> {
        Ok(vec![Effect::Run { command: "made".to_owned() }])
    }
    async fn perform(&self, _: Nothing, world: &dyn World) -> Result<Output, ToolError> {
        (self.0)(world)
    }
}

fn request(command: &str) -> RunRequest {
    RunRequest {
        argv: ["bash", "-c", command].map(str::to_owned).to_vec(),
        cwd: None,
        timeout: std::time::Duration::from_secs(600),
        merge: true,
        inherit: false,
        keep_bytes: 0,
    }
}

#[tokio::test]
async fn output_comes_while_the_task_runs_each_byte_once_and_characters_whole() {
    let stage = Stage::new();
    let started = stage.started("echo one; wait_for go; printf '\\303'; wait_for on; printf '\\244x'").await;
    let id = id(&started);
    assert_eq!(started.output.as_text(), format!("Command running in background with ID: {id}"));
    assert_eq!(stage.until(&id, 4).await, "one\n");
    let look = stage.look(&id).await;
    assert_eq!(
        (&look["task"]["output"], &look["retrieval_status"], &look["task"]["status"]),
        (&json!(""), &json!("not_ready"), &json!("running"))
    );
    stage.house.write("go", "");
    while stage.look(&id).await["totalBytes"] != 5 {}
    assert_eq!(stage.look(&id).await["task"]["output"], "", "half a character is not given");
    stage.house.write("on", "");
    let ended = stage.end(&id).await;
    assert_eq!(ended.output.as_text(), "äx\n(completed)");
    assert_eq!(structured(&ended)["task"]["exitCode"], 0);
    let again = stage.end(&id).await;
    assert_eq!(again.output.as_text(), "(completed)", "there is nothing new after the end");
    assert_eq!(structured(&again)["totalBytes"], 7);
}

#[tokio::test]
async fn more_than_a_caller_sees_at_once_comes_in_parts_that_are_the_whole() {
    let stage = Stage::new();
    let id = stage.start("seq 1 40000").await;
    let mut seen = String::new();
    loop {
        let part = stage.end(&id).await;
        let all = structured(&part);
        seen.push_str(all["task"]["output"].as_str().unwrap());
        if all["waitingBytes"] == 0 {
            break;
        }
        assert!(part.output.as_text().ends_with(" bytes more: call TaskOutput again)"));
        assert!(!part.output.as_text().contains("not shown"), "nothing is cut");
    }
    assert_eq!(seen, (1..=40_000).map(|number| format!("{number}\n")).collect::<String>());
}

#[tokio::test]
async fn waiting_ends_with_the_time_or_with_the_task() {
    let stage = Stage::new();
    let id = stage.start("echo early; wait_for go; echo late; exit 3").await;
    stage.until(&id, 0).await;
    let timed_out = stage.haft.call("TaskOutput", json!({"task_id": id, "timeout": 1})).await;
    assert_eq!(structured(&timed_out)["retrieval_status"], "timeout");
    assert!(
        !timed_out.output.is_error() && timed_out.output.as_text().ends_with("(still running after 1 ms)")
    );
    stage.house.write("go", "");
    let ended = stage.end(&id).await;
    assert!(ended.output.as_text().ends_with("late\nExit code 3"), "{}", ended.output.as_text());
    assert_eq!(structured(&ended)["task"]["status"], "failed");
    let most = stage.haft.call("TaskOutput", json!({"task_id": id, "timeout": 600_001})).await;
    assert_eq!(most.output.error_kind, Some(ErrorKind::InvalidArguments));
}

#[tokio::test]
async fn a_task_has_no_time_limit_but_the_one_it_is_given() {
    let stage = Stage::new();
    let arguments = json!({"command": "sleep 9999", "run_in_background": true, "timeout": 50});
    let id = id(&stage.haft.call("Bash", arguments).await);
    let ended = stage.end(&id).await;
    assert_eq!(structured(&ended)["task"]["status"], "timed_out");
    let receipt = structured(&ended)["receipt"].as_i64().unwrap();
    let receipt = stage.haft.ledger().unwrap().receipt(receipt).unwrap();
    assert_eq!((receipt.state, receipt.error_kind), (State::Failed, Some(ErrorKind::Timeout)));
}

#[tokio::test]
async fn a_stopped_task_is_gone_with_everything_it_had_started() {
    let stage = Stage::new();
    let id = stage
        .start("setsid -f sleep 9999 >/dev/null 2>&1; (setsid sh -c '(sleep 9999 &) &' &); trap '' TERM; echo up; while :; do sleep 9999; done")
        .await;
    stage.until(&id, 3).await;
    assert!(!processes(stage.house.root()).is_empty());
    let stopped = stage.haft.call("TaskStop", json!({"task_id": id})).await;
    assert!(
        stopped.output.as_text().starts_with(&format!("Stopped task {id}")),
        "{}",
        stopped.output.as_text()
    );
    assert_eq!(processes(stage.house.root()), Vec::<PathBuf>::new());
    assert_eq!(stage.look(&id).await["task"]["status"], "stopped");
    let again = stage.haft.call("TaskStop", json!({"shell_id": id})).await;
    assert!(
        again.output.as_text().starts_with("Stopped"),
        "the old name is known, and a second time does no harm"
    );
    let nobody = stage.haft.call("TaskStop", json!({})).await;
    assert_eq!(nobody.output.error_kind, Some(ErrorKind::InvalidArguments));
}

#[tokio::test]
async fn an_unknown_task_is_told_with_the_known_ones() {
    let stage = Stage::new();
    for (tool, arguments) in
        [("TaskOutput", json!({"task_id": "nothing"})), ("TaskStop", json!({"task_id": "nothing"}))]
    {
        let none = stage.haft.call(tool, arguments).await;
        assert_eq!(none.output.error_kind, Some(ErrorKind::TargetNotFound));
        let said = none.output.as_text();
        assert_eq!(said, "There is no task \"nothing\"; none has been started in this session");
    }
    let id = stage.start("true").await;
    stage.end(&id).await;
    let said = stage.haft.call("TaskOutput", json!({"task_id": "nothing"})).await.output.as_text();
    assert_eq!(said, format!("There is no task \"nothing\"; there are {id} (completed)"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_call_stops_waiting_and_its_reader_misses_nothing() {
    let stage = Stage::new();
    let id = stage.start("echo kept; wait_for go").await;
    let cancel = Cancel::new();
    let (tell, told) = std::sync::mpsc::channel();
    let watch: haft::Watch = Arc::new(move |execution| {
        if matches!(execution, Execution::Running { .. }) {
            tell.send(()).unwrap();
        }
    });
    let (haft, options) = (stage.haft.clone(), CallOptions { cancel: cancel.clone(), watch: Some(watch) });
    let call = Call::new("waiting", "TaskOutput", json!({"task_id": id, "timeout": 600_000}));
    let waiting = tokio::spawn(async move { haft.run(call, options).await });
    told.recv().unwrap();
    cancel.cancel();
    let result = waiting.await.unwrap();
    assert_eq!(result.output.error_kind, Some(ErrorKind::Interrupted));
    assert_eq!(stage.until(&id, 5).await, "kept\n");
    stage.house.write("go", "");
    stage.end(&id).await;
}

#[tokio::test]
async fn later_calls_do_not_wait_for_a_task() {
    let stage = Stage::new();
    let id = stage.start("wait_for go; echo done").await;
    let said = stage.haft.call("Bash", json!({"command": "echo beside"})).await.output.as_text();
    assert_eq!(said, "beside\n");
    let path = stage.haft.workspace().join("go");
    let wrote = stage.haft.call("Write", json!({"file_path": path, "content": ""})).await;
    assert!(!wrote.output.is_error(), "and what they write the task sees");
    assert_eq!(stage.end(&id).await.output.as_text(), "done\n(completed)");
}

#[tokio::test]
async fn a_task_has_a_receipt_of_its_own_and_its_changes_are_taken_back() {
    let stage = Stage::new();
    stage.house.write("old", "old");
    let started = stage.started("echo new > old; mkdir made; echo x > made/x; rm -f go; echo said").await;
    let number = structured(&started)["receipt"].as_i64().unwrap();
    let ended = stage.end(&id(&started)).await;
    assert_eq!(structured(&ended)["task"]["status"], "completed", "{}", ended.output.as_text());

    let ledger = stage.haft.ledger().unwrap();
    let own = ledger.receipt(started.receipt.id).unwrap();
    assert_eq!((own.state, own.changes.len(), &own.reversible), (State::Completed, 0, &Reversible::Yes));
    let receipt = ledger.receipt(number).unwrap();
    assert_eq!(receipt.call_id, format!("{}/task", own.call_id));
    assert_eq!((receipt.tool.as_str(), receipt.state), ("Bash", State::Completed));
    assert_eq!((receipt.changes.len(), &receipt.reversible), (3, &Reversible::Yes), "{:?}", receipt.changes);
    assert!(receipt.enforcement.unwrap().contains("witness"));
    assert_eq!(receipt.decision, own.decision);
    assert_eq!(ledger.blob(&receipt.full_output.unwrap()).unwrap(), b"said\n", "what it said stays readable");

    let preview = stage.haft.undo_preview(&Target::Last).unwrap();
    assert_eq!(preview.receipts.first().unwrap().id, number);
    stage.haft.undo(&preview, false, CallOptions::default()).await.unwrap();
    assert_eq!(stage.house.read("old"), "old");
    assert!(!stage.house.path("made").exists());
}

#[tokio::test]
async fn a_running_task_is_running_in_the_ledger_and_is_not_taken_back_yet() {
    let stage = Stage::new();
    let started = stage.started("echo x > made; echo up; wait_for go").await;
    let (id, number) = (id(&started), structured(&started)["receipt"].as_i64().unwrap());
    stage.until(&id, 3).await;
    assert_eq!(stage.haft.ledger().unwrap().receipt(number).unwrap().state, State::Running);
    let preview = stage.haft.undo_preview(&Target::Call(number)).unwrap();
    assert_eq!(preview.blocked, [(number, "it is still running".to_owned())]);
    stage.haft.call("TaskStop", json!({"task_id": id})).await;
    let receipt = stage.haft.ledger().unwrap().receipt(number).unwrap();
    assert_eq!((receipt.state, receipt.changes.len()), (State::Interrupted, 1));
}

#[tokio::test]
async fn what_a_task_is_refused_is_told_with_its_end() {
    let stage = Stage::new();
    let outside = tempfile::tempdir_in("/var/tmp").unwrap();
    let id = stage.start(&format!("echo x > {}/x", outside.path().display())).await;
    let ended = stage.end(&id).await;
    assert!(ended.output.as_text().contains("Refused: write"), "{}", ended.output.as_text());
    assert_eq!(structured(&ended)["denials"].as_array().unwrap().len(), 1);
    assert!(!outside.path().join("x").exists());
}

#[tokio::test]
async fn no_more_than_sixteen_run_at_once_and_the_running_ones_are_named() {
    let stage = Stage::new();
    let mut ids = BTreeSet::new();
    for _ in 0..16 {
        ids.insert(stage.start("wait_for go").await);
    }
    assert_eq!(ids.len(), 16);
    let full = stage.haft.call("Bash", json!({"command": "true", "run_in_background": true})).await;
    assert_eq!(full.output.error_kind, Some(ErrorKind::ExecutionFailed));
    let said = full.output.as_text();
    assert!(
        said.starts_with("16 background tasks are running") && ids.iter().all(|id| said.contains(id)),
        "{said}"
    );
    stage.house.write("go", "");
    for id in &ids {
        stage.end(id).await;
    }
    assert_eq!(stage.start("true").await.len(), 8, "now there is room again");
}

#[tokio::test]
async fn another_class_of_tasks_has_a_limit_of_its_own() {
    let house = House::new();
    let said = Arc::new(Mutex::new(Vec::new()));
    let saying = Arc::clone(&said);
    let tool = Made(move |world: &dyn World| {
        for _ in 0..6 {
            let started = world.tasks().start(&request("sleep 9999"), "asleep", TaskClass::SPAWN);
            saying.lock().unwrap().push(started.map(|task| task.id));
        }
        world.tasks().start(&request("sleep 9999"), "asleep", TaskClass::BACKGROUND)?;
        Ok(Output::text("started"))
    });
    let haft = builder(house.root(), house.home()).tool(tool).allow("Made", "test").build().unwrap();
    assert_eq!(haft.call("Made", json!({})).await.output.as_text(), "started");
    let said = std::mem::take(&mut *said.lock().unwrap());
    assert_eq!(said.iter().filter(|said| said.is_ok()).count(), 5);
    let refused = said.last().unwrap().as_ref().unwrap_err();
    assert!(refused.message.starts_with("5 spawn tasks are running"), "{refused}");
    haft.shutdown().await;
    assert_eq!(processes(house.root()), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn of_a_flood_the_beginning_and_the_end_are_kept_and_the_rest_is_counted() {
    const HALF: u64 = 32 << 20;
    const ALL: u64 = 100 << 20;
    let house = House::new();
    let tool = Made(|world: &dyn World| {
        let flood = format!("echo begin; head -c {} /dev/zero | tr '\\0' x; echo; echo end", ALL - 11);
        let task = world.tasks().start(&request(&flood), "flood", TaskClass::BACKGROUND)?;
        let wait = Some(std::time::Duration::from_secs(600));
        let first = world.tasks().read(&task.id, wait, usize::MAX)?;
        assert_eq!((first.total, first.dropped), (ALL, ALL - 2 * HALF));
        assert_eq!((first.output.len() as u64, first.skipped, first.more), (HALF, 0, HALF));
        assert!(first.output.starts_with(b"begin\nxxx"));
        let last = world.tasks().read(&task.id, None, usize::MAX)?;
        assert_eq!((last.output.len() as u64, last.skipped, last.more), (HALF, ALL - 2 * HALF, 0));
        assert!(last.output.ends_with(b"xxx\nend\n"));
        Ok(Output::text("seen"))
    });
    let haft = builder(house.root(), house.home()).tool(tool).allow("Made", "test").build().unwrap();
    assert_eq!(haft.call("Made", json!({})).await.output.as_text(), "seen");
    // The output lies in no file that anybody could find.
    let big = |path: &Path| fs::metadata(path).is_ok_and(|meta| meta.len() > HALF);
    assert!(!fs::read_dir(house.home()).unwrap().flatten().any(|entry| big(&entry.path())));
}

#[tokio::test]
async fn the_end_of_a_task_wakes_whoever_waits_for_one() {
    let stage = Stage::new();
    let id = stage.start("wait_for go; exit 7").await;
    let haft = stage.haft.clone();
    let waiting = tokio::spawn(async move { haft.task_ended().await });
    stage.house.write("go", "");
    let ended = waiting.await.unwrap();
    assert_eq!((&ended.id, ended.state), (&id, TaskState::Failed));
    assert_eq!(stage.haft.ledger().unwrap().receipt(ended.receipt).unwrap().state, State::Failed);
    let notice = haft::dialects::claude::notice(&ended);
    assert!(notice.contains(&format!("<task-id>{id}</task-id>\n<status>failed</status>")), "{notice}");
    assert!(notice.contains("Exit code 7"), "{notice}");
    // An end that came before anybody asked is told all the same.
    let id = stage.start("true").await;
    stage.end(&id).await;
    assert_eq!(stage.haft.task_ended().await.id, id);
}

#[tokio::test]
async fn tasks_end_with_their_session() {
    let spawn = "setsid -f sleep 9999 >/dev/null 2>&1; trap '' TERM; echo up; while :; do sleep 9999; done";
    for shut_down in [true, false] {
        let stage = Stage::new();
        let started = stage.started(spawn).await;
        let number = structured(&started)["receipt"].as_i64().unwrap();
        stage.until(&id(&started), 3).await;
        let ledger = stage.haft.ledger().unwrap();
        let kept = shut_down.then(|| stage.haft.clone());
        if shut_down {
            stage.haft.shutdown().await;
        } else {
            drop(stage.haft);
        }
        assert_eq!(processes(stage.house.root()), Vec::<PathBuf>::new());
        assert_eq!(ledger.receipt(number).unwrap().state, State::Interrupted);
        if let Some(haft) = kept {
            let late = haft.call("Bash", json!({"command": "true", "run_in_background": true})).await;
            let said = late.output.as_text();
            assert_eq!(said, "Nothing can be left running: the session has ended");
        }
    }
}

/// What the next test kills: a program with a session and tasks in it.
#[tokio::test]
async fn victim() {
    let Some(folder) = std::env::var_os("HAFT_TEST_VICTIM").map(PathBuf::from) else { return };
    let haft = builder(&folder.join("work"), &folder.join("home")).build().unwrap();
    for (number, rest) in [
        "sleep 9999",
        "setsid -f sleep 9999 >/dev/null 2>&1; (setsid sh -c '(sleep 9999 &) &' &); touch up2; trap '' TERM INT HUP; while :; do sleep 9999; done",
        "python3 -c 'import ctypes,os,time; ctypes.CDLL(None).prctl(1,0); os.setsid() if os.fork() == 0 else 0; time.sleep(9999)'",
    ]
    .into_iter()
    .enumerate()
    {
        let command = format!("echo changed > file{number}; touch up{number}; {rest}");
        let started = haft.call("Bash", json!({"command": command, "run_in_background": true})).await;
        assert!(!started.output.is_error());
    }
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn nothing_of_a_task_outlives_a_killed_session_and_its_changes_are_taken_back() {
    let folder = tempfile::tempdir().unwrap();
    let work = folder.path().join("work");
    fs::create_dir(&work).unwrap();
    fs::write(work.join("file0"), "old").unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "victim"])
        .env("HAFT_TEST_VICTIM", folder.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    house::until(|| (0..3).all(|number| work.join(format!("up{number}")).exists()));
    assert!(processes(&work).len() >= 3);
    child.kill().unwrap();
    child.wait().unwrap();
    // The keepers end them; that takes a moment, but nothing stays.
    house::until(|| processes(&work).is_empty());

    let haft = builder(&work, &folder.path().join("home")).build().unwrap();
    haft.recover().unwrap();
    let ledger = haft.ledger().unwrap();
    let receipts = ledger.receipts(&haft::Query::default()).unwrap();
    let tasks: Vec<_> = receipts.iter().filter(|receipt| receipt.call_id.ends_with("/task")).collect();
    assert_eq!(tasks.len(), 3);
    assert!(tasks.iter().all(|receipt| receipt.state == State::Interrupted && !receipt.changes.is_empty()));
    for receipt in tasks {
        let preview = haft.undo_preview(&Target::Call(receipt.id)).unwrap();
        haft.undo(&preview, false, CallOptions::default()).await.unwrap();
    }
    assert_eq!(fs::read_to_string(work.join("file0")).unwrap(), "old");
    let names: Vec<_> = fs::read_dir(&work).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["file0"]);
}

#[test]
fn the_command_line_says_that_nothing_can_live_on_after_its_one_call() {
    let house = House::new();
    let ran = house.call("Bash", &json!({"command": "sleep 9999", "run_in_background": true}));
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(
        ran.stdout.starts_with("Nothing can be left running: `haft call` ends with its one call"),
        "{}",
        ran.stdout
    );
    assert_eq!(processes(house.root()), Vec::<PathBuf>::new());
}
