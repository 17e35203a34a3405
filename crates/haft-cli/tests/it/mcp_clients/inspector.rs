//! The Inspector, as people try a server out with it: one method at a time.

use std::process::Command;

use serde_json::{Value, json};

use crate::fixture::mcp::McpFixture;
use crate::fixture::peers;

/// What came of one run.
struct InspectorRun {
    code: i32,
    result: Value,
    complaints: String,
}

fn inspect(fixture: &McpFixture, target: &[&str], args: &[&str]) -> InspectorRun {
    let mut command = fixture.alone(Command::new(peers::node()));
    command.arg(peers::script("inspector", "clients/launcher/build/index.js")).arg("--cli").args(target);
    command.args(args).args(["--format", "json"]);
    if !target[0].starts_with("http") {
        // It hands nothing down but what it is told to.
        for (name, path) in [("HAFT_HOME", fixture.cli.home()), ("HAFT_CONFIG", &fixture.cli.config())] {
            command.args(["-e", &format!("{name}={}", path.display())]);
        }
    }
    let ran = command.output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    let complaints = String::from_utf8_lossy(&ran.stderr).into_owned();
    let mut all: Value = serde_json::from_str(&said).unwrap_or_default();
    InspectorRun { code: ran.status.code().unwrap_or(-1), result: all["result"].take(), complaints }
}

/// The same, and it must go well.
fn done(fixture: &McpFixture, target: &[&str], args: &[&str]) -> Value {
    let InspectorRun { code, result, complaints } = inspect(fixture, target, args);
    assert_eq!(code, 0, "{args:?}: {complaints}");
    result
}

fn looks_around(fixture: &McpFixture, target: &[&str], era: &str) {
    let letter = fixture.path("letter.txt");
    let look = |args: &[&str]| done(fixture, target, &[args, &["--protocol-era", era]].concat());
    let names = |listed: &Value| -> Vec<String> {
        listed.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&look(&["--method", "tools/list"])["tools"])[..3], ["Read", "Write", "Edit"]);
    let arguments = json!({"file_path": letter, "content": format!("Dear {era},\n")}).to_string();
    let wrote = look(&["--method", "tools/call", "--tool-name", "Write", "--tool-args-json", &arguments]);
    assert!(
        wrote["isError"] == false && wrote["content"][0]["text"].as_str().unwrap().contains("letter.txt"),
        "{wrote}"
    );
    assert_eq!(fixture.cli.read("letter.txt"), format!("Dear {era},\n"));
    let read = look(&["--method", "resources/read", "--uri", &format!("file://{letter}")]);
    assert_eq!(read["contents"][0]["text"], format!("Dear {era},\n"), "{read}");
    assert!(names(&look(&["--method", "resources/list"])["resources"]).contains(&"letter.txt".to_owned()));
    let prompt =
        look(&["--method", "prompts/get", "--prompt-name", "greet", "--prompt-args", "arguments=Ann"]);
    assert_eq!(prompt["messages"][0]["content"]["text"], "Say hello to Ann.", "{prompt}");
    fixture.haft(&["undo", "--yes"]);
    assert_eq!(fixture.cli.read("letter.txt"), "Dear Ann,\n");
}

fn furnished() -> McpFixture {
    let fixture = McpFixture::new();
    fixture.cli.write("letter.txt", "Dear Ann,\n");
    std::fs::create_dir_all(fixture.path(".claude/skills/greet")).unwrap();
    fixture.cli.write(
        ".claude/skills/greet/SKILL.md",
        "---\nname: greet\ndescription: Greets.\n---\nSay hello to $ARGUMENTS.\n",
    );
    fixture
}

const STDIO: [&str; 2] = [env!("CARGO_BIN_EXE_haft"), "mcp"];

#[test]
fn it_finds_everything_over_stdio_in_the_old_era() {
    looks_around(&furnished(), &STDIO, "legacy");
}

#[test]
fn it_finds_everything_over_stdio_in_the_new_era() {
    looks_around(&furnished(), &STDIO, "modern");
}

fn over_http(era: &str) {
    let fixture = furnished();
    let served = fixture.serve(&[]);
    let header = format!("Authorization: Bearer {}", served.token);
    looks_around(&fixture, &[&served.url, "--header", &header], era);
    let stranger = inspect(&fixture, &[&served.url], &["--method", "tools/list", "--stored-auth-only"]);
    assert!(stranger.code != 0 && stranger.result.is_null(), "without the token there is nothing to see");
    served.ends();
}

#[test]
fn it_finds_everything_over_http_in_the_old_era() {
    over_http("legacy");
}

#[test]
fn it_finds_everything_over_http_in_the_new_era() {
    over_http("modern");
}

#[test]
fn its_strictest_look_at_every_dialect_finds_nothing_wrong() {
    let fixture = McpFixture::new();
    for dialect in ["claude", "loom", "omega", "clawft"] {
        let target = [STDIO.as_slice(), &["--dialect", dialect, "--ledger-tools"]].concat();
        let seen = inspect(&fixture, &target, &["--method", "tools/list", "--strict"]);
        assert_eq!(seen.code, 0, "{dialect}: {}", seen.complaints);
        // What a result may be it calls less portable; what a model has to write is fit for all.
        assert!(!seen.complaints.contains("inputSchema"), "{dialect}: {}", seen.complaints);
        assert!(seen.result["tools"].as_array().unwrap().len() > 3, "{dialect}");
    }
}

#[test]
fn its_strictest_look_does_find_what_is_bad() {
    let hostile = peers::ours("../haft-mcp/tests/fixtures/hostile_server.py");
    let target = ["python3", &hostile, "schema-external"];
    let seen = inspect(&McpFixture::new(), &target, &["--method", "tools/list", "--strict"]);
    assert!(seen.complaints.contains("inputSchema.properties.away"), "{}", seen.complaints);
}
