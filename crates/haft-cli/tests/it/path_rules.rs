//! Rules about paths hold for commands, too.

use serde_json::{Value, json};

use crate::fixture::cli::CliFixture;
use crate::fixture::sandbox::base;

/// A workspace with files, and rules of the project's settings.
fn with_rules(deny: &[&str]) -> CliFixture {
    let cli = CliFixture::new();
    for (path, content) in [
        ("private/a.txt", "hidden"),
        ("src/deep/x.key", "hidden"),
        ("src/main.rs", "open"),
        ("locked/a.txt", "before"),
        ("notes.txt", "open"),
    ] {
        std::fs::create_dir_all(cli.path(path).parent().unwrap()).unwrap();
        std::fs::write(cli.path(path), content).unwrap();
    }
    let settings = json!({"permissions": {"deny": deny}});
    std::fs::create_dir_all(cli.path(".claude")).unwrap();
    std::fs::write(cli.path(".claude/settings.json"), settings.to_string()).unwrap();
    cli
}

/// What a command printed, and the receipt's refusals.
fn bash(cli: &CliFixture, command: &str) -> (String, Value) {
    let done = cli.haft(&["call", "Bash", &json!({"command": command}).to_string(), "--json"]);
    let result: Value = serde_json::from_str(&done.stdout).unwrap();
    (result["content"].to_string(), result["structured"]["denials"].clone())
}

#[test]
fn commands_do_not_read_what_read_rules_deny() {
    let rules = ["Read(/private/**)", "Read(*.key)"];
    for command in [
        "cat private/a.txt",
        "cp -r private copy; cat copy/a.txt",
        "mv private other; cat other/a.txt",
        "ln private/a.txt linked; cat linked",
        "ln -s private shown; cat shown/a.txt",
        "cat src/deep/x.key",
        "mv src/deep/x.key src/deep/x.txt; cat src/deep/x.txt",
        "mv src/deep elsewhere; cat elsewhere/x.key",
        "cd src/deep && python3 -c \"print(open('x.key').read())\"",
        "grep -r hidden .",
        "git init -q . && git add -A && git show :private/a.txt",
        "tar c . | tar xO",
    ] {
        let (printed, denials) = bash(&with_rules(&rules), command);
        assert!(!printed.contains("hidden"), "{command}: {printed}");
        assert!(
            printed.contains("denied") || denials.to_string().contains("rule"),
            "{command}: {printed} {denials}"
        );
    }
    let cli = with_rules(&rules);
    assert!(bash(&cli, "cat src/main.rs notes.txt").0.contains("openopen"));
    let own = bash(&cli, "echo mine > own.key && cat own.key");
    assert!(own.0.contains("mine"), "{own:?}");
}

#[test]
fn directories_are_not_moved_away_from_rules() {
    for (rule, command) in [
        ("Read(/private/**)", "mv private/sub out; cat out/s"),
        ("Read(/private)", "mv private/sub out; cat out/s"),
        ("Read(/conf/*/s)", "mkdir out; mv conf/x out/x; cat out/x/s"),
        ("Read(**/keys/*.pem)", "mv deep/keys out; cat out/a.pem"),
        ("Read(**/secrets/**)", "mv n/secrets n/a; cat n/a/f"),
        ("Edit(/conf/*/s)", "mkdir out; mv conf/x out/x; echo hidden > out/x/s"),
        ("Edit(/conf/*/s)", "cp -r conf/x y; echo changed > y/s; mkdir z; mv y conf/z"),
        ("Edit(**/prod/**)", "mv deep/q/prod out; echo changed > out/f"),
        (
            "Read(/private/**)",
            "python3 -c 'import ctypes; ctypes.CDLL(None).renameat2(-100, b\"private/sub\", -100, b\"src\", 2)'; cat src/s",
        ),
    ] {
        let cli = with_rules(&[rule]);
        for path in ["private/sub/s", "conf/x/s", "deep/keys/a.pem", "n/secrets/f", "deep/q/prod/f"] {
            std::fs::create_dir_all(cli.path(path).parent().unwrap()).unwrap();
            std::fs::write(cli.path(path), "hidden").unwrap();
        }
        let (printed, denials) = bash(&cli, command);
        assert!(!printed.contains("hidden"), "{rule}: {command}: {printed}");
        assert!(denials.to_string().contains("rule denies"), "{rule}: {command}: {denials}");
        assert!(cli.path("conf/x/s").exists() && !cli.path("conf/z").exists(), "{rule}: {command}");
        assert_eq!(
            std::fs::read_to_string(cli.path("deep/q/prod/f")).unwrap(),
            "hidden",
            "{rule}: {command}"
        );
    }
    // Other directories move as before.
    let cli = with_rules(&["Read(/private/**)", "Edit(*.lock)"]);
    assert_eq!(bash(&cli, "mv src/deep there && mkdir a && mv a b").1, json!([]));
}

#[test]
fn commands_do_not_write_what_edit_rules_deny() {
    let cli = with_rules(&["Edit(/locked/**)", "Edit(*.lock)"]);
    for command in [
        "echo after > locked/a.txt",
        "echo after >> locked/a.txt",
        "rm locked/a.txt",
        "touch locked/new",
        "mv notes.txt locked/a.txt",
        "mv locked open && echo after > open/a.txt && mv open locked",
        "rm -rf locked",
        "ln -s locked way; echo after > way/a.txt",
        "chmod 777 locked/a.txt",
        "python3 -c \"import os; os.truncate('locked/a.txt', 0)\"",
        "echo x > Cargo.lock",
        "mv notes.txt notes.lock",
        "ln notes.txt notes.lock",
    ] {
        let (printed, denials) = bash(&cli, command);
        assert!(
            denials.to_string().contains("a rule denies it") || printed.contains("may not be accessed"),
            "{command}: {printed} {denials}"
        );
        assert_eq!(std::fs::read_to_string(cli.path("locked/a.txt")).unwrap(), "before", "{command}");
        assert!(!cli.path("locked/new").exists() && !cli.path("Cargo.lock").exists(), "{command}");
        assert!(cli.path("notes.txt").exists() && !cli.path("notes.lock").exists(), "{command}");
    }
    let (printed, denials) = bash(&cli, "cat locked/a.txt && echo y >> notes.txt && mkdir made");
    assert!(printed.contains("before") && denials == json!([]), "{printed} {denials}");
}

#[test]
fn files_outside_of_the_workspace_that_a_rule_names_are_not_read_by_commands() {
    let outside = tempfile::Builder::new().prefix("haft-outside-").tempdir_in(base()).unwrap();
    std::fs::write(outside.path().join("a.txt"), "hidden").unwrap();
    std::fs::write(outside.path().join("b.txt"), "open").unwrap();
    let shown = outside.path().join("b.txt");
    let command = format!("cat {}/a.txt {}", outside.path().display(), shown.display());
    let (printed, _) = bash(&with_rules(&[]), &command);
    assert!(printed.contains("hidden") && printed.contains("open"), "{printed}");
    let (printed, _) = bash(&with_rules(&[&format!("Read(/{}/a.txt)", outside.path().display())]), &command);
    assert!(!printed.contains("hidden") && printed.contains("open"), "{printed}");
}

#[test]
fn rules_that_name_links_hold_for_what_these_lead_to() {
    use std::os::unix::fs::symlink;
    let outside = tempfile::Builder::new().prefix("haft-outside-").tempdir_in(base()).unwrap();
    let real = outside.path().join("real");
    std::fs::create_dir(&real).unwrap();
    std::fs::write(real.join("a.txt"), "hidden").unwrap();
    symlink("real", outside.path().join("shown")).unwrap();
    let rule = format!("Read(/{}/shown/**)", outside.path().display());
    let cli = with_rules(&["Read(/way/**)", "Edit(/conf/**)", "Edit(/one.txt)", &rule]);
    // One link leads to the next one.
    symlink("between", cli.path("way")).unwrap();
    symlink("src/../private", cli.path("between")).unwrap();
    symlink(cli.path("locked"), cli.path("conf")).unwrap();
    symlink("notes.txt", cli.path("one.txt")).unwrap();
    for command in [
        "cat way/a.txt",
        "cat private/a.txt",
        "mv private other; cat other/a.txt",
        "rm between; cat private/a.txt",
        "echo after > conf/a.txt",
        "echo after > locked/a.txt",
        "echo after > one.txt",
        "echo after > notes.txt",
        "ln -sfn src way",
        "mv between elsewhere",
        &format!("cat {}/a.txt", real.display()),
    ] {
        let (printed, _) = bash(&cli, command);
        assert!(!printed.contains("hidden"), "{command}: {printed}");
        assert_eq!(std::fs::read_to_string(cli.path("locked/a.txt")).unwrap(), "before", "{command}");
        assert_eq!(std::fs::read_to_string(cli.path("notes.txt")).unwrap(), "open", "{command}");
        assert_eq!(std::fs::read_link(cli.path("way")).unwrap().to_str(), Some("between"), "{command}");
        assert!(cli.path("between").is_symlink(), "{command}");
    }
    for path in [cli.path("private/a.txt"), real.join("a.txt")] {
        let read = cli.haft(&["call", "Read", &json!({"file_path": path}).to_string()]);
        assert!(!read.stdout.contains("hidden") && read.code != 0, "{path:?}: {}", read.stdout);
        let search = json!({"pattern": "hidden", "path": path.parent(), "output_mode": "content"});
        let found = cli.haft(&["call", "Grep", &search.to_string()]);
        assert!(!found.stdout.contains("hidden"), "{path:?}: {}", found.stdout);
    }
    assert!(bash(&cli, "cat src/main.rs locked/a.txt && echo x > src/new").0.contains("openbefore"));
}
