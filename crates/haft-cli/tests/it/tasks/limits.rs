//! How long, how many at once, how much output.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use haft::{ErrorKind, Output, ReceiptState, TaskClass, World, json};

use crate::fixture::cli::CliFixture;
use crate::fixture::tasks::{TaskFixture, TestTool, builder, id, processes, request, structured};

#[tokio::test]
async fn a_task_has_no_time_limit_but_the_one_it_is_given() {
    let fixture = TaskFixture::new();
    let arguments = json!({"command": "sleep 9999", "run_in_background": true, "timeout": 50});
    let id = id(&fixture.haft.call("Bash", arguments).await);
    let ended = fixture.end(&id).await;
    assert_eq!(structured(&ended)["task"]["status"], "timed_out");
    let receipt = structured(&ended)["receipt"].as_i64().unwrap();
    let receipt = fixture.haft.ledger().unwrap().receipt(receipt).unwrap();
    assert_eq!((receipt.state, receipt.error_kind), (ReceiptState::Failed, Some(ErrorKind::Timeout)));
}

#[tokio::test]
async fn no_more_than_sixteen_run_at_once_and_the_running_ones_are_named() {
    let fixture = TaskFixture::new();
    let mut ids = BTreeSet::new();
    for _ in 0..16 {
        ids.insert(fixture.start("wait_for go").await);
    }
    assert_eq!(ids.len(), 16);
    let full = fixture.haft.call("Bash", json!({"command": "true", "run_in_background": true})).await;
    assert_eq!(full.output.error_kind, Some(ErrorKind::ExecutionFailed));
    let said = full.output.as_text();
    assert!(
        said.starts_with("16 background tasks are running") && ids.iter().all(|id| said.contains(id)),
        "{said}"
    );
    fixture.cli.write("go", "");
    for id in &ids {
        fixture.end(id).await;
    }
    assert_eq!(fixture.start("true").await.len(), 8, "now there is room again");
}

#[tokio::test]
async fn another_class_of_tasks_has_a_limit_of_its_own() {
    let cli = CliFixture::new();
    let said = Arc::new(Mutex::new(Vec::new()));
    let saying = Arc::clone(&said);
    let tool = TestTool(move |world: &dyn World| {
        for _ in 0..6 {
            let started = world.tasks().start(&request("sleep 9999"), "asleep", TaskClass::SPAWN);
            saying.lock().unwrap().push(started.map(|task| task.id));
        }
        world.tasks().start(&request("sleep 9999"), "asleep", TaskClass::BACKGROUND)?;
        Ok(Output::text("started"))
    });
    let haft = builder(cli.root(), cli.home()).tool(tool).allow("TestTool", "test").build().unwrap();
    assert_eq!(haft.call("TestTool", json!({})).await.output.as_text(), "started");
    let said = std::mem::take(&mut *said.lock().unwrap());
    assert_eq!(said.iter().filter(|said| said.is_ok()).count(), 5);
    let refused = said.last().unwrap().as_ref().unwrap_err();
    assert!(refused.message.starts_with("5 spawn tasks are running"), "{refused}");
    haft.shutdown().await;
    assert_eq!(processes(cli.root()), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn of_a_flood_the_beginning_and_the_end_are_kept_and_the_rest_is_counted() {
    const HALF: u64 = 32 << 20;
    const ALL: u64 = 100 << 20;
    let cli = CliFixture::new();
    let tool = TestTool(|world: &dyn World| {
        let flood = format!("echo begin; head -c {} /dev/zero | tr '\\0' x; echo; echo end", ALL - 11);
        let task = world.tasks().start(&request(&flood), "flood", TaskClass::BACKGROUND)?;
        let wait = Some(std::time::Duration::from_mins(10));
        let first = world.tasks().read(&task.id, wait, usize::MAX)?;
        assert_eq!((first.total, first.dropped), (ALL, ALL - 2 * HALF));
        assert_eq!((first.output.len() as u64, first.skipped, first.more), (HALF, 0, HALF));
        assert!(first.output.starts_with(b"begin\nxxx"));
        let last = world.tasks().read(&task.id, None, usize::MAX)?;
        assert_eq!((last.output.len() as u64, last.skipped, last.more), (HALF, ALL - 2 * HALF, 0));
        assert!(last.output.ends_with(b"xxx\nend\n"));
        Ok(Output::text("seen"))
    });
    let haft = builder(cli.root(), cli.home()).tool(tool).allow("TestTool", "test").build().unwrap();
    assert_eq!(haft.call("TestTool", json!({})).await.output.as_text(), "seen");
    // The output is in no file that a name leads to.
    let big = |path: &Path| fs::metadata(path).is_ok_and(|meta| meta.len() > HALF);
    assert!(!fs::read_dir(cli.home()).unwrap().flatten().any(|entry| big(&entry.path())));
}
