//! What an undo would bring into effect, and what many directories could hide.

use super::guards::{REPOSITORY, Workspace, in_every_mode};
use crate::fixture::sandbox::{SandboxFixture, User};

/// What the user has, the command that is undone, the one after it, and the file that must not come into effect.
const NAMED_AGAIN: [(&str, &str, &str, &str); 4] = [
    (
        "git config include.path ../inc; echo > inc",
        "git config --unset include.path",
        "printf '[core]\\n\\tfsmonitor = touch PWNED\\n' > inc",
        "inc",
    ),
    (
        "mkdir hk; git config core.hooksPath hk",
        "git config --unset core.hooksPath",
        "printf '#!/bin/sh\\necho PWNED\\n' > hk/pre-commit; chmod +x hk/pre-commit",
        "hk/pre-commit",
    ),
    (
        "mkdir scripts; printf '#!/bin/sh\\n' > scripts/pc; chmod +x scripts/pc; ln -s ../../scripts/pc .git/hooks/pre-commit",
        "rm .git/hooks/pre-commit",
        "printf '#!/bin/sh\\necho PWNED\\n' > scripts/pc",
        "scripts/pc",
    ),
    (
        "mkdir shared; echo '{}' > shared/tasks.json; ln -s shared .vscode; git add -A; git commit -qm link",
        "rm .vscode",
        "echo PWNED > shared/tasks.json",
        "shared/tasks.json",
    ),
];

#[test]
fn h1_undo_names_no_file_again_that_a_later_call_wrote() {
    for (set_up, unnamed, written, file) in NAMED_AGAIN {
        in_every_mode(|space| {
            space.user(&format!("{REPOSITORY}; {set_up}"));
            for script in [unnamed, written] {
                let ran = space.run(script);
                assert!(ran.code == 0 && !ran.stderr.contains("Refused"), "{script}: {}", ran.stderr);
            }
            let left = space.read(file);
            for force in [&["undo", "1", "--yes"][..], &["undo", "1", "--yes", "--force"]] {
                let undo = space.fixture.haft(force);
                assert_eq!(undo.code, 1, "{}{}", undo.stdout, undo.stderr);
                assert!(undo.stderr.contains("Undo that call, too"), "{}", undo.stderr);
            }
            assert_eq!(space.read(file), left);
            let config = space.read(".git/config");
            assert!(!config.contains("include") && !config.contains("hooksPath"), "{config}");
            assert!(!space.exists(".git/hooks/pre-commit") && !space.exists(".vscode"));
            let both = space.fixture.haft(&["undo", "1", "2", "--yes"]);
            assert_eq!(both.code, 0, "{}{}", both.stdout, both.stderr);
        });
    }
    // A directory comes back to where it is named, and a directory becomes a repository again.
    for (set_up, away, written) in [
        (
            "mkdir hk; touch hk/x; git config core.hooksPath hk",
            "mv hk old",
            "printf '#!/bin/sh\\necho PWNED\\n' > old/pre-commit; chmod +x old/pre-commit",
        ),
        (
            "mkdir shared; echo 1 > shared/x; ln -s shared .vscode",
            "mv shared old",
            "echo PWNED > old/tasks.json",
        ),
        (
            "git init -q --bare x; touch x/refs/keep",
            "rm -rf x/refs",
            "printf '[core]\\n\\tfsmonitor = touch PWNED\\n' > x/config",
        ),
    ] {
        in_every_mode(|space| {
            space.user(&format!("{REPOSITORY}; {set_up}"));
            for script in [away, written] {
                let ran = space.run(script);
                assert!(ran.code == 0 && !ran.stderr.contains("Refused"), "{script}: {}", ran.stderr);
            }
            let undo = space.fixture.haft(&["undo", "1", "--yes"]);
            assert_eq!(undo.code, 1, "{away}: {}{}", undo.stdout, undo.stderr);
            let both = space.fixture.haft(&["undo", "1", "2", "--yes"]);
            assert_eq!(both.code, 0, "{}{}", both.stdout, both.stderr);
        });
    }
    // What only the user has written may be named again.
    for (set_up, unnamed, _, _) in NAMED_AGAIN {
        in_every_mode(|space| {
            space.user(&format!("{REPOSITORY}; {set_up}"));
            assert_eq!(space.run(unnamed).code, 0);
            let undo = space.fixture.haft(&["undo", "--yes"]);
            assert_eq!(undo.code, 0, "{unnamed}: {}{}", undo.stdout, undo.stderr);
        });
    }
}

#[test]
fn undo_puts_nothing_unjudged_into_files_that_are_named_meanwhile() {
    for (prepared, harmless, naming, file) in [
        (
            "printf '[core]\\n\\tfsmonitor = touch PWNED\\n' > inc",
            "echo '[user]' > inc",
            "git config include.path ../inc",
            "inc",
        ),
        (
            "mkdir hk; printf '#!/bin/sh\\necho PWNED\\n' > hk/pre-commit; chmod +x hk/pre-commit",
            "echo > hk/pre-commit",
            "git config core.hooksPath hk",
            "hk/pre-commit",
        ),
        (
            "mkdir hk; printf '#!/bin/sh\\necho PWNED\\n' > hk/pre-commit; chmod +x hk/pre-commit",
            "chmod -x hk/pre-commit",
            "git config core.hooksPath hk",
            "hk/pre-commit",
        ),
        ("echo PWNED > prog", "echo > prog", "git config core.fsmonitor ./prog", "prog"),
        (
            "mkdir vs; echo PWNED > vs/tasks.json",
            "echo '{}' > vs/tasks.json",
            "ln -s vs .vscode",
            "vs/tasks.json",
        ),
    ] {
        in_every_mode(|space| {
            space.user(REPOSITORY);
            for script in [prepared, harmless] {
                let ran = space.run(script);
                assert!(ran.code == 0 && !ran.stderr.contains("Refused"), "{script}: {}", ran.stderr);
            }
            space.user(naming);
            let mode = || space.fixture.path("work").join(file).metadata().unwrap().permissions();
            let left = (space.read(file), mode());
            let undo = space.fixture.haft(&["undo", "2", "--yes"]);
            assert_eq!(undo.code, 1, "{prepared}: {}{}", undo.stdout, undo.stderr);
            assert_eq!((space.read(file), mode()), left, "{prepared}");
            let both = space.fixture.haft(&["undo", "1", "2", "--yes"]);
            assert_eq!(both.code, 0, "{}{}", both.stdout, both.stderr);
        });
    }
    // The user's own content comes back, and so does what is not named like settings.
    in_every_mode(|space| {
        space.user(&format!("{REPOSITORY}; mkdir -p c/agents; echo 1 > inc; echo 1 > c/agents/a"));
        space.run("echo 2 > inc; echo 2 > c/agents/a");
        space.run("echo 3 > c/agents/a");
        space.user("git config include.path ../inc; ln -s c .claude");
        for call in ["2", "1"] {
            let undo = space.fixture.haft(&["undo", call, "--yes"]);
            assert_eq!(undo.code, 0, "{call}: {}{}", undo.stdout, undo.stderr);
        }
        assert_eq!((space.read("inc"), space.read("c/agents/a")), ("1\n".to_owned(), "1\n".to_owned()));
    });
}

#[test]
fn h2_merged_undo_makes_no_hook_executable() {
    in_every_mode(|space| {
        space.user(&format!(
            "{REPOSITORY}; printf '#!/bin/sh\\n# 1\\n# 2\\n# 3\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit"
        ));
        for script in ["chmod -x .git/hooks/pre-commit", "echo echo PWNED >> .git/hooks/pre-commit"] {
            space.run(script);
        }
        let undo = space.fixture.haft(&["undo", "1", "--merge", "--yes"]);
        assert_eq!(undo.code, 1, "{}{}", undo.stdout, undo.stderr);
        let said = space.user("git commit -q --allow-empty -m later 2>&1");
        assert!(!said.contains("PWNED"), "{}: {said}", space.namespaces);
    });
}

#[test]
fn h3_many_directories_hide_no_named_files() {
    let space = Workspace { fixture: SandboxFixture::new(User::Current), namespaces: "true" };
    space
        .user("mkdir -p sub/deep shared; ln -s ../../shared sub/deep/.vscode; echo '{}' > shared/tasks.json");
    let ran = space.run("python3 -c \"import os\nfor n in range(20100): os.mkdir('z%d' % n)\"");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let ran = space.run("echo PWNED > shared/tasks.json");
    assert!(ran.stderr.contains("Refused"), "{}", ran.stderr);
    assert_eq!(space.read("shared/tasks.json"), "{}\n");
}

#[test]
fn many_files_hide_no_named_files() {
    // Hard links, because they are made fast.
    const FILL: &str = "import os\n\
        for n in range(1000100):\n    \
            if n % 50000 == 0: last = 'f%d' % n; open(last, 'w').close()\n    \
            else: os.link(last, 'l%d' % n)\n";
    let space = Workspace { fixture: SandboxFixture::new(User::Current), namespaces: "true" };
    space.fixture.file("outside/fill.py", FILL);
    space.user("mkdir -p sub shared; ln -s ../shared sub/.vscode; echo '{}' > shared/tasks.json; python3 ../outside/fill.py");
    let ran = space.run("echo PWNED > shared/tasks.json");
    assert!(ran.stderr.contains("Refused"), "{}", ran.stderr);
    assert_eq!(space.read("shared/tasks.json"), "{}\n");
}
