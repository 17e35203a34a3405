//! Omega's executor: what its document says beyond the tests that it names (see `tests/omega.rs`).

use haft::{Definition, Runtime, json};

use crate::fixture::cli::CliFixture;
use crate::fixture::runtime::RuntimeFixture;

fn omega() -> RuntimeFixture {
    RuntimeFixture::of(haft::omega())
}

#[tokio::test]
async fn a_definition_and_a_result_can_be_copied_and_a_definition_read_back() {
    let omega = omega();
    for tool in omega.haft.definitions() {
        let again: Definition = serde_json::from_value(json!(tool.clone())).unwrap();
        assert_eq!(json!(again), json!(tool));
    }
    let result = omega.call("bash", json!({"command": "echo x"})).await;
    assert_eq!(result.clone().output, result.output);
    assert!(format!("{result:?}").contains("x\\n"));
}

#[tokio::test]
async fn read_takes_text_as_it_is_and_tells_what_is_none() {
    let omega = omega();
    let (text, binary) = (omega.file("text", "grün\r\n"), omega.file("binary", b"\x7fELF\0\0\x01\xff"));
    assert_eq!(omega.text("read", json!({"file_path": text})).await, "grün\r\n", "not a byte is changed");
    let (_, said) = omega.fails("read", json!({"file_path": binary})).await;
    assert!(said.contains("not text"), "{said}");
}

#[tokio::test]
async fn write_replaces_what_is_there() {
    let omega = omega();
    let path = omega.file("a.txt", "a long text that was there before");
    omega.text("write", json!({"file_path": path, "content": "new"})).await;
    assert_eq!(omega.read("a.txt"), "new");
}

#[tokio::test]
async fn a_command_cannot_write_to_what_is_blocked() {
    let omega = omega();
    let command = "for place in /etc /usr/bin /boot /dev; do echo x > $place/haft-test && echo $place; done";
    let said = omega.call("bash", json!({"command": command})).await.output.as_text();
    for place in ["/etc", "/usr/bin", "/boot", "/dev"] {
        assert!(!std::path::Path::new(place).join("haft-test").exists(), "{place}");
        assert!(!said.lines().any(|line| line == place), "{said}");
    }
    omega.text("bash", json!({"command": "echo x > here; echo x > /tmp/omega-$$; rm /tmp/omega-$$"})).await;
    assert_eq!(omega.read("here"), "x\n");
}

#[tokio::test]
async fn a_data_directory_of_ones_own_is_writable() {
    let data = tempfile::tempdir_in("/var/tmp").unwrap();
    let file = data.path().canonicalize().unwrap().join("notes.txt");
    let write = json!({"file_path": file, "content": "x"});
    assert!(omega().call("write", write.clone()).await.output.is_error(), "it is not part of the workspace");
    let omega = RuntimeFixture::with(|builder| builder.dialect(haft::omega()).add_directory(data.path()));
    omega.text("write", write).await;
    omega.call("bash", json!({"command": format!("echo y >> {}", file.display())})).await;
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "xy\n");
}

#[test]
fn the_modes_hold_commands_too() {
    let outside = tempfile::tempdir_in("/var/tmp").unwrap();
    let file = outside.path().canonicalize().unwrap().join("a.txt");
    let cli = CliFixture::new();
    let bash = json!({"command": format!("echo y > {}", file.display())}).to_string();
    let run = |mode: &str| cli.haft(&["call", "--dialect", "omega", "--sandbox", mode, "bash", &bash]).code;
    for mode in ["sandbox", "rx"] {
        assert_ne!(run(mode), 0, "{mode}");
        assert!(!file.exists(), "{mode}");
        let inside =
            json!({"command": "echo x > here && echo x > /tmp/haft-$$ && rm /tmp/haft-$$"}).to_string();
        let ran = cli.haft(&["call", "--dialect", "omega", "--sandbox", mode, "bash", &inside]);
        assert_eq!((ran.code, cli.read("here").as_str()), (0, "x\n"), "{mode}: {}", ran.stderr);
    }
    assert_eq!(run("rwx"), 0);
    assert!(file.exists());
}

#[test]
fn the_data_directory_has_a_default() {
    let cli = CliFixture::new();
    let user = tempfile::tempdir().unwrap();
    let mut command = cli.command(&["call", "--dialect", "omega", "bash", r#"{"command": "true"}"#]);
    command.env_remove("HAFT_HOME").env_remove("XDG_STATE_HOME").env("HOME", user.path());
    assert!(command.output().unwrap().status.success());
    assert!(user.path().join(".local/state/haft").is_dir());
}

#[tokio::test]
async fn shutting_down_twice_does_no_harm() {
    let omega = omega();
    let again: Runtime = omega.haft.clone();
    omega.text("bash", json!({"command": "true"})).await;
    omega.haft.clone().shutdown().await;
    again.shutdown().await;
}
