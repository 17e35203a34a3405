//! What a task writes, read while it runs and after, and the news of its end.

use std::sync::Arc;

use haft::{Call, CallOptions, Cancel, ErrorKind, Execution, ReceiptState, TaskState, json};

use crate::fixture::tasks::{TaskFixture, id, structured};

#[tokio::test]
async fn output_comes_while_the_task_runs_each_byte_once_and_characters_whole() {
    let fixture = TaskFixture::new();
    let started =
        fixture.started("echo one; wait_for go; printf '\\303'; wait_for on; printf '\\244x'").await;
    let id = id(&started);
    assert_eq!(started.output.as_text(), format!("Command running in background with ID: {id}"));
    assert_eq!(fixture.until(&id, 4).await, "one\n");
    let look = fixture.look(&id).await;
    assert_eq!(
        (&look["task"]["output"], &look["retrieval_status"], &look["task"]["status"]),
        (&json!(""), &json!("not_ready"), &json!("running"))
    );
    fixture.cli.write("go", "");
    while fixture.look(&id).await["totalBytes"] != 5 {}
    assert_eq!(fixture.look(&id).await["task"]["output"], "", "half a character is not given");
    fixture.cli.write("on", "");
    let ended = fixture.end(&id).await;
    assert_eq!(ended.output.as_text(), "äx\n(completed)");
    assert_eq!(structured(&ended)["task"]["exitCode"], 0);
    let again = fixture.end(&id).await;
    assert_eq!(again.output.as_text(), "(completed)", "there is nothing new after the end");
    assert_eq!(structured(&again)["totalBytes"], 7);
}

#[tokio::test]
async fn more_than_a_caller_sees_at_once_comes_in_parts_that_are_the_whole() {
    let fixture = TaskFixture::new();
    let id = fixture.start("seq 1 40000").await;
    let mut seen = String::new();
    loop {
        let part = fixture.end(&id).await;
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
    let fixture = TaskFixture::new();
    let id = fixture.start("echo early; wait_for go; echo late; exit 3").await;
    fixture.until(&id, 0).await;
    let timed_out = fixture.haft.call("TaskOutput", json!({"task_id": id, "timeout": 1})).await;
    assert_eq!(structured(&timed_out)["retrieval_status"], "timeout");
    assert!(
        !timed_out.output.is_error() && timed_out.output.as_text().ends_with("(still running after 1 ms)")
    );
    fixture.cli.write("go", "");
    let ended = fixture.end(&id).await;
    assert!(ended.output.as_text().ends_with("late\nExit code 3"), "{}", ended.output.as_text());
    assert_eq!(structured(&ended)["task"]["status"], "failed");
    let most = fixture.haft.call("TaskOutput", json!({"task_id": id, "timeout": 600_001})).await;
    assert_eq!(most.output.error_kind, Some(ErrorKind::InvalidArguments));
}

#[tokio::test]
async fn an_unknown_task_is_told_with_the_known_ones() {
    let fixture = TaskFixture::new();
    for (tool, arguments) in
        [("TaskOutput", json!({"task_id": "nothing"})), ("TaskStop", json!({"task_id": "nothing"}))]
    {
        let none = fixture.haft.call(tool, arguments).await;
        assert_eq!(none.output.error_kind, Some(ErrorKind::TargetNotFound));
        let said = none.output.as_text();
        assert_eq!(said, "There is no task \"nothing\"; none has been started in this session");
    }
    let id = fixture.start("true").await;
    fixture.end(&id).await;
    let said = fixture.haft.call("TaskOutput", json!({"task_id": "nothing"})).await.output.as_text();
    assert_eq!(said, format!("There is no task \"nothing\"; there are {id} (completed)"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_call_stops_waiting_and_its_reader_misses_nothing() {
    let fixture = TaskFixture::new();
    let id = fixture.start("echo kept; wait_for go").await;
    let cancel = Cancel::new();
    let (tell, told) = std::sync::mpsc::channel();
    let watch: haft::Watch = Arc::new(move |execution| {
        if matches!(execution, Execution::Running { .. }) {
            tell.send(()).unwrap();
        }
    });
    let (haft, options) = (
        fixture.haft.clone(),
        CallOptions { cancel: cancel.clone(), watch: Some(watch), ..CallOptions::default() },
    );
    let call = Call::new("waiting", "TaskOutput", json!({"task_id": id, "timeout": 600_000}));
    let waiting = tokio::spawn(async move { haft.run(call, options).await });
    told.recv().unwrap();
    cancel.cancel();
    let result = waiting.await.unwrap();
    assert_eq!(result.output.error_kind, Some(ErrorKind::Interrupted));
    assert_eq!(fixture.until(&id, 5).await, "kept\n");
    fixture.cli.write("go", "");
    fixture.end(&id).await;
}

#[tokio::test]
async fn later_calls_do_not_wait_for_a_task() {
    let fixture = TaskFixture::new();
    let id = fixture.start("wait_for go; echo done").await;
    let said = fixture.haft.call("Bash", json!({"command": "echo beside"})).await.output.as_text();
    assert_eq!(said, "beside\n");
    let path = fixture.haft.workspace().join("go");
    let wrote = fixture.haft.call("Write", json!({"file_path": path, "content": ""})).await;
    assert!(!wrote.output.is_error(), "and what they write the task sees");
    assert_eq!(fixture.end(&id).await.output.as_text(), "done\n(completed)");
}

#[tokio::test]
async fn the_end_of_a_task_wakes_whoever_waits_for_one() {
    let fixture = TaskFixture::new();
    let id = fixture.start("wait_for go; exit 7").await;
    let haft = fixture.haft.clone();
    let waiting = tokio::spawn(async move { haft.task_ended().await });
    fixture.cli.write("go", "");
    let ended = waiting.await.unwrap();
    assert_eq!((&ended.id, ended.state), (&id, TaskState::Failed));
    assert_eq!(fixture.haft.ledger().unwrap().receipt(ended.receipt).unwrap().state, ReceiptState::Failed);
    let notice = haft::dialects::claude::notice(&ended);
    assert!(notice.contains(&format!("<task-id>{id}</task-id>\n<status>failed</status>")), "{notice}");
    assert!(notice.contains("Exit code 7"), "{notice}");
    // An end before the first request is reported too.
    let id = fixture.start("true").await;
    fixture.end(&id).await;
    assert_eq!(fixture.haft.task_ended().await.id, id);
}
