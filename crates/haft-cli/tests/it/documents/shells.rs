//! How each dialect runs a command: through which shell, where, and for how long.

use std::time::Duration;

use haft::{Settings, json};

use crate::documents::recorded;

#[tokio::test]
async fn omegas_bash_runs_through_bash_for_120_seconds() {
    let (omega, recorder) = recorded("omega", &Settings::default());
    omega.call("bash", json!({"command": "[[ x ]] && echo \"$x\""})).await;
    let run = recorder.run();
    assert_eq!(run.argv, ["bash", "-c", "[[ x ]] && echo \"$x\""]);
    assert!(run.cwd.is_none(), "in the workspace");
    assert_eq!(run.timeout, Duration::from_mins(2));
}

#[tokio::test]
async fn claudes_bash_has_120_seconds_unless_told_otherwise() {
    let (claude, recorder) = recorded("claude", &Settings::default());
    claude.call("Bash", json!({"command": "true"})).await;
    assert_eq!(recorder.run().timeout, Duration::from_mins(2));
    claude.call("Bash", json!({"command": "true", "timeout": 600_000})).await;
    assert_eq!(recorder.run().timeout, Duration::from_mins(10));
}

#[tokio::test]
async fn looms_bash_runs_through_sh_for_60_seconds_and_at_most_300() {
    let (loom, recorder) = recorded("loom", &Settings::default());
    let command = r#"echo "$HOME" 'a  b' \$x"#;
    loom.call("bash", json!({"command": command})).await;
    let run = recorder.run();
    assert_eq!(run.argv, ["sh", "-c", command], "nothing is escaped");
    assert_eq!((run.merge, run.cwd), (false, None));
    assert_eq!(run.timeout, Duration::from_mins(1));
    for (asked, taken) in [(-5, 1), (0, 1), (1, 1), (299, 299), (300, 300), (301, 300), (100_000, 300)] {
        loom.call("bash", json!({"command": "true", "timeout_secs": asked})).await;
        assert_eq!(recorder.run().timeout, Duration::from_secs(taken), "{asked}");
    }
}

#[tokio::test]
async fn clawfts_exec_shell_runs_through_sh_for_30_seconds_and_at_most_300() {
    let (clawft, recorder) = recorded("clawft", &Settings::default());
    clawft.call("exec_shell", json!({"command": "echo $x 'a  b'"})).await;
    let run = recorder.run();
    assert_eq!(run.argv, ["sh", "-c", "echo $x 'a  b'"]);
    assert_eq!((run.merge, run.cwd), (false, None));
    assert_eq!(run.timeout, Duration::from_secs(30));
    for (asked, taken) in
        [(1.0, 1.0), (2.5, 2.5), (120.0, 120.0), (300.0, 300.0), (301.0, 300.0), (1e9, 300.0)]
    {
        clawft.call("exec_shell", json!({"command": "cargo build --release", "timeout": asked})).await;
        assert_eq!(recorder.run().timeout, Duration::from_secs_f64(taken), "{asked}");
    }
}

#[tokio::test]
async fn clawfts_spawn_runs_a_program_for_60_seconds() {
    let (clawft, recorder) = recorded("clawft", &Settings::default());
    clawft.call("spawn", json!({"command": "echo", "args": ["$HOME", "a b"]})).await;
    let run = recorder.run();
    assert_eq!(run.argv, ["echo", "$HOME", "a b"], "no shell");
    assert!(run.cwd.is_none());
    assert_eq!(run.timeout, Duration::from_mins(1));
    let example = json!({"command": "cargo", "args": ["test", "--release"], "description": "Run tests", "timeout": 120});
    clawft.call("spawn", example).await;
    let run = recorder.run();
    assert_eq!(run.argv, ["cargo", "test", "--release"]);
    assert_eq!(run.timeout, Duration::from_mins(2));
}

#[tokio::test]
async fn where_no_process_can_be_started_clawfts_spawn_fails() {
    let (clawft, recorder) = recorded("clawft", &Settings::default());
    recorder.refuse("processes cannot be started on this platform");
    let (kind, said) = clawft.fails("spawn", json!({"command": "true"})).await;
    assert_eq!(kind.clawft_name(), "ExecutionFailed");
    assert!(said.contains("processes cannot be started on this platform"), "{said}");
}
