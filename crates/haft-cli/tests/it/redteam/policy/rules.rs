//! E42: a rule that is not understood is an error. E30: path rules cover every tool.

use std::sync::Arc;

use haft::{Asker, Behavior, Cancel, ErrorKind, PermissionAnswer, Question, Runtime, json};

use super::{call, denied, dialects, reads, writes};
use crate::fixture::cli::CliFixture;
use crate::fixture::runtime::Directories;

#[test]
fn e42_rule_that_is_not_understood_is_an_error() {
    let cli = CliFixture::new();
    let read = json!({"file_path": cli.path("a")}).to_string();
    cli.write("a", "a\n");
    for (rule, expected) in [
        ("mcp__bank__send(to:evil)", "Write mcp__bank__send for every call of it"),
        ("WebFetch(example.com)", "WebFetch(domain:example.com)"),
        ("WebFetch(https://example.com/x)", "WebFetch(domain:example.com)"),
        ("WebSearch(rust)", "WebSearch(domain:"),
        ("TodoWrite(x)", "does not understand"),
        ("Read(domain:example.com)", "Read(PATH)"),
        ("Bash(domain:example.com)", "Bash(COMMAND)"),
        ("Edit(unsandboxed", "no closing parenthesis"),
        ("Edit([)", "is no path pattern"),
        ("write_file([)", "write_file(PATH)"),
        ("mcp__*__send", "at the end only"),
    ] {
        for list in ["allow", "ask", "deny"] {
            std::fs::write(
                cli.config(),
                format!("[permissions]\n{list} = [\n  \"Bash(ls)\",\n  {rule:?},\n]\n"),
            )
            .unwrap();
            let ran = cli.haft(&["call", "Read", &read]);
            assert_eq!(ran.code, 2, "{list} {rule}: {}{}", ran.stdout, ran.stderr);
            assert!(
                ran.stderr.contains(expected) && ran.stderr.contains(rule),
                "{list} {rule}: {}",
                ran.stderr
            );
            assert!(ran.stderr.contains("haft.toml:4: "), "{list} {rule}: {}", ran.stderr);
        }
        std::fs::remove_file(cli.config()).unwrap();
        let ran = cli.haft(&["mcp", "--disallowedTools", rule]);
        assert_eq!(ran.code, 2, "{rule}: {}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{rule}: {}", ran.stderr);
    }
}

#[test]
fn e42_a_wrong_rule_can_be_removed_with_haft_config() {
    let cli = CliFixture::new();
    std::fs::write(cli.config(), "[permissions]\ndeny = [\"WebFetch(example.com)\"]\n").unwrap();
    assert_eq!(cli.haft(&["call", "Glob", "{\"pattern\": \"*\"}"]).code, 2);
    let ran = cli.haft(&["config", "set", "permissions.deny", "WebFetch(domain:example.com)"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(cli.haft(&["call", "Glob", "{\"pattern\": \"*\"}"]).code, 0);
}

#[test]
fn e42_deny_and_ask_rules_must_name_a_tool_and_allow_rules_warn() {
    let cli = CliFixture::new();
    cli.write("a", "a\n");
    let read = json!({"file_path": cli.path("a")}).to_string();
    for rule in ["Bsh(rm *)", "Wrte", "Reed(.env)"] {
        let ran = cli.haft(&["call", "Read", &read, "--disallowedTools", rule]);
        assert_eq!(ran.code, 2, "{rule}");
        assert!(ran.stderr.contains("names no tool. Did you mean"), "{rule}: {}", ran.stderr);
        let ran = cli.haft(&["call", "Read", &read, "--allowedTools", rule]);
        assert_eq!((ran.code, ran.stdout.contains('a')), (0, true), "{rule}: {}", ran.stderr);
        assert!(ran.stderr.contains("names no tool. Did you mean"), "{rule}: {}", ran.stderr);
    }
    let ran = cli.haft(&["call", "Read", &read, "--allowedTools", "mcp__*"]);
    assert!(ran.code == 0 && ran.stderr.contains("allows nothing"), "{}", ran.stderr);
    let ran = cli.haft(&["call", "Read", &read, "--tools", "Read", "--disallowedTools", "Bash(rm *)"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "a tool that is not offered may be named");
}

#[test]
fn e42_every_form_of_claude_code_is_understood() {
    let directories = Directories::new();
    for rule in [
        "Bash",
        "Bash(*)",
        "Bash(npm run build)",
        "Bash(git log:*)",
        "Bash(git *)",
        "Bash(* --version)",
        "Bash(git * main)",
        "Read(~/.zshrc)",
        "Edit(/src/**)",
        "Read(//etc/hosts)",
        "Edit(./a)",
        "Write(a/b)",
        "Glob(src/**)",
        "Grep(*.env)",
        "NotebookEdit(x.ipynb)",
        "WebFetch(domain:example.com)",
        "WebFetch(domain:*.example.com)",
        "WebSearch",
        "mcp__server",
        "mcp__server__*",
        "mcp__server__tool",
        "mcp__server__tool(*)",
        "Agent(Explore)",
        "Task(Explore)",
        "FileEdit(a)",
        "Config(tools.*)",
        "haft_undo(other-sessions)",
        "Bash(unsandboxed)",
    ] {
        for behavior in [Behavior::Allow, Behavior::Ask, Behavior::Deny] {
            let built = directories.builder().rule(behavior, rule, "test").build();
            assert_eq!(built.map(|haft| haft.warnings().to_vec()).ok(), Some(vec![]), "{rule}");
        }
    }
}

#[test]
fn e42_aliases_and_agents_in_rules_are_not_dead() {
    let directories = Directories::new();
    let path = directories.path("a");
    std::fs::write(&path, "a\n").unwrap();
    let haft = |rule: &str| directories.builder().rule(Behavior::Deny, rule, "test").build().unwrap();
    denied(&haft("FileEdit(a)"), "Write", json!({"file_path": path, "content": "b"}));
    let agent = json!({"description": "d", "prompt": "p", "subagent_type": "Explore"});
    assert!(denied(&haft("Task(Explore)"), "Agent", agent.clone()).contains("Task(Explore)"));
    let other = call(&haft("Task(Plan)"), "Agent", agent).output;
    assert_ne!(other.error_kind, Some(ErrorKind::PermissionDenied), "{}", other.as_text());
    let omega = Runtime::builder().workspace(directories.folder.path()).home(directories.home.path());
    let omega = omega.dialect(haft::omega()).rule(Behavior::Deny, "Bash", "test").build().unwrap();
    denied(&omega, "bash", json!({"command": "true"}));
    for rule in ["write(a)", "WRITE(a)", "edit(a)"] {
        denied(&haft(rule), "Write", json!({"file_path": path, "content": "b"}));
    }
}

#[test]
fn e42_aliases_are_matched_although_other_dialects_are_known() {
    let cli = CliFixture::new();
    let arguments = json!({"description": "d", "prompt": "p", "subagent_type": "Explore"}).to_string();
    let ran = cli.haft(&["call", "Agent", &arguments, "--disallowedTools", "Task(Explore)"]);
    assert_eq!(ran.code, 3, "{}", ran.stdout);
    let ran = cli.haft(&["call", "Bash", "{\"command\": \"rm x\"}", "--disallowedTools", "bash(rm *)"]);
    assert_eq!(ran.code, 3, "{}", ran.stdout);
    let ran = cli.haft(&["call", "Bash", "{\"command\": \"rm x\"}", "--disallowedTools", "bash"]);
    assert_eq!(ran.code, 3, "{}", ran.stdout);
}

#[test]
fn e30_path_rules_hold_in_every_dialect_and_for_results_of_a_search() {
    let directories = Directories::new();
    std::fs::create_dir(directories.path("p")).unwrap();
    let path = directories.path("p/a.txt");
    std::fs::write(&path, "needle\n").unwrap();
    for (name, builder) in dialects(&directories) {
        let builder =
            builder.rule(Behavior::Deny, "Edit(p/**)", "test").rule(Behavior::Deny, "Read(p/**)", "test");
        let haft = builder.rule(Behavior::Deny, "Bash(rm:*)", "test").build().unwrap();
        let command = json!({"command": "rm x"});
        let shell = match name {
            "claude" => "Bash",
            "clawft" => "exec_shell",
            _ => "bash",
        };
        let calls = reads(name, &path).into_iter().chain(writes(name, &path)).chain([(shell, command)]);
        for (tool, arguments) in calls {
            denied(&haft, tool, arguments);
        }
        if name == "claude" {
            let found = call(&haft, "Grep", json!({"pattern": "needle"})).output.as_text();
            assert!(found.contains("No files found"), "{found}");
            let found = call(&haft, "Glob", json!({"pattern": "**/*"})).output.as_text();
            assert!(found.contains("No files found"), "{found}");
        }
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "needle\n");
}

#[test]
fn e30_path_rules_without_a_path_hold_in_every_dialect() {
    let directories = Directories::new();
    let path = directories.path("a.txt");
    std::fs::write(&path, "text\n").unwrap();
    for (specifier, dialects) in ["", "*"].map(|specifier| (specifier, dialects(&directories))) {
        for (name, builder) in dialects {
            let builder = builder.rule(Behavior::Deny, format!("Edit({specifier})"), "test");
            let haft = builder.rule(Behavior::Deny, format!("Read({specifier})"), "test").build().unwrap();
            for (tool, arguments) in reads(name, &path).into_iter().chain(writes(name, &path)) {
                denied(&haft, tool, arguments);
            }
        }
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "text\n");
}

#[test]
fn e30_a_rule_that_asks_keeps_a_search_out_until_it_was_answered() {
    let directories = Directories::new();
    std::fs::create_dir(directories.path("p")).unwrap();
    std::fs::write(directories.path("p/a.txt"), "needle\n").unwrap();
    let haft = directories.builder().rule(Behavior::Ask, "Read(p/**)", "test").build().unwrap();
    let found = call(&haft, "Grep", json!({"pattern": "needle"})).output.as_text();
    assert!(found.contains("No files found"), "{found}");
    denied(&haft, "Grep", json!({"pattern": "needle", "path": directories.path("p/a.txt")}));
    let asker: Arc<dyn Asker> = Arc::new(Allows);
    let haft =
        directories.builder().rule(Behavior::Ask, "Read(p/**)", "test").rule(Behavior::Ask, "Grep", "test");
    let haft = haft.asker(asker).build().unwrap();
    let found = call(&haft, "Grep", json!({"pattern": "needle"})).output.as_text();
    assert!(found.contains("No files found"), "a yes to Grep is none to the path: {found}");
    let named = json!({"pattern": "needle", "path": directories.path("p/a.txt"), "output_mode": "content"});
    let found = call(&haft, "Grep", named).output.as_text();
    assert_eq!(found, "1:needle\n");
}

/// Says yes to everything.
struct Allows;

impl Asker for Allows {
    fn ask(&self, _question: &Question, _cancel: &Cancel) -> PermissionAnswer {
        PermissionAnswer::Allow { by: "the test".to_owned() }
    }
}
