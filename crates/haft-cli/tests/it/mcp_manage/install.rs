//! Haft's own entry in the settings of other programs: everything else in them stays, byte for byte.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use crate::fixture::settings::SettingsFixture;
use crate::fixture::terminal::Terminal;

/// A client, its file below the home, and such a file with others' entries and comments; then one that cannot be read.
const CLIENTS: &[(&str, &str, &str, &str)] = &[
    (
        "claude",
        ".claude.json",
        "{\n  \"numStartups\": 3,\n  \"projects\": {\"/x\": {\"mcpServers\": {\"haft\": 1}}},\n  \"mcpServers\": {\n    \"a\": {\"command\": \"a\"}\n  },\n  \"z\": [ 1,2 ]\n}",
        "{\"mcpServers\": {",
    ),
    (
        "claude-desktop",
        ".config/Claude/claude_desktop_config.json",
        "{\r\n    \"mcpServers\": {\r\n        \"a\": {\r\n            \"command\": \"a\"\r\n        }\r\n    }\r\n}\r\n",
        "[]",
    ),
    (
        "codex",
        ".codex/config.toml",
        "# mine\nmodel = \"m\"   # odd   spaces\n\n[mcp_servers.a]\ncommand = \"a\"\n\n[mcp_servers.a.env]\nK = 'v'\n\n# the end\n",
        "[mcp_servers.a\n",
    ),
    ("cursor", ".cursor/mcp.json", "{\"mcpServers\":{\"a\":{\"url\":\"https://a\"}}}", "{\"mcpServers\":[]}"),
    (
        "vscode",
        ".config/Code/User/mcp.json",
        "{\n\t// the servers\n\t\"inputs\": [],\n\t\"servers\": {\n\t\t/* none yet */\n\t}\n}\n",
        "{\n\t// no end\n",
    ),
    (
        "zed",
        ".config/zed/settings.json",
        "// Zed settings\n//\n{\n  \"theme\": \"x\", // nice\n  \"context_servers\": {\n    \"a\": { \"command\": \"a\" }, // mine\n  },\n  // last\n}\n",
        "{ \"context_servers\": null }",
    ),
    ("gemini", ".gemini/settings.json", "\u{feff}{\n  \"general\": {}\n}\n", "{\"a\": 1,, }"),
    (
        "opencode",
        ".config/opencode/opencode.jsonc",
        "{\n  \"$schema\": \"https://opencode.ai/config.json\",\n  \"mcp\": {\n    \"a\": {\"type\": \"local\", \"command\": [\"a\"],}, // x\n  },\n}\n",
        "{'mcp': {}}",
    ),
    (
        "goose",
        ".config/goose/config.yaml",
        "GOOSE_MODE: auto # always\nextensions:\n  developer:\n    bundled: true\n    args:\n    - x\n\n# the end\nGOOSE_MODEL: m\n",
        "extensions: [a,\n  b]\n",
    ),
    ("windsurf", ".codeium/windsurf/mcp_config.json", "{ }\n", "nothing of the kind"),
];

#[test]
fn a_file_that_is_not_there_is_made_with_only_that_and_undone_whole() {
    let mut shown = String::new();
    for (client, file, _, _) in CLIENTS {
        let fixture = SettingsFixture::new();
        let file = file.replace("opencode.jsonc", "opencode.json");
        let said = fixture.said(&["mcp", "install", client, "--yes", "--", "--permission-mode", "plan"]);
        shown.push_str(&said);
        shown.push_str(&fixture.same(&std::fs::read_to_string(fixture.at_home(&file)).unwrap()));
        shown.push('\n');
        fixture.done(&["undo", "--yes"]);
        assert_eq!(std::fs::read_dir(fixture.at_home("")).unwrap().count(), 0, "{client}: nothing is left");
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn all_else_in_a_file_stays_byte_for_byte() {
    let mut shown = String::new();
    for (client, file, old, _) in CLIENTS {
        let fixture = SettingsFixture::new();
        let path = fixture.plant(file, old);
        let now = || std::fs::read_to_string(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        shown.push_str(&fixture.said(&["mcp", "install", client, "--yes"]));
        shown.push('\n');
        let with = now();
        assert_ne!(with, *old, "{client}");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{client}");
        let again = fixture.done(&["mcp", "install", client]);
        assert!(again.stderr.contains("nothing to do") && now() == with, "{client}: {}", again.stderr);
        fixture.done(&["mcp", "install", client, "--yes", "--", "--dialect", "loom"]);
        assert!(now().contains("loom") && now() != with, "{client}: an old entry is replaced");
        fixture.done(&["undo", "--yes"]);
        assert_eq!(now(), with, "{client}");
        fixture.done(&["mcp", "uninstall", client, "--yes"]);
        assert_eq!(now(), *old, "{client}");
        let none = fixture.done(&["mcp", "uninstall", client, "--yes"]);
        assert!(none.stderr.contains("nothing to do"), "{client}: {}", none.stderr);
        fixture.done(&["undo", "--yes"]);
        assert_eq!(now(), with, "{client}");
        fixture.done(&["undo", "--yes"]);
        assert_eq!(now(), *old, "{client}");
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn a_file_that_is_not_understood_is_refused_and_left_alone() {
    let mut shown = String::new();
    for (client, file, _, bad) in CLIENTS {
        let fixture = SettingsFixture::new();
        let path = fixture.plant(file, bad);
        let said = fixture.said(&["mcp", "install", client, "--yes"]);
        assert!(said.contains("--- exit 1") && said.to_lowercase().contains("nothing was changed"), "{said}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), *bad, "{client}");
        shown.push_str(&said);
        std::fs::write(&path, b"{\"\xff\": 1}").unwrap();
        let ran = fixture.haft(&["mcp", "install", client, "--yes"]);
        assert!(ran.code == 1 && ran.stderr.contains("not UTF-8"), "{client}: {}", ran.stderr);
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        let ran = fixture.haft(&["mcp", "install", client, "--yes"]);
        assert!(ran.code == 1 && ran.stderr.contains("not a regular file"), "{client}: {}", ran.stderr);
        assert_eq!(fixture.done(&["log"]).stdout, "", "{client}: nothing was called");
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn a_link_stays_and_the_file_it_leads_to_is_changed() {
    for (client, file, old, _) in CLIENTS {
        let fixture = SettingsFixture::new();
        let real = fixture.plant("dotfiles/real", old);
        let path = fixture.at_home(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(&real, &path).unwrap();
        let now = || std::fs::read_to_string(&real).unwrap();
        fixture.done(&["mcp", "install", client, "--yes"]);
        assert!(path.is_symlink() && now() != *old, "{client}");
        fixture.done(&["undo", "--yes"]);
        assert!(path.is_symlink() && now() == *old, "{client}");
    }
}

#[test]
fn a_read_only_file_is_refused() {
    for (client, file, old, _) in CLIENTS {
        let fixture = SettingsFixture::new();
        let path = fixture.plant(file, old);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o444)).unwrap();
        // Nothing is read-only for root.
        if std::fs::File::options().append(true).open(&path).is_ok() {
            continue;
        }
        let ran = fixture.haft(&["mcp", "install", client, "--yes"]);
        assert!(ran.code == 3 && ran.stderr.contains("read-only"), "{client}: {}", ran.stderr);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), *old, "{client}");
    }
}

#[test]
fn a_person_is_asked_and_no_means_no() {
    let fixture = SettingsFixture::new();
    let dry = fixture.said(&["mcp", "install", "zed", "--dry-run"]);
    assert!(dry.contains("context_servers") && dry.contains("exit 0"), "{dry}");
    let alone = fixture.haft(&["mcp", "install", "zed"]);
    assert!(alone.code == 3 && alone.stderr.contains("To confirm: --yes"), "{}", alone.stderr);
    for (answer, code) in [("no", 3), ("yes", 0)] {
        let mut terminal = Terminal::run(fixture.command(&["mcp", "install", "zed"]));
        terminal.sees("context_servers");
        terminal.sees("zed/settings.json? [y/N]");
        terminal.types(answer);
        let (ended, said) = terminal.ends();
        assert_eq!(
            (ended, fixture.at_home(".config/zed/settings.json").exists()),
            (code, code == 0),
            "{said}"
        );
    }
}

#[test]
fn an_entry_starts_haft_by_the_name_that_outlives_an_update() {
    let fixture = SettingsFixture::new();
    let bin = fixture.at_home("bin");
    std::fs::create_dir(&bin).unwrap();
    symlink(crate::fixture::haft_program(), bin.join("haft")).unwrap();
    let mut command = fixture.command(&["mcp", "install", "cursor", "--dry-run"]);
    let ran = command.env("PATH", format!("relative:/nowhere:{}", bin.display())).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(said.contains(&format!("\"command\": \"{}\"", bin.join("haft").display())), "{said}");
}

#[test]
fn flags_and_names_that_would_not_work_are_refused() {
    let fixture = SettingsFixture::new();
    for (args, words) in [
        (&["claude", "--", "--nonsense"][..], "--nonsense"),
        (&["claude", "--", "list"], "only flags"),
        (&["claude", "--name", "a b"], "is not a valid server name"),
        (&["claude", "--name", "a\"b"], "is not a valid server name"),
        (&["emacs"], "possible values: claude"),
        (&["goose", "--project"], "--project"),
        (&["windsurf", "--project"], "--project"),
    ] {
        let ran = fixture.haft(&[&["mcp", "install", "--yes"][..], args].concat());
        assert!(ran.code == 2 && ran.stderr.contains(words), "{args:?}: {}", ran.stderr);
    }
    assert_eq!(std::fs::read_dir(fixture.at_home("")).unwrap().count(), 0);
}

#[test]
fn a_project_has_files_of_its_own() {
    for (client, file) in [
        ("claude", ".mcp.json"),
        ("codex", ".codex/config.toml"),
        ("cursor", ".cursor/mcp.json"),
        ("vscode", ".vscode/mcp.json"),
        ("zed", ".zed/settings.json"),
        ("gemini", ".gemini/settings.json"),
        ("opencode", "opencode.json"),
    ] {
        let fixture = SettingsFixture::new();
        fixture.done(&["mcp", "install", client, "--project", "--name", "hands", "--yes"]);
        assert!(fixture.cli.read(file).contains("hands"), "{client}");
        fixture.done(&["undo", "--yes"]);
        assert_eq!(std::fs::read_dir(fixture.cli.root()).unwrap().count(), 0, "{client}");
        fixture.done(&["mcp", "install", client, "--project", "--yes"]);
        fixture.done(&["mcp", "uninstall", client, "--project", "--yes"]);
        assert_eq!(std::fs::read_dir(fixture.cli.root()).unwrap().count(), 0, "{client}");
        let outside = fixture.plant("outside", "{}");
        std::fs::create_dir_all(fixture.cli.path(file).parent().unwrap()).unwrap();
        symlink(&outside, fixture.cli.path(file)).unwrap();
        let ran = fixture.haft(&["mcp", "install", client, "--project", "--yes"]);
        assert!(
            ran.code != 0 && ran.stderr.contains("leads out of the workspace"),
            "{client}: {}",
            ran.stderr
        );
    }
}

#[test]
fn it_works_from_the_user_s_home_where_the_ledger_lies() {
    let fixture = SettingsFixture::new();
    let state = fixture.at_home(".local/state/haft");
    let at_home = |args: &[&str]| {
        let mut command = fixture.command(args);
        command.current_dir(fixture.at_home("")).env("HAFT_HOME", &state);
        command.env("HAFT_CONFIG", fixture.at_home(".config/haft/haft.toml"));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
    };
    let file: PathBuf = fixture.at_home(".claude.json");
    at_home(&["mcp", "install", "claude", "--yes"]);
    assert!(file.exists());
    at_home(&["log"]);
    at_home(&["undo", "--yes"]);
    assert!(!file.exists());
    at_home(&["redo", "--yes"]);
    assert!(file.exists());
    at_home(&["mcp", "uninstall", "claude", "--yes"]);
    assert!(!file.exists());
    at_home(&["mcp", "add", "a", "x"]);
    at_home(&["undo", "--yes"]);
    assert!(!fixture.at_home(".config/haft/haft.toml").exists());
    let mut call = fixture.command(&["call", "Bash", "{\"command\": \"true\"}"]);
    let output = call.current_dir(fixture.at_home("")).env("HAFT_HOME", &state).output().unwrap();
    assert!(!output.status.success(), "calls still cannot have it as their workspace");
}

/// Clients whose own tools can be turned off, and their files below the home with the settings of a user.
const REPLACEABLE: &[(&str, &[(&str, &str)])] = &[
    (
        "claude",
        &[
            (".claude.json", "{\"numStartups\": 3}\n"),
            (
                ".claude/settings.json",
                "{\n  \"permissions\": {\n    \"deny\": [ \"Bash\",  \"WebSearch\" ],\n    \"allow\": []\n  }\n}",
            ),
        ],
    ),
    (
        "codex",
        &[(".codex/config.toml", "model = \"m\" # mine\n\n[features]\nunified_exec = true\n# the end\n")],
    ),
    ("gemini", &[(".gemini/settings.json", "{\n  \"tools\": {\"exclude\": [\"glob\"]},\n  // mine\n}\n")]),
    ("opencode", &[(".config/opencode/opencode.json", "{\"tools\": {\"bash\": true}, \"mcp\": {}}\n")]),
];

#[test]
fn built_in_tools_are_replaced_and_come_back_byte_for_byte() {
    let mut shown = String::new();
    for (client, files) in REPLACEABLE {
        let fixture = SettingsFixture::new();
        let read = |name: &str| std::fs::read_to_string(fixture.at_home(name)).ok();
        let said = fixture.said(&["mcp", "install", client, "--replace-builtin", "--yes"]);
        shown.push_str(&said);
        for (file, _) in *files {
            shown.push_str(&format!("{file}\n{}\n", fixture.same(&read(file).unwrap())));
        }
        let again = fixture.done(&["mcp", "install", client, "--replace-builtin", "--yes"]);
        assert!(again.stderr.contains("nothing to do"), "{client}: {}", again.stderr);
        fixture.done(&["mcp", "uninstall", client, "--yes"]);
        for (file, _) in *files {
            assert_eq!(read(file), None, "{client}: {file} was created by install");
        }
        for (file, old) in *files {
            fixture.plant(file, old);
        }
        fixture.done(&["mcp", "install", client, "--replace-builtin", "--yes"]);
        fixture.done(&["mcp", "install", client, "--replace-builtin", "--yes", "--", "--dialect", "loom"]);
        fixture.done(&["mcp", "uninstall", client, "--yes"]);
        for (file, old) in *files {
            assert_eq!(read(file).as_deref(), Some(*old), "{client}: {file}");
        }
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn what_a_user_changed_after_the_installation_stays() {
    let fixture = SettingsFixture::new();
    let settings = fixture.plant(".claude/settings.json", "{\"permissions\": {\"deny\": [\"Bash\"]}}\n");
    fixture.done(&["mcp", "install", "claude", "--replace-builtin", "--yes"]);
    let with = std::fs::read_to_string(&settings).unwrap();
    std::fs::write(&settings, with.replacen('{', "{\"theme\": \"dark\",", 1)).unwrap();
    fixture.done(&["mcp", "uninstall", "claude", "--yes"]);
    let left: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&settings).unwrap()).unwrap();
    assert_eq!(left, serde_json::json!({"theme": "dark", "permissions": {"deny": ["Bash"]}}));
}

#[test]
fn programs_whose_tools_cannot_be_turned_off_say_so() {
    for client in ["claude-desktop", "cursor", "vscode", "zed", "goose", "windsurf"] {
        let fixture = SettingsFixture::new();
        let ran = fixture.haft(&["mcp", "install", client, "--replace-builtin", "--yes"]);
        assert!(
            ran.code == 2 && ran.stderr.contains("--replace-builtin does not work"),
            "{client}: {}",
            ran.stderr
        );
        assert_eq!(std::fs::read_dir(fixture.at_home("")).unwrap().count(), 0, "{client}");
    }
}
