//! `haft.toml` as a user meets it: what counts, where it comes from, what a project may say, how it is changed.

use crate::fixture::cli::{CliFixture, RunOutput};
use crate::fixture::terminal::Terminal;
use serde_json::{Value, json};

impl CliFixture {
    fn set(&self, text: &str) {
        std::fs::write(self.config(), text).unwrap();
    }

    fn settings(&self) -> String {
        std::fs::read_to_string(self.config()).unwrap()
    }

    fn with(&self, variable: &str, value: &str, args: &[&str]) -> RunOutput {
        self.command(args).env(variable, value).output().unwrap().into()
    }
}

fn json_of(ran: &RunOutput) -> Value {
    let value = serde_json::from_str(&ran.stdout);
    assert!(value.is_ok(), "{}{}", ran.stdout, ran.stderr);
    value.unwrap()
}

#[test]
fn every_value_is_shown_with_its_origin() {
    let cli = CliFixture::new();
    cli.set("# mine\npermission_mode = \"plan\"\n\n[tools.loom]\nserver_url = \"http://localhost:9\"\n");
    cli.write("haft.toml", "dialect = \"loom\"\n");
    let ran = cli.with("HAFT_SANDBOX", "read-only", &["config", "show"]);
    let line =
        |name: &str| ran.stdout.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
    let (own, project) = (cli.config(), cli.path("haft.toml"));
    assert_eq!(line("dialect"), format!("dialect = \"loom\"  # {}:1", project.display()), "{}", ran.stderr);
    assert_eq!(line("permission_mode"), format!("permission_mode = \"plan\"  # {}:2", own.display()));
    assert_eq!(line("sandbox"), "sandbox = \"read-only\"  # $HAFT_SANDBOX");
    assert_eq!(line("network"), "network = \"none\"  # default");
    let url = format!("tools.loom.server_url = \"http://localhost:9\"  # {}:5", own.display());
    assert_eq!(line("tools.loom.server_url"), url);
    assert_eq!(cli.haft(&["config", "get", "dialect"]).stdout, "loom\n");
    assert_eq!(cli.haft(&["config", "path"]).stdout, format!("{}\n", own.display()));
    let below = cli.haft(&["config", "show", "tools.loom"]).stdout;
    assert!(
        below.lines().all(|line| line.starts_with("tools.loom.")) && below.contains("server_url"),
        "{below}"
    );
    let ran = cli.haft(&["config", "get", "dialekt"]);
    assert!(ran.code != 0 && ran.stderr.contains("Did you mean dialect"), "{}", ran.stderr);
}

#[test]
fn flags_count_more_than_variables_and_these_more_than_files() {
    let cli = CliFixture::new();
    cli.set("dialect = \"loom\"\n");
    let first = |ran: RunOutput| ran.stdout.split_whitespace().next().unwrap_or_default().to_owned();
    assert_eq!(first(cli.haft(&["tools"])), "read_file");
    assert_eq!(first(cli.with("HAFT_DIALECT", "omega", &["tools"])), "bash");
    assert_eq!(first(cli.with("HAFT_DIALECT", "omega", &["tools", "--dialect", "claude"])), "Read");
    let ran = cli.with("HAFT_DIALECT", "klingon", &["tools"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("HAFT_DIALECT: there is no dialect \"klingon\""), "{}", ran.stderr);
}

#[test]
fn unknown_keys_are_told_with_the_close_name_and_nothing_else_changes() {
    let cli = CliFixture::new();
    cli.set("dialekt = \"loom\"\n[tools.web_serch]\nendpoint = \"http://x\"\n");
    cli.write("a.txt", "hi\n");
    let ran = cli.call("Read", &json!({"file_path": cli.path("a.txt")}));
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "     1\thi\n"));
    let own = cli.config();
    assert!(
        ran.stderr
            .contains(&format!("{}:1: there is no setting dialekt. Did you mean dialect?", own.display())),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains(":3: there is no setting tools.web_serch"), "{}", ran.stderr);
}

#[test]
fn a_broken_file_is_an_error_with_line_and_column() {
    let cli = CliFixture::new();
    for (text, place, why) in [
        ("dialect = \"loom\"\nsandbox = \n", ":2:11: ", ""),
        ("\n  sandbox = \"of\"\n", ":2:13: ", "there is no sandbox \"of\"; one of workspace"),
        ("dialect = \"claud\"\n", ":1:11: ", "Did you mean claude?"),
        ("permission_mode = 5\n", ":1:19: ", "expected a string"),
        ("[permissions]\nallow = \"Bash\"\n", ":2:9: ", "expected a sequence"),
        ("a = 1\na = 2\n", ":2:1: ", "duplicate key"),
    ] {
        cli.set(text);
        let ran = cli.haft(&["tools"]);
        let words = format!("{}{place}", cli.config().display());
        assert_eq!(ran.code, 2, "{text}");
        assert!(ran.stderr.contains(&words) && ran.stderr.contains(why), "{text}: {}", ran.stderr);
    }
}

#[test]
fn a_project_cannot_widen_what_calls_may_touch() {
    let cli = CliFixture::new();
    let project = "permission_mode = \"bypassPermissions\"\nsandbox = \"off\"\nnetwork = \"all\"\n[permissions]\n\
                   allow = [\"Write(//**)\"]\ndeny = [\"Glob\"]\n[tools.loom]\nserver_url = \"http://127.0.0.1:1\"\n";
    cli.write("haft.toml", project);
    let outside = cli.home().with_file_name("haft-config-test-outside");
    let ran =
        cli.haft(&["call", "Write", &json!({"file_path": outside, "content": ""}).to_string(), "--json"]);
    assert_eq!((ran.code, outside.exists()), (3, false), "{}", ran.stdout);
    for key in ["permission_mode", "sandbox", "network", "permissions.allow", "tools.loom.server_url"] {
        assert!(
            ran.stderr.contains(&format!("{key} is ignored in a project's file")),
            "{key}: {}",
            ran.stderr
        );
        let shown = cli.haft(&["config", "show", key]).stdout;
        assert!(shown.ends_with("# default\n") || shown.ends_with("# not set\n"), "{shown}");
    }
    let ran = cli.call("Glob", &json!({"pattern": "*"}));
    assert_eq!(ran.code, 3, "a project may deny: {}", ran.stdout);
    let ran = cli.call("Bash", &json!({"command": "true"}));
    assert_eq!(ran.code, 0);
    cli.set("dialect = \"claude\"\noffer = [\"Read\"]\n");
    cli.write("haft.toml", "dialect = \"omega\"\noffer = [\"*\"]\n");
    let names = cli.haft(&["tools", "--format", "haft"]);
    assert_eq!(json_of(&names).as_array().unwrap().len(), 1, "what the user has set counts more");
}

#[test]
fn rules_of_the_file_count_and_are_cited_with_their_line() {
    let cli = CliFixture::new();
    cli.set("[permissions]\n\ndeny = [\"Bash(rm *)\"]\n");
    let ran = cli.haft(&["call", "Bash", "{\"command\": \"rm x\"}", "--json"]);
    let cited = json_of(&ran)["receipt"]["decision"]["rule"].as_str().unwrap().to_owned();
    assert_eq!((ran.code, cited), (3, format!("Bash(rm *) ({}:3)", cli.config().display())));
}

#[test]
fn config_gets_sets_and_lists_typed_and_keeps_comments() {
    let cli = CliFixture::new();
    cli.set("# keep me\ndialect = \"claude\" # and me\n");
    let call = |arguments: Value, rule: &str| {
        cli.haft(&["call", "Config", &arguments.to_string(), "--json", "--allowedTools", rule])
    };
    let got = json_of(&call(json!({"setting": "dialect"}), "Config"));
    assert_eq!(got["structured"]["value"], "claude");
    let set = call(json!({"setting": "dialect", "value": "loom"}), "Config(dialect)");
    let facts = &json_of(&set)["structured"];
    assert_eq!(
        (&facts["previousValue"], &facts["newValue"]),
        (&json!("claude"), &json!("loom")),
        "{}",
        set.stdout
    );
    assert_eq!(cli.settings(), "# keep me\ndialect = \"loom\" # and me\n");
    cli.set(&cli.settings().replace("loom", "claude"));

    call(json!({"setting": "network", "value": "crates.io, *.npmjs.org"}), "Config(network)");
    call(json!({"setting": "tools.loom.server_url", "value": "http://localhost:1"}), "Config(tools.*)");
    let text = cli.settings();
    assert!(
        text.contains("[tools.loom]\nserver_url = \"http://localhost:1\"") && !text.contains("[tools]"),
        "{text}"
    );
    let bad = call(json!({"setting": "sandbox", "value": true}), "Config(*)");
    assert_eq!((bad.code, cli.settings()), (3, text.clone()), "naming the tool is not naming the setting");
    let bad = call(json!({"setting": "sandbox", "value": true}), "Config(sandbox)");
    assert_eq!(json_of(&bad)["error_kind"], "invalid_arguments", "{}", bad.stdout);
    let bad = call(json!({"setting": "sandbax", "value": "off"}), "Config(sandbax)");
    assert!(bad.stdout.contains("Did you mean sandbox"), "{}", bad.stdout);
    assert_eq!(cli.settings(), text);
    for all in ["", "list"] {
        let list = json_of(&call(json!({"setting": all}), "Config"));
        let names: Vec<_> =
            list["structured"]["settings"].as_array().unwrap().iter().map(|s| &s["name"]).collect();
        assert!(names.contains(&&json!("dialect")) && names.contains(&&json!("sandbox")), "{names:?}");
    }
}

#[test]
fn a_changed_setting_is_on_the_ledger_and_undo_takes_it_back() {
    let cli = CliFixture::new();
    std::fs::remove_dir(cli.config().parent().unwrap()).unwrap();
    let ran = cli.haft(&["config", "set", "sandbox", "read-only"]);
    assert_eq!((ran.code, cli.settings().as_str()), (0, "sandbox = \"read-only\"\n"), "{}", ran.stderr);
    let ran = cli.haft(&["config", "set", "sandbox", "off"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let log = cli.haft(&["log"]).stdout;
    assert!(log.contains("Config") && log.contains("sandbox"), "{log}");
    let ran = cli.haft(&["undo", "--yes"]);
    assert_eq!((ran.code, cli.settings().as_str()), (0, "sandbox = \"read-only\"\n"), "{}", ran.stderr);
    assert_eq!(cli.haft(&["redo", "--yes"]).code, 0);
    assert_eq!(cli.haft(&["config", "get", "sandbox"]).stdout, "off\n");
    for _ in 0..2 {
        assert_eq!(cli.haft(&["undo", "--yes"]).code, 0);
    }
    assert!(!cli.config().exists());
}

#[test]
fn elements_are_added_to_and_removed_from_a_list_and_a_replaced_list_is_shown() {
    let cli = CliFixture::new();
    cli.set("[permissions]\ndeny = [\n  # never\n  \"Bash(rm:*)\",\n]\n");
    cli.write("haft.toml", "[permissions]\ndeny = [\"Glob\"]\n");
    let ran = cli.haft(&["config", "add", "permissions.deny", "Read(.env)", "Bash(git push:*)"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let both =
        "[permissions]\ndeny = [\n  # never\n  \"Bash(rm:*)\", \"Read(.env)\", \"Bash(git push:*)\",\n]\n";
    assert_eq!(cli.settings(), both, "the project's rule is not copied");
    assert!(ran.stderr.contains("becomes [\"Bash(rm:*)\",\"Read(.env)\""), "{}", ran.stderr);
    let ran = cli.haft(&["config", "add", "permissions.deny", "Read(.env)"]);
    assert!(ran.code == 0 && ran.stderr.contains("has it already"), "{}", ran.stderr);
    let ran = cli.haft(&["config", "remove", "permissions.deny", "Read(.env)", "Bash(git push:*)"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(cli.settings().contains("[\n  # never\n  \"Bash(rm:*)\",\n]"), "{}", cli.settings());
    let ran = cli.haft(&["config", "remove", "permissions.deny", "Edit"]);
    assert!(ran.code == 1 && ran.stderr.contains("It has: [\"Bash(rm:*)\"]"), "{}", ran.stderr);

    let ran = cli.haft(&["config", "set", "permissions.deny", "Edit"]);
    assert!(ran.stderr.contains("[\"Bash(rm:*)\",\"Glob\"] becomes [\"Edit\",\"Glob\"]"), "{}", ran.stderr);
    assert!(ran.stderr.contains("haft config add permissions.deny VALUE"), "{}", ran.stderr);

    for (change, expected) in [
        (["add", "npm"], "[\"npm\"]"),
        (["add", "docs.rs"], "[\"npm\",\"docs.rs\"]"),
        (["remove", "npm"], "[\"docs.rs\"]"),
    ] {
        let ran = cli.haft(&["config", change[0], "network", change[1]]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert_eq!(cli.haft(&["config", "get", "network"]).stdout.trim(), expected, "{}", cli.settings());
    }
    assert_eq!(cli.haft(&["config", "set", "network", "all"]).code, 0);
    for key in ["network", "dialect", "sandbox"] {
        let ran = cli.haft(&["config", "add", key, "docs.rs"]);
        assert_eq!(ran.code, 2, "{key}: {}", ran.stderr);
    }
}

#[test]
fn only_config_touches_the_settings() {
    let cli = CliFixture::new();
    cli.set("dialect = \"claude\"\n");
    let path = cli.config();
    let link = cli.path("innocent");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    for (tool, arguments) in [
        ("Read", json!({"file_path": path})),
        ("Read", json!({"file_path": link})),
        ("Write", json!({"file_path": path, "content": "sandbox = \"off\""})),
        ("Edit", json!({"file_path": link, "old_string": "claude", "new_string": "loom"})),
    ] {
        for more in [&[][..], &["--permission-mode", "bypassPermissions"]] {
            let arguments = arguments.to_string();
            let ran = cli.haft(&[&["call", tool, &arguments][..], more].concat());
            assert!(
                ran.code != 0 && !ran.stdout.contains("dialect ="),
                "{tool} {arguments} {more:?}: {}",
                ran.stdout
            );
        }
    }
    let folder = path.parent().unwrap().to_str().unwrap().to_owned();
    for command in [
        format!("cat {}", path.display()),
        format!("echo x >> {}", path.display()),
        format!("rm {}", path.display()),
        format!("mv {folder} {folder}2"),
    ] {
        let ran = cli.call("Bash", &json!({"command": command}));
        assert!(ran.code != 0 && !ran.stdout.contains("dialect ="), "{command}: {}", ran.stdout);
        assert_eq!(cli.settings(), "dialect = \"claude\"\n", "{command}");
    }
    let ran = cli.haft(&["call", "Bash", "{\"command\": \"true\"}", "--add-dir", &folder]);
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    assert!(
        ran.stderr.contains("the settings") && ran.stderr.contains("which calls may change"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_headless_change_is_denied_and_a_person_can_allow_it() {
    let cli = CliFixture::new();
    let arguments = json!({"setting": "dialect", "value": "loom"}).to_string();
    let ran = cli.haft(&["call", "Config", &arguments]);
    assert_eq!(ran.code, 3);
    assert!(ran.stdout.contains("Config(dialect)"), "{}", ran.stdout);
    let mut terminal = Terminal::run(cli.command(&["call", "Config", &arguments]));
    terminal.sees("it would change the setting dialect.");
    terminal.sees("Run it? [y/N");
    terminal.types("y");
    let (code, said) = terminal.ends();
    assert_eq!((code, cli.settings().as_str()), (0, "dialect = \"loom\"\n"), "{said}");
}

#[test]
fn secrets_are_covered_wherever_settings_are_shown() {
    let cli = CliFixture::new();
    cli.set(
        "[tools.web_search.brave]\napi_key = \"s3cr3t\"\n[channels.me]\nkind = \"slack\"\ntoken = \"s3cr3t\"\n\
         [tools.mcp_servers.x]\ncommand = \"x\"\nenv = { KEY = \"s3cr3t\" }\n",
    );
    let shown = cli.haft(&["config", "show"]);
    let listed = cli.call("Config", &json!({"setting": "list"}));
    for ran in [shown, listed] {
        assert!(
            ran.stdout.contains("api_key") && ran.stdout.contains("mcp_servers.x.env.KEY"),
            "{}",
            ran.stdout
        );
        assert!(
            !ran.stdout.contains("s3cr3t") && !ran.stderr.contains("s3cr3t"),
            "{}{}",
            ran.stdout,
            ran.stderr
        );
    }
}
