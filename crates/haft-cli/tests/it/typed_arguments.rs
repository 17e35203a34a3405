//! Arguments as a person types them: `NAME=VALUE`, relative paths, durations; and what is refused in them.

use std::process::Stdio;

use crate::fixture::cli::CliFixture;
use serde_json::{Value, json};

fn recorded_input(cli: &CliFixture, args: &[&str]) -> Value {
    let ran = cli.haft(&[args, &["--json"]].concat());
    let value: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.stderr));
    value["receipt"]["input"].clone()
}

#[test]
fn words_are_arguments_and_paths_start_in_the_current_directory() {
    let cli = CliFixture::new();
    std::fs::create_dir(cli.path("sub")).unwrap();
    cli.write("sub/a.txt", "tea\n");
    let mut edit = cli.command(&["call", "Edit", "file_path=a.txt", "old_string=tea", "new_string=a=b"]);
    let output = edit.current_dir(cli.path("sub")).args(["--workspace", ".."]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(cli.read("sub/a.txt"), "a=b\n");
}

#[test]
fn schema_says_what_a_value_is() {
    let cli = CliFixture::new();
    cli.write("5", "five\n");
    let path = |name: &str| json!(std::fs::canonicalize(cli.root()).unwrap().join(name));
    let input = recorded_input(&cli, &["call", "Read", "file_path=5", "limit=1"]);
    assert_eq!(input, json!({"file_path": path("5"), "limit": 1}));
    let input = recorded_input(&cli, &["call", "Write", "file_path=b", "content=true"]);
    assert_eq!(input, json!({"file_path": path("b"), "content": "true"}));
    let input = recorded_input(&cli, &["call", "Grep", "pattern=five", "C=2", "i=true"]);
    assert_eq!(input, json!({"pattern": "five", "-C": 2, "-i": true}));
    let input = recorded_input(&cli, &["call", "Bash", "command=true", "timeout=30s"]);
    assert_eq!(input, json!({"command": "true", "timeout": 30_000}));
    let clawft = ["call", "--dialect", "clawft", "spawn", "command=ls", r#"args=["-a"]"#, "timeout=1500ms"];
    assert_eq!(recorded_input(&cli, &clawft), json!({"command": "ls", "args": ["-a"], "timeout": 1.5}));
    let loom = ["call", "--dialect", "loom", "bash", "command=pwd", "cwd=.", "timeout_secs=1m"];
    assert_eq!(recorded_input(&cli, &loom)["timeout_secs"], 60);
    let input = recorded_input(&cli, &["call", "Edit", "file_path=b", "old_string=true", "new_string=@5"]);
    assert_eq!(input["new_string"], "five\n");
    let ran = cli.pipe(&["call", "Write", "file_path=c", "content=@-"], b"from standard input");
    assert_eq!((ran.code, cli.read("c").as_str()), (0, "from standard input"));
}

#[test]
fn every_path_of_a_tool_that_touches_files_is_known_as_one() {
    for name in haft::dialects::NAMES {
        let dialect = haft::dialects::by_name(name, &haft::Settings::default()).unwrap();
        for tool in &dialect.tools {
            let schema = tool.definition().input_schema;
            let marked = tool.argument_formats();
            for (field, schema) in schema["properties"].as_object().unwrap() {
                let about = schema["description"].as_str().unwrap_or_default().to_lowercase();
                let is_path =
                    field.ends_with("path") || about.contains("path of") || about.starts_with("path");
                let is_marked = marked.iter().any(|(name, format)| name == field && format == "path");
                assert!(!is_path || is_marked, "{name}: {}.{field}", tool.name());
            }
        }
    }
}

#[test]
fn words_without_a_name_get_the_line_that_was_meant() {
    let cli = CliFixture::new();
    let cases: [(&[&str], &str); 6] = [
        (&["call", "Bash", "ls"], "haft call Bash command=ls\n"),
        (&["call", "Bash", "make", "test"], "haft call Bash command='make test'\n"),
        (&["call", "Read", "it's", "limit=5"], r"haft call Read file_path='it'\''s' limit=5"),
        (&["call", "Edit", "a.txt"], "haft call Edit file_path=a.txt old_string=… new_string=…"),
        (&["call", "Bash", "command=ls", "src"], "`haft tools Bash` lists the names"),
        (&["call", "Bash", "command=ls", "command=pwd"], "command is given twice"),
    ];
    for (args, expected) in cases {
        let ran = cli.haft(args);
        assert_eq!(ran.code, 2, "{args:?}");
        assert!(ran.stderr.contains(expected), "{args:?}: {}", ran.stderr);
    }
    let none = cli.haft(&[]);
    assert_eq!(none.code, 2);
    assert!(none.stderr.contains("haft call Edit file_path="), "{}", none.stderr);
}

#[test]
fn a_tilde_is_refused_with_the_path_to_use_and_never_becomes_a_directory() {
    let cli = CliFixture::new();
    let home = tempfile::tempdir().unwrap();
    let write = |dialect: &str, tool: &str, field: &str, path: &str| {
        let arguments = json!({field: path, "content": "x"}).to_string();
        let mut command = cli.command(&["call", "--dialect", dialect, tool, &arguments]);
        command.env("HOME", home.path()).output().unwrap()
    };
    let instead = format!("{}/notes.txt", home.path().display());
    for (dialect, tool, field) in
        [("claude", "Write", "file_path"), ("omega", "write", "file_path"), ("clawft", "write_file", "path")]
    {
        let output = write(dialect, tool, field, "~/notes.txt");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(!output.status.success() && said.contains(&instead), "{dialect}: {said}");
        let nested = cli.path("~/x.txt");
        assert!(!write(dialect, tool, field, nested.to_str().unwrap()).status.success(), "{dialect}");
    }
    let arguments = json!({"path": "~/x", "edits": [{"old_str": "", "new_str": "x"}]}).to_string();
    assert_ne!(cli.haft(&["call", "--dialect", "loom", "edit_file", &arguments]).code, 0);
    assert!(!cli.path("~").exists());
    // A person means the home.
    cli.write("inside", "");
    let mut read = cli.command(&["call", "Read", "file_path=~/own.txt"]);
    std::fs::write(home.path().join("own.txt"), "mine\n").unwrap();
    let output = read.env("HOME", home.path()).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("mine"), "{output:?}");
}

#[test]
fn a_command_in_the_sandbox_needs_no_separator_and_keeps_its_flags() {
    let cli = CliFixture::new();
    let ran = cli.haft(&["sandbox", "--timeout", "1m", "sh", "-c", "echo $0 $*", "--json", "--", "-x"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "--json -- -x\n"), "{}", ran.stderr);
    assert_eq!(cli.haft(&["sandbox", "--", "sh", "-c", "exit 3"]).code, 3);
}

#[test]
fn a_failure_of_the_sandbox_is_not_taken_for_one_of_the_command() {
    let cli = CliFixture::new();
    cli.write("not-executable", "");
    assert_eq!(cli.haft(&["sandbox", "haft-no-such-program"]).code, 127);
    assert_eq!(cli.haft(&["sandbox", "./not-executable"]).code, 126);
    assert_eq!(cli.haft(&["sandbox", "--no-such-flag", "true"]).code, 125);
    assert_eq!(cli.haft(&["sandbox"]).code, 125);
    assert_eq!(cli.haft(&["sandbox", "--workspace", "/no/such/directory", "true"]).code, 125);
    assert_eq!(cli.haft(&["sandbox", "--timeout", "50ms", "sleep", "600"]).code, 124);
    assert_eq!(cli.haft(&["sandbox", "sh", "-c", "kill -9 $$"]).code, 137);
    cli.write("haft.toml", "[permissions]\ndeny = [\"Bash(rm:*)\"]\n");
    let denied = cli.haft(&["sandbox", "rm", "x"]);
    assert_eq!(denied.code, 125, "{}", denied.stderr);
}

#[test]
fn json_of_a_sandboxed_command_has_its_output_and_receipt() {
    let cli = CliFixture::new();
    let ran = cli.haft(&["sandbox", "--json", "sh", "-c", "echo out; echo err >&2; echo x > new; exit 3"]);
    let value: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.stderr));
    assert_eq!((ran.code, &value["content"]), (3, &json!("out\nerr\n")));
    assert_eq!((&value["structured"]["exit"], &value["is_error"]), (&json!(3), &json!(true)));
    assert_eq!(value["receipt"]["changes"].as_array().unwrap().len(), 1);
    let missing = cli.haft(&["sandbox", "--json", "haft-no-such-program"]);
    let value: Value = serde_json::from_str(&missing.stdout).unwrap();
    assert_eq!((missing.code, &value["error_kind"]), (127, &json!("file_not_found")));
}

#[test]
fn output_that_cannot_be_written_is_an_error() {
    let cli = CliFixture::new();
    cli.write("a.txt", "x\n");
    let full = || Stdio::from(std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
    for args in [&["call", "Read", "file_path=a.txt"][..], &["tools"], &["--help"], &["log", "--json"]] {
        let output = cli.command(args).stdout(full()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{args:?}: {said}");
        assert!(args == ["--help"] || said.contains("the output cannot be written"), "{args:?}: {said}");
    }
}

#[test]
fn rules_and_flags_that_name_nothing_are_warned_about() {
    let cli = CliFixture::new();
    let flags =
        ["--allow-read", ".env.loca", "--env", "HAFT_NO_SUCH_VARIABLE", "--show-home", ".no-such-entry"];
    let ran = cli.haft(&[&["sandbox"], &flags[..], &["true"]].concat());
    assert_eq!(ran.code, 0);
    for expected in [
        "--allow-read .env.loca has no effect: it is not on the list of secrets",
        "--env HAFT_NO_SUCH_VARIABLE has no effect: the variable is not set",
        "--show-home .no-such-entry has no effect",
    ] {
        assert!(ran.stderr.contains(expected), "{expected}: {}", ran.stderr);
    }
    std::fs::write(cli.config(), "[permissions]\nallow = [\"Raed\"]\n").unwrap();
    let ran = cli.haft(&["sandbox", "true"]);
    assert!(ran.stderr.contains("names no tool"), "{}", ran.stderr);
}
