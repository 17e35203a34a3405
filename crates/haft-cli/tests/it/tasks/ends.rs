//! A task ends when it is stopped, with its session, and when that is killed; nothing of it stays.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use haft::{CallOptions, ErrorKind, ReceiptState, UndoTarget, json};

use crate::fixture::cli::CliFixture;
use crate::fixture::tasks::{TaskFixture, builder, id, processes, structured};
use crate::fixture::terminal::Terminal;
use crate::fixture::wait_until;

#[tokio::test]
async fn a_stopped_task_is_gone_with_everything_it_had_started() {
    let fixture = TaskFixture::new();
    let id = fixture
        .start("setsid -f sleep 9999 >/dev/null 2>&1; (setsid sh -c '(sleep 9999 &) &' &); trap '' TERM; echo up; while :; do sleep 9999; done")
        .await;
    fixture.until(&id, 3).await;
    assert!(!processes(fixture.cli.root()).is_empty());
    let stopped = fixture.haft.call("TaskStop", json!({"task_id": id})).await;
    assert!(
        stopped.output.as_text().starts_with(&format!("Stopped task {id}")),
        "{}",
        stopped.output.as_text()
    );
    assert_eq!(processes(fixture.cli.root()), Vec::<PathBuf>::new());
    assert_eq!(fixture.look(&id).await["task"]["status"], "stopped");
    let again = fixture.haft.call("TaskStop", json!({"shell_id": id})).await;
    assert!(
        again.output.as_text().starts_with("Stopped"),
        "the old name is known, and a second time does no harm"
    );
    let unnamed = fixture.haft.call("TaskStop", json!({})).await;
    assert_eq!(unnamed.output.error_kind, Some(ErrorKind::InvalidArguments));
}

#[tokio::test]
async fn tasks_end_with_their_session() {
    let spawn = "setsid -f sleep 9999 >/dev/null 2>&1; trap '' TERM; echo up; while :; do sleep 9999; done";
    for shut_down in [true, false] {
        let fixture = TaskFixture::new();
        let started = fixture.started(spawn).await;
        let number = structured(&started)["receipt"].as_i64().unwrap();
        fixture.until(&id(&started), 3).await;
        let ledger = fixture.haft.ledger().unwrap();
        let kept = shut_down.then(|| fixture.haft.clone());
        if shut_down {
            fixture.haft.shutdown().await;
        } else {
            drop(fixture.haft);
        }
        assert_eq!(processes(fixture.cli.root()), Vec::<PathBuf>::new());
        assert_eq!(ledger.receipt(number).unwrap().state, ReceiptState::Interrupted);
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
        "setsid -f sleep 9999 >/dev/null 2>&1; (setsid sh -c '(sleep 9999 &) &' &); trap '' TERM INT HUP; while :; do sleep 9999; done",
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
        .args(["--exact", "tasks::ends::victim"])
        .env("HAFT_TEST_VICTIM", folder.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_until(|| (0..3).all(|number| work.join(format!("up{number}")).exists()));
    assert!(processes(&work).len() >= 3);
    child.kill().unwrap();
    child.wait().unwrap();
    // The reapers end them.
    wait_until(|| processes(&work).is_empty());

    let haft = builder(&work, &folder.path().join("home")).build().unwrap();
    haft.recover().unwrap();
    let ledger = haft.ledger().unwrap();
    let receipts = ledger.receipts(&haft::ReceiptQuery::default()).unwrap();
    let tasks: Vec<_> = receipts.iter().filter(|receipt| receipt.call_id.ends_with("/task")).collect();
    assert_eq!(tasks.len(), 3);
    assert!(
        tasks.iter().all(|receipt| receipt.state == ReceiptState::Interrupted && !receipt.changes.is_empty())
    );
    for receipt in tasks {
        let preview = haft.undo_preview(&UndoTarget::Call(receipt.id)).unwrap();
        haft.undo(&preview, false, CallOptions::default()).await.unwrap();
    }
    assert_eq!(fs::read_to_string(work.join("file0")).unwrap(), "old");
    let names: Vec<_> = fs::read_dir(&work).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["file0"]);
}

#[test]
fn the_command_line_says_that_nothing_can_live_on_after_its_one_call() {
    let cli = CliFixture::new();
    let ran = cli.call("Bash", &json!({"command": "sleep 9999", "run_in_background": true}));
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(
        ran.stdout.starts_with("Nothing can be left running: `haft call` exits after one call"),
        "{}",
        ran.stdout
    );
    assert_eq!(processes(cli.root()), Vec::<PathBuf>::new());
}

/// Starts a command detached, which waits for a write to `go`; gives its process. The terminal it is started at
/// is gone as soon as Haft is.
fn detached(cli: &CliFixture, command: &str) -> (u32, PathBuf) {
    assert!(Command::new("mkfifo").arg(cli.path("go")).status().unwrap().success());
    let started = Terminal::run(cli.command(&["sandbox", "--detach", "--", "sh", "-c", command]));
    let (code, said) = started.ends();
    assert_eq!(code, 0, "{said}");
    let mut words = said.split_whitespace();
    let process = words.nth(1).unwrap().parse().unwrap();
    let output = words.nth(5).unwrap().trim_end_matches(';').into();
    (process, output)
}

fn field_of(process: u32, at: usize) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(at).map(str::to_owned)
}

/// Whether it has ended; its adoptive parent may not have reaped it yet.
fn is_gone(process: u32) -> bool {
    field_of(process, 0).is_none_or(|state| state == "Z")
}

#[test]
fn what_is_detached_on_purpose_goes_on_without_whoever_started_it_and_is_recorded() {
    let cli = CliFixture::new();
    let (process, output) = detached(&cli, "echo began; cat go > heard; echo ended");
    assert_eq!(field_of(process, 3).unwrap(), process.to_string(), "a session of its own");
    // From here on there is a reader.
    let go = fs::OpenOptions::new().write(true).open(cli.path("go")).unwrap();
    fs::write(cli.path("go"), "now\n").unwrap();
    drop(go);
    wait_until(|| is_gone(process));
    assert_eq!(cli.read("heard"), "now\n");
    assert_eq!(fs::read_to_string(&output).unwrap(), "began\nended\n");
    assert_eq!(cli.haft(&["undo", "--yes"]).code, 0);
    assert!(!cli.path("heard").exists());
}

#[test]
fn what_is_detached_is_ended_as_a_whole_when_it_is_told_to_end() {
    let cli = CliFixture::new();
    let (process, _) = detached(&cli, "setsid -f sleep 9999; cat go; sleep 9999");
    drop(fs::OpenOptions::new().write(true).open(cli.path("go")).unwrap());
    assert!(!processes(cli.root()).is_empty());
    assert!(Command::new("kill").arg(process.to_string()).status().unwrap().success());
    wait_until(|| is_gone(process));
    wait_until(|| processes(cli.root()).is_empty());
}

#[test]
fn what_is_wrong_with_a_detached_command_is_told_at_once() {
    let cli = CliFixture::new();
    let ran = cli.haft(&["sandbox", "--detach", "--add-dir", "/nowhere/at/all", "--", "true"]);
    assert_ne!(ran.code, 0);
    assert!(ran.stderr.contains("/nowhere/at/all"), "{}", ran.stderr);
    assert!(!cli.home().join("detached").exists());
}
