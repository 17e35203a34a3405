//! The examples of the documents, through the program.

use haft::{Value, json};

use crate::fixture::cli::CliFixture;
use crate::fixture::runtime::fields;

/// Makes a call and gives its one JSON value.
fn call(cli: &CliFixture, dialect: &str, tool: &str, arguments: &Value) -> Value {
    let ran = cli.haft(&["call", "--dialect", dialect, tool, &arguments.to_string()]);
    assert_eq!(ran.code, 0, "{tool}: {}{}", ran.stdout, ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn clawfts_examples_give_the_documented_shape() {
    let cli = CliFixture::new();
    std::fs::create_dir(cli.path("src")).unwrap();
    cli.write("src/main.rs", "fn main() {}");
    let call = |tool: &str, arguments: Value| call(&cli, "clawft", tool, &arguments);
    assert_eq!(call("read_file", json!({"path": "src/main.rs"})), json!({"content": "fn main() {}"}));
    let write = json!({"path": "config/settings.toml", "content": "[server]\nport = 8080\n"});
    let message = "Successfully wrote 21 bytes to config/settings.toml";
    assert_eq!(call("write_file", write), json!({"message": message}));
    let new = "fn main() {\n    println!(\"hello\");\n}";
    let edit = json!({"path": "src/main.rs", "old_text": "fn main() {}", "new_text": new});
    assert_eq!(call("edit_file", edit), json!({"message": "Successfully edited src/main.rs"}));
    assert_eq!(cli.read("src/main.rs"), new);
    let listed = call("list_directory", json!({"path": "src"}));
    assert_eq!(listed, json!({"entries": [{"name": "main.rs", "is_dir": false, "size": new.len()}]}));
    let ran =
        call("exec_shell", json!({"command": "command -v cargo build --release; true", "timeout": 120}));
    assert_eq!(fields(&ran), ["exit_code", "stdout", "stderr", "duration_ms"]);
    let spawned =
        json!({"command": "echo", "args": ["test", "--release"], "description": "Run tests", "timeout": 120});
    let expected = json!({
        "exit_code": 0, "stdout": "test --release\n", "stderr": "", "command": "echo", "description": "Run tests",
    });
    assert_eq!(call("spawn", spawned), expected);

    for (tool, arguments, kind) in [
        ("read_file", json!({"path": "missing"}), "FileNotFound"),
        ("read_file", json!({}), "InvalidArgs"),
        ("write_file", json!({"path": "../x", "content": ""}), "InvalidPath"),
        ("exec_shell", json!({"command": "echo a; sleep 60", "timeout": 1}), "Timeout"),
        ("no_such_tool", json!({}), "NotFound"),
    ] {
        let ran = cli.haft(&["call", "--dialect", "clawft", tool, &arguments.to_string()]);
        let error: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!((&fields(&error)[..2], &error["kind"]), (&["error", "kind"][..], &json!(kind)), "{tool}");
    }
}

#[test]
fn looms_calls_give_the_documented_shape() {
    let cli = CliFixture::new();
    cli.write("Cargo.toml", "");
    std::fs::create_dir(cli.path("src")).unwrap();
    let call = |tool: &str, arguments: Value| call(&cli, "loom", tool, &arguments);
    let path = |name: &str| json!(cli.path(name));
    assert_eq!(
        call("list_files", json!({})),
        json!({"entries": [{"path": path("Cargo.toml"), "is_dir": false}, {"path": path("src"), "is_dir": true}]})
    );
    let edit = json!({"path": "src/new.rs", "edits": [{"old_str": "", "new_str": "fn main() {}\n"}]});
    let expected =
        json!({"path": path("src/new.rs"), "edits_applied": 1, "original_bytes": 0, "new_bytes": 13});
    assert_eq!(call("edit_file", edit), expected);
    let expected = json!({"path": path("src/new.rs"), "contents": "fn main() {}\n", "truncated": false});
    assert_eq!(call("read_file", json!({"path": "src/new.rs"})), expected);
    let expected =
        json!({"exit_code": 0, "stdout": "x\n", "stderr": "", "timed_out": false, "truncated": false});
    assert_eq!(call("bash", json!({"command": "echo x", "cwd": "src", "timeout_secs": 9})), expected);
}

#[test]
fn errors_leave_with_their_exit_codes() {
    let cli = CliFixture::new();
    for (dialect, tool, arguments, code) in [
        ("loom", "read_file", json!({"path": "none"}), 1),
        ("loom", "read_file", json!({}), 2),
        ("clawft", "exec_shell", json!({"command": "sudo ls"}), 3),
        ("omega", "nothing", json!({}), 4),
        ("clawft", "exec_shell", json!({"command": "sleep 600", "timeout": 0.1}), 124),
    ] {
        let ran = cli.haft(&["call", "--dialect", dialect, tool, &arguments.to_string()]);
        assert_eq!(ran.code, code, "{dialect} {tool}: {}{}", ran.stdout, ran.stderr);
    }
}
