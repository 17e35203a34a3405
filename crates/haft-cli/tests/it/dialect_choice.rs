//! Which tools are offered, and results as each provider takes them.

use crate::fixture::cli::CliFixture;
use haft::formats::{ProviderFormat, result};
use haft::{ErrorKind, Output, ToolError};
use serde_json::{Value, json};

fn names(cli: &CliFixture, args: &[&str]) -> Vec<String> {
    let ran = cli.haft(&[&["tools", "--format", "haft"], args].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let all: Value = serde_json::from_str(&ran.stdout).unwrap();
    all.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_set_may_mix_dialects_in_the_order_named() {
    let cli = CliFixture::new();
    assert_eq!(names(&cli, &["--tools", "loom:bash,Read"]), ["bash", "Read"]);
    assert_eq!(names(&cli, &["--tools", "FileRead,Task"]), ["Read", "Agent"], "aliases name tools too");
    assert_eq!(
        names(&cli, &["--dialect", "loom", "--tools", "list_files,omega:edit"]),
        ["list_files", "edit"]
    );
    assert_eq!(names(&cli, &["--tools", "omega:*"]), ["bash", "read", "write", "edit"]);
    for (tools, code, words) in [
        ("loom:read_file,clawft:read_file", 2, "Two tools are called \"read_file\""),
        ("loom:bahs", 4, "the dialect loom has no tool \"bahs\"; did you mean bash?"),
        ("klingon:bash", 4, "there is no dialect \"klingon\""),
    ] {
        let ran = cli.haft(&["tools", "--tools", tools]);
        assert_eq!(ran.code, code, "{tools}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{tools}: {}", ran.stderr);
    }
}

#[test]
fn a_call_reaches_only_the_tools_of_its_set() {
    let cli = CliFixture::new();
    cli.write("a.txt", "one\n");
    let mixed = |tool: &str, arguments: Value| {
        cli.haft(&["call", tool, &arguments.to_string(), "--json", "--tools", "loom:read_file,Read"])
    };
    let ran = mixed("read_file", json!({"path": "a.txt"}));
    let value: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(value["structured"]["contents"], "one\n");
    assert_eq!(mixed("Read", json!({"file_path": cli.path("a.txt")})).code, 0);
    assert_eq!(mixed("Write", json!({"file_path": cli.path("b"), "content": ""})).code, 4);
}

#[test]
fn each_tool_of_a_mixed_set_keeps_the_ways_of_its_dialect() {
    let cli = CliFixture::new();
    let outside = "/etc/hostname";
    let mixed = |tool: &str, arguments: Value| {
        cli.haft(&["call", tool, &arguments.to_string(), "--json", "--tools", "loom:read_file,Read"])
    };
    assert_eq!(mixed("Read", json!({"file_path": outside})).code, 0);
    let ran = mixed("read_file", json!({"path": outside}));
    let value: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(value["is_error"], true, "loom reads nothing outside its workspace: {}", ran.stdout);
    let ran = cli.haft(&[
        "call",
        "Read",
        &json!({"file_path": outside}).to_string(),
        "--dialect",
        "loom",
        "--tools",
        "read_file,claude:Read",
    ]);
    assert_eq!(ran.code, 0, "{}", ran.stdout);
}

#[test]
fn the_file_chooses_what_is_offered_by_default() {
    let cli = CliFixture::new();
    std::fs::write(cli.config(), "dialect = \"omega\"\noffer = [\"bash\", \"claude:Grep\"]\n").unwrap();
    assert_eq!(names(&cli, &[]), ["bash", "Grep"]);
    assert_eq!(names(&cli, &["--tools", "read"]), ["read"]);
    assert_eq!(names(&cli, &["--dialect", "loom", "--tools", "bash"]), ["bash"]);
    assert!(names(&cli, &["--dialect", "claude"]).len() > 10, "a dialect that is named is offered whole");
}

#[test]
fn all_definitions_of_claude_fit_into_12_kilobytes_as_sent() {
    let cli = CliFixture::new();
    let sent = cli.haft(&["tools", "--format", "openai"]).stdout;
    let sent: Value = serde_json::from_str(&sent).unwrap();
    let bytes = sent.to_string().len();
    assert!(bytes < 12_000, "{bytes} bytes");
}

#[test]
fn section_6_a_result_is_a_message_of_the_role_tool() {
    let cli = CliFixture::new();
    cli.write("file1.go", "");
    let ran = cli.haft(&["call", "Glob", "{\"pattern\": \"*.go\"}", "--format", "openai"]);
    let message: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&message["role"], &message["tool_call_id"]), (&json!("tool"), &json!("call_1")));
    assert!(message["content"].as_str().unwrap().contains("file1.go"));
    assert_eq!(message.as_object().unwrap().len(), 3);
}

#[test]
fn section_6_errors_begin_with_error_where_the_wire_has_no_flag() {
    let cli = CliFixture::new();
    let arguments = json!({"file_path": cli.path("none")}).to_string();
    let ran = cli.haft(&["call", "Read", &arguments, "--format", "openai"]);
    let message: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(ran.code, 1);
    assert!(message["content"].as_str().unwrap().starts_with("Error: "), "{message}");

    let failed = Output::from(ToolError::new(ErrorKind::FileNotFound, "file not found: /x"));
    let again = Output::from(ToolError::failed("Error: twice"));
    let text = |format, output: &Output, at: &str| {
        result(format, "c", "Read", output).pointer(at).unwrap_or(&Value::Null).clone()
    };
    assert_eq!(text(ProviderFormat::Openai, &failed, "/content"), "Error: file not found: /x");
    assert_eq!(text(ProviderFormat::Openai, &again, "/content"), "Error: twice");
    assert_eq!(text(ProviderFormat::Ollama, &failed, "/content"), "Error: file not found: /x");
    assert_eq!(text(ProviderFormat::Anthropic, &failed, "/is_error"), true);
    assert_eq!(text(ProviderFormat::Anthropic, &failed, "/content/0/text"), "file not found: /x");
    assert_eq!(text(ProviderFormat::Mcp, &failed, "/isError"), true);
    assert_eq!(
        text(ProviderFormat::Gemini, &failed, "/functionResponse/response/error"),
        "file not found: /x"
    );
}
