//! The `haft` command as a user meets it: what comes out, where, and with which exit code.

use std::process::Stdio;

use crate::fixture::cli::{CliFixture, interrupt, is_running};
use crate::fixture::wait_until;
use serde_json::{Value, json};

#[test]
fn a_call_prints_its_result_on_standard_output_and_nothing_else() {
    let cli = CliFixture::new();
    cli.write("a.txt", "one\ntwo\n");
    let ran = cli.call("Read", &json!({"file_path": cli.path("a.txt")}));
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (0, "     1\tone\n     2\ttwo\n", ""));
}

#[test]
fn json_holds_content_error_structure_and_receipt() {
    let cli = CliFixture::new();
    let ran = cli.haft(&[
        "call",
        "Write",
        &json!({"file_path": cli.path("x/y.txt"), "content": "hi"}).to_string(),
        "--json",
    ]);
    let value: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(value["is_error"], json!(false));
    assert_eq!(value["structured"]["type"], "create");
    assert_eq!(value["receipt"]["state"], "completed");
    assert_eq!(value["receipt"]["changes"].as_array().unwrap().len(), 2, "a directory and a file");
    assert!(value["content"].as_str().unwrap().starts_with("Created "));
    assert!(value.get("error_kind").is_none());
}

#[test]
fn each_kind_of_failure_has_its_exit_code() {
    let cli = CliFixture::new();
    let missing = cli.path("missing.txt");
    let cases: [(&str, Value, i32, &str); 8] = [
        ("Read", json!({"file_path": missing}), 1, "file_not_found"),
        ("Read", json!({"file_path": "relative.txt"}), 2, "invalid_arguments"),
        ("Read", json!({}), 2, "invalid_arguments"),
        ("Reed", json!({}), 4, "not_found"),
        ("Write", json!({"file_path": "/etc/haft-test", "content": ""}), 3, "permission_denied"),
        ("Read", json!({"file_path": cli.home().join("ledger.db")}), 3, "permission_denied"),
        ("Bash", json!({"command": "exit 3"}), 1, "execution_failed"),
        ("Bash", json!({"command": "sleep 600", "timeout": 50}), 124, "timeout"),
    ];
    for (tool, arguments, code, kind) in cases {
        let ran = cli.haft(&["call", tool, &arguments.to_string(), "--json"]);
        assert_eq!(ran.code, code, "{tool} {arguments}: {}", ran.stdout);
        let value: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(
            (&value["is_error"], &value["error_kind"]),
            (&json!(true), &json!(kind)),
            "{tool} {arguments}"
        );
    }
    assert_eq!(cli.haft(&["no-such-command"]).code, 2);
    assert_eq!(cli.haft(&["show", "99"]).code, 4);
    assert_eq!(cli.haft(&["undo"]).code, 1);
}

#[test]
fn malformed_arguments_are_a_clear_error_with_exit_code_2() {
    let cli = CliFixture::new();
    cli.write("a.txt", "x");
    let path = cli.path("a.txt");
    let deep = format!("{{\"file_path\": {}{}}}", "[".repeat(10_000), "]".repeat(10_000));
    let cases = [
        ("not json at all".to_owned(), "not JSON"),
        (String::new(), "not JSON"),
        ("[1, 2]".to_owned(), "must be a JSON object"),
        ("{\"file_path\": 5}".to_owned(), "file_path: expected a string, got 5"),
        (json!({"filepath": path}).to_string(), "filepath: unknown field; did you mean file_path?"),
        (
            json!({"file_path": path, "color": "red"}).to_string(),
            "color: unknown field; there are: file_path, offset, limit, pages",
        ),
        (json!({"file_path": path, "limit": -1}).to_string(), "limit: expected at least 1, got -1"),
        (
            json!({"file_path": path, "limit": "ten"}).to_string(),
            "limit: expected a whole number, got the string \"ten\"",
        ),
        (json!({"file_path": "/a\u{0}b"}).to_string(), "NUL byte"),
        ("{\"file_path\": \"\\ud800\"}".to_owned(), "not JSON"),
        ("{\"file_path\": \"/x\"".to_owned(), "not JSON"),
        (deep, "recursion limit"),
    ];
    for (arguments, expected) in cases {
        let ran = cli.pipe(&["call", "Read", "-"], arguments.as_bytes());
        assert_eq!(ran.code, 2, "{}", ran.stdout);
        assert!(
            format!("{}{}", ran.stdout, ran.stderr).contains(expected),
            "{expected}: {}{}",
            ran.stdout,
            ran.stderr
        );
    }
}

#[test]
fn arguments_of_100_mb_are_refused_whatever_they_hold() {
    let cli = CliFixture::new();
    let huge = json!({"file_path": cli.path("big"), "content": "a".repeat(100_000_000)}).to_string();
    let ran = cli.pipe(&["call", "Write", "-"], huge.as_bytes());
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("exceed the limit of 67108864 bytes"), "{}", ran.stderr);
    assert!(!cli.path("big").exists());
    cli.write("huge.json", &huge);
    assert_eq!(cli.haft(&["call", "Write", "@huge.json"]).code, 2);
    assert_eq!(cli.haft(&["call", "Write", "@."]).code, 2);
    assert_eq!(cli.haft(&["call", "Write", "@/dev/zero"]).code, 2);
    assert_eq!(cli.pipe(&["call", "Read", "-"], b"{\"file_path\": \"\xff\"}").code, 2);
}

#[test]
fn a_number_sent_as_a_string_is_taken_and_said_so() {
    let cli = CliFixture::new();
    cli.write("a.txt", "1\n2\n3\n");
    let ran = cli.haft(&[
        "call",
        "Read",
        &json!({"file_path": cli.path("a.txt"), "limit": "1"}).to_string(),
        "--json",
    ]);
    let value: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(value["structured"]["coerced"], json!(["limit: the string \"1\" was taken as 1"]));
    assert_eq!(value["structured"]["file"]["numLines"], 1);
}

#[test]
fn a_timed_out_command_leaves_no_process_and_keeps_what_it_said() {
    let cli = CliFixture::new();
    let mark = format!("haft-mark-{}", std::process::id());
    let command =
        format!("echo before; (setsid bash -c 'exec -a {mark} sleep 600' &) ; exec -a {mark} sleep 600");
    let ran = cli.call("Bash", &json!({"command": command, "timeout": 5000}));
    assert_eq!(ran.code, 124);
    assert!(ran.stdout.starts_with("before\nTimed out after 5000 ms"), "{}", ran.stdout);
    assert!(!is_running(&mark));
}

#[test]
fn a_flood_of_output_is_bounded_in_memory_and_told_truly() {
    let cli = CliFixture::new();
    let (ran, peak_kib) = cli.peak(&[
        "call",
        "Bash",
        &json!({
            "command": "echo first; head -c 2000000000 /dev/zero | tr '\\0' x; echo; echo last",
            "timeout": 600_000,
        })
        .to_string(),
    ]);
    assert_eq!(ran.code, 0);
    assert!(ran.stdout.starts_with("first\n") && ran.stdout.ends_with("last\n"), "head and tail are shown");
    assert!(
        ran.stdout.contains("(2000000012 bytes in all); the rest: haft show 1 --output"),
        "{}",
        &ran.stdout[14_000..16_000]
    );
    assert!(ran.stdout.len() < 31_000);
    // The pages of a debug build are half of it.
    assert!(peak_kib < 64 * 1024, "{peak_kib} KiB");
    let kept = cli.haft(&["show", "1", "--output"]);
    assert!(kept.stdout.starts_with("first\n") && kept.stdout.len() > 8_000_000);
}

#[test]
fn an_interrupt_stops_the_call_and_leaves_a_receipt() {
    let cli = CliFixture::new();
    let started = cli.path("started");
    let command = format!("echo partial; touch {}; sleep 600", started.display());
    let mut child = cli.command(&["call", "Bash", &json!({"command": command}).to_string(), "--json"]);
    let child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until(|| started.exists());
    interrupt(child.id());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value["receipt"]["state"], "interrupted");
    assert!(value["content"].as_str().unwrap().starts_with("partial\n"));
}

#[test]
fn rules_on_the_command_line_are_obeyed_and_cited() {
    let cli = CliFixture::new();
    cli.write("secret.txt", "s");
    let read = json!({"file_path": cli.path("secret.txt")}).to_string();
    let denied = cli.haft(&["call", "Read", &read, "--disallowedTools", "Read(secret*)"]);
    assert_eq!(
        (denied.code, denied.stdout.as_str()),
        (3, "Denied: Read is denied by a rule [Read(secret*) (--disallowedTools)]\n")
    );
    let write = json!({"file_path": cli.path("a"), "content": ""}).to_string();
    assert_eq!(cli.haft(&["call", "Write", &write, "--permission-mode", "plan"]).code, 3);
    assert_eq!(cli.haft(&["call", "Write", &write, "--permission-mode", "nonsense"]).code, 2);
    let outside = tempfile::tempdir().unwrap();
    let path = outside.path().join("b.txt");
    let write = json!({"file_path": path, "content": "b"}).to_string();
    assert_eq!(cli.haft(&["call", "Write", &write]).code, 3);
    assert_eq!(
        cli.haft(&["call", "Write", &write, "--allowedTools", &format!("Write(/{})", path.display())]).code,
        0
    );
    assert_eq!(cli.haft(&["undo", "--yes"]).code, 0);
    assert!(!path.exists(), "what was written outside comes back too");
    assert_eq!(cli.haft(&["call", "Write", &write, "--add-dir", outside.path().to_str().unwrap()]).code, 0);
}

#[test]
fn a_ledger_inside_the_workspace_is_refused() {
    let cli = CliFixture::new();
    let mut command = cli.command(&["call", "Glob", "{\"pattern\": \"*\"}"]);
    let output = command.env("HAFT_HOME", cli.path("state/haft")).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("lies inside"), "{output:?}");
    let output = cli.command(&["log"]).env("HAFT_HOME", "relative").output().unwrap();
    assert_ne!(output.status.code(), Some(0));
}

#[test]
fn tools_are_printed_in_every_envelope() {
    let cli = CliFixture::new();
    let names = |value: &Value, path: &str| -> Vec<String> {
        value
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool.pointer(path).unwrap().as_str().unwrap().to_owned())
            .collect()
    };
    let all = [
        "Read",
        "Write",
        "Edit",
        "NotebookEdit",
        "Glob",
        "Grep",
        "Bash",
        "TaskOutput",
        "TaskStop",
        "TodoWrite",
        "WebFetch",
        "WebSearch",
        "Agent",
        "AskUserQuestion",
        "ExitPlanMode",
        "Config",
        "ListMcpResources",
        "ReadMcpResource",
    ];
    let parsed = |format: &str| -> Value {
        serde_json::from_str(&cli.haft(&["tools", "--format", format]).stdout).unwrap()
    };
    assert_eq!(names(&parsed("openai"), "/function/name"), all);
    assert_eq!(names(&parsed("ollama"), "/function/name"), all);
    assert_eq!(names(&parsed("anthropic"), "/name"), all);
    assert_eq!(names(&parsed("haft"), "/name"), all);
    assert_eq!(names(&parsed("mcp")["tools"], "/name"), all);
    assert_eq!(names(&parsed("gemini")[0]["functionDeclarations"], "/name"), all);
    assert_eq!(cli.haft(&["tools", "Reed"]).code, 4);
    let grep = parsed("anthropic")[5]["input_schema"].clone();
    for field in [
        "pattern",
        "path",
        "glob",
        "output_mode",
        "-B",
        "-A",
        "-C",
        "-n",
        "-i",
        "type",
        "head_limit",
        "offset",
        "multiline",
    ] {
        assert!(grep["properties"].get(field).is_some(), "Grep has {field}");
    }
    insta::assert_snapshot!("tools_openai", serde_json::to_string_pretty(&parsed("openai")).unwrap());
}

#[test]
fn aliases_of_the_seed_are_answered_to() {
    let cli = CliFixture::new();
    for (tool, arguments) in [
        ("FileWrite", json!({"file_path": cli.path("a"), "content": "x"})),
        ("FileEdit", json!({"file_path": cli.path("a"), "old_string": "x", "new_string": "y"})),
        ("FileRead", json!({"file_path": cli.path("a")})),
    ] {
        assert_eq!(cli.call(tool, &arguments).code, 0, "{tool}");
    }
}

#[test]
fn what_cannot_be_meant_is_explained() {
    let cli = CliFixture::new();
    for (args, words) in [
        (&["lgo"][..], "a similar subcommand exists: 'log'"),
        (&["config", "sett"], "a similar subcommand exists: 'set'"),
        (&["l\u{1b}[31mog"], "l\\u{1b}[31mog"),
        (&["show", "abc"], "\"abc\" is not the number of a call"),
        (&["undo", "f"], "haft undo -- f"),
        (&["undo", "--to", "0"], "\"0\" is not the number of a call"),
        (&["log", "-n", "0"], "is not a number from 1 on"),
        (&["log", "--workspace", "/dev/null"], "it is not a directory"),
        (&["call", "Read", "file_path=x", "--workspace", "/dev/null"], "it is not a directory"),
    ] {
        let ran = cli.haft(args);
        assert!(ran.code == 2 && ran.stderr.contains(words), "{args:?}: {} {}", ran.code, ran.stderr);
    }
    let ran = cli.haft(&["blame", "a\nb"]);
    assert!(ran.code == 1 && ran.stderr.contains("a\\nb: no such file"), "{}", ran.stderr);
    let ran = cli.haft(&["call", "Write", "file_path=a", "content=x"]);
    assert!(ran.stdout.contains("(1 line, 1 byte)"), "{}", ran.stdout);
}

#[test]
fn arguments_of_a_command_need_not_be_utf8() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    let cli = CliFixture::new();
    let ran = cli.command(&["sandbox", "echo"]).arg(OsStr::from_bytes(b"a\xffb")).output().unwrap();
    assert_eq!(ran.stdout, b"a\xffb\n");
    assert!(cli.haft(&["log"]).stdout.contains("echo a\u{fffd}b"));
    let ran = cli.command(&["call", "Read"]).arg(OsStr::from_bytes(b"file_path=\xff")).output().unwrap();
    assert_eq!(ran.status.code(), Some(2));
    let said = String::from_utf8(ran.stderr).unwrap();
    assert!(said.contains("file_path=\\xff is not UTF-8"), "{said}");
}

#[test]
fn the_doors_that_need_no_call_work() {
    let cli = CliFixture::new();
    let doctor: Value = serde_json::from_str(&cli.haft(&["doctor", "--json"]).stdout).unwrap();
    assert_eq!(doctor["ok"], json!(true), "{doctor:#}");
    assert!(cli.haft(&["completion", "bash"]).stdout.contains("_haft"));
    assert!(cli.haft(&["man"]).stdout.contains(".TH haft"));
    assert!(cli.haft(&["--version"]).stdout.starts_with("haft "));
    for command in ["call", "tools", "log", "show", "undo", "redo", "gc", "doctor"] {
        assert_eq!(cli.haft(&[command, "--help"]).code, 0, "{command}");
    }
    for content in ["x", "y"] {
        cli.call("Write", &json!({"file_path": cli.path("a"), "content": content}));
    }
    assert!(cli.haft(&["gc", "--max-size", "1", "--dry-run"]).stdout.starts_with("Would delete 1 call "));
    assert_eq!(cli.haft(&["gc", "--older-than", "1w"]).code, 0);
    assert_eq!(cli.haft(&["gc", "--max-size", "lots"]).code, 2);
}

#[test]
fn the_demo_refuses_the_harm_and_undoes_the_rest() {
    let cli = CliFixture::new();
    // Neither a terminal, nor a network, nor a writable current directory is needed.
    let demo = cli.haft(&["demo"]);
    assert_eq!(demo.code, 0, "{}{}", demo.stdout, demo.stderr);
    for text in [
        "+    echo \"Hello, $1!\"",
        "ok: greets the world",
        "Refused: read ",
        "Denied: it would reach collect.example.com.",
        "rm -rf src tests README.md",
        "The project is byte for byte as before: 4 files",
    ] {
        assert!(demo.stdout.contains(text), "{text}: {}", demo.stdout);
    }
    assert!(!demo.stdout.contains("sk-demo-"), "{}", demo.stdout);
    let left =
        std::fs::read_dir(cli.root()).unwrap().count() + std::fs::read_dir(cli.home()).unwrap().count();
    assert_eq!(left, 0, "the demo has a ledger of its own");
}

#[test]
fn a_reader_that_goes_away_is_no_panic() {
    let cli = CliFixture::new();
    cli.write("a.txt", &"line\n".repeat(100_000));
    let mut child = cli
        .command(&["call", "Read", &json!({"file_path": cli.path("a.txt"), "limit": 100_000}).to_string()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"), "{output:?}");
}

#[test]
fn two_edits_of_one_file_at_once_are_both_made() {
    let cli = CliFixture::new();
    let lines: String = (0..16).map(|n| format!("line {n}\n")).collect();
    cli.write("a.txt", &lines);
    let children: Vec<_> = (0..16)
        .map(|n| {
            let edit = json!({"file_path": cli.path("a.txt"), "old_string": format!("line {n}\n"), "new_string": format!("edited {n}\n")});
            cli.command(&["call", "Edit", &edit.to_string()]).stdout(Stdio::null()).spawn().unwrap()
        })
        .collect();
    for child in children {
        assert!(child.wait_with_output().unwrap().status.success());
    }
    assert_eq!(cli.read("a.txt"), (0..16).map(|n| format!("edited {n}\n")).collect::<String>());
    let left = std::fs::read_dir(cli.root()).unwrap().count();
    assert_eq!(left, 1, "no temporary file is left");
}
