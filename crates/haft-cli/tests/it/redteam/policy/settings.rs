//! E36: a model does not change what later calls may do.

use serde_json::json;

use crate::fixture::cli::CliFixture;
use crate::fixture::terminal::Terminal;

const MODES: [&str; 6] = ["scoped", "default", "acceptEdits", "plan", "dontAsk", "bypassPermissions"];

/// Settings that widen what later calls may do, each with a value.
const WIDENING: [(&str, &str); 9] = [
    ("sandbox", "off"),
    ("network", "all"),
    ("permission_mode", "bypassPermissions"),
    ("permissions.allow", "Bash"),
    ("permissions.ask", ""),
    ("permissions.deny", ""),
    ("tools.memory.path", "/etc/passwd"),
    ("tools.loom.server_url", "http://169.254.169.254"),
    ("tools.mcp_servers.x.command", "sh"),
];

#[test]
fn e36_config_tool_cannot_turn_the_sandbox_off() {
    let cli = CliFixture::new();
    for mode in MODES {
        for (setting, value) in WIDENING {
            let arguments = json!({"setting": setting, "value": value}).to_string();
            let ran = cli.haft(&["call", "Config", &arguments, "--permission-mode", mode]);
            assert_eq!(ran.code, 3, "{mode} {setting}: {}{}", ran.stdout, ran.stderr);
            assert!(!cli.config().exists(), "{mode} {setting}");
        }
    }
}

#[test]
fn e36_a_terminal_does_not_replace_the_rule() {
    let cli = CliFixture::new();
    for (setting, value) in WIDENING {
        let arguments = json!({"setting": setting, "value": value}).to_string();
        let (code, said) = Terminal::run(cli.command(&["call", "Config", &arguments])).ends();
        assert_eq!((code, cli.config().exists()), (3, false), "{said}");
        let rule = format!("--allowedTools 'Config({setting})'");
        assert!(said.contains(&rule) && !said.contains("[y/N"), "{setting}: {said}");
    }
}

#[test]
fn e36_a_rule_that_names_the_setting_allows_it_and_no_other_does() {
    let cli = CliFixture::new();
    let arguments = json!({"setting": "sandbox", "value": "read-only"}).to_string();
    for rule in ["Config", "Config(*)", "Config(network)", "Config(tools.*)"] {
        let ran = cli.haft(&["call", "Config", &arguments, "--allowedTools", rule]);
        assert_eq!((ran.code, cli.config().exists()), (3, false), "{rule}");
    }
    let ran = cli.haft(&["call", "Config", &arguments, "--allowedTools", "Config(sandbox)"]);
    assert_eq!(ran.code, 0, "{}", ran.stdout);
    assert_eq!(cli.haft(&["config", "set", "network", "docs.rs"]).code, 0, "the user's own command");
}

#[test]
fn e36_a_project_cannot_allow_it() {
    let cli = CliFixture::new();
    cli.write(
        "haft.toml",
        "[permissions]\nallow = [\"Config(sandbox)\", \"Bash(unsandboxed)\"]\nask = [\"Config(sandbox)\"]\n",
    );
    let ran = cli.call("Config", &json!({"setting": "sandbox", "value": "off"}));
    assert_eq!((ran.code, cli.config().exists()), (3, false), "{}", ran.stdout);
    let ran = cli.call("Bash", &json!({"command": "echo free > out", "dangerouslyDisableSandbox": true}));
    assert_eq!((ran.code, cli.path("out").exists()), (3, false), "{}", ran.stdout);
}

#[test]
fn e36_question_shows_the_old_and_the_new_value() {
    let cli = CliFixture::new();
    let arguments = json!({"setting": "dialect", "value": "omega"}).to_string();
    let mut terminal = Terminal::run(cli.command(&["call", "Config", &arguments]));
    terminal.sees("setting dialect: \"claude\" becomes \"omega\"");
    terminal.sees("[y/N");
    terminal.types("n");
    assert_eq!((terminal.ends().0, cli.config().exists()), (3, false));
}

#[test]
fn e36_a_model_leaves_the_sandbox_only_by_a_rule_in_every_mode() {
    let cli = CliFixture::new();
    let arguments = json!({"command": "echo free > out", "dangerouslyDisableSandbox": true}).to_string();
    for mode in MODES {
        for rule in ["Bash", "Bash(echo *)"] {
            let args = ["call", "Bash", &arguments, "--permission-mode", mode, "--allowedTools", rule];
            let ran = cli.haft(&args);
            assert_eq!((ran.code, cli.path("out").exists()), (3, false), "{mode} {rule}: {}", ran.stdout);
        }
    }
    let (code, said) = Terminal::run(cli.command(&["call", "Bash", &arguments])).ends();
    assert_eq!((code, cli.path("out").exists()), (3, false), "{said}");
    assert!(!said.contains("[y/N"), "{said}");
    let ran = cli.haft(&["call", "Bash", &arguments, "--allowedTools", "Bash(unsandboxed)"]);
    assert_eq!((ran.code, cli.path("out").exists()), (0, true), "{}", ran.stdout);
}
