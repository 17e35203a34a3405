//! `exec_shell` and `spawn`.

use haft::{Call, CallOptions, ErrorKind, Value, json};

use crate::clawft::clawft;
use crate::fixture::runtime::fields;
use crate::fixture::wait_until;

#[tokio::test]
async fn exec_shell_gives_code_streams_and_duration() {
    let clawft = clawft();
    let done = clawft.value("exec_shell", json!({"command": "pwd; echo err >&2; exit 3"})).await;
    assert_eq!(fields(&done), ["exit_code", "stdout", "stderr", "duration_ms"]);
    assert_eq!((&done["exit_code"], &done["stderr"]), (&json!(3), &json!("err\n")));
    assert_eq!(done["stdout"], format!("{}\n", clawft.haft.workspace().display()));
    assert!(done["duration_ms"].is_u64());
    let shell = clawft.value("exec_shell", json!({"command": "echo $0; kill -9 $$"})).await;
    assert_eq!((&shell["stdout"], &shell["exit_code"]), (&json!("sh\n"), &json!(-1)), "unknown is -1");
}

#[tokio::test]
async fn exec_shell_ends_with_its_time_and_keeps_what_was_written() {
    let clawft = clawft();
    let output =
        clawft.call("exec_shell", json!({"command": "echo kept; sleep 600", "timeout": 5.5})).await.output;
    assert_eq!(output.error_kind, Some(ErrorKind::Timeout));
    let error: Value = serde_json::from_str(&output.as_text()).unwrap();
    assert!(error["error"].as_str().unwrap().starts_with("Timed out after 5.5 seconds"), "{error}");
    assert_eq!((&error["kind"], &error["stdout"]), (&json!("Timeout"), &json!("kept\n")));
    let long = clawft.value("exec_shell", json!({"command": "echo x", "timeout": 100_000})).await;
    assert_eq!(long["stdout"], "x\n", "too much is taken as the most");
    let none = clawft.fails("exec_shell", json!({"command": "sleep 600", "timeout": -1})).await;
    assert!(none.0 == ErrorKind::Timeout && none.1.contains("Timed out after 0 seconds"), "{none:?}");
}

#[tokio::test]
async fn exec_shell_refuses_what_is_on_the_denylist_and_nothing_else() {
    let clawft = clawft();
    clawft.file("log", "shutdown\n");
    for command in
        ["rm -r -f /", "RM  -rf /", "sudo ls", "mkfs.ext4 x", "x=1 shutdown now", "echo x > /dev/sda"]
    {
        let (kind, said) = clawft.fails("exec_shell", json!({"command": command})).await;
        assert_eq!(kind, ErrorKind::PermissionDenied, "{command}");
        assert!(said.contains("which is on the denylist"), "{said}");
    }
    for command in ["rm -rf /tmp/haft-no-such-thing", "grep shutdown log", "echo 'rm -rf /'"] {
        assert_eq!(
            clawft.value("exec_shell", json!({"command": command})).await["exit_code"],
            0,
            "{command}"
        );
    }
}

#[tokio::test]
async fn spawn_runs_a_program_without_a_shell() {
    let clawft = clawft();
    let arguments = json!({"command": "echo", "args": ["hello world", "$HOME"], "description": "test echo"});
    let done = clawft.call("spawn", arguments).await;
    let expected = json!({
        "exit_code": 0, "stdout": "hello world $HOME\n", "stderr": "", "command": "echo", "description": "test echo",
    });
    assert_eq!(done.output.structured.as_ref(), Some(&expected));
    assert_eq!(fields(&expected), fields(done.output.structured.as_ref().unwrap()));
    assert_eq!(
        json!(done.receipt.effects),
        json!([{"effect": "run", "command": "echo 'hello world' '$HOME'"}]),
        "rules read it as a shell would"
    );
    let plain = clawft.value("spawn", json!({"command": "false"})).await;
    assert_eq!((&plain["exit_code"], &plain["description"]), (&json!(1), &json!("(no description)")));
}

#[tokio::test]
async fn spawn_ends_with_its_time_and_tells_a_missing_program() {
    let clawft = clawft();
    let late = json!({"command": "sleep", "args": ["600"], "timeout": 0.2});
    assert_eq!(clawft.fails("spawn", late).await.0, ErrorKind::Timeout);
    let (kind, said) = clawft.fails("spawn", json!({"command": "haft-no-such-program"})).await;
    assert!(said.contains("haft-no-such-program"), "{kind}: {said}");
    for command in ["", " ", "a\0b"] {
        assert_eq!(clawft.fails("spawn", json!({"command": command})).await.0, ErrorKind::InvalidArguments);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn at_most_five_spawned_programs_run_at_once() {
    let fixture = clawft();
    let names: Vec<String> = (0..5).map(|at| format!("started{at}")).collect();
    let running: Vec<_> = names
        .iter()
        .map(|name| {
            let script = format!("touch {name}; while [ ! -e go ]; do sleep 0.05; done");
            let arguments = json!({"command": "sh", "args": ["-c", script], "timeout": 600});
            let (haft, call) = (fixture.haft.clone(), Call::new("c", "spawn", arguments));
            tokio::spawn(async move { haft.run(call, CallOptions::default()).await })
        })
        .collect();
    wait_until(|| {
        assert!(!running.iter().any(tokio::task::JoinHandle::is_finished), "one of five is refused");
        names.iter().all(|name| fixture.root().join(name).exists())
    });
    let (kind, said) = fixture.fails("spawn", json!({"command": "true"})).await;
    assert_eq!(kind, ErrorKind::ExecutionFailed);
    assert!(said.contains("5 is the limit"), "{said}");
    fixture.file("go", "");
    for call in running {
        assert_eq!(call.await.unwrap().output.error_kind, None);
    }
    assert_eq!(fixture.value("spawn", json!({"command": "true"})).await["exit_code"], 0);
}
