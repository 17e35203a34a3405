//! What `haft mcp uninstall` leaves of an installation: nothing, and everything that was there before.

use std::path::Path;

use crate::fixture::settings::SettingsFixture;

/// A client, its settings file below the home, and settings with an entry `haft` of the user's own.
const WITH_OWN_ENTRY: &[(&str, &str, &str)] = &[
    (
        "claude",
        ".claude.json",
        "{\"mcpServers\":{\"haft\":{\"command\":\"mine\"}, \"b\":{\"command\":\"b\"}}}",
    ),
    (
        "codex",
        ".codex/config.toml",
        "[mcp_servers.haft] # mine\ncommand = \"mine\"\n\n[mcp_servers.haft.env]\nA = 'b'\n",
    ),
    (
        "gemini",
        ".gemini/settings.json",
        "{\n  \"mcpServers\": {\n    // mine\n    \"haft\": { \"command\": \"mine\" }\n  }\n}\n",
    ),
    (
        "goose",
        ".config/goose/config.yaml",
        "extensions:\n  haft:\n    cmd: mine # my own\n    args: [a]\n  b:\n    cmd: b\nGOOSE_MODEL: m\n",
    ),
];

fn read(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

#[test]
fn an_entry_of_the_user_s_own_comes_back() {
    for (client, file, old) in WITH_OWN_ENTRY {
        let fixture = SettingsFixture::new();
        let path = fixture.plant(file, old);
        fixture.done(&["mcp", "install", client, "--yes"]);
        let with = read(&path).unwrap();
        assert!(!with.contains("mine\""), "{client}: {with}");
        let again = fixture.done(&["mcp", "install", client, "--yes"]);
        assert!(again.stderr.contains("nothing to do"), "{client}: {}", again.stderr);
        assert_eq!(read(&path).as_deref(), Some(with.as_str()), "{client}");
        fixture.done(&["mcp", "install", client, "--yes", "--", "--dialect", "loom"]);
        fixture.done(&["mcp", "uninstall", client, "--yes"]);
        assert_eq!(read(&path).as_deref(), Some(*old), "{client}");
        // The uninstallation can be undone, and made again.
        fixture.done(&["undo", "--yes"]);
        assert!(read(&path).unwrap().contains("loom"), "{client}");
        fixture.done(&["mcp", "uninstall", client, "--yes"]);
        assert_eq!(read(&path).as_deref(), Some(*old), "{client}");
    }
}

#[test]
fn an_entry_of_the_user_s_own_comes_back_into_a_file_that_has_changed() {
    for (client, file, old) in WITH_OWN_ENTRY {
        let fixture = SettingsFixture::new();
        let path = fixture.plant(file, old);
        fixture.done(&["mcp", "install", client, "--yes"]);
        let more = match path.extension().and_then(|extension| extension.to_str()) {
            Some("json") => read(&path).unwrap().replacen('{', "{\"later\": 1,", 1),
            Some("toml") => format!("later = 1\n{}", read(&path).unwrap()),
            _ => format!("{}later: 1\n", read(&path).unwrap()),
        };
        std::fs::write(&path, &more).unwrap();
        let again = fixture.done(&["mcp", "install", client, "--yes"]);
        assert!(again.stderr.contains("nothing to do"), "{client}: {}", again.stderr);
        assert_eq!(read(&path), Some(more), "{client}: the entry stays where it is");
        fixture.done(&["mcp", "uninstall", client, "--yes"]);
        let left = read(&path).unwrap();
        assert!(
            left.contains("later") && left.contains("mine") && !left.contains("mcp\""),
            "{client}: {left}"
        );
    }
}

/// A client whose own tools can be turned off, its settings file with the entry and the one that turns them off, what that
/// says of them, and settings of a user.
const REPLACEABLE: &[(&str, &str, &str, &str, &str)] = &[
    (
        "claude",
        ".claude.json",
        ".claude/settings.json",
        "\"NotebookEdit\"",
        "{\n  \"permissions\": {\n    \"deny\": [\n      \"Foo\", // keep\n      \"Bash\"\n    ]\n  }\n}\n",
    ),
    (
        "codex",
        ".codex/config.toml",
        ".codex/config.toml",
        "shell_tool = false",
        "model = \"m\" # mine\n\n[features]\nview_image = true\n",
    ),
    (
        "gemini",
        ".gemini/settings.json",
        ".gemini/settings.json",
        "\"write_file\"",
        "{\n  \"tools\": {\n    \"exclude\": [\n      \"glob\" // keep\n    ]\n  }\n}\n",
    ),
    (
        "opencode",
        ".config/opencode/opencode.json",
        ".config/opencode/opencode.json",
        "\"bash\": false",
        "{\"tools\": {\"edit\": true}}\n",
    ),
];

#[test]
fn own_tools_stay_off_until_the_last_entry_goes() {
    for (client, file, replaced, off, old) in REPLACEABLE {
        for order in [["h1", "h2"], ["h2", "h1"]] {
            for old in [None, Some(*old)] {
                let fixture = SettingsFixture::new();
                if let Some(old) = old {
                    fixture.plant(replaced, old);
                }
                let (file, replaced) = (fixture.at_home(file), fixture.at_home(replaced));
                let has = |path: &Path, words: &str| read(path).is_some_and(|text| text.contains(words));
                for name in ["h1", "h2"] {
                    fixture.done(&["mcp", "install", client, "--replace-builtin", "--name", name, "--yes"]);
                }
                assert!(has(&replaced, off), "{client}");
                for comment in ["// keep", "# mine"] {
                    assert!(
                        !old.is_some_and(|old| old.contains(comment)) || has(&replaced, comment),
                        "{client}"
                    );
                }
                let said = fixture.done(&["mcp", "uninstall", client, "--name", order[0], "--yes"]).stderr;
                assert!(said.contains(&format!("stay turned off for {}", order[1])), "{client}: {said}");
                assert!(has(&replaced, off) && has(&file, order[1]) && !has(&file, order[0]), "{client}");
                fixture.done(&["mcp", "uninstall", client, "--name", order[1], "--yes"]);
                assert_eq!(read(&replaced).as_deref(), old, "{client} {order:?}");
                if old.is_none() {
                    let left = std::fs::read_dir(fixture.at_home("")).unwrap().count();
                    assert_eq!(left, 0, "{client}: files and directories that were created are gone");
                }
            }
        }
    }
}

#[test]
fn what_was_turned_off_stays_off_and_is_reported() {
    for (client, _, replaced, off, _) in REPLACEABLE {
        let fixture = SettingsFixture::new();
        let plain = fixture.done(&["mcp", "install", client, "--yes"]).stderr;
        assert!(plain.contains("own tools stay enabled"), "{client}: {plain}");
        let said = fixture.done(&["mcp", "install", client, "--replace-builtin", "--yes"]).stderr;
        assert!(!said.contains("stay enabled"), "{client}: {said}");
        assert_eq!(said.contains("apply_patch"), *client == "codex", "{client}: {said}");
        for flags in [&[][..], &["--", "--dialect", "loom"]] {
            let said = fixture.done(&[&["mcp", "install", client, "--yes"], flags].concat()).stderr;
            assert!(
                said.contains("tools are turned off") && !said.contains("stay enabled"),
                "{client}: {said}"
            );
            assert!(read(&fixture.at_home(replaced)).unwrap().contains(off), "{client}");
        }
        fixture.done(&["mcp", "uninstall", client, "--yes"]);
        assert_eq!(std::fs::read_dir(fixture.at_home("")).unwrap().count(), 0, "{client}");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_named_and_reverted_after_its_repair() {
    for (client, file, replaced, _, old) in REPLACEABLE {
        let fixture = SettingsFixture::new();
        let path = fixture.plant(replaced, old);
        fixture.done(&["mcp", "install", client, "--replace-builtin", "--yes"]);
        let (with, entry) = (read(&path).unwrap(), read(&fixture.at_home(file)));
        std::fs::write(&path, format!("{with}}}")).unwrap();
        let ran = fixture.haft(&["mcp", "uninstall", client, "--yes"]);
        assert_eq!(ran.code, 1, "{client}: {}", ran.stderr);
        assert!(
            ran.stderr.contains(replaced) && ran.stderr.contains("Fix it first"),
            "{client}: {}",
            ran.stderr
        );
        if file != replaced {
            assert_eq!(read(&fixture.at_home(file)), entry, "{client}: nothing was changed");
        }
        std::fs::write(&path, with).unwrap();
        fixture.done(&["mcp", "uninstall", client, "--yes"]);
        assert_eq!(read(&path).as_deref(), Some(*old), "{client}");
    }
}

#[test]
fn an_empty_file_and_directories_in_use_stay() {
    let fixture = SettingsFixture::new();
    let empty = fixture.plant(".codex/config.toml", "");
    fixture.done(&["mcp", "install", "codex", "--replace-builtin", "--yes"]);
    fixture.done(&["mcp", "uninstall", "codex", "--yes"]);
    assert_eq!(read(&empty).as_deref(), Some(""));
    fixture.done(&["mcp", "install", "claude", "--replace-builtin", "--yes"]);
    fixture.plant(".claude/todo.json", "[]");
    fixture.done(&["mcp", "uninstall", "claude", "--yes"]);
    assert!(!fixture.at_home(".claude/settings.json").exists());
    assert_eq!(read(&fixture.at_home(".claude/todo.json")).as_deref(), Some("[]"));
}

#[test]
fn an_entry_in_the_other_settings_is_mentioned() {
    let fixture = SettingsFixture::new();
    for (here, there) in [(&["--project"][..], &[][..]), (&[], &["--project"])] {
        fixture.done(&[&["mcp", "install", "claude", "--yes"], here].concat());
        let said = fixture.done(&[&["mcp", "uninstall", "claude", "--yes"], there].concat()).stderr;
        let flag = if here.is_empty() { "without --project" } else { "with --project" };
        assert!(said.contains("nothing to do") && said.contains(flag), "{said}");
        fixture.done(&[&["mcp", "uninstall", "claude", "--yes"], here].concat());
        let said = fixture.done(&[&["mcp", "uninstall", "claude", "--yes"], there].concat()).stderr;
        assert!(!said.contains("--project"), "{said}");
    }
}
